/*
 * The matchers and matches_importer of hartsift-colmap: hartsift match --database with COLMAP's options.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "pipeline/cli/colmap/colmap_program.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/cli/pairs/match_database.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/text_cursor.h"

enum { DEVICE_NAME_BYTES = 16 }; /* "cuda:1234567890" */

typedef struct matcher {
  const colmap_options *options;
  option_set set; /* options of hartsift match --database */
  match_database_plan plan;
  char devices[COLMAP_GPUS_MAX * DEVICE_NAME_BYTES];
  char *pairs; /* value of --pairs */
} matcher;

static cli_exit fail(const char *about, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_TOP, "%s: %s", about, reason);
}

static const char *database_path(const matcher *m) { return m->options->values[COLMAP_DATABASE_PATH].text; }

/* ------------------------------------------------------------------ options */

static cli_exit set_option(matcher *m, option_id id, const char *text) {
  char message[OPTION_MESSAGE_BYTES] = "";
  if (option_store(&m->set, id, text, message, sizeof message)) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_TOP, "%s", message);
}

enum { THREADS_END = 1024, TRIALS_END = 100000000 }; /* more has no effect */

/* Matches on the CPU, or on every GPU of the list: options --device, or --devices for several. */
static cli_exit set_devices(matcher *m) {
  const colmap_value *values = m->options->values;
  const int64_t threads = values[COLMAP_MATCHING_THREADS].integer;
  char number[NUMBER_TEXT_BYTES];
  colmap_gpus gpus;
  if (!colmap_choose_gpus(&values[COLMAP_MATCHING_GPU], &values[COLMAP_MATCHING_GPUS], &gpus)) return CLI_FAILED;
  snprintf(m->devices, sizeof m->devices, "%s", "cpu");
  size_t used = 0;
  for (int32_t i = 0; i < gpus.count; i++)
    used += (size_t)snprintf(m->devices + used, sizeof m->devices - used, "%scuda:%d", i == 0 ? "" : ",",
                             (int)gpus.each[i]);
  cli_exit result = set_option(m, gpus.count > 1 ? OPTION_DEVICES : OPTION_DEVICE, m->devices);
  if (result != CLI_DONE || threads <= 0) return result;
  (void)number_from_int(threads < THREADS_END ? threads : THREADS_END, number);
  return set_option(m, OPTION_THREADS, number);
}

/* Returns the distance of two descriptors of norm 512 from their angle, which COLMAP's max_distance limits. */
static double distance_of_angle(double angle) {
  const double norm = 512.0, straight = 3.14159265358979323846;
  return angle >= straight ? 0.0 : 2.0 * norm * sin(angle / 2.0);
}

static cli_exit set_matching(matcher *m) {
  const colmap_value *values = m->options->values;
  const double ratio = values[COLMAP_MAX_RATIO].number, angle = values[COLMAP_MAX_DISTANCE].number;
  (void)hs_match_options_init(&m->plan.wanted);
  if (!colmap_expect(&values[COLMAP_MAX_RATIO], ratio > 0.0, "a number above 0") ||
      !colmap_expect(&values[COLMAP_MAX_DISTANCE], angle > 0.0, "a number above 0"))
    return CLI_FAILED;
  m->plan.wanted.ratio = ratio < 1.0 ? ratio : 0.0;
  m->plan.wanted.max_distance = distance_of_angle(angle);
  m->plan.wanted.mutual = values[COLMAP_CROSS_CHECK].flag;
  return CLI_DONE;
}

/* Reads an integer of 32 bits that is at least `least`. */
static cli_exit read_count(const matcher *m, colmap_option_id id, int64_t least, int32_t *count) {
  return colmap_expect_integer(&m->options->values[id], least, INT32_MAX, count) ? CLI_DONE : CLI_FAILED;
}

static cli_exit set_verification(matcher *m) {
  const colmap_value *values = m->options->values;
  const bool is_planar = values[COLMAP_PLANAR].flag;
  const int64_t seed = values[COLMAP_GEOMETRY_SEED].integer >= 0 ? values[COLMAP_GEOMETRY_SEED].integer
                                                                 : values[COLMAP_RANDOM_SEED].integer;
  hs_verify_options *verify = &m->plan.verify;
  if (values[COLMAP_NO_VERIFICATION].flag)
    return colmap_expect(&values[COLMAP_KEEP_DOUBTFUL], !values[COLMAP_KEEP_DOUBTFUL].flag,
                         "0 with skip_geometric_verification, which finds no doubtful pairs")
               ? CLI_DONE
               : CLI_FAILED;
  (void)hs_verify_options_init(verify, is_planar ? HS_HOMOGRAPHY : HS_FUNDAMENTAL);
  verify->tolerance = values[COLMAP_MAX_ERROR].number;
  /* COLMAP takes 0 and 1 too; the library does not */
  verify->confidence = fmin(fmax(values[COLMAP_CONFIDENCE].number, 1e-9), 1.0 - 1e-12);
  verify->seed = seed > 0 ? (uint64_t)seed : 0;
  m->plan.guided = values[COLMAP_GUIDED].flag;
  m->plan.tries_essential = !is_planar;
  if (!colmap_expect(&values[COLMAP_MAX_ERROR], verify->tolerance > 0.0, "a number above 0") ||
      !colmap_expect_number(&values[COLMAP_CONFIDENCE], 0.0, 1.0) ||
      !colmap_expect(&values[COLMAP_GEOMETRY_SEED], values[COLMAP_GEOMETRY_SEED].integer >= -1,
                     "a whole number, -1 or more"))
    return CLI_FAILED;
  cli_exit result = read_count(m, COLMAP_MIN_INLIERS, 0, &verify->min_inliers);
  if (result == CLI_DONE) result = read_count(m, COLMAP_MAX_TRIALS, 1, &verify->max_iterations);
  if (verify->max_iterations > TRIALS_END) verify->max_iterations = TRIALS_END;
  if (verify->min_iterations > verify->max_iterations) verify->min_iterations = verify->max_iterations;
  return result;
}

static cli_exit prepare(matcher *m, const colmap_options *options) {
  *m = (matcher){.options = options, .set = {.command = COMMAND_MATCH}};
  m->plan.set = &m->set;
  m->plan.skips_unknown = true;
  m->plan.keeps_doubtful = options->values[COLMAP_KEEP_DOUBTFUL].flag;
  cli_exit result = set_option(m, OPTION_DATABASE, database_path(m));
  if (result == CLI_DONE && !os_exists(database_path(m)))
    result = fail(database_path(m), "is no database: feature_extractor makes it");
  if (result == CLI_DONE) result = set_matching(m);
  if (result == CLI_DONE) result = set_verification(m);
  return result == CLI_DONE ? set_devices(m) : result;
}

/* ------------------------------------------------------------------ pairs by a rule */

/* Matches the pairs that a value of --pairs names. The text is copied. */
static cli_exit match_pairs(matcher *m, const char *text) {
  free(m->pairs);
  m->pairs = strdup(text);
  if (!m->pairs) return fail(database_path(m), hs_status_string(HS_ERR_MEMORY));
  const cli_exit result = set_option(m, OPTION_PAIRS, m->pairs);
  return result == CLI_DONE ? match_database(&m->plan) : result;
}

static cli_exit match_similar(matcher *m, int32_t images) {
  char text[64];
  cli_note("hartsift's retrieval finds similar images: no vocabulary tree is read");
  snprintf(text, sizeof text, "retrieval:%d", (int)images);
  return match_pairs(m, text);
}

static cli_exit match_sequence(matcher *m) {
  const colmap_value *values = m->options->values;
  char text[64];
  int32_t overlap, period, images;
  cli_exit result = read_count(m, COLMAP_OVERLAP, 1, &overlap);
  if (result == CLI_DONE) result = read_count(m, COLMAP_LOOP_PERIOD, 1, &period);
  if (result == CLI_DONE) result = read_count(m, COLMAP_LOOP_IMAGES, 1, &images);
  if (result != CLI_DONE) return result;
  snprintf(text, sizeof text, "sequential:%d%s", (int)overlap, values[COLMAP_QUADRATIC].flag ? ",quadratic" : "");
  result = match_pairs(m, text);
  if (result != CLI_DONE || !values[COLMAP_LOOPS].flag) return result;
  return match_similar(m, images / period + (images % period != 0));
}

static cli_exit match_spatial(matcher *m) {
  const colmap_value *values = m->options->values;
  char text[96];
  int32_t neighbors;
  const double metres = values[COLMAP_PLACE_DISTANCE].number;
  if (!colmap_expect(&values[COLMAP_PLACE_DISTANCE], metres > 0.0, "a number above 0")) return CLI_FAILED;
  const cli_exit result = read_count(m, COLMAP_NEIGHBORS, 1, &neighbors);
  if (result != CLI_DONE) return result;
  snprintf(text, sizeof text, "spatial:%.12g,%d", metres, (int)neighbors);
  return match_pairs(m, text);
}

static cli_exit match_alike(matcher *m) {
  int32_t images;
  const cli_exit result = read_count(m, COLMAP_IMAGES, 1, &images);
  return result == CLI_DONE ? match_similar(m, images) : result;
}

/* ------------------------------------------------------------------ lists of names */

/* Opens the database, and lists its images with features. */
static cli_exit open_images(const char *path, int32_t read_only, hs_colmap_database **database,
                            database_images *images) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_colmap_options opening;
  (void)hs_colmap_options_init(&opening);
  opening.read_only = read_only;
  opening.message = message;
  opening.message_bytes = sizeof message;
  *images = (database_images){.path = path};
  if (hs_colmap_open(database, path, &opening) != HS_OK) return cli_fail(CLI_FAILED, COMMAND_TOP, "%s", message);
  return database_images_read(*database, images);
}

/* Matches pairs of image_ids. */
static cli_exit match_chosen(matcher *m, const pair_list *chosen) {
  m->plan.chosen = chosen->each;
  m->plan.chosen_count = chosen->count;
  return match_database(&m->plan);
}

/* ------------------------------------------------------------------ transitive_matcher */

/* Partners of each image. Those of image i are at starts[i] to starts[i + 1] - 1. */
typedef struct partner_lists {
  size_t *starts;
  uint32_t *partners;
} partner_lists;

/* Lists the verified pairs, each in both orders. */
static cli_exit list_verified(hs_colmap_database *database, const database_images *images, pair_list *pairs) {
  colmap_verified_pair next = {.pair_id = -1};
  size_t a, b;
  bool added = true;
  while (added) {
    if (colmap_next_verified(database, next.pair_id, &next) != HS_OK)
      return fail(images->path, hs_colmap_last_error(database));
    if (next.pair_id < 0) break;
    if (next.is_damaged || next.stored == 0) continue;
    if (database_images_find(images, next.images[0], &a) && database_images_find(images, next.images[1], &b))
      added = pair_list_add(pairs, a, b) && pair_list_add(pairs, b, a);
  }
  pair_list_settle(pairs);
  return added ? CLI_DONE : fail(images->path, hs_status_string(HS_ERR_MEMORY));
}

/* Makes the lists of partners. The pairs must be sorted. */
static bool make_partners(const pair_list *pairs, size_t image_count, partner_lists *lists) {
  lists->starts = calloc(image_count + 1, sizeof *lists->starts);
  lists->partners = calloc(pairs->count + 1, sizeof *lists->partners);
  if (!lists->starts || !lists->partners) return false;
  for (size_t i = 0; i < pairs->count; i++) {
    lists->partners[i] = pairs->each[i].second;
    lists->starts[pairs->each[i].first + 1]++;
  }
  for (size_t i = 0; i < image_count; i++) lists->starts[i + 1] += lists->starts[i];
  return true;
}

/* Adds the pairs of images that have a common partner and are not partners themselves. */
static bool join_partners(const partner_lists *lists, size_t image_count, pair_list *joined) {
  bool *known = calloc(image_count + 1, sizeof *known);
  bool added = known != NULL;
  for (size_t a = 0; a < image_count && added; a++) {
    memset(known, 0, image_count * sizeof *known);
    for (size_t i = lists->starts[a]; i < lists->starts[a + 1]; i++) known[lists->partners[i]] = true;
    for (size_t i = lists->starts[a]; i < lists->starts[a + 1] && added; i++) {
      const uint32_t b = lists->partners[i];
      for (size_t k = lists->starts[b]; k < lists->starts[b + 1] && added; k++) {
        const uint32_t c = lists->partners[k];
        if (c <= a || known[c]) continue;
        known[c] = true;
        added = pair_list_add(joined, a, c);
      }
    }
  }
  free(known);
  return added;
}

/* Fills the empty *chosen with the pairs of image_ids to match. */
static cli_exit find_transitive(const char *path, pair_list *chosen) {
  hs_colmap_database *database = NULL;
  database_images images;
  pair_list verified = {0};
  partner_lists lists = {0};
  cli_exit result = open_images(path, 1, &database, &images);
  if (result == CLI_DONE) result = list_verified(database, &images, &verified);
  if (result == CLI_DONE &&
      !(make_partners(&verified, images.count, &lists) && join_partners(&lists, images.count, chosen)))
    result = fail(path, hs_status_string(HS_ERR_MEMORY));
  for (size_t i = 0; i < chosen->count; i++) {
    hs_image_pair *pair = &chosen->each[i];
    *pair = (hs_image_pair){images.each[pair->first].image_id, images.each[pair->second].image_id};
  }
  pair_list_free(&verified);
  free(lists.starts);
  free(lists.partners);
  database_images_free(&images);
  hs_colmap_close(database);
  return result;
}

static cli_exit match_transitive(matcher *m) {
  int32_t iterations;
  cli_exit result = read_count(m, COLMAP_ITERATIONS, 1, &iterations);
  for (int32_t i = 0; i < iterations && result == CLI_DONE; i++) {
    pair_list chosen = {0};
    result = find_transitive(database_path(m), &chosen);
    const bool has_pairs = chosen.count > 0;
    if (result == CLI_DONE && has_pairs) result = match_chosen(m, &chosen);
    pair_list_free(&chosen);
    if (!has_pairs) break;
  }
  return result;
}

/* ------------------------------------------------------------------ matches_importer */

/* A file of matches. For each pair it has a line "NAME NAME", then lines "INDEX INDEX", then an empty line. */
typedef struct matches_file {
  name_lines lines;
  bool is_unreadable; /* a line could not be read */
  hs_colmap_database *database;
  const database_images *images;
  bool are_inliers;
  hs_match_pair *matches; /* matches of the current pair */
  size_t count, capacity;
  pair_list *chosen; /* receives the pairs to verify, as for match_chosen */
  bool has_failed;
} matches_file;

/* Reads the next line without white space at its end. Returns false at the end, and after a line that is unreadable. */
static bool read_line(matches_file *from, char **line) {
  if (from->is_unreadable) return false;
  if (name_lines_next(&from->lines, line) != CLI_DONE) from->is_unreadable = true;
  size_t length = *line ? strlen(*line) : 0;
  while (length > 0 && strchr(" \t", (*line)[length - 1])) (*line)[--length] = '\0';
  return *line != NULL;
}

static const database_image *image_of(const matches_file *from, const char *name) {
  for (size_t i = 0; i < from->images->count; i++)
    if (strcmp(from->images->each[i].name, name) == 0) return &from->images->each[i];
  cli_error(COMMAND_TOP, "%s:%zu: '%s' is not an image with features in %s: the pair is left out", from->lines.path,
            from->lines.number, name, from->images->path);
  return NULL;
}

static bool add_match(matches_file *from, const char *line) {
  unsigned long numbers[2];
  char rest;
  if (sscanf(line, "%lu %lu%c", &numbers[0], &numbers[1], &rest) != 2 || numbers[0] > UINT32_MAX ||
      numbers[1] > UINT32_MAX) {
    cli_error(COMMAND_TOP, "%s:%zu: '%s': expected two numbers of features", from->lines.path, from->lines.number,
              line);
    return false;
  }
  if (from->count == from->capacity) {
    const size_t capacity = from->capacity == 0 ? 1024 : 2 * from->capacity;
    hs_match_pair *matches = realloc(from->matches, capacity * sizeof *matches);
    if (!matches) return fail(from->lines.path, hs_status_string(HS_ERR_MEMORY)) == CLI_DONE;
    from->matches = matches;
    from->capacity = capacity;
  }
  from->matches[from->count++] = (hs_match_pair){.first = (uint32_t)numbers[0], .second = (uint32_t)numbers[1]};
  return true;
}

/* Stores the matches of the current pair. Inliers get a geometry without matrices, as COLMAP stores them. */
static void store_matches(matches_file *from, const database_image *a, const database_image *b) {
  hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .inlier_count = from->count};
  int64_t matches = -1, verified = -1;
  hs_colmap_matches entry = {.pairs = from->matches, .pair_stride_bytes = sizeof *from->matches, .count = from->count};
  (void)hs_colmap_count_matches(from->database, a->image_id, b->image_id, &matches, &verified);
  if (verified >= 0) return;
  if (a->is_calibrated && b->is_calibrated) geometry.model = HS_ESSENTIAL;
  if (from->are_inliers && geometry.model == HS_ESSENTIAL) entry.essential = &geometry;
  if (from->are_inliers && geometry.model == HS_FUNDAMENTAL) entry.fundamental = &geometry;
  if (hs_colmap_add_matches(from->database, a->image_id, b->image_id, &entry) != HS_OK) {
    cli_error(COMMAND_TOP, "%s:%zu: %s", from->lines.path, from->lines.number, hs_colmap_last_error(from->database));
    from->has_failed = true;
  } else if (!from->are_inliers && !pair_list_add(from->chosen, a->image_id, b->image_id)) {
    from->has_failed = fail(from->lines.path, hs_status_string(HS_ERR_MEMORY)) != CLI_DONE;
  }
}

/* Reads the matches that follow a line with two names. Returns false if nothing more can be read. */
static bool read_pair(matches_file *from, char *names) {
  char *line, *separator = strchr(names, '\t');
  if (!separator) separator = strchr(names, ' ');
  if (!separator) {
    cli_error(COMMAND_TOP, "%s:%zu: '%s': expected two names", from->lines.path, from->lines.number, names);
    return false;
  }
  os_normalise_path(names);
  *separator = '\0';
  const database_image *a = image_of(from, names);
  const database_image *b = image_of(from, separator + 1 + strspn(separator + 1, " \t"));
  for (from->count = 0; read_line(from, &line) && line[0] != '\0';)
    if (!add_match(from, line)) return false;
  if (a && b && a != b && !from->is_unreadable) store_matches(from, a, b);
  return true;
}

static cli_exit read_pairs(matches_file *from) {
  for (char *line; read_line(from, &line);)
    if (line[0] != '\0' && line[0] != '#' && !read_pair(from, line)) return CLI_FAILED;
  if (from->is_unreadable) return CLI_FAILED;
  if (hs_colmap_commit(from->database) != HS_OK) return fail(from->images->path, hs_colmap_last_error(from->database));
  return from->has_failed ? CLI_FAILED : CLI_DONE;
}

/* Stores the matches of a file. Fills the empty *chosen with the pairs to verify. */
static cli_exit store_file(const matcher *m, bool are_inliers, pair_list *chosen) {
  database_images images;
  const char *path = m->options->values[COLMAP_MATCH_LIST].text;
  matches_file from = {
      .lines = {.command = COMMAND_TOP, .option = "", .path = path}, .are_inliers = are_inliers, .chosen = chosen};
  if (os_is_folder(path)) return fail(path, "is a folder: expected a file of matches");
  from.lines.file = os_open_stream(path, "r");
  if (!from.lines.file)
    return cli_fail(CLI_FAILED, COMMAND_TOP, "%s: cannot be opened: %s; expected a file of matches", path,
                    strerror(errno));
  cli_exit result = open_images(database_path(m), 0, &from.database, &images);
  from.images = &images;
  if (result == CLI_DONE) result = read_pairs(&from);
  (void)fclose(from.lines.file);
  free(from.matches);
  database_images_free(&images);
  hs_colmap_close(from.database);
  return result;
}

/* Matches the pairs of a file. "./" is put before its name, which could be the name of a rule. */
static cli_exit match_file(matcher *m) {
  const char *path = m->options->values[COLMAP_MATCH_LIST].text;
  if (os_is_folder(path)) return fail(path, "is a folder: expected a list of pairs");
  char *named = cli_join(os_is_absolute(path) ? "" : "./", path, "");
  if (!named) return fail(path, hs_status_string(HS_ERR_MEMORY));
  cli_exit result = CLI_FAILED;
  if (os_may(path, OS_MAY_READ))
    result = match_pairs(m, named);
  else
    cli_error(COMMAND_TOP, "%s: cannot be read: %s; expected a list of pairs", path, strerror(errno));
  free(named);
  return result;
}

static cli_exit import_matches(matcher *m) {
  const char *type = m->options->values[COLMAP_MATCH_TYPE].text;
  const bool are_inliers = strcmp(type, "inliers") == 0;
  pair_list chosen = {0};
  if (strcmp(type, "pairs") == 0) return match_file(m);
  if (!colmap_expect(&m->options->values[COLMAP_MATCH_TYPE], are_inliers || strcmp(type, "raw") == 0,
                     "pairs, raw or inliers"))
    return CLI_FAILED;
  cli_exit result = store_file(m, are_inliers, &chosen);
  if (result == CLI_DONE && chosen.count > 0) result = match_chosen(m, &chosen);
  pair_list_free(&chosen);
  return result;
}

/* ------------------------------------------------------------------ all matchers */

static cli_exit run(matcher *m) {
  switch (m->options->command) {
  case COLMAP_SEQUENTIAL_MATCHER:
    return match_sequence(m);
  case COLMAP_SPATIAL_MATCHER:
    return match_spatial(m);
  case COLMAP_VOCAB_TREE_MATCHER:
    return match_alike(m);
  case COLMAP_TRANSITIVE_MATCHER:
    return match_transitive(m);
  case COLMAP_MATCHES_IMPORTER:
    return import_matches(m);
  default:
    return match_pairs(m, "all");
  }
}

cli_exit colmap_match(const colmap_options *options) {
  matcher *m = malloc(sizeof *m);
  if (!m) return fail("matches", hs_status_string(HS_ERR_MEMORY));
  cli_exit result = prepare(m, options);
  if (result == CLI_DONE) result = run(m);
  free(m->pairs);
  free(m);
  return result;
}
