#include "tests/fuzz/input_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/input_bytes.h"

enum { PATH_BYTES = 1024 };

static char folder[PATH_BYTES], path[PATH_BYTES + 16];

/* Removes the file, and the companion files that SQLite makes for a database. */
static void remove_file(void) {
  static const char *const endings[] = {"", "-journal", "-wal", "-shm"};
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    char name[PATH_BYTES + 32];
    snprintf(name, sizeof name, "%s%s", path, endings[i]);
    unlink(name);
  }
}

static void remove_folder(void) {
  remove_file();
  rmdir(folder);
}

static void make_folder(void) {
  const char *place = getenv("TMPDIR");
  const int length = snprintf(folder, sizeof folder, "%s/hartsift_fuzz_XXXXXX", place ? place : "/tmp");
  fuzz_require(length > 0 && length < PATH_BYTES && mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/input", folder);
  fuzz_require(atexit(remove_folder) == 0);
}

const char *input_file(const uint8_t *bytes, size_t size) {
  if (folder[0] == '\0') make_folder();
  remove_file();
  FILE *stream = fopen(path, "wb");
  fuzz_require(stream != NULL && (size == 0 || fwrite(bytes, 1, size, stream) == size));
  fuzz_require(fclose(stream) == 0);
  return path;
}
