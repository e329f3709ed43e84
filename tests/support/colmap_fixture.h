/*
 * Fixture for tests of a database's content: a folder with an empty database of the newest tables, and two lists of
 * features. Its functions fail the running cmocka test on errors.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COLMAP_FIXTURE_H
#define HARTSIFT_TESTS_SUPPORT_COLMAP_FIXTURE_H

#include "pipeline/include/hartsift.h"
#include "tests/support/scratch_folder.h"

enum { COLMAP_FIXTURE_FEATURES = 60 };

typedef struct colmap_fixture {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  hs_features features;
  hs_features others; /* features of another seed */
} colmap_fixture;

/* A test whose block sees the fixture as `f`, and what surrounds it. */
#define TEST_ON_DATABASE(NAME) TEST_GIVEN(NAME, colmap_fixture, f, colmap_fixture_set_up, colmap_fixture_tear_down)
int colmap_fixture_set_up(void **state);
int colmap_fixture_tear_down(void **state);

hs_colmap_database *colmap_fixture_open(const colmap_fixture *f, int32_t replace, int32_t share_cameras);

/* Commits and closes the database. */
void colmap_fixture_finish(hs_colmap_database *database);

/* Adds an image, which must get this image number. */
void colmap_fixture_add(hs_colmap_database *database, const char *name, const hs_features *features, uint32_t expected);

#endif
