/*
 * Host memory of the pipeline; see memory.h.
 */
#include "pipeline/memory.h"

#include <stdlib.h>

void *hs_memory_alloc(const hs_allocator *allocator, size_t bytes) {
  if (bytes == 0) {
    bytes = 1;
  }
  if (allocator != NULL && allocator->alloc != NULL) {
    return allocator->alloc(bytes, allocator->user);
  }
  void *pointer = NULL;
  return posix_memalign(&pointer, HS_MEMORY_ALIGNMENT, bytes) == 0 ? pointer : NULL;
}

void hs_memory_release(const hs_allocator *allocator, void *pointer) {
  if (pointer == NULL) {
    return;
  }
  if (allocator == NULL || allocator->alloc == NULL) {
    free(pointer);
  } else if (allocator->release != NULL) {
    allocator->release(pointer, allocator->user);
  }
}

bool hs_size_mul(size_t a, size_t b, size_t *out) {
  if (a != 0 && b > (size_t)-1 / a) {
    return false;
  }
  *out = a * b;
  return true;
}

bool hs_size_add(size_t a, size_t b, size_t *out) {
  if (b > (size_t)-1 - a) {
    return false;
  }
  *out = a + b;
  return true;
}
