/*
 * An hs_allocator for tests: counts what is alive and fails at the n-th allocation.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H
#define HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H

#include <stddef.h>

#include "pipeline/include/hartsift.h"

typedef struct counted_allocator {
  size_t made;        /* allocations asked for, the failed one included */
  size_t alive;       /* not yet released */
  size_t fail_at;     /* this allocation fails, counted from 1; 0: none */
  size_t peak_bytes;  /* largest single allocation */
  size_t alive_bytes; /* of those not yet released */
  size_t most_bytes;  /* the most that were alive at once */
  unsigned char fill; /* what new memory holds */
} counted_allocator;

/* The allocator that counts in *counter. */
hs_allocator counted_allocator_make(counted_allocator *counter);

#endif
