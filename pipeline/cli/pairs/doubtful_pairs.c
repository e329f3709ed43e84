/*
 * Doubtful pairs of a database; see doubtful_pairs.h.
 */
#include "pipeline/cli/pairs/doubtful_pairs.h"

#include <stdlib.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

enum { PAIRS_PER_LOOK = 4096, FEATURE_BYTES = 5 /* hs_judge_options.allocator */ };

typedef struct doubtful_job {
  const doubtful_plan *plan;
  size_t *feature_counts; /* of each image that a pair is of, else 0 */
  hs_judged_pair *pairs;
  int64_t *pair_ids;
  size_t count, capacity, looked_at;
  size_t taken_back, set_aside, damaged;
  bool has_damaged; /* a list is damaged, or has an index beyond its image's features */
  int stopped_by;   /* a signal; 0: none */
} doubtful_job;

static cli_exit fail(const doubtful_job *job, const char *reason) {
  cli_error(COMMAND_MATCH, "%s: %s", job->plan->images->path, reason);
  return CLI_FAILED;
}

static cli_exit fail_database(const doubtful_job *job) {
  cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(job->plan->database));
  return CLI_FAILED;
}

/* Whether to continue; looks for a signal now and then. */
static bool should_continue(doubtful_job *job) {
  if (job->stopped_by == 0 && job->looked_at++ % PAIRS_PER_LOOK == 0)
    job->stopped_by = stop_signals_take(job->plan->signals);
  return job->stopped_by == 0;
}

static cli_exit say_stopped(const doubtful_job *job) {
  cli_error(COMMAND_MATCH, "%s: stopped by %s before its doubtful pairs were left out; the same command continues",
            job->plan->images->path, stop_signal_name(job->stopped_by));
  return CLI_FAILED;
}

/* ------------------------------------------------------------------ the pairs */

static bool grow(doubtful_job *job) {
  if (job->count < job->capacity) return true;
  const size_t capacity = job->capacity > 0 ? 2 * job->capacity : 1024;
  hs_judged_pair *const pairs = realloc(job->pairs, capacity * sizeof *pairs);
  if (pairs) job->pairs = pairs;
  int64_t *const pair_ids = realloc(job->pair_ids, capacity * sizeof *pair_ids);
  if (pair_ids) job->pair_ids = pair_ids;
  if (!pairs || !pair_ids) return false;
  job->capacity = capacity;
  return true;
}

/* The index of an image; false: it has no features, so its pairs mean nothing. */
static bool find_image(const database_images *images, uint32_t image_id, uint32_t *index) {
  size_t low = 0, high = images->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (images->each[middle].image_id < image_id)
      low = middle + 1;
    else
      high = middle;
  }
  *index = (uint32_t)low;
  return low < images->count && images->each[low].image_id == image_id;
}

/* A guided pair's share of inliers is that of its first pass, because guided matches are nearly all inliers. */
static size_t count_matches(const colmap_verified_pair *pair) {
  if (pair->inliers == pair->stored || pair->inliers == 0) return pair->matches;
  return (size_t)((uint64_t)pair->stored * pair->matches / pair->inliers);
}

static cli_exit list_pairs(doubtful_job *job) {
  const database_images *const images = job->plan->images;
  colmap_verified_pair next = {.pair_id = -1};
  while (should_continue(job)) {
    if (colmap_next_verified(job->plan->database, next.pair_id, &next) != HS_OK) return fail_database(job);
    if (next.pair_id < 0) return CLI_DONE;
    hs_judged_pair pair = {.match_count = count_matches(&next), .inlier_count = next.stored};
    job->damaged += next.is_damaged;
    if (next.is_damaged || !find_image(images, next.images[0], &pair.images.first) ||
        !find_image(images, next.images[1], &pair.images.second))
      continue;
    if (!grow(job)) return fail(job, "out of memory for its pairs");
    job->pair_ids[job->count] = next.pair_id;
    job->pairs[job->count++] = pair;
  }
  return say_stopped(job);
}

static cli_exit count_features(doubtful_job *job) {
  const database_images *const images = job->plan->images;
  const uint64_t limit = job->plan->max_memory_bytes;
  uint64_t features = 0;
  job->feature_counts = calloc(images->count + 1, sizeof *job->feature_counts);
  if (!job->feature_counts) return fail(job, "out of memory for its images");
  for (size_t p = 0; p < job->count; p++) {
    job->feature_counts[job->pairs[p].images.first] = 1;
    job->feature_counts[job->pairs[p].images.second] = 1;
  }
  for (size_t i = 0; i < images->count; i++) {
    if (job->feature_counts[i] == 0) continue;
    if (colmap_count_held_keypoints(job->plan->database, images->each[i].image_id, &job->feature_counts[i]) != HS_OK)
      return fail_database(job);
    features += job->feature_counts[i];
  }
  const double bytes = (double)features * FEATURE_BYTES + (double)job->capacity * (sizeof *job->pairs + 8);
  if (limit == 0 || bytes <= (double)limit) return CLI_DONE;
  cli_error(COMMAND_MATCH,
            "%s: %.0f bytes are needed to judge its %zu verified pairs: expected a larger --max-memory, or --doubtful "
            "keep",
            images->path, bytes, job->count);
  return CLI_FAILED;
}

/* ------------------------------------------------------------------ judging */

/* hs_pair_inliers.read */
static hs_status read_inliers(void *user, size_t pair, uint32_t *inliers) {
  doubtful_job *const job = user;
  const hs_judged_pair *const judged = &job->pairs[pair];
  if (!should_continue(job)) return HS_ERR_INTERNAL;
  hs_status status = colmap_read_inliers(job->plan->database, job->pair_ids[pair], inliers, judged->inlier_count);
  for (size_t i = 0; status == HS_OK && i < judged->inlier_count; i++)
    if (inliers[2 * i] >= job->feature_counts[judged->images.first] ||
        inliers[2 * i + 1] >= job->feature_counts[judged->images.second])
      status = HS_ERR_FORMAT;
  job->has_damaged = job->has_damaged || status == HS_ERR_FORMAT;
  return status;
}

/* Takes the pairs off the list whose inliers cannot be read. */
static cli_exit drop_damaged(doubtful_job *job) {
  size_t kept = 0, most = 0;
  for (size_t p = 0; p < job->count; p++) most = job->pairs[p].inlier_count > most ? job->pairs[p].inlier_count : most;
  uint32_t *const inliers = calloc(most + 1, 2 * sizeof *inliers);
  if (!inliers) return fail(job, "out of memory for the inliers of a pair");
  hs_status status = HS_OK;
  for (size_t p = 0; p < job->count && (status == HS_OK || status == HS_ERR_FORMAT); p++) {
    status = read_inliers(job, p, inliers);
    job->damaged += status == HS_ERR_FORMAT;
    if (status != HS_OK) continue;
    job->pair_ids[kept] = job->pair_ids[p];
    job->pairs[kept++] = job->pairs[p];
  }
  free(inliers);
  job->count = kept;
  if (job->stopped_by != 0) return say_stopped(job);
  return status == HS_OK || status == HS_ERR_FORMAT ? CLI_DONE : fail_database(job);
}

static cli_exit judge(doubtful_job *job) {
  char message[CLI_MESSAGE_BYTES];
  hs_judge_options options;
  (void)hs_judge_options_init(&options);
  options.message = message;
  options.message_bytes = sizeof message;
  const hs_pair_inliers source = {.feature_counts = job->feature_counts,
                                  .image_count = job->plan->images->count,
                                  .read = read_inliers,
                                  .user = job};
  hs_status status = hs_judge_pairs(&source, job->pairs, job->count, &options);
  if (status == HS_ERR_FORMAT && job->has_damaged) {
    if (drop_damaged(job) != CLI_DONE) return CLI_FAILED;
    status = hs_judge_pairs(&source, job->pairs, job->count, &options);
  }
  if (status == HS_OK) return CLI_DONE;
  if (job->stopped_by != 0) return say_stopped(job);
  if (message[0] == '\0' && hs_colmap_last_error(job->plan->database)[0] != '\0') return fail_database(job);
  return fail(job, message[0] != '\0' ? message : hs_status_string(status));
}

/* ------------------------------------------------------------------ the outcome */

static void print_record(const doubtful_job *job, const hs_judged_pair *pair) {
  const database_image *const images = job->plan->images->each;
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, images[pair->images.first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, images[pair->images.second].name);
  printf(", \"doubtful\": true, \"inliers\": %zu, \"on_tracks\": %zu, \"supported\": %zu}\n", pair->inlier_count,
         pair->on_tracks, pair->supported);
}

static cli_exit set_aside(doubtful_job *job) {
  for (size_t p = 0; p < job->count; p++) {
    const hs_judged_pair *const pair = &job->pairs[p];
    if (pair->verdict != HS_PAIR_DOUBTFUL) continue;
    if (colmap_set_aside(job->plan->database, job->pair_ids[p], pair->on_tracks, pair->supported) != HS_OK)
      return fail_database(job);
    job->set_aside++;
  }
  return CLI_DONE;
}

static void tell(const doubtful_job *job) {
  const char *const path = job->plan->images->path;
  for (size_t p = 0; job->plan->has_json && p < job->count; p++)
    if (job->pairs[p].verdict == HS_PAIR_DOUBTFUL) print_record(job, &job->pairs[p]);
  if (job->plan->is_quiet) return;
  if (job->damaged > 0)
    cli_note("%s: %zu verified pair%s not judged: damaged, or of features that the images do not have", path,
             job->damaged, job->damaged == 1 ? "" : "s");
  if (job->set_aside > 0)
    cli_note("%s: %zu of %zu verified pairs left out as doubtful: tracks of the sure pairs do not confirm them"
             " (--doubtful keep takes them back)",
             path, job->set_aside, job->count);
  if (job->plan->keeps && job->taken_back > 0)
    cli_note("%s: %zu doubtful pair%s taken back", path, job->taken_back, job->taken_back == 1 ? "" : "s");
}

cli_exit doubtful_pairs_settle(const doubtful_plan *plan) {
  doubtful_job job = {.plan = plan};
  const bool judges = !plan->keeps;
  cli_exit result = colmap_take_back(plan->database, &job.taken_back) == HS_OK ? CLI_DONE : fail_database(&job);
  if (result == CLI_DONE && judges) result = list_pairs(&job);
  if (result == CLI_DONE && judges) result = count_features(&job);
  if (result == CLI_DONE && job.count > 0) result = judge(&job);
  if (result == CLI_DONE && judges) result = set_aside(&job);
  if (result == CLI_DONE && hs_colmap_commit(plan->database) != HS_OK) result = fail_database(&job);
  if (result == CLI_DONE) tell(&job);
  free(job.feature_counts);
  free(job.pairs);
  free(job.pair_ids);
  return result;
}
