/*
 * A first-in, first-out queue of pointers between threads, of a size fixed when it is made. A push never waits,
 * because each queue has room for all items there can be.
 */
#ifndef HARTSIFT_CLI_BATCH_BOUNDED_QUEUE_H
#define HARTSIFT_CLI_BATCH_BOUNDED_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif
