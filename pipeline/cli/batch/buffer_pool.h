/*
 * An allocator for pictures that come and go: released buffers are kept and used again, so that many pictures of
 * changing sizes need no more memory than the largest of them together, and no page of it is cleared twice. The memory is
 * not pinned: that would cost a driver that all threads share more than the lanes' copies into pinned memory of their own.
 *
 * Bound: the pool never holds more than the most that was in use at one time.
 */
#ifndef HARTSIFT_CLI_BATCH_BUFFER_POOL_H
#define HARTSIFT_CLI_BATCH_BUFFER_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

typedef struct pool_buffer pool_buffer;

/* Its fields are the module's own; buffer_pool_counts reads the numbers. */
typedef struct buffer_pool {
  bool made;
  const hs_allocator *source; /* null: the C library's */
  pthread_mutex_t lock;
  pool_buffer *idle;                         /* not in use, the latest released first */
  size_t used_bytes, idle_bytes, most_bytes; /* most_bytes: of used_bytes, ever */
  uint64_t made_count;                       /* buffers that came from the system */
} buffer_pool;

typedef struct buffer_pool_numbers {
  size_t used_bytes, idle_bytes, most_bytes;
  uint64_t made_count;
} buffer_pool_numbers;

/* source: null, or what gives the memory (under the pool's lock). False: no lock could be made. */
bool buffer_pool_make(buffer_pool *pool, const hs_allocator *source);
/* Gives everything back; nothing may be in use. A zeroed pool is allowed. */
void buffer_pool_free(buffer_pool *pool);

/* The pool as an allocator of any number of threads at once; the pool must outlive it and stay where it is. */
hs_allocator buffer_pool_allocator(buffer_pool *pool);

buffer_pool_numbers buffer_pool_counts(buffer_pool *pool);

#endif
