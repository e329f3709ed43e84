/* Endings of file names. */
#include "pipeline/base/path_text.h"

#include <string.h>

bool path_ends_with(const char *path, const char *ending) {
  size_t path_size = strlen(path);
  size_t ending_size = strlen(ending);
  if (path_size <= ending_size) return false;
  const char *tail = path + (path_size - ending_size);
  for (size_t i = 0; i < ending_size; i++) {
    char c = tail[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if (c != ending[i]) return false;
  }
  return true;
}
