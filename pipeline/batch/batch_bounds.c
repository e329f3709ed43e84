/* Bounded queues and buffer pools, and the slots that move through the queues; see batch_bounds.h and batch_run.h. */
#include "pipeline/batch/batch_bounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/batch/batch_run.h"

/* ---- queue */

bool bounded_queue_make(bounded_queue *queue, size_t capacity) {
  memset(queue, 0, sizeof *queue);
  void **items = calloc(capacity, sizeof *items);
  if (!items) return false;
  if (pthread_mutex_init(&queue->lock, NULL) != 0) {
    free(items);
    return false;
  }
  if (pthread_cond_init(&queue->filled, NULL) != 0) {
    pthread_mutex_destroy(&queue->lock);
    free(items);
    return false;
  }
  queue->items = items;
  queue->capacity = capacity;
  return true;
}

void bounded_queue_free(bounded_queue *queue) {
  if (queue->items) {
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
    free(queue->items);
    queue->items = NULL;
  }
}

void bounded_queue_push(bounded_queue *queue, void *item) {
  pthread_mutex_lock(&queue->lock);
  assert(item && queue->count < queue->capacity);
  queue->items[(queue->first + queue->count) % queue->capacity] = item;
  queue->count++;
  pthread_cond_signal(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
}

/* Takes the first item. The caller holds the lock. */
static void *bounded_queue_take(bounded_queue *queue) {
  if (queue->count == 0) return NULL;
  void *item = queue->items[queue->first];
  queue->first = (queue->first + 1) % queue->capacity;
  queue->count--;
  return item;
}

void *bounded_queue_pop(bounded_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  while (queue->count == 0 && !queue->closed) pthread_cond_wait(&queue->filled, &queue->lock);
  void *item = bounded_queue_take(queue);
  pthread_mutex_unlock(&queue->lock);
  return item;
}

void *bounded_queue_try_pop(bounded_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  void *item = bounded_queue_take(queue);
  pthread_mutex_unlock(&queue->lock);
  return item;
}

size_t bounded_queue_count(bounded_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const size_t count = queue->count;
  pthread_mutex_unlock(&queue->lock);
  return count;
}

bool bounded_queue_has_ended(bounded_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const bool ended = queue->closed && queue->count == 0;
  pthread_mutex_unlock(&queue->lock);
  return ended;
}

void bounded_queue_close(bounded_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closed = true;
  pthread_cond_broadcast(&queue->filled);
  pthread_mutex_unlock(&queue->lock);
}

/* ---- pool */

enum {
  POOL_WASTE_FACTOR = 4, /* a buffer may serve requests down to a quarter of its size */
  POOL_GRANULE_BYTES = 4096
};

/* Record in front of each buffer. */
struct pool_buffer {
  pool_buffer *next; /* next idle buffer */
  size_t bytes;      /* size of the memory after the record */
};

/* A multiple of the alignment, so that the memory after the record is aligned. */
#define POOL_RECORD_BYTES ((sizeof(pool_buffer) + HS_MEMORY_ALIGNMENT - 1) / HS_MEMORY_ALIGNMENT * HS_MEMORY_ALIGNMENT)

static void *pool_content(pool_buffer *buffer) { return (unsigned char *)buffer + POOL_RECORD_BYTES; }

static pool_buffer *pool_record(void *content) { return (pool_buffer *)((unsigned char *)content - POOL_RECORD_BYTES); }

static pool_buffer *pool_get(buffer_pool *pool, size_t bytes) {
  size_t total = 0;
  pool_buffer *buffer = hs_size_add(bytes, POOL_RECORD_BYTES, &total) ? hs_memory_alloc(pool->source, total) : NULL;
  if (buffer) {
    *buffer = (pool_buffer){.bytes = bytes};
    pool->made_count++;
  }
  return buffer;
}

/* Takes the smallest suitable idle buffer. */
static pool_buffer *pool_take_idle(buffer_pool *pool, size_t bytes) {
  pool_buffer **best = NULL;
  for (pool_buffer **link = &pool->idle; *link; link = &(*link)->next) {
    const size_t size = (*link)->bytes;
    if (size >= bytes && size / POOL_WASTE_FACTOR <= bytes && (!best || size < (*best)->bytes)) best = link;
  }
  if (!best) return NULL;
  pool_buffer *buffer = *best;
  *best = buffer->next;
  pool->idle_bytes -= buffer->bytes;
  return buffer;
}

/* Frees idle buffers, least recently used first, until `bytes` more fit within the bound. */
static void pool_trim(buffer_pool *pool, size_t bytes) {
  while (pool->idle && pool->idle_bytes + bytes > pool->most_bytes - pool->used_bytes) {
    pool_buffer **last = &pool->idle;
    while ((*last)->next != NULL) last = &(*last)->next;
    pool_buffer *buffer = *last;
    *last = NULL;
    pool->idle_bytes -= buffer->bytes;
    hs_memory_release(pool->source, buffer);
  }
}

static void *pool_alloc(size_t bytes, void *user) {
  buffer_pool *pool = user;
  if (bytes > SIZE_MAX - POOL_GRANULE_BYTES) return NULL;
  /* rounded up to whole granules, at least one, so that similar sizes share buffers */
  const size_t rounded = (bytes + POOL_GRANULE_BYTES - (bytes != 0)) / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES;
  pthread_mutex_lock(&pool->lock);
  pool_buffer *buffer = pool_take_idle(pool, rounded);
  if (!buffer) {
    pool_trim(pool, rounded);
    buffer = pool_get(pool, rounded);
  }
  if (buffer) {
    pool->used_bytes += buffer->bytes;
    pool->most_bytes = pool->used_bytes > pool->most_bytes ? pool->used_bytes : pool->most_bytes;
  }
  pthread_mutex_unlock(&pool->lock);
  return buffer ? pool_content(buffer) : NULL;
}

static void pool_release(void *content, void *user) {
  buffer_pool *pool = user;
  if (!content) return;
  pool_buffer *buffer = pool_record(content);
  pthread_mutex_lock(&pool->lock);
  pool->used_bytes -= buffer->bytes;
  pool->idle_bytes += buffer->bytes;
  buffer->next = pool->idle;
  pool->idle = buffer;
  pthread_mutex_unlock(&pool->lock);
}

bool buffer_pool_make(buffer_pool *pool, const hs_allocator *source) {
  memset(pool, 0, sizeof *pool);
  pool->source = source;
  pool->made = pthread_mutex_init(&pool->lock, NULL) == 0;
  return pool->made;
}

void buffer_pool_free(buffer_pool *pool) {
  if (!pool->made) return;
  assert(pool->used_bytes == 0);
  while (pool->idle) {
    pool_buffer *buffer = pool->idle;
    pool->idle = buffer->next;
    hs_memory_release(pool->source, buffer);
  }
  pthread_mutex_destroy(&pool->lock);
  memset(pool, 0, sizeof *pool);
}

hs_allocator buffer_pool_allocator(buffer_pool *pool) {
  return (hs_allocator){.alloc = pool_alloc, .release = pool_release, .user = pool};
}

buffer_pool_numbers buffer_pool_counts(buffer_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  const buffer_pool_numbers numbers = {.used_bytes = pool->used_bytes,
                                       .idle_bytes = pool->idle_bytes,
                                       .most_bytes = pool->most_bytes,
                                       .made_count = pool->made_count};
  pthread_mutex_unlock(&pool->lock);
  return numbers;
}

void *buffer_pool_plain_alloc(buffer_pool *pool, size_t bytes) {
  pthread_mutex_lock(&pool->lock);
  void *memory = hs_memory_alloc(pool->source, bytes);
  pthread_mutex_unlock(&pool->lock);
  return memory;
}

void buffer_pool_plain_release(buffer_pool *pool, void *memory) {
  pthread_mutex_lock(&pool->lock);
  hs_memory_release(pool->source, memory);
  pthread_mutex_unlock(&pool->lock);
}

/* ------------------------------------------------------------------ slots between threads and the caller */

bool batch_is_stopped(hs_batch *batch) {
  pthread_mutex_lock(&batch->lock);
  const bool stopped = batch->stopped;
  pthread_mutex_unlock(&batch->lock);
  return stopped;
}

void *batch_pop(batch_thread *thread, bounded_queue *queue) {
  void *item = bounded_queue_try_pop(queue);
  if (item) return item;
  const double before = clock_s(CLOCK_MONOTONIC);
  item = bounded_queue_pop(queue);
  thread->waited_s += clock_s(CLOCK_MONOTONIC) - before;
  return item;
}

void batch_drop_pixels(batch_slot *slot) {
  hs_source_free(&slot->source);
  hs_image_free(&slot->mask);
}

void batch_finish(hs_batch *batch, batch_slot *slot) {
  batch_drop_pixels(slot);
  slot->result.features = slot->features;
  pthread_mutex_lock(&batch->lock);
  const size_t position = batch->options.in_order ? slot->result.index : batch->finished_first + batch->finished_count;
  batch->waiting[position % batch->slot_count] = slot;
  batch->finished_count++;
  if (batch->options.in_order)
    pthread_cond_broadcast(&batch->finished); /* other finished slots may have waited for this one */
  else
    pthread_cond_signal(&batch->finished);
  pthread_mutex_unlock(&batch->lock);
}

void batch_recycle(hs_batch *batch, batch_slot *slot) {
  buffer_pool_plain_release(&batch->pool, slot->input.block);
  slot->input = (batch_input){0};
  bounded_queue_push(&batch->free_slots, slot);
}

void batch_drop(hs_batch *batch, batch_slot *slot) {
  batch_drop_pixels(slot);
  batch_recycle(batch, slot);
}
