/*
 * The device's thread: matches the pairs of a run on its GPU, many at a time; see pair_run.h.
 */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/match_call.h"
#include "pipeline/matching/pairs/pair_run.h"

/* The pairs of a batch. */
typedef struct device_batch {
  size_t index[PAIRS_PER_BATCH];
  descriptor_pair images[PAIRS_PER_BATCH];
  uint32_t count;
  match_limits limits;
} device_batch;

typedef struct device_work {
  hs_pairs *run;
  device_batch batches[PAIR_BATCHES]; /* ring: `in_flight` batches from `oldest` on are in flight */
  int32_t oldest, in_flight;
} device_work;

static bool has_ended(const hs_pairs *run) { return run->is_ending || run->failure != HS_OK; }

static void fail_stage(hs_pairs *run, stage_status status) {
  pair_run_fail(run, status == STAGE_OUT_OF_MEMORY ? HS_ERR_MEMORY : HS_ERR_DEVICE, run->engine->error_text());
}

/* Passes the record of a taken pair to verification, or stores it as the result. The caller holds the lock. */
static void hand_on(hs_pairs *run, size_t index, pair_record *record) {
  if (record && record->result.status == HS_OK && run->options.verify)
    pair_run_put_matched(run, record);
  else
    pair_run_finish(run, index, record);
}

/* Takes the next pair of the phase, and returns its index. The caller holds the lock. */
static size_t take(hs_pairs *run) {
  run->active++;
  return run->phase.pairs[run->next++];
}

/* ------------------------------------------------------------------ pairs outside batches */

/* Matches a pair that does not fit a batch: its descriptors are floats, or it has more features than the capacity of a
 * batch. */
static pair_record *match_alone(hs_pairs *run, size_t index) {
  const hs_image_pair *pair = &run->pairs[index];
  const match_placement host = {NULL, false};
  char message[PAIR_MESSAGE_BYTES] = "";
  const match_pair *found = NULL;
  match_request request;
  size_t count = 0;
  hs_status status = match_check_alone(run->images[pair->first].features, run->images[pair->second].features,
                                       &run->match, &request, message, sizeof message);
  if (status == HS_OK) {
    status = run->context->engine->matching->pairs(run->context, &request, &host, &found, &count);
    if (status != HS_OK) hs_message_set(message, sizeof message, "%s", run->context->error);
  }
  if (status != HS_OK) return pair_record_failed(run, index, status, message);
  pair_record *record = pair_record_make(run, index, count, run->options.verify != NULL);
  if (record && count > 0) memcpy(record->matches, found, count * sizeof *found);
  return record;
}

/* True if the next pair fits a batch; *bytes: memory of the batch that it needs. The caller holds the lock. */
static bool fits_batch(const hs_pairs *run, size_t index, match_request *request, uint64_t *bytes) {
  const hs_image_pair *pair = &run->pairs[index];
  const pair_image *a = &run->images[pair->first], *b = &run->images[pair->second];
  if (!a->on_device || !b->on_device ||
      match_check_alone(a->features, b->features, &run->match, request, NULL, 0) != HS_OK)
    return false;
  *bytes = run->engine->pair_bytes(a->features->count, b->features->count);
  return *bytes <= run->batch_bytes;
}

/* Takes and matches a pair outside the batches. The caller holds the lock, which is released during the work. */
static void take_alone(hs_pairs *run) {
  const size_t index = take(run);
  const hs_image_pair *pair = &run->pairs[index];
  const uint32_t images[2] = {pair->first, pair->second};
  pair_record *record = NULL;
  bool failed = false;
  for (int i = 0; i < 2 && !failed; i++) {
    const pair_image *image = &run->images[images[i]];
    failed = image->state == PAIR_IMAGE_FAILED;
    if (failed) record = pair_record_failed(run, index, image->status, image->message);
  }
  if (!failed) {
    pthread_mutex_unlock(&run->lock);
    record = match_alone(run, index);
    pthread_mutex_lock(&run->lock);
  }
  if (record && hs_status_class_of(record->result.status) == HS_CLASS_DEVICE)
    pair_run_fail(run, record->result.status, record->result.message);
  hand_on(run, index, record);
}

/* ------------------------------------------------------------------ batches */

/* Takes pairs for a batch until none is left or the next one does not fit. The caller holds the lock. */
static void fill(device_work *w, device_batch *batch) {
  hs_pairs *run = w->run;
  uint64_t used = 0, bytes = 0;
  batch->count = 0;
  while (batch->count < PAIRS_PER_BATCH && pair_run_may_take(run)) {
    const size_t index = run->phase.pairs[run->next];
    match_request request;
    if (!fits_batch(run, index, &request, &bytes) || used + bytes > run->batch_bytes) return;
    const hs_image_pair *pair = &run->pairs[take(run)];
    used += bytes;
    batch->limits = request.limits;
    batch->index[batch->count] = index;
    batch->images[batch->count++] =
        (descriptor_pair){run->images[pair->first].on_device, run->images[pair->second].on_device};
  }
}

/* Starts another batch. The caller holds the lock, which is released during the work. */
static void begin(device_work *w) {
  hs_pairs *run = w->run;
  const int32_t number = (w->oldest + w->in_flight) % PAIR_BATCHES;
  device_batch *batch = &w->batches[number];
  fill(w, batch);
  if (batch->count == 0) {
    take_alone(run);
    return;
  }
  w->in_flight++;
  pthread_mutex_unlock(&run->lock);
  const stage_status status =
      run->engine->begin(run->device, number, batch->images, batch->count, &batch->limits, run->match.mutual != 0);
  pthread_mutex_lock(&run->lock);
  if (status != STAGE_OK) fail_stage(run, status);
}

/* Waits for the oldest batch, and passes its pairs on. The caller holds the lock, which is released during the wait. */
static void finish(device_work *w) {
  hs_pairs *run = w->run;
  device_batch *batch = &w->batches[w->oldest];
  pair_record *records[PAIRS_PER_BATCH] = {NULL};
  pthread_mutex_unlock(&run->lock);
  const stage_status status = run->engine->finish(run->device, w->oldest);
  for (uint32_t i = 0; status == STAGE_OK && i < batch->count; i++) {
    uint32_t count;
    const match_pair *found = run->engine->result(run->device, w->oldest, i, &count);
    records[i] = pair_record_make(run, batch->index[i], count, run->options.verify != NULL);
    if (records[i] && count > 0) memcpy(records[i]->matches, found, count * sizeof *found);
  }
  pthread_mutex_lock(&run->lock);
  w->oldest = (w->oldest + 1) % PAIR_BATCHES;
  w->in_flight--;
  if (status != STAGE_OK) fail_stage(run, status);
  for (uint32_t i = 0; status == STAGE_OK && i < batch->count; i++) hand_on(run, batch->index[i], records[i]);
}

void *pair_device_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  device_work w = {.run = argument};
  hs_pairs *run = w.run;
  int32_t previous;
  const stage_status entered = run->engine->push(run->device, &previous);
  pthread_mutex_lock(&run->lock);
  if (entered != STAGE_OK) fail_stage(run, entered);
  while (!has_ended(run))
    if (w.in_flight < PAIR_BATCHES && pair_run_may_take(run))
      begin(&w);
    else if (w.in_flight > 0)
      finish(&w);
    else
      pthread_cond_wait(&run->matching, &run->lock);
  pthread_mutex_unlock(&run->lock);
  while (w.in_flight > 0) { /* batches in flight still write to memory that is freed below */
    (void)run->engine->finish(run->device, w.oldest);
    w.oldest = (w.oldest + 1) % PAIR_BATCHES;
    w.in_flight--;
  }
  if (entered == STAGE_OK) run->engine->pop(previous);
  return NULL;
}
