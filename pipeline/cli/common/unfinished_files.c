/*
 * The list of temporary files; see unfinished_files.h.
 */
#include "pipeline/cli/common/unfinished_files.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/atomic_file.h"

enum { FILES_MOST = 16, PLACE_FREE = 0, PLACE_CHANGING, PLACE_SET };

/* In memory of its own: a handler may read a path while the thread that wrote the file returns. */
static struct listed_file {
  atomic_int state;
  char path[ATOMIC_FILE_PATH_BYTES];
} listed_files[FILES_MOST];

/* Where the list is full the file is written all the same: it would only stay when a signal ends the process. */
int atomic_file_begins(const char *temporary) {
  for (int i = 0; i < FILES_MOST; i++) {
    int expected = PLACE_FREE;
    if (!atomic_compare_exchange_strong(&listed_files[i].state, &expected, PLACE_CHANGING)) continue;
    memcpy(listed_files[i].path, temporary, strlen(temporary) + 1);
    atomic_store(&listed_files[i].state, PLACE_SET);
    return i;
  }
  return -1;
}

void atomic_file_gone(int place) {
  if (place >= 0) atomic_store(&listed_files[place].state, PLACE_FREE);
}

void unfinished_files_remove(void) {
  for (int i = 0; i < FILES_MOST; i++)
    if (atomic_load(&listed_files[i].state) == PLACE_SET) unlink(listed_files[i].path);
}
