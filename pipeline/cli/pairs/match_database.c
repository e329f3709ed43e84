/*
 * Matching the images of a database; see match_database.h.
 */
#include "pipeline/cli/pairs/match_database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/pairs/pair_list.h"

/* A homography is worth looking for when so much of a fundamental matrix' support lies in one plane. */
static const double plane_share = 0.5;

/* The error of a homography in one image, as a share of it spread over both points: 1 / sqrt 2. */
static const double transfer_to_both = 0.70710678118654752;

enum { COMMIT_EACH_MS = 30000 };

typedef struct pair_totals {
  size_t pairs, kept, failed, verified; /* kept: had matches already */
  uint64_t matches, inliers;
} pair_totals;

typedef struct database_job {
  const match_database_plan *plan;
  hs_options options;
  hs_context *context;
  hs_colmap_database *database;
  const char *path;
  database_images images;
  pair_list pairs;
  hs_features features[2];
  size_t held; /* index of the image in features[0]; image_count: none */
  hs_matches matches;
  uint8_t *inliers;
  size_t inlier_room;
  pair_totals totals;
  double committed_at;
  char message[CLI_MESSAGE_BYTES];
} database_job;

static bool given(const database_job *job, option_id id) { return job->plan->set->values[id].given; }

static cli_exit fail(const database_job *job, const char *reason) {
  cli_error(COMMAND_MATCH, "%s: %s", job->path, reason);
  return CLI_FAILED;
}

static cli_exit fail_database(const database_job *job) {
  cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(job->database));
  return CLI_FAILED;
}

/* ------------------------------------------------------------------ one pair */

/* What was verified of a pair. */
typedef struct pair_geometry {
  hs_geometry model, plane;
  bool has_model, has_plane;
} pair_geometry;

static hs_status load_features(database_job *job, size_t slot, size_t image) {
  hs_status status = hs_colmap_read_features(job->database, job->images.each[image].image_id, &job->features[slot]);
  if (status != HS_OK) {
    snprintf(job->message, sizeof job->message, "%s", hs_colmap_last_error(job->database));
  } else if (job->features[slot].count > 0 && job->features[slot].descriptor_type == HS_DESCRIPTOR_NONE) {
    snprintf(job->message, sizeof job->message, "%s has no descriptors", job->images.each[image].name);
    status = HS_ERR_ARGUMENT;
  }
  return status;
}

/* The pairs are in the order of their first image, mostly: it is read once. */
static hs_status load_pair(database_job *job, const image_pair *pair) {
  hs_status status = HS_OK;
  if (job->held != pair->first) {
    job->held = job->images.count;
    status = load_features(job, 0, pair->first);
    if (status == HS_OK) job->held = pair->first;
  }
  return status == HS_OK ? load_features(job, 1, pair->second) : status;
}

static hs_status make_inlier_room(database_job *job) {
  if (job->inlier_room > job->matches.count) return HS_OK;
  uint8_t *larger = realloc(job->inliers, job->matches.count + 1);
  if (!larger) return HS_ERR_MEMORY;
  job->inliers = larger;
  job->inlier_room = job->matches.count + 1;
  return HS_OK;
}

static hs_status verify_model(database_job *job, const hs_verify_options *options, uint8_t *inliers,
                              hs_geometry *geometry) {
  return hs_verify(&job->features[0], &job->features[1], job->matches.pairs, sizeof *job->matches.pairs,
                   job->matches.count, options, inliers, geometry);
}

/* The model asked for; where most of it lies in a plane, the homography too, since COLMAP tells such pairs apart. An
   essential matrix needs cameras, and without them there is a fundamental one. */
static hs_status verify_pair(database_job *job, const image_pair *pair, pair_geometry *found) {
  const database_image *a = &job->images.each[pair->first], *b = &job->images.each[pair->second];
  hs_verify_options options = job->plan->verify;
  if (options.model == HS_ESSENTIAL && a->is_calibrated && b->is_calibrated) {
    options.camera_a = a->camera;
    options.camera_b = b->camera;
  } else if (options.model == HS_ESSENTIAL) {
    options.model = HS_FUNDAMENTAL;
  }
  hs_status status = make_inlier_room(job);
  if (status == HS_OK) status = verify_model(job, &options, job->inliers, &found->model);
  found->has_model = status == HS_OK;
  if (status != HS_OK || found->model.found == 0 || options.model == HS_HOMOGRAPHY ||
      (double)found->model.plane_inliers < plane_share * (double)found->model.inlier_count)
    return status;
  hs_verify_options plane;
  (void)hs_verify_options_init(&plane, HS_HOMOGRAPHY);
  plane.tolerance = options.tolerance * transfer_to_both; /* COLMAP measures in the second image alone */
  plane.seed = options.seed;
  status = verify_model(job, &plane, NULL, &found->plane);
  found->has_plane = status == HS_OK;
  return status;
}

static hs_status store_pair(database_job *job, const image_pair *pair, const pair_geometry *found) {
  hs_colmap_matches entry = {.pairs = job->matches.pairs,
                             .pair_stride_bytes = sizeof *job->matches.pairs,
                             .count = job->matches.count,
                             .inliers = found->has_model ? job->inliers : NULL};
  const hs_geometry *model = found->has_model ? &found->model : NULL;
  if (model && model->model == HS_HOMOGRAPHY) entry.homography = model;
  if (model && model->model == HS_FUNDAMENTAL) entry.fundamental = model;
  if (model && model->model == HS_ESSENTIAL) entry.essential = model;
  if (found->has_plane) entry.homography = &found->plane;
  const hs_status status = hs_colmap_add_matches(job->database, job->images.each[pair->first].image_id,
                                                 job->images.each[pair->second].image_id, &entry);
  if (status != HS_OK) snprintf(job->message, sizeof job->message, "%s", hs_colmap_last_error(job->database));
  return status;
}

static hs_status match_pair(database_job *job, const image_pair *pair, pair_geometry *found) {
  job->message[0] = '\0';
  hs_status status = load_pair(job, pair);
  if (status != HS_OK) return status;
  status = hs_match(job->context, &job->features[0], &job->features[1], &job->plan->wanted, &job->matches);
  if (status != HS_OK) {
    cli_explain(job->context, status, job->message, sizeof job->message);
    return status;
  }
  if (job->plan->verify.model != 0) status = verify_pair(job, pair, found);
  return status == HS_OK ? store_pair(job, pair, found) : status;
}

/* ------------------------------------------------------------------ all pairs */

static void print_record(const database_job *job, const image_pair *pair, const pair_geometry *found) {
  static const char *const models[] = {"null", "\"homography\"", "\"fundamental\"", "\"essential\""};
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, job->images.each[pair->first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, job->images.each[pair->second].name);
  printf(", \"matches\": %zu, \"inliers\": ", job->matches.count);
  if (found->has_model) {
    printf("%zu, \"model\": %s}\n", found->model.inlier_count,
           models[found->model.found != 0 ? (int)found->model.model : 0]);
  } else {
    printf("null, \"model\": null}\n");
  }
}

static void count_pair(pair_totals *totals, const hs_matches *matches, const pair_geometry *found) {
  totals->matches += matches->count;
  if (found->has_model && found->model.found != 0) {
    totals->verified++;
    totals->inliers += found->model.inlier_count;
  }
}

/* Whether a pair is to be left alone; a failure to tell shows again when it is matched. */
static bool is_done(database_job *job, const image_pair *pair) {
  int64_t matches = -1, verified = -1;
  if (given(job, OPTION_REPLACE)) return false;
  return hs_colmap_count_matches(job->database, job->images.each[pair->first].image_id,
                                 job->images.each[pair->second].image_id, &matches, &verified) == HS_OK &&
         (matches >= 0 || verified >= 0);
}

/* Commits now and then, so that a run that is stopped need not begin again. */
static cli_exit commit(database_job *job, bool at_once) {
  if (!at_once && cli_milliseconds() - job->committed_at < COMMIT_EACH_MS) return CLI_DONE;
  job->committed_at = cli_milliseconds();
  return hs_colmap_commit(job->database) == HS_OK ? CLI_DONE : fail_database(job);
}

static cli_exit match_all(database_job *job) {
  cli_exit result = CLI_DONE;
  for (size_t i = 0; i < job->pairs.count; i++) {
    const image_pair *pair = &job->pairs.each[i];
    pair_geometry found = {0};
    job->totals.pairs++;
    if (is_done(job, pair)) {
      job->totals.kept++;
      continue;
    }
    const hs_status status = match_pair(job, pair, &found);
    if (status == HS_OK) {
      count_pair(&job->totals, &job->matches, &found);
      if (given(job, OPTION_JSON)) print_record(job, pair, &found);
    } else {
      cli_error(COMMAND_MATCH, "%s and %s: %s", job->images.each[pair->first].name, job->images.each[pair->second].name,
                job->message[0] != '\0' ? job->message : hs_status_string(status));
      job->totals.failed++;
      result = CLI_FAILED;
      if (status == HS_ERR_IO) { /* the transaction may be lost; the reason of that was given */
        (void)hs_colmap_commit(job->database);
        return CLI_FAILED;
      }
      if (hs_status_class_of(status) == HS_CLASS_DEVICE) break;
    }
    if (commit(job, false) != CLI_DONE) return CLI_FAILED;
  }
  return commit(job, true) == CLI_DONE ? result : CLI_FAILED;
}

static void report(const database_job *job, double start) {
  const pair_totals *totals = &job->totals;
  char verified[96] = "";
  if (job->plan->verify.model != 0) {
    snprintf(verified, sizeof verified, ", %zu pair%s verified with %" PRIu64 " inliers", totals->verified,
             totals->verified == 1 ? "" : "s", totals->inliers);
  }
  cli_note("%s: %zu images, %zu pairs (%zu already had matches, %zu failed), %" PRIu64 " matches%s, %.0f ms", job->path,
           job->images.count, totals->pairs, totals->kept, totals->failed, totals->matches, verified,
           cli_milliseconds() - start);
}

static cli_exit list_pairs(database_job *job) {
  const pair_source source = {.set = job->plan->set,
                              .images = &job->images,
                              .database = job->database,
                              .context = job->context,
                              .max_memory_bytes = job->options.max_memory_bytes};
  return pair_list_make(&source, &job->pairs);
}

static cli_exit run(database_job *job) {
  const double start = cli_milliseconds();
  cli_exit result = database_images_read(job->database, &job->images);
  if (result == CLI_DONE) result = list_pairs(job);
  if (result != CLI_DONE) return result;
  job->held = job->images.count;
  job->committed_at = start;
  result = match_all(job);
  if (!given(job, OPTION_QUIET)) report(job, start);
  return result;
}

static void free_job(database_job *job) {
  database_images_free(&job->images);
  pair_list_free(&job->pairs);
  free(job->inliers);
  hs_matches_free(&job->matches);
  hs_features_free(&job->features[0]);
  hs_features_free(&job->features[1]);
  hs_colmap_close(job->database);
  hs_destroy(job->context);
}

cli_exit match_database(const match_database_plan *plan) {
  database_job job = {.plan = plan, .path = plan->set->values[OPTION_DATABASE].text};
  job.images.path = job.path;
  if (access(job.path, F_OK) != 0) return fail(&job, strerror(errno)); /* opening would make it */
  cli_exit result = cli_make_context(plan->set, &job.options, &job.context);
  if (result == CLI_DONE &&
      database_open(plan->set, job.path, HS_LAYOUT_UBC, &job.database, job.message, sizeof job.message) != HS_OK) {
    cli_error(COMMAND_MATCH, "%s", job.message);
    result = CLI_FAILED;
  }
  if (result == CLI_DONE) result = run(&job);
  free_job(&job);
  return result;
}
