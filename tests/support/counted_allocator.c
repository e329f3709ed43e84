/*
 * An hs_allocator for tests; see counted_allocator.h.
 */
#include "tests/support/counted_allocator.h"

#include <stdlib.h>
#include <string.h>

static void *counted_allocator_alloc(size_t bytes, void *user) {
  counted_allocator *counter = user;
  counter->made++;
  if (counter->made == counter->fail_at) return NULL;
  void *pointer = NULL;
  if (posix_memalign(&pointer, 64, bytes) != 0) return NULL;
  memset(pointer, counter->fill, bytes);
  counter->alive++;
  if (bytes > counter->peak_bytes) counter->peak_bytes = bytes;
  return pointer;
}

static void counted_allocator_release(void *pointer, void *user) {
  counted_allocator *counter = user;
  if (pointer) {
    counter->alive--;
    free(pointer);
  }
}

hs_allocator counted_allocator_make(counted_allocator *counter) {
  return (hs_allocator){.alloc = counted_allocator_alloc, .release = counted_allocator_release, .user = counter};
}
