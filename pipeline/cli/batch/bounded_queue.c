/*
 * A queue of pointers between threads; see bounded_queue.h.
 */
#include "pipeline/cli/batch/bounded_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

/* Under the lock. */
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
