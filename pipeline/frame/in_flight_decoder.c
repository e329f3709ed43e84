/* The thread of a ring that has a GPU's engine decode JPEGs in batches, ahead of the lanes. */
#include <signal.h>

#include "cpu/float_environment.h"
#include "cpu/worker_signals.h"
#include "pipeline/device/backend.h"
#include "pipeline/encoded/engine_check.h"
#include "pipeline/encoded/picture_source.h"
#include "pipeline/frame/in_flight_ring.h"

#define DECODED_PIXELS_MOST ((uint64_t)64 << 20) /* of a batch, unless one picture has more */

/* Images that wait to be decoded and have the size of the first of them, as many as one call takes: of several sizes it
   would take longer. Under the lock. */
static int32_t take_encoded(struct in_flight_ring *f, in_flight_slot **slots) {
  uint64_t pixels = 0;
  int32_t count = 0;
  for (uint64_t image = f->next; image != f->end && count < CUDA_JPEG_MOST; image++) {
    in_flight_slot *s = ring_slot(f, image);
    if (s->state != SLOT_ENCODED) continue;
    if (count > 0 && (s->image.width != slots[0]->image.width || s->image.height != slots[0]->image.height)) continue;
    pixels += (uint64_t)s->image.width * (uint64_t)s->image.height;
    if (count > 0 && pixels > DECODED_PIXELS_MOST) break;
    s->state = SLOT_DECODING;
    slots[count++] = s;
  }
  return count;
}

/* Decodes images; those that the engine does not take the lanes decode by libjpeg. Under the lock, which is
   released meanwhile. */
static void decode_slots(struct in_flight_ring *f, in_flight_slot **slots, int32_t count, int32_t set) {
  const hs_image *images[CUDA_JPEG_MOST];
  hs_image decoded[CUDA_JPEG_MOST];
  for (int32_t i = 0; i < count; i++) images[i] = &slots[i]->image;
  f->decoded_held[set] = count;
  pthread_mutex_unlock(&f->lock);
  const bool done = picture_decode_ahead(f->decoder, set, images, count, decoded);
  pthread_mutex_lock(&f->lock);
  backend_statistics(f->decoder, &f->decoder_statistics);
  if (!done) f->decoded_held[set] = 0;
  for (int32_t i = 0; i < count; i++) {
    slots[i]->pixels = done ? decoded[i] : slots[i]->image;
    slots[i]->on_device = done;
    slots[i]->decoded_in = done ? set : -1;
    slots[i]->state = SLOT_READY;
  }
  pthread_cond_broadcast(&f->work);
}

/* Where lanes take images in their order, all sets may hold images behind the one that they wait for, where many sizes
   alternate: libjpeg decodes that one. Under the lock. */
static void leave_to_lanes(struct in_flight_ring *f) {
  in_flight_slot *s = ring_slot(f, f->next);
  if (f->any_order || f->next == f->end || s->state != SLOT_ENCODED) return;
  s->state = SLOT_READY;
  pthread_cond_broadcast(&f->work);
}

static void *decoder_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  struct in_flight_ring *f = argument;
  in_flight_slot *slots[CUDA_JPEG_MOST];
  pthread_mutex_lock(&f->lock);
  while (!f->ending) {
    int32_t set = 0, count = 0;
    while (set < CUDA_JPEG_SETS && f->decoded_held[set] > 0) set++;
    if (set < CUDA_JPEG_SETS)
      count = take_encoded(f, slots);
    else
      leave_to_lanes(f);
    if (count > 0)
      decode_slots(f, slots, count, set);
    else
      pthread_cond_wait(&f->encoded, &f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

void in_flight_start_decoder(struct in_flight_ring *f, hs_context *owner) {
  sigset_t blocked, saved;
  if (f->decoder_tried || !f->on_device || !engine_check_ready(owner)) return;
  f->decoder_tried = true;
  worker_signals_blocked(&blocked);
  if (pthread_sigmask(SIG_SETMASK, &blocked, &saved) != 0) return;
  const bool cloned = backend_clone(owner, 1, &f->decoder) == HS_OK;
  if (cloned) cuda_jpeg_hand_over(owner, f->decoder);
  if (cloned && pthread_create(&f->decoder_thread, NULL, decoder_main, f) != 0) {
    backend_release(f->decoder);
    f->decoder = NULL;
  }
  context_clear_error(owner);
  pthread_sigmask(SIG_SETMASK, &saved, NULL);
}
