/*
 * Fixture for tests of a database as a file; see colmap_file.h.
 */
#include "tests/support/colmap_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/test.h"

#include "tests/support/feature_maker.h"

static colmap_file_opener open_function = hs_colmap_open;

void colmap_file_open_by(colmap_file_opener function) { open_function = function; }

int colmap_file_set_up(void **state) {
  colmap_file *f = calloc(1, sizeof *f);
  assert_non_null(f);
  scratch_folder_make(&f->folder);
  scratch_folder_path(&f->folder, "database.db", f->path);
  feature_maker_fill(&f->features, COLMAP_FILE_FEATURES, FEATURES_U8, 1);
  f->open = open_function;
  *state = f;
  return 0;
}

int colmap_file_tear_down(void **state) {
  SCOPED_MEMORY colmap_file *f = *state;
  hs_features_free(&f->features);
  scratch_folder_remove(&f->folder);
  return 0;
}

hs_colmap_options colmap_file_options(colmap_file *f) {
  f->message[0] = '\0';
  return (hs_colmap_options){.struct_size = sizeof(hs_colmap_options),
                             .wait_ms = 50,
                             .message = f->message,
                             .message_bytes = sizeof f->message};
}

hs_colmap_database *colmap_file_open(colmap_file *f) {
  hs_colmap_database *database = NULL;
  const hs_colmap_options options = colmap_file_options(f);
  const hs_status status = f->open(&database, f->path, &options);
  if (status != HS_OK) fail_msg("%s: %s", hs_status_name(status), f->message);
  return database;
}

void colmap_file_add(colmap_file *f, const char *name) {
  scoped_database *database = colmap_file_open(f);
  assert_int_equal(hs_colmap_add_image(database, name, NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
}

void colmap_file_refuses(colmap_file *f, int32_t read_only, hs_status expected, const char *word) {
  size_t before_size = 0, after_size = 0;
  struct stat info;
  const bool is_file = stat(f->path, &info) == 0 && S_ISREG(info.st_mode);
  unsigned char *before = is_file ? scratch_read_file(f->path, &before_size) : NULL;
  const size_t entries = scratch_folder_count(&f->folder);
  hs_colmap_database *database = (hs_colmap_database *)f;
  hs_colmap_options options = colmap_file_options(f);
  options.read_only = read_only;
  assert_int_equal(f->open(&database, f->path, &options), expected);
  assert_null(database);
  assert_non_null(strstr(f->message, "database.db"));
  if (!strstr(f->message, word)) fail_msg("'%s' says nothing of '%s'", f->message, word);
  assert_int_equal(scratch_folder_count(&f->folder), entries);
  unsigned char *after = is_file ? scratch_read_file(f->path, &after_size) : NULL;
  assert_int_equal(after_size, before_size);
  if (is_file) assert_memory_equal(after, before, before_size);
  free(before);
  free(after);
}
