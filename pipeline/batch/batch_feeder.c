/* The feeder of a device: submits images to the device, and leaves images to faster devices. */

#include "os/os_threads.h"
#include "pipeline/base/text.h"
#include "pipeline/batch/batch_run.h"
#include "pipeline/context/engine.h"
#include "pipeline/frame/in_flight.h"

/* ---- shares of unequal devices */

static const double slower_by = 4;

double device_speed_now(const device_speed *speed, double now_s) {
  const double busy_s = speed->busy_s + (speed->began_s > 0 ? now_s - speed->began_s : 0);
  return speed->pixels > 0 && busy_s > 0 ? speed->pixels / busy_s : speed->guess;
}

void device_speed_begin(device_speed *speed, double now_s) { speed->began_s = now_s; }

void device_speed_end(device_speed *speed, double now_s) {
  if (speed->began_s > 0) speed->busy_s += now_s - speed->began_s;
  speed->began_s = 0;
}

bool device_share_is_slow(const device_share *share) { return share->others >= slower_by * share->own; }

bool device_share_leaves(const device_share *share) {
  return device_share_is_slow(share) && share->taken * share->others > share->waiting * share->own;
}

/* ---- images in flight */

/* Assumed speed before the first measurement: pixels per second of a GPU, and of a CPU per thread. */
static const double feeder_guess_gpu = 1e9, feeder_guess_cpu = 8e6;

enum { FEEDER_LOOKS_AGAIN_NS = 5000000 }; /* wait before looking again after an image was left to other devices */

static double batch_pixels(const batch_slot *slot) { return (double)slot->result.width * slot->result.height; }

static void batch_fail(hs_batch *batch, batch_slot *slot, hs_status status, const char *reason) {
  slot->result.status = status;
  hs_message_set(slot->message, sizeof slot->message, "%s", reason[0] != '\0' ? reason : hs_status_string(status));
  batch_finish(batch, slot);
}

hs_status batch_feeder_open(batch_feeder *feeder, char *message, size_t message_bytes) {
  const hs_status status = hs_create_explained(&feeder->context, &feeder->options, message, message_bytes);
  const bool on_cpu = status == HS_OK && !feeder->context->engine->offloads;
  const double guess = on_cpu ? feeder_guess_cpu * context_threads(feeder->context) : feeder_guess_gpu;
  feeder->submitted = 0;
  pthread_mutex_lock(&feeder->batch->lock); /* other feeders may read the pointer while a context is replaced */
  feeder->speed.guess = guess;
  pthread_mutex_unlock(&feeder->batch->lock);
  if (status == HS_OK) feeder->most = in_flight_max(feeder->context, false);
  return status;
}

/* Counts one image more (sign 1) or one less (-1) in flight. finished: the image counts for the measured speed. */
static void feeder_count(batch_feeder *feeder, int32_t sign, double pixels, bool finished) {
  const double now = clock_s(CLOCK_MONOTONIC);
  pthread_mutex_lock(&feeder->batch->lock);
  if (feeder->count == 0) device_speed_begin(&feeder->speed, now);
  feeder->count += sign;
  feeder->flying_pixels += sign * pixels;
  if (finished) feeder->speed.pixels += pixels;
  if (feeder->count == 0) device_speed_end(&feeder->speed, now);
  pthread_mutex_unlock(&feeder->batch->lock);
}

static batch_slot *feeder_take(batch_feeder *feeder, uint64_t image, bool finished) {
  batch_slot *slot = feeder->flying[image % BATCH_FLYING_MAX];
  feeder->flying[image % BATCH_FLYING_MAX] = NULL;
  feeder_count(feeder, -1, batch_pixels(slot), finished);
  return slot;
}

static void feeder_append(batch_feeder *feeder, batch_slot *slot) {
  feeder->flying[feeder->submitted++ % BATCH_FLYING_MAX] = slot;
  feeder_count(feeder, 1, batch_pixels(slot), false);
}

static void feeder_submit(batch_feeder *feeder, batch_slot *slot);

/* Replaces the context after a device failure and submits the images in flight again. The recursion ends, because each
   call drops the image that failed. */
static void feeder_renew(batch_feeder *feeder) {
  hs_batch *batch = feeder->batch;
  batch_slot *again[BATCH_FLYING_MAX];
  const uint64_t end = feeder->submitted;
  int32_t count = 0;
  for (uint64_t image = end > BATCH_FLYING_MAX ? end - BATCH_FLYING_MAX : 0; image < end; image++)
    if (feeder->flying[image % BATCH_FLYING_MAX]) again[count++] = feeder_take(feeder, image, false);
  hs_destroy(feeder->context);
  const hs_status status = batch_feeder_open(feeder, feeder->lost, sizeof feeder->lost);
  if (status != HS_OK && feeder->lost[0] == '\0')
    hs_message_set(feeder->lost, sizeof feeder->lost, "%s", hs_status_string(status));
  pthread_mutex_lock(&batch->lock);
  feeder->is_lost = status != HS_OK;
  pthread_mutex_unlock(&batch->lock);
  for (int32_t i = 0; i < count; i++) feeder_submit(feeder, again[i]);
}

/* Drops the images in flight, when the batch is destroyed while the user holds all lists. */
static void feeder_abandon(batch_feeder *feeder) {
  hs_destroy(feeder->context);
  feeder->context = NULL;
  for (int32_t i = 0; i < BATCH_FLYING_MAX; i++)
    if (feeder->flying[i]) batch_drop(feeder->batch, feeder_take(feeder, (uint64_t)i, false));
}

/* Waits for the image in flight that finishes first. */
static void feeder_collect(batch_feeder *feeder) {
  hs_batch *batch = feeder->batch;
  hs_features *list = bounded_queue_pop(&batch->free_lists);
  uint64_t image;
  if (!list) {
    feeder_abandon(feeder);
    return;
  }
  hs_status status = hs_wait_any(feeder->context, list, &image);
  batch_slot *slot = feeder_take(feeder, image, true);
  slot->result.milliseconds = clock_s(CLOCK_MONOTONIC) * 1e3 - slot->submitted_ms;
  if (status == HS_OK) {
    slot->result.way = (int32_t)in_flight_way(feeder->context, &slot->result.way_reason);
    (void)hs_features_to_original(list, &slot->source.image); /* cannot fail: the features are of this image */
    slot->features = list;
    batch_finish(batch, slot);
    return;
  }
  char reason[BATCH_MESSAGE_BYTES];
  hs_message_set(reason, sizeof reason, "%s", hs_last_error(feeder->context));
  const bool has_pixels = hs_status_class_of(status) == HS_CLASS_ARGUMENT &&
                          batch_decode_again(batch, slot, &status, reason, sizeof reason);
  bounded_queue_push(&batch->free_lists, list);
  if (has_pixels) {
    feeder_submit(feeder, slot);
    return;
  }
  batch_fail(batch, slot, status, reason);
  if (hs_status_class_of(status) == HS_CLASS_DEVICE) feeder_renew(feeder);
}

/* Submits an image, which may fail at once. */
static void feeder_submit(batch_feeder *feeder, batch_slot *slot) {
  slot->result.device = feeder->device;
  while (feeder->context) {
    slot->submitted_ms = clock_s(CLOCK_MONOTONIC) * 1e3;
    slot->source.mask = slot->mask.data ? &slot->mask : NULL;
    const hs_status status = hs_submit_source(feeder->context, &slot->source);
    const hs_status_class kind = hs_status_class_of(status);
    if (status == HS_OK) {
      feeder_append(feeder, slot);
      return;
    }
    /* memory or threads may become available when an image in flight ends */
    if (feeder->count > 0 && (status == HS_ERR_CAPACITY || kind == HS_CLASS_RESOURCE)) {
      feeder_collect(feeder);
      continue;
    }
    batch_fail(feeder->batch, slot, status, hs_last_error(feeder->context));
    if (kind == HS_CLASS_DEVICE) feeder_renew(feeder);
    return;
  }
  batch_fail(feeder->batch, slot, HS_ERR_NO_DEVICE, feeder->lost);
}

/* True if this device is lost and another one still works. */
static bool feeder_may_leave(batch_feeder *feeder) {
  hs_batch *batch = feeder->batch;
  if (feeder->context) return false;
  pthread_mutex_lock(&batch->lock);
  const bool others = batch->live_devices > 1;
  if (others) batch->live_devices--;
  pthread_mutex_unlock(&batch->lock);
  return others;
}

static device_share feeder_share(batch_feeder *feeder) {
  hs_batch *batch = feeder->batch;
  const double now = clock_s(CLOCK_MONOTONIC);
  const size_t ready = bounded_queue_count(&batch->ready);
  device_share share = {0};
  pthread_mutex_lock(&batch->lock);
  for (int32_t i = 0; i < batch->options.device_count; i++) {
    const batch_feeder *other = &batch->feeders[i];
    const double speed = other->is_lost ? 0 : device_speed_now(&other->speed, now);
    *(other == feeder ? &share.own : &share.others) += speed;
  }
  /* if as many images are ready as there are readers, the devices are the bottleneck, and unread images will wait too;
     otherwise devices wait for images */
  const bool devices_are_slow = ready >= (size_t)batch->options.readers;
  const double image = batch->images_read > 0 ? batch->pixels_read / (double)batch->images_read : 1;
  share.taken = feeder->flying_pixels + image;
  share.waiting = image * (double)(ready + (devices_are_slow ? batch->input_count : 0));
  pthread_mutex_unlock(&batch->lock);
  return share;
}

/* Returns the next image if one is ready and this device should take it. An idle device waits for one. */
static batch_slot *feeder_next(batch_feeder *feeder, batch_thread *thread) {
  hs_batch *batch = feeder->batch;
  const device_share share = batch->options.device_count > 1 ? feeder_share(feeder) : (device_share){0};
  const bool is_slow = batch->options.device_count > 1 && device_share_is_slow(&share);
  const bool has_capacity = feeder->count < feeder->most && !(is_slow && device_share_leaves(&share));
  if (feeder->count == 0 && !is_slow) return batch_pop(thread, &batch->ready);
  batch_slot *slot = has_capacity ? bounded_queue_try_pop(&batch->ready) : NULL;
  if (slot || feeder->count > 0) return slot;
  os_sleep_ns(FEEDER_LOOKS_AGAIN_NS);
  thread->waited_s += FEEDER_LOOKS_AGAIN_NS * 1e-9;
  return NULL;
}

void batch_run_feeder(batch_thread *thread) {
  hs_batch *batch = thread->batch;
  batch_feeder *feeder = &batch->feeders[thread->number];
  while (!feeder_may_leave(feeder)) {
    batch_slot *slot = feeder_next(feeder, thread);
    if (!slot && feeder->count > 0) {
      feeder_collect(feeder);
    } else if (!slot) {
      if (bounded_queue_has_ended(&batch->ready)) break;
    } else if (batch_is_stopped(batch)) {
      batch_drop(batch, slot);
    } else {
      feeder_submit(feeder, slot);
    }
  }
}
