/*
 * Bounds the memory of a batch, with queues of a fixed capacity between its threads and a pool of pixel buffers.
 */
#ifndef HARTSIFT_BATCH_BATCH_BOUNDS_H
#define HARTSIFT_BATCH_BATCH_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os_threads.h"
#include "pipeline/include/hartsift.h"

/* ---- queue: FIFO of pointers between threads. A push never blocks, because each queue has capacity for every item. */

typedef struct bounded_queue {
  void **items; /* ring of waiting items; null: the queue was not made */
  size_t capacity, first, count;
  bool closed;
  pthread_mutex_t lock;
  pthread_cond_t filled; /* an item was pushed, or the queue was closed */
} bounded_queue;

/* Makes a queue. False: out of memory. After a failure, and for a zeroed queue, only bounded_queue_free is allowed. */
bool bounded_queue_make(bounded_queue *queue, size_t capacity);
void bounded_queue_free(bounded_queue *queue);

/* Appends a non-null item. Asserts that the queue is not full. */
void bounded_queue_push(bounded_queue *queue, void *item);
/* Waits for the first item and takes it. Null: the queue is empty and closed. */
void *bounded_queue_pop(bounded_queue *queue);
/* Takes the first item without waiting; null: the queue is empty. */
void *bounded_queue_try_pop(bounded_queue *queue);
/* Returns the number of items. */
size_t bounded_queue_count(bounded_queue *queue);
bool bounded_queue_has_ended(bounded_queue *queue);
/* Closes the queue: a waiting pop returns null once the queue is empty. */
void bounded_queue_close(bounded_queue *queue);

/* ---- pool: an allocator for pictures. It reuses released buffers, so that many pictures of different sizes need no
   more memory than the largest set in use, and no page is cleared twice. It never holds more memory than was in use at
   one time. The memory is not pinned: pinning would serialise all threads in the driver, which costs more than the
   workers' copies into their pinned memory. */

typedef struct pool_buffer pool_buffer;

/* A pool of buffers. The fields are private; buffer_pool_counts reads the numbers. */
typedef struct buffer_pool {
  bool made;
  const hs_allocator *source; /* null: the C library's allocator */
  pthread_mutex_t lock;
  pool_buffer *idle;                         /* unused buffers, most recently released first */
  size_t used_bytes, idle_bytes, most_bytes; /* most_bytes: maximum of used_bytes so far */
  uint64_t made_count;                       /* buffers allocated from the system */
} buffer_pool;

typedef struct buffer_pool_numbers {
  size_t used_bytes, idle_bytes, most_bytes;
  uint64_t made_count;
} buffer_pool_numbers;

/* Makes a pool. source: the allocator to use, called under the pool's lock; null: the C library's. False: no lock could
 * be made. */
bool buffer_pool_make(buffer_pool *pool, const hs_allocator *source);
/* Frees everything; no buffer may be in use. A zeroed pool is allowed. */
void buffer_pool_free(buffer_pool *pool);

/* Returns the pool as a thread-safe allocator; the pool must outlive it and must not move. */
hs_allocator buffer_pool_allocator(buffer_pool *pool);

buffer_pool_numbers buffer_pool_counts(buffer_pool *pool);

/* Allocates memory from the source, without pooling but under the pool's lock, so that two threads never call the
 * source at once. */
void *buffer_pool_plain_alloc(buffer_pool *pool, size_t bytes);
void buffer_pool_plain_release(buffer_pool *pool, void *memory);

#endif
