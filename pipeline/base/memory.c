/*
 * Host memory of the pipeline; see memory.h.
 */
#define _DEFAULT_SOURCE /* madvise */
#include "pipeline/base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Blocks of this size or more get huge pages where the system has them, because the pyramid's rows are pages apart and
   address translation took a fifth of its time. */
enum { HUGE_PAGE_BYTES = 2 << 20, HUGE_PAGES_FROM = 4 * HUGE_PAGE_BYTES };

void *hs_memory_alloc(const hs_allocator *allocator, size_t bytes) {
  if (bytes == 0) bytes = 1;
  if (allocator && allocator->alloc) return allocator->alloc(bytes, allocator->user);
  void *pointer = NULL;
  const bool large = bytes >= HUGE_PAGES_FROM;
  if (posix_memalign(&pointer, large ? HUGE_PAGE_BYTES : HS_MEMORY_ALIGNMENT, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  /* Only advice: if it is refused, ordinary pages are used. The last, partial page is not changed. */
  if (large) (void)madvise(pointer, bytes & ~(size_t)(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
#endif
  return pointer;
}

void hs_memory_release(const hs_allocator *allocator, void *pointer) {
  if (!pointer) return;
  if (!allocator || !allocator->alloc)
    free(pointer);
  else if (allocator->release)
    allocator->release(pointer, allocator->user);
}

bool hs_size_mul(size_t a, size_t b, size_t *out) {
  if (a != 0 && b > (size_t)-1 / a) return false;
  *out = a * b;
  return true;
}

bool hs_size_add(size_t a, size_t b, size_t *out) {
  if (b > (size_t)-1 - a) return false;
  *out = a + b;
  return true;
}
