/*
 * An hs_allocator for tests: counts live allocations and fails the n-th.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H
#define HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H

#include <stddef.h>

#include "pipeline/include/hartsift.h"

typedef struct counted_allocator {
  size_t made;        /* allocations requested, the failed one included */
  size_t alive;       /* not yet released */
  size_t fail_at;     /* this allocation fails, counted from 1; 0: none */
  size_t peak_bytes;  /* largest single allocation */
  size_t alive_bytes; /* of the blocks not yet released */
  size_t most_bytes;  /* peak of alive_bytes */
  unsigned char fill; /* fill value of new memory */
} counted_allocator;

/* The allocator that counts in *counter. */
hs_allocator counted_allocator_make(counted_allocator *counter);

/* A local counter that fails the test if memory is allocated at the end of its block. */
#define scoped_counter SCOPED_BY(counted_allocator_check) counted_allocator
void counted_allocator_check(const counted_allocator *counter);

#endif
