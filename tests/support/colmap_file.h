/*
 * Fixture for tests of a database as a file: a folder, the path of a file that does not exist yet, a list of features,
 * and a way of opening. Its functions fail the running cmocka test on errors.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COLMAP_FILE_H
#define HARTSIFT_TESTS_SUPPORT_COLMAP_FILE_H

#include "pipeline/include/hartsift.h"
#include "tests/support/scratch_folder.h"

enum { COLMAP_FILE_FEATURES = 50 };

typedef hs_status (*colmap_file_opener)(hs_colmap_database **, const char *, const hs_colmap_options *);

typedef struct colmap_file {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  char message[512]; /* receives messages of colmap_file_options */
  hs_features features;
  colmap_file_opener open;
} colmap_file;

/* Sets how later calls open the database: with hs_colmap_open (default), or as a batch does, with a writer thread. */
void colmap_file_open_by(colmap_file_opener function);

/* A test whose block sees the fixture as `f`, and what surrounds it. */
#define TEST_ON_FILE(NAME) TEST_GIVEN(NAME, colmap_file, f, colmap_file_set_up, colmap_file_tear_down)
int colmap_file_set_up(void **state);
int colmap_file_tear_down(void **state);

/* Returns options that wait 50 ms for a lock and store their message in f->message, which is emptied first. */
hs_colmap_options colmap_file_options(colmap_file *f);

/* Opens the database, or creates it. The caller closes it. */
hs_colmap_database *colmap_file_open(colmap_file *f);

/* Opens the database, adds an image with the features, commits and closes. */
void colmap_file_add(colmap_file *f, const char *name);

/* Fails unless opening is refused with this status and a message that contains the word, and leaves file and folder
 * unchanged. */
void colmap_file_refuses(colmap_file *f, int32_t read_only, hs_status expected, const char *word);

#endif
