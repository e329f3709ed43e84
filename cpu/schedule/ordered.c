/* Appending in order: one mutex, one condition. */
#include "cpu/schedule/ordered.h"

#include <string.h>

bool ordered_start(ordered_list *list, const feature_list *features) {
  if (pthread_mutex_init(&list->lock, NULL) != 0) return false;
  if (pthread_cond_init(&list->moved, NULL) != 0) {
    pthread_mutex_destroy(&list->lock);
    return false;
  }
  list->features = *features;
  list->next = 0;
  atomic_init(&list->appended, 0);
  atomic_init(&list->appended_chunks, 0);
  for (int32_t i = 0; i < ORDERED_PLACES; i++) list->places[i].ready = false;
  return true;
}

void ordered_end(ordered_list *list) {
  pthread_cond_destroy(&list->moved);
  pthread_mutex_destroy(&list->lock);
}

/* What does not fit is only counted. */
static void append(const feature_list *f, uint32_t first, int32_t items, const uint8_t *count, const float *angle) {
  for (int32_t i = 0; i < items; i++)
    for (int32_t j = 0; j < count[i]; j++, angle++) {
      const uint32_t n = (*f->count)++;
      if (n >= f->capacity) continue;
      f->keypoint[n] = first + (uint32_t)i;
      f->orientation[n] = *angle;
    }
}

static void append_waiting(ordered_list *list) {
  for (;;) {
    ordered_place *p = &list->places[list->next % ORDERED_PLACES];
    if (!p->ready) return;
    append(&list->features, p->first, p->items, p->count, p->angle);
    p->ready = false;
    list->next++;
  }
}

static void publish(ordered_list *list) {
  const feature_list *f = &list->features;
  atomic_store_explicit(&list->appended, *f->count < f->capacity ? *f->count : f->capacity, memory_order_release);
  atomic_store_explicit(&list->appended_chunks, list->next, memory_order_release);
}

static void leave_waiting(ordered_place *p, const ordered_chunk *c) {
  p->first = c->first;
  p->items = c->items;
  p->angles = c->angles;
  memcpy(p->count, c->count, sizeof p->count);
  memcpy(p->angle, c->angle, sizeof(float) * (size_t)c->angles);
  p->ready = true;
}

void ordered_append(ordered_list *list, int32_t chunk, const ordered_chunk *c) {
  pthread_mutex_lock(&list->lock);
  const bool fits = c->angles <= ORDERED_PLACE_ANGLES;
  while (list->next != chunk && (!fits || chunk - list->next >= ORDERED_PLACES))
    pthread_cond_wait(&list->moved, &list->lock);
  if (list->next == chunk) {
    append(&list->features, c->first, c->items, c->count, c->angle);
    list->next++;
    append_waiting(list);
    publish(list);
    pthread_cond_broadcast(&list->moved);
  } else {
    leave_waiting(&list->places[chunk % ORDERED_PLACES], c);
  }
  pthread_mutex_unlock(&list->lock);
}
