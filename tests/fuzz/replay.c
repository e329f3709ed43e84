/*
 * Runs a fuzz target over files, for ordinary test runs with any compiler: replay FILE|FOLDER...
 *
 * Enters folders. Exit status: 0 if all inputs were run, 1 if one could not be read, 77 if there was none.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPLAY_MAX_DEPTH = 8, REPLAY_SKIPPED = 77 };

typedef struct replay_counts {
  size_t run, failed;
} replay_counts;

static void replay_file(const char *path, size_t size, replay_counts *counts) {
  FILE *stream = fopen(path, "rb");
  /* The block is exactly as large as the input, so that a sanitizer detects any read past its end. */
  uint8_t *bytes = malloc(size > 0 ? size : 1);
  if (!stream || !bytes || fread(bytes, 1, size, stream) != size) {
    fprintf(stderr, "replay: %s cannot be read\n", path);
    counts->failed++;
  } else {
    LLVMFuzzerTestOneInput(bytes, size);
    counts->run++;
  }
  free(bytes);
  if (stream) fclose(stream);
}

static void replay_path(const char *path, int depth, replay_counts *counts);

static void replay_folder(const char *path, int depth, replay_counts *counts) {
  DIR *directory = opendir(path);
  if (!directory || depth == REPLAY_MAX_DEPTH) {
    fprintf(stderr, "replay: %s cannot be entered\n", path);
    counts->failed++;
    if (directory) closedir(directory);
    return;
  }
  for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const size_t bytes = strlen(path) + strlen(entry->d_name) + 2;
    char *inside = malloc(bytes);
    if (!inside) {
      counts->failed++;
      break;
    }
    snprintf(inside, bytes, "%s/%s", path, entry->d_name);
    replay_path(inside, depth + 1, counts);
    free(inside);
  }
  closedir(directory);
}

static void replay_path(const char *path, int depth, replay_counts *counts) {
  struct stat info;
  if (stat(path, &info) != 0) {
    fprintf(stderr, "replay: %s is not there\n", path);
    counts->failed++;
  } else if (S_ISDIR(info.st_mode)) {
    replay_folder(path, depth, counts);
  } else {
    replay_file(path, (size_t)info.st_size, counts);
  }
}

int main(int count, char **arguments) {
  replay_counts counts = {0, 0};
  for (int i = 1; i < count; i++) replay_path(arguments[i], 0, &counts);
  printf("%zu inputs run, %zu not readable\n", counts.run, counts.failed);
  return counts.failed > 0 ? 1 : counts.run == 0 ? REPLAY_SKIPPED : 0;
}
