/*
 * Doubtful pairs of a database; see doubtful_pairs.h.
 */
#include "pipeline/cli/pairs/doubtful_pairs.h"

#include <stdlib.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

typedef struct doubtful_job {
  hs_colmap_database *database;
  const database_images *images;
  size_t *feature_counts; /* of each image */
  hs_judged_pair *pairs;
  int64_t *pair_ids;
  size_t count, capacity;
  size_t taken_back, set_aside;
} doubtful_job;

static cli_exit fail(const doubtful_job *job, const char *reason) {
  cli_error(COMMAND_MATCH, "%s: %s", job->images->path, reason);
  return CLI_FAILED;
}

static cli_exit fail_database(const doubtful_job *job) {
  cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(job->database));
  return CLI_FAILED;
}

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

static cli_exit list_pairs(doubtful_job *job) {
  colmap_verified_pair next = {.pair_id = -1};
  for (;;) {
    if (colmap_next_verified(job->database, next.pair_id, &next) != HS_OK) return fail_database(job);
    if (next.pair_id < 0) return CLI_DONE;
    hs_judged_pair pair = {.match_count = next.matches, .inlier_count = next.stored};
    if (!find_image(job->images, next.images[0], &pair.images.first) ||
        !find_image(job->images, next.images[1], &pair.images.second))
      continue;
    /* A guided pair's share is that of its first pass: a guide lets in nothing else than inliers. */
    if (next.inliers != next.stored && next.inliers > 0)
      pair.match_count = (size_t)((double)next.stored * (double)next.matches / (double)next.inliers);
    if (!grow(job)) return fail(job, "out of memory for its pairs");
    job->pair_ids[job->count] = next.pair_id;
    job->pairs[job->count++] = pair;
  }
}

/* hs_pair_inliers.read */
static hs_status read_inliers(void *user, size_t pair, uint32_t *inliers) {
  const doubtful_job *job = user;
  return colmap_read_inliers(job->database, job->pair_ids[pair], inliers, job->pairs[pair].inlier_count);
}

static cli_exit judge(doubtful_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_judge_options options;
  (void)hs_judge_options_init(&options);
  options.message = message;
  options.message_bytes = sizeof message;
  job->feature_counts = calloc(job->images->count + 1, sizeof *job->feature_counts);
  if (!job->feature_counts) return fail(job, "out of memory for its images");
  for (size_t i = 0; i < job->images->count; i++) job->feature_counts[i] = job->images->each[i].features;
  const hs_pair_inliers source = {
      .feature_counts = job->feature_counts, .image_count = job->images->count, .read = read_inliers, .user = job};
  const hs_status status = hs_judge_pairs(&source, job->pairs, job->count, &options);
  if (status == HS_OK) return CLI_DONE;
  const char *const reason = message[0] != '\0' ? message : hs_colmap_last_error(job->database);
  return fail(job, reason[0] != '\0' ? reason : hs_status_string(status));
}

static void print_record(const doubtful_job *job, const hs_judged_pair *pair) {
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, job->images->each[pair->images.first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, job->images->each[pair->images.second].name);
  printf(", \"doubtful\": true, \"inliers\": %zu, \"on_tracks\": %zu, \"supported\": %zu}\n", pair->inlier_count,
         pair->on_tracks, pair->supported);
}

static cli_exit set_aside(doubtful_job *job, bool has_json) {
  for (size_t p = 0; p < job->count; p++) {
    const hs_judged_pair *const pair = &job->pairs[p];
    if (pair->verdict != HS_PAIR_DOUBTFUL) continue;
    if (colmap_set_aside(job->database, job->pair_ids[p], pair->on_tracks, pair->supported) != HS_OK)
      return fail_database(job);
    if (has_json) print_record(job, pair);
    job->set_aside++;
  }
  return CLI_DONE;
}

static void tell(const doubtful_job *job, bool keep) {
  if (job->set_aside > 0)
    cli_note("%s: %zu of %zu verified pairs left out as doubtful: tracks of the sure pairs do not confirm them"
             " (--doubtful keep takes them back)",
             job->images->path, job->set_aside, job->count);
  if (keep && job->taken_back > 0)
    cli_note("%s: %zu doubtful pair%s taken back", job->images->path, job->taken_back, job->taken_back == 1 ? "" : "s");
}

cli_exit doubtful_pairs_settle(hs_colmap_database *database, const database_images *images, bool keep, bool is_quiet,
                               bool has_json) {
  doubtful_job job = {.database = database, .images = images};
  cli_exit result = colmap_take_back(database, &job.taken_back) == HS_OK ? CLI_DONE : fail_database(&job);
  if (result == CLI_DONE && !keep) result = list_pairs(&job);
  if (result == CLI_DONE && !keep && job.count > 0) result = judge(&job);
  if (result == CLI_DONE && !keep) result = set_aside(&job, has_json);
  if (result == CLI_DONE && hs_colmap_commit(database) != HS_OK) result = fail_database(&job);
  if (result == CLI_DONE && !is_quiet) tell(&job, keep);
  free(job.feature_counts);
  free(job.pairs);
  free(job.pair_ids);
  return result;
}
