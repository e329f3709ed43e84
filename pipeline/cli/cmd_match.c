/*
 * hartsift match: matches two feature files or images, and verifies the matches by one geometric model.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/cli/common/match_file.h"
#include "pipeline/cli/draw/drawing.h"
#include "pipeline/cli/pairs/match_database.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/common/text_cursor.h"
#include "pipeline/formats/formats.h"

typedef struct match_job {
  const option_set *set;
  hs_options options;
  hs_context *context;
  cli_input input;
  match_format format;
  const char *output; /* "-": standard output */
  hs_match_options wanted;
  hs_verify_options verify; /* model 0: no verification */
  hs_features features[2];
  hs_geometry geometry;
  match_table table;
  char *colmap_names[2]; /* names in COLMAP's text; null: that is not written */
  double milliseconds;   /* time of matching without verification */
  char message[CLI_MESSAGE_BYTES];
} match_job;

static bool has_option(const match_job *job, option_id id) { return job->set->values[id].is_set; }

static cli_exit usage(const char *message) { return cli_fail(CLI_USAGE, COMMAND_MATCH, "%s", message); }

/* Parses "FX,FY,CX,CY" for both cameras, or eight numbers for two cameras. */
static bool parse_cameras(const char *text, hs_camera *a, hs_camera *b) {
  double numbers[8];
  int count = 0;
  for (;;) {
    const size_t length = strcspn(text, ",");
    if (count == 8 || !number_to_double(text, length, &numbers[count])) return false;
    count++;
    if (text[length] == '\0') break;
    text += length + 1;
  }
  if (count != 4 && count != 8) return false;
  const double *second = numbers + count - 4;
  *a = (hs_camera){numbers[0], numbers[1], numbers[2], numbers[3]};
  *b = (hs_camera){second[0], second[1], second[2], second[3]};
  return a->fx > 0.0 && a->fy > 0.0 && b->fx > 0.0 && b->fy > 0.0;
}

static cli_exit prepare_verification(match_job *job) {
  const option_value *values = job->set->values;
  static const hs_geometry_model models[] = {HS_HOMOGRAPHY, HS_FUNDAMENTAL, HS_ESSENTIAL};
  if (!values[OPTION_VERIFY].is_set) {
    if (values[OPTION_TOLERANCE].is_set || values[OPTION_CAMERA].is_set)
      return usage("--tolerance and --camera are for --verify: expected one of its models");
    if (values[OPTION_GUIDED].is_set) return usage("--guided is for --verify: expected one of its models");
    return CLI_DONE;
  }
  const hs_geometry_model model = models[values[OPTION_VERIFY].integer];
  (void)hs_verify_options_init(&job->verify, model);
  if (values[OPTION_TOLERANCE].is_set) job->verify.tolerance = values[OPTION_TOLERANCE].number;
  if ((model == HS_ESSENTIAL) != values[OPTION_CAMERA].is_set)
    return usage(model == HS_ESSENTIAL ? "--verify essential needs the cameras: expected --camera FX,FY,CX,CY"
                                       : "--camera is for --verify essential");
  if (model == HS_ESSENTIAL && !parse_cameras(values[OPTION_CAMERA].text, &job->verify.camera_a, &job->verify.camera_b))
    return cli_fail(CLI_USAGE, COMMAND_MATCH,
                    "--camera '%s': expected FX,FY,CX,CY, once or twice, with FX and FY above 0",
                    values[OPTION_CAMERA].text);
  return CLI_DONE;
}

/* Reads the options of matching. */
static cli_exit prepare_matching(match_job *job) {
  const option_value *values = job->set->values;
  (void)hs_match_options_init(&job->wanted);
  if (has_option(job, OPTION_RATIO)) job->wanted.ratio = values[OPTION_RATIO].number;
  if (has_option(job, OPTION_MAX_DISTANCE)) job->wanted.max_distance = values[OPTION_MAX_DISTANCE].number;
  job->wanted.mutual = !has_option(job, OPTION_NO_MUTUAL);
  return CLI_DONE;
}

/* Checks --nearest and --radius, which give all neighbours without the tests of matches. */
static cli_exit check_neighbours(const match_job *job) {
  static const option_id tests[] = {OPTION_RATIO,        OPTION_MUTUAL, OPTION_NO_MUTUAL,
                                    OPTION_MAX_DISTANCE, OPTION_VERIFY, OPTION_DRAW};
  const option_id wanted = has_option(job, OPTION_NEAREST) ? OPTION_NEAREST : OPTION_RADIUS;
  if (!has_option(job, wanted)) return CLI_DONE;
  if (has_option(job, OPTION_NEAREST) && has_option(job, OPTION_RADIUS))
    return usage("--nearest and --radius: expected one of them");
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    if (!has_option(job, tests[i])) continue;
    return cli_fail(CLI_USAGE, COMMAND_MATCH,
                    "--%s applies to matches, and --%s finds neighbours: expected one of them",
                    option_get(tests[i])->name, option_get(wanted)->name);
  }
  return CLI_DONE;
}

/* Checks --draw, which needs pictures, so that feature files are refused. */
static cli_exit check_drawing(const match_job *job) {
  if (!has_option(job, OPTION_DRAW)) return CLI_DONE;
  const char *path = job->set->values[OPTION_DRAW].text;
  if (!draw_can_write(path) || strcmp(path, "-") == 0)
    return cli_fail(CLI_USAGE, COMMAND_MATCH, "--draw '%s': expected a name ending in .png, .jpg, .jpeg, .ppm or .pnm",
                    path);
  for (int i = 0; i < 2; i++) {
    const char *operand = job->set->operands[i];
    if (operand[0] == '@' || !format_read_by_ending(operand)) continue;
    return cli_fail(CLI_USAGE, COMMAND_MATCH,
                    "--draw: %s is a file of features: expected images; 'hartsift draw IMAGE1 IMAGE2 MATCHES "
                    "FEATURES1 FEATURES2' takes both",
                    operand);
  }
  return CLI_DONE;
}

/* Makes the checks that the option table cannot express, and checks the library's options. */
static cli_exit prepare(match_job *job) {
  const option_value *values = job->set->values;
  if (job->set->operand_count != 2) return usage("an operand is missing: expected A B, or --database");
  if (has_option(job, OPTION_PAIRS) || has_option(job, OPTION_NO_VERIFY) || has_option(job, OPTION_REPLACE) ||
      has_option(job, OPTION_DOUBTFUL) || has_option(job, OPTION_TRACKS) || has_option(job, OPTION_DEVICES))
    return usage(
        "--pairs, --replace, --no-verify, --doubtful, --tracks and --devices are for --database: expected that too");
  if (has_option(job, OPTION_DESCRIPTOR) && values[OPTION_DESCRIPTOR].integer == HS_DESCRIPTOR_NONE)
    return usage("--descriptor 'none': expected u8 or f32, because matching needs descriptors");
  if (has_option(job, OPTION_JSON) && has_option(job, OPTION_MATCH_FORMAT) &&
      values[OPTION_MATCH_FORMAT].integer != MATCH_FORMAT_JSON)
    return usage("--json and --format: expected one of them");
  if (strcmp(job->set->operands[0], "-") == 0 && strcmp(job->set->operands[1], "-") == 0)
    return usage("'-' is given twice: standard input holds one image");
  job->output = has_option(job, OPTION_OUTPUT) ? values[OPTION_OUTPUT].text : "-";
  if (!match_format_fits(job->output))
    return cli_fail(CLI_USAGE, COMMAND_MATCH,
                    "--output '%s': this ending belongs to a feature format: expected .csv, .json or .txt",
                    job->output);
  job->format = match_format_by_ending(job->output);
  if (has_option(job, OPTION_MATCH_FORMAT)) job->format = (match_format)values[OPTION_MATCH_FORMAT].integer;
  if (has_option(job, OPTION_JSON)) job->format = MATCH_FORMAT_JSON;
  if (has_option(job, OPTION_IMAGE_PATH) && job->format != MATCH_FORMAT_COLMAP)
    return usage("--image-path is for the text of COLMAP: expected -o NAME.txt or --format colmap");
  cli_exit result = check_neighbours(job);
  if (result == CLI_DONE) result = prepare_matching(job);
  if (result == CLI_DONE) result = check_drawing(job);
  return result == CLI_DONE ? prepare_verification(job) : result;
}

/* ---- all images of a database */

/* Refuses options about features, because a database already has them, and options about other outputs. */
static cli_exit check_database_options(const option_set *set) {
  static const option_id allowed[] = {OPTION_DEVICE,     OPTION_DEVICES, OPTION_THREADS, OPTION_VARIANT,
                                      OPTION_MAX_MEMORY, OPTION_JSON,    OPTION_QUIET,   OPTION_REPLACE};
  if (set->operand_count > 0)
    return cli_fail(CLI_USAGE, COMMAND_MATCH, "'%s' is one operand too many: expected none with --database",
                    set->operands[0]);
  for (int id = 0; id < OPTION_COUNT; id++) {
    bool fits = option_belongs_to((option_id)id, COMMAND_EXTRACT) == false;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) fits = fits || allowed[i] == (option_id)id;
    fits = fits && id != OPTION_MATCH_FORMAT && id != OPTION_CAMERA && id != OPTION_DRAW;
    fits = fits && id != OPTION_NEAREST && id != OPTION_RADIUS;
    if (set->values[id].is_set && !fits)
      return cli_fail(
          CLI_USAGE, COMMAND_MATCH,
          "--%s has no effect with --database: features and cameras come from the database, and matches go there",
          option_get((option_id)id)->name);
  }
  return CLI_DONE;
}

/* Default of COLMAP, whose mapper removes matches that do not fit its model, but cannot recover missing ones. */
static const double database_tolerance = 4.0;

static cli_exit match_in_database(match_job *job) {
  static const hs_geometry_model models[] = {HS_HOMOGRAPHY, HS_FUNDAMENTAL, HS_ESSENTIAL};
  const option_value *values = job->set->values;
  cli_exit result = check_database_options(job->set);
  if (result == CLI_DONE) result = pair_list_check(job->set);
  if (result == CLI_DONE) result = prepare_matching(job);
  if (result != CLI_DONE) return result;
  match_database_plan plan = {.set = job->set, .wanted = job->wanted};
  if (!has_option(job, OPTION_NO_VERIFY)) {
    const hs_geometry_model model =
        has_option(job, OPTION_VERIFY) ? models[values[OPTION_VERIFY].integer] : HS_FUNDAMENTAL;
    (void)hs_verify_options_init(&plan.verify, model);
    plan.verify.tolerance = database_tolerance;
    if (has_option(job, OPTION_TOLERANCE)) plan.verify.tolerance = values[OPTION_TOLERANCE].number;
    plan.guided = has_option(job, OPTION_GUIDED);
    plan.tries_essential = !has_option(job, OPTION_VERIFY);
  } else if (has_option(job, OPTION_TOLERANCE)) {
    return usage("--tolerance is for verification: expected without --no-verify");
  } else if (has_option(job, OPTION_GUIDED)) {
    return usage("--guided is for verification: expected without --no-verify");
  } else if (has_option(job, OPTION_DOUBTFUL)) {
    return usage("--doubtful is for verified pairs: expected without --no-verify");
  } else if (has_option(job, OPTION_TRACKS)) {
    return usage("--tracks is for verified pairs: expected without --no-verify");
  }
  if (has_option(job, OPTION_TRACKS)) plan.tracks = (size_t)values[OPTION_TRACKS].integer;
  plan.keeps_doubtful = has_option(job, OPTION_DOUBTFUL) && values[OPTION_DOUBTFUL].integer == 1;
  return match_database(&plan);
}

/* ---- two images */

static hs_status extract(match_job *job, const char *path, hs_features *features) {
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  if (scene_wants_more(&job->options, &job->input.load, path, job->message, sizeof job->message)) return HS_ERR_LIMIT;
  hs_status status = cli_load_source(&job->input, path, &loaded, job->message, sizeof job->message);
  if (status == HS_OK) {
    status = hs_extract_source(job->context, &loaded, features);
    if (status == HS_OK) status = hs_features_to_original(features, &loaded.image);
    if (status != HS_OK) cli_explain(job->context, status, job->message, sizeof job->message);
  }
  hs_source_free(&loaded);
  return status;
}

/* Loads an operand: a feature file if its ending says so; else an image if its content is one; else a feature file. */
static hs_status load(match_job *job, const char *path, hs_features *features) {
  const bool scene = path[0] == '@', is_stdin = strcmp(path, "-") == 0;
  if (!scene && !is_stdin && format_read_by_ending(path))
    return cli_load_features(&job->input, path, features, job->message, sizeof job->message);
  const hs_status status = extract(job, path, features);
  if (scene || is_stdin || (status != HS_ERR_FORMAT && status != HS_ERR_UNSUPPORTED)) return status;
  char message[CLI_MESSAGE_BYTES];
  const hs_status other = cli_load_features(&job->input, path, features, message, sizeof message);
  return other == HS_OK ? other : status;
}

static cli_exit fail(const match_job *job, const char *name) {
  const size_t length = strlen(name);
  const bool named = strncmp(job->message, name, length) == 0 && job->message[length] == ':';
  if (named)
    cli_error(COMMAND_MATCH, "%s", job->message);
  else
    cli_error(COMMAND_MATCH, "%s: %s", name, job->message);
  return CLI_FAILED;
}

static cli_exit load_both(match_job *job) {
  char *const *names = job->set->operands;
  for (int i = 0; i < 2; i++) {
    if (load(job, names[i], &job->features[i]) != HS_OK) return fail(job, names[i]);
    if (job->features[i].count > 0 && job->features[i].descriptor_type == HS_DESCRIPTOR_NONE) {
      snprintf(job->message, sizeof job->message, "the file has keypoints without descriptors");
      return fail(job, names[i]);
    }
    if (strcmp(job->output, "-") != 0 && cli_is_same_file(names[i], job->output)) {
      snprintf(job->message, sizeof job->message, "the output %s would overwrite it", job->output);
      return fail(job, names[i]);
    }
  }
  return CLI_DONE;
}

/* Verifies the matches. Makes *inliers, [matches->count]. */
static hs_status verify_matches(match_job *job, const hs_matches *matches, uint8_t **inliers, hs_geometry *geometry) {
  *inliers = malloc(matches->count + 1);
  if (!*inliers) return HS_ERR_MEMORY;
  job->verify.message = job->message;
  job->verify.message_bytes = sizeof job->message;
  return hs_verify(&job->features[0], &job->features[1], matches->pairs, sizeof *matches->pairs, matches->count,
                   &job->verify, *inliers, geometry);
}

/* Makes the options of guided matching from the geometry that was found; if only a plane is determined, from its
 * homography. */
static hs_status guide_options(match_job *job, hs_match_options *guided) {
  hs_geometry plane = {0};
  if (job->geometry.plane_only != 0) {
    hs_verify_options planar;
    const hs_matches *const matches = &job->table.matches;
    (void)hs_verify_options_init(&planar, HS_HOMOGRAPHY);
    planar.seed = job->verify.seed;
    const hs_status status = hs_verify(&job->features[0], &job->features[1], matches->pairs, sizeof *matches->pairs,
                                       matches->count, &planar, NULL, &plane);
    if (status != HS_OK) return status;
  }
  return hs_guide_by_geometry(guided, plane.found != 0 ? &plane : &job->geometry, &job->verify);
}

/* Matches again, guided by the geometry that was found, and verifies again. The result is used if it has at least as
 * many inliers. */
static hs_status guide(match_job *job) {
  hs_match_options guided = job->wanted;
  hs_geometry geometry;
  hs_matches matches = {0};
  uint8_t *inliers = NULL;
  hs_status status = guide_options(job, &guided);
  if (status == HS_OK) {
    status = hs_match(job->context, &job->features[0], &job->features[1], &guided, &matches);
    if (status != HS_OK) cli_explain(job->context, status, job->message, sizeof job->message);
  }
  if (status == HS_OK) status = verify_matches(job, &matches, &inliers, &geometry);
  if (status == HS_OK && geometry.found != 0 && geometry.inlier_count >= job->geometry.inlier_count) {
    const hs_matches before = job->table.matches;
    uint8_t *const inliers_before = job->table.inliers;
    job->table.matches = matches;
    job->table.inliers = inliers;
    job->geometry = geometry;
    matches = before;
    inliers = inliers_before;
  }
  hs_matches_free(&matches);
  free(inliers);
  return status;
}

static cli_exit verify(match_job *job) {
  job->message[0] = '\0';
  hs_status status = verify_matches(job, &job->table.matches, &job->table.inliers, &job->geometry);
  if (status == HS_OK && has_option(job, OPTION_GUIDED) && job->geometry.found != 0) status = guide(job);
  if (status != HS_OK) {
    if (job->message[0] == '\0') snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
    return fail(job, "verification");
  }
  job->table.geometry = &job->geometry;
  return CLI_DONE;
}

/* Converts the neighbours of --nearest or --radius to matches, ordered by first index, then as the neighbours are.
   lists: null for --nearest. */
static hs_status take_neighbours(match_job *job, const hs_neighbour *found, size_t each,
                                 const hs_neighbour_lists *lists) {
  hs_matches *matches = &job->table.matches;
  const size_t rows = job->features[0].count, most = lists ? lists->starts[rows] : rows * each;
  matches->pairs = hs_memory_alloc(NULL, (most + 1) * sizeof *matches->pairs);
  if (!matches->pairs) return HS_ERR_MEMORY;
  matches->capacity = most + 1;
  for (size_t row = 0; row < rows; row++) {
    const size_t first = lists ? lists->starts[row] : row * each, end = lists ? lists->starts[row + 1] : first + each;
    for (size_t i = first; i < end && found[i].index != HS_NO_FEATURE; i++)
      matches->pairs[matches->count++] =
          (hs_match_pair){(uint32_t)row, found[i].index, found[i].distance, found[i].distance};
  }
  return HS_OK;
}

static hs_status find_k_nearest(match_job *job, int32_t k) {
  const size_t rows = job->features[0].count;
  hs_neighbour *found = rows < SIZE_MAX / sizeof *found / HS_NEIGHBOURS_MAX - 1
                            ? hs_memory_alloc(NULL, (rows * (size_t)k + 1) * sizeof *found)
                            : NULL;
  if (!found) return HS_ERR_MEMORY;
  hs_status status = hs_find_k_nearest(job->context, &job->features[0], &job->features[1], &job->wanted, k, found);
  if (status == HS_OK) status = take_neighbours(job, found, (size_t)k, NULL);
  hs_memory_release(NULL, found);
  return status;
}

static hs_status find_within(match_job *job, double radius) {
  hs_neighbour_lists lists = {0};
  hs_status status = hs_find_within(job->context, &job->features[0], &job->features[1], &job->wanted, radius, &lists);
  if (status == HS_OK) status = take_neighbours(job, lists.neighbours, 0, &lists);
  hs_neighbour_lists_free(&lists);
  return status;
}

static hs_status find_matches(match_job *job) {
  const option_value *values = job->set->values;
  if (has_option(job, OPTION_NEAREST)) return find_k_nearest(job, (int32_t)values[OPTION_NEAREST].integer);
  if (has_option(job, OPTION_RADIUS)) return find_within(job, values[OPTION_RADIUS].number);
  return hs_match(job->context, &job->features[0], &job->features[1], &job->wanted, &job->table.matches);
}

static cli_exit compute(match_job *job) {
  const double start = cli_milliseconds();
  const hs_status status = find_matches(job);
  job->milliseconds = cli_milliseconds() - start;
  if (status != HS_OK) {
    cli_explain(job->context, status, job->message, sizeof job->message);
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", job->message);
  }
  job->table.name_a = job->set->operands[0];
  job->table.name_b = job->set->operands[1];
  job->table.count_a = job->features[0].count;
  job->table.count_b = job->features[1].count;
  return has_option(job, OPTION_VERIFY) ? verify(job) : CLI_DONE;
}

static void report(const match_job *job) {
  const bool to_stdout = strcmp(job->output, "-") == 0;
  char verified[64] = "";
  if (job->table.geometry)
    snprintf(verified, sizeof verified, ", %zu inliers%s", job->geometry.inlier_count,
             job->geometry.found ? "" : " (no geometry found)");
  cli_note("%s (%zu features), %s (%zu features): %zu matches%s, %.1f ms -> %s", job->table.name_a,
           job->features[0].count, job->table.name_b, job->features[1].count, job->table.matches.count, verified,
           job->milliseconds, to_stdout ? "standard output" : job->output);
}

/* Sets the images' names for COLMAP's text. */
static cli_exit name_images(match_job *job) {
  const option_value *folder = &job->set->values[OPTION_IMAGE_PATH];
  if (job->format != MATCH_FORMAT_COLMAP) return CLI_DONE;
  if (!database_pair_names(job->set->operands, folder->is_set ? folder->text : NULL, job->colmap_names, job->message,
                           sizeof job->message))
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", job->message);
  for (int i = 0; i < 2; i++) job->table.colmap_names[i] = job->colmap_names[i];
  return CLI_DONE;
}

static cli_exit save(match_job *job) {
  const bool to_stdout = strcmp(job->output, "-") == 0;
  if (match_table_save(job->output, job->format, &job->table, job->message, sizeof job->message) != HS_OK) {
    if (!to_stdout || !cli_stdout_is_gone())
      cli_error(COMMAND_MATCH, "%s", job->message); /* the message already names the file */
    return CLI_FAILED;
  }
  if (!has_option(job, OPTION_QUIET)) report(job);
  return CLI_DONE;
}

static cli_exit draw(match_job *job) {
  drawing pictures[2] = {{0}};
  cli_exit result = draw_load_picture(&job->input, job->set->operands[0], &pictures[0]);
  if (result == CLI_DONE) result = draw_load_picture(&job->input, job->set->operands[1], &pictures[1]);
  if (result == CLI_DONE)
    result = draw_pair(job->set, job->set->values[OPTION_DRAW].text, pictures, job->features, &job->table);
  drawing_free(&pictures[0]);
  drawing_free(&pictures[1]);
  return result;
}

cli_exit cmd_match(const option_set *set) {
  match_job job = {.set = set};
  if (has_option(&job, OPTION_DATABASE)) return match_in_database(&job);
  cli_exit result = prepare(&job);
  if (result == CLI_DONE) result = cli_make_context(set, &job.options, &job.context);
  if (result == CLI_DONE) {
    cli_input_init(&job.input, set, &job.options);
    cli_input_for(&job.input, set, job.format == MATCH_FORMAT_COLMAP);
    job.input.keeps_stdin = has_option(&job, OPTION_DRAW);
    result = load_both(&job);
  }
  if (result == CLI_DONE) result = compute(&job);
  if (result == CLI_DONE) result = name_images(&job);
  if (result == CLI_DONE) result = save(&job);
  if (result == CLI_DONE && has_option(&job, OPTION_DRAW)) result = draw(&job);
  cli_input_free(&job.input);
  match_table_free(&job.table);
  free(job.colmap_names[0]);
  free(job.colmap_names[1]);
  hs_features_free(&job.features[0]);
  hs_features_free(&job.features[1]);
  hs_destroy(job.context);
  return result;
}
