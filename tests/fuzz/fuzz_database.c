/*
 * Fuzz target for untrusted COLMAP databases.
 *
 * The first byte chooses the meaning of the rest: SQL that is run on a database of two images, bytes to patch in such a
 * database's file (an offset of three bytes, then the byte), or a whole file. The database is read completely, then
 * written to; in a valid database with COLMAP's tables committed data is found again.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"
#include "tests/fuzz/input_file.h"
#include "tests/support/feature_maker.h"

enum { FUZZ_FEATURES = 5, FUZZ_IMAGES_MAX = 40, FUZZ_MAX_FEATURES = 4096, FUZZ_STEPS = 20000, FUZZ_SQL_BYTES = 4096 };
enum { FUZZ_BYTES_MAX = 1 << 30 /* FUZZ_BYTES_MAX: SQLite's limit for a row */ };

typedef struct fuzz_base {
  hs_features features;
  unsigned char *bytes;
  size_t size;
  char *schema; /* the schema as one text */
} fuzz_base;

static hs_colmap_database *open_database(const char *path, int32_t read_only, char *message, size_t message_bytes) {
  hs_colmap_options options;
  hs_colmap_database *database = NULL;
  fuzz_require(hs_colmap_options_init(&options) == HS_OK);
  options.read_only = read_only;
  options.replace = !read_only;
  options.wait_ms = 1;
  options.max_features = FUZZ_MAX_FEATURES;
  options.message = message;
  options.message_bytes = message_bytes;
  message[0] = '\0';
  const hs_status status = hs_colmap_open(&database, path, &options);
  fuzz_require((status == HS_OK) == (database != NULL) && (status == HS_OK || message[0] != '\0'));
  return database;
}

/* Adds two images with features, matches and a position. */
static bool add_content(hs_colmap_database *database, const hs_features *features, uint32_t ids[2]) {
  const hs_match_pair pairs[2] = {{0, 1, 1, 2}, {3, 2, 1, 2}};
  const hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const hs_colmap_matches matches = {
      .pairs = pairs, .pair_stride_bytes = sizeof pairs[0], .count = 2, .fundamental = &geometry};
  const hs_colmap_position position = {.found = 1, .is_cartesian = 1, .coordinates = {1, 2, 3}};
  return hs_colmap_add_image(database, "fuzz_a.jpg", NULL, features, &ids[0]) == HS_OK &&
         hs_colmap_add_image(database, "fuzz_b.jpg", NULL, features, &ids[1]) == HS_OK &&
         hs_colmap_add_matches(database, ids[0], ids[1], &matches) == HS_OK &&
         hs_colmap_set_position(database, ids[0], &position) == HS_OK;
}

/* Sets all results aside and restores them. The remaining data of a pair must be unchanged, or an error gives the
 * reason. */
static void move_pairs(const char *path) {
  char message[256];
  hs_colmap_database *database = open_database(path, 0, message, sizeof message);
  colmap_verified_pair pair = {.pair_id = -1}, again;
  size_t count = 0;
  if (!database) return;
  for (int i = 0; i < FUZZ_IMAGES_MAX; i++) {
    if (colmap_next_verified(database, pair.pair_id, &pair) != HS_OK || pair.pair_id < 0) break;
    if (colmap_note_first_pass(database, pair.images[0], pair.images[1], 9, 5) != HS_OK) break;
    if (colmap_set_aside(database, pair.pair_id, 3, 1) != HS_OK) break;
  }
  if (colmap_take_back(database, &count) != HS_OK) fuzz_require(hs_colmap_last_error(database)[0] != '\0');
  (void)colmap_next_verified(database, -1, &again);
  (void)hs_colmap_commit(database);
  hs_colmap_close(database);
}

/* Returns the text of the first row, which the caller frees; null if there is no row. */
static char *ask_text(sqlite3 *sqlite, const char *sql) {
  sqlite3_stmt *statement = NULL;
  char *text = NULL;
  if (sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
    const char *found = (const char *)sqlite3_column_text(statement, 0);
    if (found) text = strdup(found);
  }
  (void)sqlite3_finalize(statement);
  return text;
}

static char *schema_of(sqlite3 *sqlite) {
  return ask_text(sqlite, "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_master ORDER BY name)");
}

/* Makes the base database with pages of 512 bytes, few of them empty. */
static void make_base(fuzz_base *base) {
  uint32_t ids[2];
  char message[256];
  sqlite3 *sqlite = NULL;
  sqlite3_int64 size = 0;
  const char *path = input_file(NULL, 0);
  feature_maker_fill(&base->features, FUZZ_FEATURES, FEATURES_U8, 7);
  unlink(path);
  hs_colmap_database *database = open_database(path, 0, message, sizeof message);
  fuzz_require(database && add_content(database, &base->features, ids) && hs_colmap_commit(database) == HS_OK);
  /* creates the tables of this library */
  fuzz_require(colmap_note_first_pass(database, ids[0], ids[1], 3, 2) == HS_OK);
  fuzz_require(colmap_set_aside(database, 2147483649, 1, 0) == HS_OK && hs_colmap_commit(database) == HS_OK);
  hs_colmap_close(database);
  fuzz_require(sqlite3_open(path, &sqlite) == SQLITE_OK);
  fuzz_require(sqlite3_exec(sqlite, "PRAGMA page_size = 512; VACUUM", NULL, NULL, NULL) == SQLITE_OK);
  base->bytes = sqlite3_serialize(sqlite, "main", &size, 0);
  fuzz_require(base->bytes != NULL);
  base->size = (size_t)size;
  base->schema = schema_of(sqlite);
  fuzz_require(base->schema != NULL);
  sqlite3_close(sqlite);
}

/* Denies every statement that could reach another file. */
static int authorize(void *user, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)user, (void)a, (void)b, (void)c, (void)d;
  return action == SQLITE_ATTACH || action == SQLITE_DETACH ? SQLITE_DENY : SQLITE_OK;
}

static int stop_long_statement(void *user) {
  int *left = user;
  return (*left)-- <= 0;
}

/* Runs SQL on the base. A statement that fails is skipped. */
static const char *run_sql(const fuzz_base *base, input_bytes *input) {
  sqlite3 *sqlite = NULL;
  sqlite3_int64 size = 0;
  int left = FUZZ_STEPS / 100;
  unsigned char *copy = sqlite3_malloc64(base->size);
  fuzz_require(copy != NULL && sqlite3_open(":memory:", &sqlite) == SQLITE_OK);
  memcpy(copy, base->bytes, base->size);
  fuzz_require(sqlite3_deserialize(sqlite, "main", copy, (sqlite3_int64)base->size, (sqlite3_int64)base->size,
                                   SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK);
  sqlite3_limit(sqlite, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_limit(sqlite, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_db_config(sqlite, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
  sqlite3_set_authorizer(sqlite, authorize, NULL);
  sqlite3_progress_handler(sqlite, 100, stop_long_statement, &left);
  while (input->size > 0) {
    char *sql = input_text(input, FUZZ_SQL_BYTES);
    fuzz_require(sql != NULL);
    (void)sqlite3_exec(sqlite, sql, NULL, NULL, NULL);
    free(sql);
  }
  sqlite3_set_authorizer(sqlite, NULL, NULL);
  unsigned char *made = sqlite3_serialize(sqlite, "main", &size, 0);
  const char *path = input_file(made, made ? (size_t)size : 0);
  sqlite3_free(made);
  sqlite3_close(sqlite);
  return path;
}

static const char *patch(const fuzz_base *base, input_bytes *input) {
  uint8_t *bytes = malloc(base->size);
  fuzz_require(bytes != NULL);
  memcpy(bytes, base->bytes, base->size);
  while (input->size > 0) {
    const size_t place = input_u8(input) | (size_t)input_u8(input) << 8 | (size_t)input_u8(input) << 16;
    bytes[place % base->size] = input_u8(input);
  }
  const char *path = input_file(bytes, base->size);
  free(bytes);
  return path;
}

static void read_image(hs_colmap_database *database, const hs_colmap_image *image, uint32_t before) {
  hs_features features = {0};
  hs_colmap_position position;
  int64_t matches = 0, verified = 0;
  const uint32_t id = image->image_id;
  if (hs_colmap_read_features(database, id, &features) == HS_OK)
    fuzz_require(feature_maker_consistent(&features) && features.count <= FUZZ_MAX_FEATURES);
  else
    fuzz_require(!features.keypoints && hs_colmap_last_error(database)[0] != '\0');
  hs_features_free(&features);
  if (hs_colmap_read_position(database, id, &position) == HS_OK)
    for (int i = 0; position.found && i < 3; i++) fuzz_require(isfinite(position.coordinates[i]) != 0);
  if (hs_colmap_count_matches(database, before, id, &matches, &verified) == HS_OK)
    fuzz_require(matches >= -1 && verified >= -1);
}

/* Reads the list of pairs as the command does. Its lengths are below the largest index, or a reason is given why there
 * is no list. */
static void read_pairs(hs_colmap_database *database) {
  int64_t pair = -1, before = -1;
  for (int i = 0; i < FUZZ_IMAGES_MAX; i++, before = pair) {
    uint32_t images[2];
    colmap_pair_state state;
    hs_match_pair *matches = NULL;
    size_t count = 0;
    if (colmap_next_pair(database, pair, &pair, images) != HS_OK || pair < 0) break;
    fuzz_require(pair > before);
    if (colmap_look_at_pair(database, images[0], images[1], &state) != HS_OK) continue;
    fuzz_require(state.matches >= -1 && state.verified >= -1);
    if (colmap_read_matches(database, images[0], images[1], &matches, &count) == HS_OK)
      fuzz_require((int64_t)count == state.matches);
    else
      fuzz_require(!matches && hs_colmap_last_error(database)[0] != '\0');
    for (size_t k = 0; k < count; k++)
      fuzz_require(matches[k].first <= state.largest[0] && matches[k].second <= state.largest[1]);
    hs_memory_release(NULL, matches);
  }
}

/* Reads the inputs of judging. Lists have their stated length, and a first pass has no more inliers than matches. */
static void read_verified(hs_colmap_database *database) {
  colmap_verified_pair pair = {.pair_id = -1};
  for (int i = 0; i < FUZZ_IMAGES_MAX; i++) {
    const int64_t before = pair.pair_id;
    size_t keypoints;
    if (colmap_next_verified(database, before, &pair) != HS_OK || pair.pair_id < 0) break;
    fuzz_require(pair.pair_id > before);
    if (pair.is_damaged) continue;
    fuzz_require(pair.images[0] < pair.images[1] && pair.stored <= FUZZ_BYTES_MAX / 8 && pair.matches <= UINT32_MAX);
    fuzz_require(pair.inliers <= UINT32_MAX);
    uint32_t *inliers = calloc(pair.stored + 1, 2 * sizeof *inliers);
    fuzz_require(inliers != NULL);
    if (colmap_read_inliers(database, pair.pair_id, inliers, pair.stored) != HS_OK)
      fuzz_require(hs_colmap_last_error(database)[0] != '\0');
    free(inliers);
    if (colmap_count_held_keypoints(database, pair.images[0], &keypoints) == HS_OK)
      fuzz_require(keypoints <= FUZZ_BYTES_MAX / 8);
  }
}

static void read_all(const char *path) {
  char message[256];
  hs_colmap_database *database = open_database(path, 1, message, sizeof message);
  int64_t after = -1;
  for (int i = 0; database && i < FUZZ_IMAGES_MAX; i++) {
    hs_colmap_image image;
    if (hs_colmap_next_image(database, after, &image) != HS_OK || !image.found) break;
    fuzz_require((int64_t)image.image_id > after && image.name != NULL && image.features >= -1);
    fuzz_require(image.camera.parameter_count >= 0 && image.camera.parameter_count <= HS_COLMAP_PARAMETERS);
    read_image(database, &image, after < 0 ? image.image_id + 1 : (uint32_t)after);
    after = image.image_id;
  }
  if (database) read_pairs(database);
  if (database) read_verified(database);
  hs_colmap_close(database);
}

/* Returns whether added rows must remain. Tables that share pages, triggers or constraints with unknown tables may
 * remove them. */
static bool keeps_rows(const char *path, const fuzz_base *base) {
  sqlite3 *sqlite = NULL;
  bool keeps = false;
  if (sqlite3_open(path, &sqlite) == SQLITE_OK) {
    char *schema = schema_of(sqlite), *verdict = ask_text(sqlite, "PRAGMA integrity_check");
    keeps = schema && strcmp(schema, base->schema) == 0 && verdict && strcmp(verdict, "ok") == 0;
    free(verdict);
    free(schema);
  }
  sqlite3_close(sqlite);
  return keeps;
}

static void write_some(const char *path, const fuzz_base *base) {
  const hs_features *features = &base->features;
  const bool keeps = keeps_rows(path, base);
  char message[256];
  uint32_t ids[2] = {0, 0};
  hs_colmap_database *database = open_database(path, 0, message, sizeof message);
  const bool done = database && add_content(database, features, ids) && hs_colmap_commit(database) == HS_OK;
  hs_colmap_close(database);
  if (!done || !keeps) return;
  hs_features again = {0};
  database = open_database(path, 1, message, sizeof message);
  fuzz_require(database && hs_colmap_read_features(database, ids[0], &again) == HS_OK &&
               again.count == features->count);
  hs_features_free(&again);
  hs_colmap_close(database);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_base base;
  input_bytes input = {data, size};
  if (!base.bytes) make_base(&base);
  const uint8_t kind = input_u8(&input) % 3u;
  const char *path = kind == 0   ? run_sql(&base, &input)
                     : kind == 1 ? patch(&base, &input)
                                 : input_file(input.data, input.size);
  read_all(path);
  move_pairs(path);
  write_some(path, &base);
  return 0;
}
