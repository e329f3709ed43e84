/*
 * Images of a run: read when their phase begins, freed when other images need the memory. See pair_run.h.
 */
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/pairs/pair_run.h"

/* Checks an image's features for matching. match_check makes the other checks for each pair. */
static hs_status check(const hs_pairs *run, uint32_t image, const hs_features *f, char message[PAIR_MESSAGE_BYTES]) {
  const hs_collection_image *wanted = &run->collection.images[image];
  if (!wanted->features && f->count != wanted->feature_count)
    return hs_message_fail(HS_ERR_ARGUMENT, message, PAIR_MESSAGE_BYTES,
                           "read returned %zu features, but the collection states %zu", f->count,
                           wanted->feature_count);
  if (f->count > 0 && run->options.verify && !f->keypoints)
    return hs_message_fail(HS_ERR_ARGUMENT, message, PAIR_MESSAGE_BYTES,
                           "features.keypoints is null, which verification needs");
  return HS_OK;
}

static void keep_message(const hs_pairs *run, pair_image *i, const char *message) {
  /* if this is null (out of memory), the status alone gives the reason */
  i->message = hs_memory_alloc(run->allocator, strlen(message) + 1);
  if (i->message) strcpy(i->message, message);
}

/* True if pairs with the image may need another ratio test than the run's options say; see match_check. */
static bool goes_alone(const hs_pairs *run, const hs_features *f) {
  return f->count == 1 && run->match.mutual == 0 && run->match.ratio > 0.0;
}

bool pair_image_wants_copy(const hs_pairs *run, uint32_t image) {
  const hs_features *f = run->images[image].features;
  return f->count < MATCH_NONE && !goes_alone(run, f) &&
         (f->count == 0 || (f->descriptor_type == HS_DESCRIPTOR_U8 && f->descriptors));
}

stage_status pair_image_upload(pair_device *device, uint32_t image) {
  const hs_pairs *run = device->run;
  const pair_image *i = &run->images[image];
  return run->engine->upload(device->matcher, i->features->descriptors, (uint32_t)i->features->count,
                             &i->on_device[device->number]);
}

/* Frees an image's memory on all devices. A device that no longer responds keeps its memory until its context ends. */
static void drop(hs_pairs *run, const pair_image *i) {
  for (int32_t d = 0; d < run->device_count; d++) {
    int32_t previous;
    if (!i->on_device || !i->on_device[d]) continue;
    const bool entered = run->engine->push(run->devices[d].matcher, &previous) == STAGE_OK;
    run->engine->free_image(run->devices[d].matcher, i->on_device[d]);
    i->on_device[d] = NULL;
    if (entered) run->engine->pop(previous);
  }
}

void pair_images_leave_devices(hs_pairs *run) {
  for (size_t i = 0; run->images && i < run->collection.image_count; i++) drop(run, &run->images[i]);
}

void pair_image_read(hs_pairs *run, uint32_t image) {
  char message[PAIR_MESSAGE_BYTES] = "";
  pair_image *i = &run->images[image];
  const hs_collection *c = &run->collection;
  pair_image found = {.features = c->images[image].features, .number = ++run->readings};
  if (!found.features) {
    found.status = c->read(c->user, image, &i->own, message, sizeof message);
    found.features = &i->own;
  }
  if (found.status == HS_OK) found.status = check(run, image, found.features, message);
  if (found.status != HS_OK) keep_message(run, &found, message);
  pthread_mutex_lock(&run->lock);
  i->status = found.status;
  i->message = found.message;
  i->features = found.features;
  i->number = found.number;
  i->state = found.status == HS_OK ? PAIR_IMAGE_READY : PAIR_IMAGE_FAILED;
  if (hs_status_class_of(found.status) == HS_CLASS_DEVICE) pair_run_fail(run, found.status, message);
  pair_run_wake(run);
  pthread_mutex_unlock(&run->lock);
}

void pair_image_fail(hs_pairs *run, uint32_t image, hs_status status, const char *message) {
  pair_image *i = &run->images[image];
  keep_message(run, i, message);
  i->status = status;
  i->state = PAIR_IMAGE_FAILED;
}

void pair_image_forget(hs_pairs *run, uint32_t image) {
  pair_image *i = &run->images[image];
  drop(run, i);
  hs_features_free(&i->own);
  hs_memory_release(run->allocator, i->message);
  *i = (pair_image){.state = PAIR_IMAGE_ABSENT, .on_device = i->on_device};
}
