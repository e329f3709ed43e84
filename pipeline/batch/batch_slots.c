/* Moves slots between the threads of a batch and the caller; see batch_run.h. */
#include <time.h>

#include "pipeline/batch/batch_run.h"

double batch_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool batch_is_stopped(hs_batch *batch) {
  pthread_mutex_lock(&batch->lock);
  const bool stopped = batch->stopped;
  pthread_mutex_unlock(&batch->lock);
  return stopped;
}

void *batch_pop(batch_thread *thread, bounded_queue *queue) {
  void *item = bounded_queue_try_pop(queue);
  if (item) return item;
  const double before = batch_now_s();
  item = bounded_queue_pop(queue);
  thread->waited_s += batch_now_s() - before;
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
    pthread_cond_broadcast(&batch->finished); /* later images may wait for this one */
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
