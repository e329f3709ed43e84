/*
 * Makes and removes a folder for a test's files; see scratch_folder.h.
 */
#define _XOPEN_SOURCE 700 /* P_tmpdir */

#include "tests/support/scratch_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

void scratch_folder_make(scratch_folder *folder) {
  const char *base = getenv("TMPDIR");
  if (!base || base[0] == '\0') base = P_tmpdir;
  const int length = snprintf(folder->path, sizeof folder->path, "%s/hartsift-test-XXXXXX", base);
  assert_true(length > 0 && (size_t)length < sizeof folder->path);
  assert_non_null(mkdtemp(folder->path));
}

scratch_folder scratch_folder_new(void) {
  scratch_folder folder;
  scratch_folder_make(&folder);
  return folder;
}

char *scratch_folder_path(const scratch_folder *folder, const char *name, char *path) {
  const int length = snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", folder->path, name);
  assert_true(length > 0 && length < SCRATCH_PATH_BYTES);
  return path;
}

/* Calls unlink or rmdir for every entry if requested; returns the number of entries. */
static size_t scratch_folder_visit(const scratch_folder *folder, int delete_entries) {
  DIR *directory = opendir(folder->path);
  assert_non_null(directory);
  size_t count = 0;
  for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    count++;
    char path[SCRATCH_PATH_BYTES];
    scratch_folder_path(folder, entry->d_name, path);
    if (delete_entries && unlink(path) != 0) {
      scratch_folder inner;
      memcpy(inner.path, path, sizeof path);
      scratch_folder_remove(&inner);
    }
  }
  closedir(directory);
  return count;
}

size_t scratch_folder_count(const scratch_folder *folder) { return scratch_folder_visit(folder, 0); }

void scratch_folder_remove(const scratch_folder *folder) {
  scratch_folder_visit(folder, 1);
  assert_int_equal(rmdir(folder->path), 0);
}

int scratch_folder_set_up(void **state) {
  scratch_folder *folder = malloc(sizeof *folder);
  assert_non_null(folder);
  scratch_folder_make(folder);
  *state = folder;
  return 0;
}

int scratch_folder_tear_down(void **state) {
  scratch_folder_remove(*state);
  free(*state);
  return 0;
}

void scratch_write_file(const char *path, const void *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, 1, size, stream), size);
  assert_int_equal(fclose(stream), 0);
}

unsigned char *scratch_read_file(const char *path, size_t *size) {
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  assert_int_equal(fseek(stream, 0, SEEK_END), 0);
  const long end = ftell(stream);
  assert_true(end >= 0);
  rewind(stream);
  unsigned char *bytes = malloc((size_t)end + 1);
  assert_non_null(bytes);
  *size = fread(bytes, 1, (size_t)end, stream);
  assert_int_equal(*size, end);
  bytes[*size] = 0;
  fclose(stream);
  return bytes;
}
