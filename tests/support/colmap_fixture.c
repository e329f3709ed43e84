/*
 * Fixture for tests of a database's content; see colmap_fixture.h.
 */
#include "tests/support/colmap_fixture.h"

#include <stdlib.h>

#include "tests/support/test.h"

#include "tests/support/colmap_tables.h"
#include "tests/support/feature_maker.h"

#if HARTSIFT_HAVE_SQLITE

int colmap_fixture_set_up(void **state) {
  colmap_fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  scratch_folder_make(&f->folder);
  scratch_folder_path(&f->folder, "database.db", f->path);
  feature_maker_fill(&f->features, COLMAP_FIXTURE_FEATURES, FEATURES_U8, 1);
  feature_maker_fill(&f->others, COLMAP_FIXTURE_FEATURES, FEATURES_U8, 2);
  colmap_tables_make(f->path, COLMAP_4_2);
  *state = f;
  return 0;
}

int colmap_fixture_tear_down(void **state) {
  SCOPED_MEMORY colmap_fixture *f = *state;
  hs_features_free(&f->features);
  hs_features_free(&f->others);
  scratch_folder_remove(&f->folder);
  return 0;
}

hs_colmap_database *colmap_fixture_open(const colmap_fixture *f, int32_t replace, int32_t share_cameras) {
  hs_colmap_database *database = NULL;
  const hs_colmap_options options = {
      .struct_size = sizeof options, .replace = replace, .share_cameras = share_cameras, .wait_ms = 50};
  assert_int_equal(hs_colmap_open(&database, f->path, &options), HS_OK);
  return database;
}

void colmap_fixture_finish(hs_colmap_database *database) {
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  hs_colmap_close(database);
}

void colmap_fixture_add(hs_colmap_database *database, const char *name, const hs_features *features,
                        uint32_t expected) {
  uint32_t image_id = 0;
  assert_int_equal(hs_colmap_add_image(database, name, NULL, features, &image_id), HS_OK);
  assert_int_equal(image_id, expected);
}

#endif
