/*
 * Worker threads: match and verify the pairs of a run; see pair_run.h.
 */
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/match_call.h"
#include "pipeline/matching/pairs/pair_run.h"

/* A pair that is being processed, and its status so far. */
typedef struct pair_job {
  pair_worker *worker;
  size_t index;
  const pair_image *first, *second;
  hs_status status;
  char message[PAIR_MESSAGE_BYTES];
} pair_job;

/* Makes a record of the matches that the tests keep. */
static pair_record *collect(const pair_job *job, const match_request *r, const one_thread_nearest *found) {
  const hs_pairs *run = job->worker->run;
  size_t count = 0;
  for (uint32_t i = 0; i < r->first.count; i++) count += match_keeps(&r->limits, found->forward, found->backward, i);
  pair_record *record = pair_record_make(run, job->index, count, run->options.verify != NULL);
  if (!record) return NULL;
  hs_match_pair *to = record->matches;
  for (uint32_t i = 0; i < r->first.count; i++) {
    if (!match_keeps(&r->limits, found->forward, found->backward, i)) continue;
    const match_pair p = match_pair_of(i, &found->forward[i]);
    *to++ = (hs_match_pair){p.first, p.second, p.distance, p.next_distance};
  }
  return record;
}

/* Matches a pair. Null: job->status has the reason. */
static pair_record *match(pair_job *job, const hs_match_options *options) {
  one_thread_nearest found;
  match_request request;
  job->status = match_check_alone(job->first->features, job->second->features, options, &request, job->message,
                                  sizeof job->message);
  if (job->status == HS_OK)
    job->status = match_one_thread(&job->worker->matcher, &request, job->first->number,
                                   job->worker->run->options.skip_next_distance == 0, &found);
  if (job->status != HS_OK) return NULL;
  pair_record *record = collect(job, &request, &found);
  if (!record)
    job->status = HS_ERR_MEMORY;
  else
    record->result.device = job->worker->run->host_number;
  return record;
}

/* Verifies a record. On failure frees it and returns null; job->status has the reason. */
static pair_record *verified(pair_job *job, pair_record *record) {
  const hs_pairs *run = job->worker->run;
  if (!record || !run->options.verify) return record;
  job->status = pair_verify(run, &job->worker->scratch, record, job->message);
  if (job->status == HS_OK) return record;
  pair_record_free(run, record);
  return NULL;
}

/* Replaces a verified record by the result of guided matching, if that has at least as many inliers. */
static pair_record *guide(pair_job *job, pair_record *record) {
  const hs_pairs *run = job->worker->run;
  hs_match_options guided;
  pair_guide(run, record, &guided);
  pair_record *again = verified(job, match(job, &guided));
  if (!again) {
    pair_record_free(run, record);
    return NULL;
  }
  again->result.device = record->result.device;
  again->result.unguided_matches = record->result.match_count;
  again->result.unguided_inliers = record->found.model.inlier_count;
  const bool better =
      again->found.model.found != 0 && again->found.model.inlier_count >= record->found.model.inlier_count;
  pair_record_free(run, better ? record : again);
  return better ? again : record;
}

/* Processes a pair. matched: record from the device; null: the pair is not matched yet. */
static pair_record *work_off(pair_job *job, pair_record *matched) {
  const hs_pairs *run = job->worker->run;
  const pair_image *images[2] = {job->first, job->second};
  for (int i = 0; i < 2; i++)
    if (images[i]->state == PAIR_IMAGE_FAILED)
      return pair_record_failed(run, job->index, images[i]->status, images[i]->message);
  pair_record *record = verified(job, matched ? matched : match(job, &run->match));
  if (record && run->options.guided && record->found.model.found != 0) record = guide(job, record);
  return record ? record : pair_record_failed(run, job->index, job->status, job->message);
}

static bool has_ended(const hs_pairs *run) { return run->is_ending || run->failure != HS_OK; }

/* Waits for a record that a device has matched, or for a pair. False: no more will come. The caller holds the lock. */
static bool take(hs_pairs *run, size_t *index, pair_record **matched) {
  while (!has_ended(run) && !run->matched && !(run->workers_match && pair_run_next(run, index))) {
    run->waiting_workers++;
    pthread_cond_wait(&run->work, &run->lock);
    run->waiting_workers--;
  }
  if (has_ended(run)) return false;
  *matched = pair_run_take_matched(run);
  if (*matched) {
    *index = (*matched)->result.index;
    return true;
  }
  pair_run_take(run, *index);
  return true;
}

void *pair_worker_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  pair_worker *worker = argument;
  hs_pairs *run = worker->run;
  pair_record *matched;
  size_t index;
  pthread_mutex_lock(&run->lock);
  while (take(run, &index, &matched)) {
    pthread_mutex_unlock(&run->lock);
    const hs_image_pair *pair = &run->pairs[index];
    pair_job job = {
        .worker = worker, .index = index, .first = &run->images[pair->first], .second = &run->images[pair->second]};
    pair_record *record = work_off(&job, matched);
    pthread_mutex_lock(&run->lock);
    pair_run_finish(run, index, record);
  }
  pthread_mutex_unlock(&run->lock);
  return NULL;
}
