/*
 * A folder for a test's files, in TMPDIR or the system's folder for temporary files.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_SCRATCH_FOLDER_H
#define HARTSIFT_TESTS_SUPPORT_SCRATCH_FOLDER_H

#include <stddef.h>

enum { SCRATCH_PATH_BYTES = 1024 };

typedef struct scratch_folder {
  char path[SCRATCH_PATH_BYTES];
} scratch_folder;

/* Makes an empty folder. Fails the running cmocka test if this is not possible. */
void scratch_folder_make(scratch_folder *folder);
scratch_folder scratch_folder_new(void);
#define scoped_folder SCOPED_BY(scratch_folder_remove) const scratch_folder

/* Removes the folder with its content. */
void scratch_folder_remove(const scratch_folder *folder);

/* A test whose block sees an empty `folder`, and what surrounds it. */
#define TEST_IN_FOLDER(NAME) TEST_GIVEN(NAME, scratch_folder, folder, scratch_folder_set_up, scratch_folder_tear_down)
int scratch_folder_set_up(void **state);
int scratch_folder_tear_down(void **state);

/* Writes FOLDER/name to path[SCRATCH_PATH_BYTES] and returns path. */
char *scratch_folder_path(const scratch_folder *folder, const char *name, char *path);

/* Returns the number of entries, including hidden ones. */
size_t scratch_folder_count(const scratch_folder *folder);

/* Writes a whole file. The next function reads a whole file into memory from malloc, with a zero after its last
 * byte. */
void scratch_write_file(const char *path, const void *bytes, size_t size);
unsigned char *scratch_read_file(const char *path, size_t *size);

#endif
