/*
 * Matching the images of a database; see match_database.h.
 */
#include "pipeline/cli/match_database.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/cli/common/database_output.h"

/* A homography is worth looking for when so much of a fundamental matrix' support lies in one plane. */
static const double plane_share = 0.5;

/* The error of a homography in one image, as a share of it spread over both points: 1 / sqrt 2. */
static const double transfer_to_both = 0.70710678118654752;

enum { COMMIT_EACH_MS = 30000, PAIR_LINE_BYTES = 8192 };

/* One image of the database. */
typedef struct pair_image {
  uint32_t image_id;
  char *name;
  hs_camera camera;
  bool is_calibrated; /* a pinhole camera of known focal length: an essential matrix can be estimated */
} pair_image;

typedef struct image_pair {
  size_t first, second; /* of the images */
} image_pair;

/* For finding an image by its name. */
typedef struct named_image {
  const char *name;
  size_t index; /* of the images */
} named_image;

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
  pair_image *images;
  size_t image_count;
  named_image *by_name; /* sorted; null without a list of pairs */
  image_pair *pairs;
  size_t pair_count;
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

/* ------------------------------------------------------------------ which pairs */

/* The pinhole camera that COLMAP's is, if it is one without distortion and with a known focal length. */
static bool pinhole_of(const hs_colmap_camera *camera, hs_camera *pinhole) {
  const double *p = camera->parameters;
  if (camera->prior_focal_length == 0 || camera->model < 0 || camera->model > 4) return false;
  const bool two_focal_lengths = camera->model == 1 || camera->model == 4;
  const int32_t center = two_focal_lengths ? 2 : 1;
  for (int32_t i = center + 2; i < camera->parameter_count; i++)
    if (p[i] != 0.0) return false;
  /* The origin there is the corner of the first pixel. */
  *pinhole = (hs_camera){p[0], p[two_focal_lengths ? 1 : 0], p[center] - 0.5, p[center + 1] - 0.5};
  return camera->parameter_count > center + 1 && pinhole->fx > 0.0 && pinhole->fy > 0.0 && isfinite(pinhole->fx) &&
         isfinite(pinhole->fy) && isfinite(pinhole->cx) && isfinite(pinhole->cy);
}

static bool add_image(database_job *job, const hs_colmap_image *image) {
  pair_image *larger = realloc(job->images, (job->image_count + 1) * sizeof *larger);
  if (!larger) return false;
  job->images = larger;
  pair_image *added = &larger[job->image_count];
  *added = (pair_image){.image_id = image->image_id, .name = malloc(strlen(image->name) + 1)};
  if (!added->name) return false;
  strcpy(added->name, image->name);
  added->is_calibrated = pinhole_of(&image->camera, &added->camera);
  job->image_count++;
  return true;
}

/* The images that have features. */
static cli_exit list_images(database_job *job) {
  hs_colmap_image image = {.found = 1};
  for (int64_t after = -1; image.found != 0; after = image.image_id) {
    if (hs_colmap_next_image(job->database, after, &image) != HS_OK) return fail_database(job);
    if (image.found != 0 && image.features >= 0 && !add_image(job, &image))
      return fail(job, "no memory for its images");
  }
  job->held = job->image_count;
  return CLI_DONE;
}

static bool add_pair(database_job *job, size_t first, size_t second) {
  /* Room doubles: at powers of two. */
  if ((job->pair_count & (job->pair_count - 1)) == 0) {
    const size_t room = job->pair_count == 0 ? 1 : 2 * job->pair_count;
    image_pair *larger = room <= SIZE_MAX / sizeof *larger ? realloc(job->pairs, room * sizeof *larger) : NULL;
    if (!larger) return false;
    job->pairs = larger;
  }
  job->pairs[job->pair_count++] = (image_pair){first, second};
  return true;
}

static bool list_all_pairs(database_job *job) {
  for (size_t i = 0; i < job->image_count; i++) {
    for (size_t k = i + 1; k < job->image_count; k++)
      if (!add_pair(job, i, k)) return false;
  }
  return true;
}

static int compare_names(const void *one, const void *other) {
  return strcmp(((const named_image *)one)->name, ((const named_image *)other)->name);
}

static bool sort_names(database_job *job) {
  job->by_name = malloc((job->image_count + 1) * sizeof *job->by_name);
  if (!job->by_name) return false;
  for (size_t i = 0; i < job->image_count; i++) job->by_name[i] = (named_image){job->images[i].name, i};
  qsort(job->by_name, job->image_count, sizeof *job->by_name, compare_names);
  return true;
}

static size_t index_of(const database_job *job, const char *name) {
  const named_image key = {.name = name};
  const named_image *found = bsearch(&key, job->by_name, job->image_count, sizeof key, compare_names);
  return found ? found->index : job->image_count;
}

/* "NAME NAME" or, for names with spaces, with a tab between. */
static cli_exit read_pair(database_job *job, char *line, size_t number) {
  char *separator = strchr(line, '\t');
  if (!separator) separator = strchr(line, ' ');
  size_t found[2];
  if (!separator) {
    cli_error(COMMAND_MATCH, "--pairs: line %zu has one name, '%s': expected two, with a space or a tab between",
              number, line);
    return CLI_FAILED;
  }
  *separator = '\0';
  const char *const names[2] = {line, separator + 1};
  for (size_t i = 0; i < 2; i++) {
    found[i] = index_of(job, names[i]);
    if (found[i] == job->image_count) {
      cli_error(COMMAND_MATCH, "--pairs: line %zu: '%s' is not an image with features in %s", number, names[i],
                job->path);
      return CLI_FAILED;
    }
  }
  if (found[0] == found[1]) {
    cli_error(COMMAND_MATCH, "--pairs: line %zu: an image cannot be matched with itself", number);
    return CLI_FAILED;
  }
  return add_pair(job, found[0], found[1]) ? CLI_DONE : fail(job, "no memory for its pairs");
}

static cli_exit read_pairs(database_job *job, const char *path) {
  char line[PAIR_LINE_BYTES];
  cli_exit result = CLI_DONE;
  if (!sort_names(job)) return fail(job, "no memory for its images");
  FILE *file = fopen(path, "r");
  if (!file) {
    cli_error(COMMAND_MATCH, "--pairs: cannot open %s: %s", path, strerror(errno));
    return CLI_FAILED;
  }
  for (size_t number = 1; result == CLI_DONE && fgets(line, sizeof line, file) != NULL; number++) {
    const size_t length = strcspn(line, "\r\n");
    if (length == sizeof line - 1) {
      cli_error(COMMAND_MATCH, "--pairs: line %zu of %s is too long", number, path);
      result = CLI_FAILED;
    }
    line[length] = '\0';
    if (result == CLI_DONE && length > 0 && line[0] != '#') result = read_pair(job, line, number);
  }
  if (result == CLI_DONE && ferror(file)) {
    cli_error(COMMAND_MATCH, "--pairs: cannot read %s", path);
    result = CLI_FAILED;
  }
  (void)fclose(file);
  return result;
}

/* ------------------------------------------------------------------ one pair */

/* What was verified of a pair. */
typedef struct pair_geometry {
  hs_geometry model, plane;
  bool has_model, has_plane;
} pair_geometry;

static hs_status load_features(database_job *job, size_t slot, size_t image) {
  hs_status status = hs_colmap_read_features(job->database, job->images[image].image_id, &job->features[slot]);
  if (status != HS_OK) {
    snprintf(job->message, sizeof job->message, "%s", hs_colmap_last_error(job->database));
  } else if (job->features[slot].count > 0 && job->features[slot].descriptor_type == HS_DESCRIPTOR_NONE) {
    snprintf(job->message, sizeof job->message, "%s has no descriptors", job->images[image].name);
    status = HS_ERR_ARGUMENT;
  }
  return status;
}

/* The pairs are in the order of their first image, mostly: it is read once. */
static hs_status load_pair(database_job *job, const image_pair *pair) {
  hs_status status = HS_OK;
  if (job->held != pair->first) {
    job->held = job->image_count;
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
  const pair_image *a = &job->images[pair->first], *b = &job->images[pair->second];
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
  const hs_status status = hs_colmap_add_matches(job->database, job->images[pair->first].image_id,
                                                 job->images[pair->second].image_id, &entry);
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
  cli_write_json_string(stdout, job->images[pair->first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, job->images[pair->second].name);
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
  return hs_colmap_count_matches(job->database, job->images[pair->first].image_id, job->images[pair->second].image_id,
                                 &matches, &verified) == HS_OK &&
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
  for (size_t i = 0; i < job->pair_count; i++) {
    const image_pair *pair = &job->pairs[i];
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
      cli_error(COMMAND_MATCH, "%s and %s: %s", job->images[pair->first].name, job->images[pair->second].name,
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
           job->image_count, totals->pairs, totals->kept, totals->failed, totals->matches, verified,
           cli_milliseconds() - start);
}

static cli_exit run(database_job *job) {
  const option_value *pairs = &job->plan->set->values[OPTION_PAIRS];
  const double start = cli_milliseconds();
  cli_exit result = list_images(job);
  if (result == CLI_DONE && pairs->given)
    result = read_pairs(job, pairs->text);
  else if (result == CLI_DONE && !list_all_pairs(job))
    result = fail(job, "no memory for its pairs");
  if (result != CLI_DONE) return result;
  job->committed_at = start;
  result = match_all(job);
  if (!given(job, OPTION_QUIET)) report(job, start);
  return result;
}

static void free_job(database_job *job) {
  for (size_t i = 0; i < job->image_count; i++) free(job->images[i].name);
  free(job->images);
  free(job->by_name);
  free(job->pairs);
  free(job->inliers);
  hs_matches_free(&job->matches);
  hs_features_free(&job->features[0]);
  hs_features_free(&job->features[1]);
  hs_colmap_close(job->database);
  hs_destroy(job->context);
}

cli_exit match_database(const match_database_plan *plan) {
  database_job job = {.plan = plan, .path = plan->set->values[OPTION_DATABASE].text};
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
