/*
 * An hs_allocator for tests; see counted_allocator.h.
 */
#include "tests/support/counted_allocator.h"

#include "os/os_process.h"
#include "tests/support/test.h"

enum { SIZE_ROOM = 64 }; /* stored before each allocation, for its size */

static void *counted_allocator_alloc(size_t bytes, void *user) {
  counted_allocator *counter = user;
  counter->made++;
  if (counter->made == counter->fail_at) return NULL;
  void *pointer = os_memory_alloc(bytes + SIZE_ROOM, SIZE_ROOM, false);
  if (!pointer) return NULL;
  memcpy(pointer, &bytes, sizeof bytes);
  memset((char *)pointer + SIZE_ROOM, counter->fill, bytes);
  counter->alive++;
  counter->alive_bytes += bytes;
  if (bytes > counter->peak_bytes) counter->peak_bytes = bytes;
  if (counter->alive_bytes > counter->most_bytes) counter->most_bytes = counter->alive_bytes;
  return (char *)pointer + SIZE_ROOM;
}

static void counted_allocator_release(void *pointer, void *user) {
  counted_allocator *counter = user;
  if (pointer) {
    void *start = (char *)pointer - SIZE_ROOM;
    size_t bytes;
    memcpy(&bytes, start, sizeof bytes);
    counter->alive--;
    counter->alive_bytes -= bytes;
    os_memory_free(start);
  }
}

hs_allocator counted_allocator_make(counted_allocator *counter) {
  return (hs_allocator){.alloc = counted_allocator_alloc, .release = counted_allocator_release, .user = counter};
}

void counted_allocator_check(const counted_allocator *counter) { assert_int_equal(counter->alive, 0); }
