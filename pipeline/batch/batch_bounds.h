/*
 * What bounds the memory of a batch: queues of a fixed size between its threads, and a pool of pixel buffers.
 */
#ifndef HARTSIFT_BATCH_BATCH_BOUNDS_H
#define HARTSIFT_BATCH_BATCH_BOUNDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

/* ---- queue: first in, first out, pointers between threads. A push never waits, because each queue has the capacity for
   all items there can be. */

typedef struct bounded_queue {
  void **items; /* null: not made */
  size_t capacity, first, count;
  bool closed;
  pthread_mutex_t lock;
  pthread_cond_t filled; /* an item came, or the queue was closed */
} bounded_queue;

/* False without memory; then, and of a zeroed queue, only bounded_queue_free may follow. */
bool bounded_queue_make(bounded_queue *queue, size_t capacity);
void bounded_queue_free(bounded_queue *queue);

/* Appends an item, not null. The queue has room (asserted). */
void bounded_queue_push(bounded_queue *queue, void *item);
/* Takes the first item; waits while there is none. Null when the queue is empty and closed. */
void *bounded_queue_pop(bounded_queue *queue);
/* The same without waiting: null when there is none now. */
void *bounded_queue_try_pop(bounded_queue *queue);
/* How many items there are; true: none are, and none will come. */
size_t bounded_queue_count(bounded_queue *queue);
bool bounded_queue_has_ended(bounded_queue *queue);
/* No more items will come: a pop that waits returns null once the queue is empty. */
void bounded_queue_close(bounded_queue *queue);

/* ---- pool: an allocator for pictures that come and go. Released buffers are kept and used again, so that many pictures of
   changing sizes need no more memory than the largest of them together, and no page of it is cleared twice. The memory is
   not pinned: that would cost a driver that all threads share more than the workers' copies into their own pinned memory.
   The pool never holds more than the most that was in use at one time. */

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

/* Memory of the source, outside the pool, but under its lock: the source is never called from two threads at once. */
void *buffer_pool_plain_alloc(buffer_pool *pool, size_t bytes);
void buffer_pool_plain_release(buffer_pool *pool, void *memory);

#endif
