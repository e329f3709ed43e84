/*
 * An hs_allocator for tests: counts live allocations and fails the n-th.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H
#define HARTSIFT_TESTS_SUPPORT_COUNTED_ALLOCATOR_H

#include <stddef.h>

#include "pipeline/include/hartsift.h"

typedef struct counted_allocator {
  size_t made;        /* number of requested allocations, including the failed one */
  size_t alive;       /* number of blocks not yet released */
  size_t fail_at;     /* number of the allocation that fails, from 1; 0: none */
  size_t peak_bytes;  /* largest single allocation */
  size_t alive_bytes; /* bytes of the blocks not yet released */
  size_t most_bytes;  /* peak of alive_bytes */
  unsigned char fill; /* fill value of new memory */
} counted_allocator;

/* Returns an allocator that counts in *counter. *counter must outlive all its blocks. */
hs_allocator counted_allocator_make(counted_allocator *counter);

/* A local counter that fails the test if memory is allocated at the end of its block. */
#define scoped_counter SCOPED_BY(counted_allocator_check) counted_allocator
void counted_allocator_check(const counted_allocator *counter);

#endif
