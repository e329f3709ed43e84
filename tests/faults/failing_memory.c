/* Makes chosen allocations fail; see failing_memory.h. */
#define _GNU_SOURCE
#include "tests/faults/failing_memory.h"

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* glibc's own names of the allocation functions. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

/* Makes the functions visible, because this project's objects hide their symbols. */
#define SEEN __attribute__((visibility("default")))

failing_memory failing_memory_state;

/* Counts a call; returns whether the call shall fail. */
static bool fails(void) {
  failing_memory *m = &failing_memory_state;
  if (!atomic_load(&m->counts)) return false;
  const long made = atomic_fetch_add(&m->made, 1) + 1, at = atomic_load(&m->fail_at);
  if (at == 0 || made < at || (made > at && !atomic_load(&m->goes_on))) return false;
  errno = ENOMEM;
  return true;
}

static void *counted(void *block) {
  if (block) atomic_fetch_add(&failing_memory_state.alive, 1);
  return block;
}

SEEN void *malloc(size_t bytes) { return fails() ? NULL : counted(__libc_malloc(bytes)); }

SEEN void *calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__libc_calloc(count, bytes)); }

SEEN void *memalign(size_t alignment, size_t bytes) {
  return fails() ? NULL : counted(__libc_memalign(alignment, bytes));
}

SEEN void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

SEEN int posix_memalign(void **block, size_t alignment, size_t bytes) {
  void *made = memalign(alignment, bytes);
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}

SEEN void *realloc(void *block, size_t bytes) {
  if (block && bytes == 0) {
    free(block);
    return NULL;
  }
  if (fails()) return NULL;
  void *made = __libc_realloc(block, bytes);
  return block ? made : counted(made);
}

SEEN void *reallocarray(void *block, size_t count, size_t bytes) {
  if (bytes != 0 && count > SIZE_MAX / bytes) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(block, count * bytes);
}

SEEN void free(void *block) {
  if (block) atomic_fetch_sub(&failing_memory_state.alive, 1);
  __libc_free(block);
}
