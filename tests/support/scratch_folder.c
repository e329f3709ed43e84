/*
 * Makes and removes a folder for a test's files; see scratch_folder.h.
 */
#include "tests/support/scratch_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "os/os_process.h"
#include "tests/support/test.h"

void scratch_folder_make(scratch_folder *folder) {
  const char *base = getenv("TMPDIR");
  if (!base || base[0] == '\0') base = getenv("TEMP"); /* Windows */
  if (!base || base[0] == '\0') base = "/tmp";
  uint64_t number = 0;
  assert_true(os_random(&number, sizeof number));
  const int length =
      snprintf(folder->path, sizeof folder->path, "%s/hartsift-test-%016llx", base, (unsigned long long)number);
  assert_true(length > 0 && (size_t)length < sizeof folder->path);
  os_normalise_path(folder->path);
  assert_true(os_make_folder(folder->path));
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

/* Removes every entry if requested; returns the number of entries. */
static size_t scratch_folder_visit(const scratch_folder *folder, int delete_entries) {
  os_folder *directory = os_folder_open(folder->path, true);
  assert_non_null(directory);
  size_t count = 0;
  for (const char *name = os_folder_next(directory); name; name = os_folder_next(directory)) {
    count++;
    char path[SCRATCH_PATH_BYTES];
    scratch_folder_path(folder, name, path);
    if (delete_entries && !os_remove(path)) {
      scratch_folder inner;
      memcpy(inner.path, path, sizeof path);
      scratch_folder_remove(&inner);
    }
  }
  os_folder_close(directory);
  return count;
}

size_t scratch_folder_count(const scratch_folder *folder) { return scratch_folder_visit(folder, 0); }

void scratch_folder_remove(const scratch_folder *folder) {
  scratch_folder_visit(folder, 1);
  assert_true(os_remove_folder(folder->path));
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
