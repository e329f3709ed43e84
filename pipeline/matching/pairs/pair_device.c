/*
 * The thread of a device: matches the pairs of a run on its GPU, many at a time; see pair_run.h.
 */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/match_call.h"
#include "pipeline/matching/pairs/pair_run.h"

static bool has_ended(const hs_pairs *run) { return run->is_ending || run->failure != HS_OK; }

static hs_status status_of(stage_status status) {
  return status == STAGE_OUT_OF_MEMORY ? HS_ERR_MEMORY : HS_ERR_DEVICE;
}

/* True if nothing else matches the pairs that the device leaves. The caller holds the lock. */
static bool is_last(const pair_device *d) {
  const hs_pairs *run = d->run;
  return !run->workers_match && run->device_count - run->lost_devices == 1;
}

/* Ends the work of a device that failed: if other devices or workers match, they take its pairs, else the run fails.
   The caller holds the lock. */
static void lose(pair_device *d, hs_status status, const char *reason) {
  hs_pairs *run = d->run;
  if (is_last(d)) {
    pair_run_fail(run, status, reason);
    return;
  }
  d->is_lost = true;
  run->lost_devices++;
  run->last_lost = d->context_number;
  hs_message_set(run->lost, sizeof run->lost, "%s", reason);
}

/* Passes the record of a taken pair to verification, or stores it as the result. The caller holds the lock. */
static void hand_on(pair_device *d, size_t index, pair_record *record) {
  hs_pairs *run = d->run;
  if (record) record->result.device = d->context_number;
  if (record && record->result.status == HS_OK && run->options.verify)
    pair_run_put_matched(run, record);
  else
    pair_run_finish(run, index, record);
}

/* ------------------------------------------------------------------ pairs outside batches */

/* Matches a pair that does not fit a batch: its descriptors are floats, or it has more features than the capacity of a
 * batch. */
static pair_record *match_alone(const pair_device *d, size_t index) {
  const hs_pairs *run = d->run;
  const hs_image_pair *pair = &run->pairs[index];
  const match_placement host = {NULL, false};
  char message[PAIR_MESSAGE_BYTES] = "";
  const match_pair *found = NULL;
  match_request request;
  size_t count = 0;
  hs_status status = match_check_alone(run->images[pair->first].features, run->images[pair->second].features,
                                       &run->match, &request, message, sizeof message);
  if (status == HS_OK) {
    status = d->context->engine->matching->pairs(d->context, &request, &host, &found, &count);
    if (status != HS_OK) hs_message_set(message, sizeof message, "%s", d->context->error);
  }
  if (status != HS_OK) return pair_record_failed(run, index, status, message);
  pair_record *record = pair_record_make(run, index, count, run->options.verify != NULL);
  if (record && count > 0) memcpy(record->matches, found, count * sizeof *found);
  return record;
}

/* True if the next pair fits a batch; *bytes: memory of the batch that it needs. The caller holds the lock. */
static bool fits_batch(const pair_device *d, size_t index, match_request *request, uint64_t *bytes) {
  const hs_pairs *run = d->run;
  const hs_image_pair *pair = &run->pairs[index];
  const pair_image *a = &run->images[pair->first], *b = &run->images[pair->second];
  if (!a->on_device[d->number] || !b->on_device[d->number] ||
      match_check_alone(a->features, b->features, &run->match, request, NULL, 0) != HS_OK)
    return false;
  *bytes = run->engine->pair_bytes(a->features->count, b->features->count);
  return *bytes <= run->batch_bytes;
}

/* True if the record's pair should be left to others. Lack of memory is a failure of the pair only if no other device
   can match it, so that results do not depend on the devices. The caller holds the lock. */
static bool is_failure_of(const pair_device *d, const pair_record *record) {
  if (!record) return false;
  const hs_status status = record->result.status;
  return hs_status_class_of(status) == HS_CLASS_DEVICE || (status == HS_ERR_MEMORY && !is_last(d));
}

/* Takes and matches a pair outside the batches. The caller holds the lock, which is released during the work. */
static void take_alone(pair_device *d, size_t index) {
  hs_pairs *run = d->run;
  pair_run_take(run, index);
  const hs_image_pair *pair = &run->pairs[index];
  const uint32_t images[2] = {pair->first, pair->second};
  pair_record *record = NULL;
  bool failed = false;
  for (int i = 0; i < 2 && !failed; i++) {
    const pair_image *image = &run->images[images[i]];
    failed = image->state == PAIR_IMAGE_FAILED;
    if (failed) record = pair_record_failed(run, index, image->status, image->message);
  }
  if (!failed) {
    pthread_mutex_unlock(&run->lock);
    record = match_alone(d, index);
    pthread_mutex_lock(&run->lock);
  }
  if (!failed && is_failure_of(d, record)) {
    lose(d, record->result.status, record->result.message);
    if (d->is_lost) {
      pair_record_free(run, record);
      pair_run_leave(run, index);
      return;
    }
  }
  hand_on(d, index, record);
  pair_run_wake_verifiers(run);
}

/* ------------------------------------------------------------------ batches */

/* True if the device needs a copy of the image. The caller holds the lock. */
static bool lacks(const pair_device *d, uint32_t image) {
  const pair_image *i = &d->run->images[image];
  return i->state == PAIR_IMAGE_READY && !i->on_device[d->number] && pair_image_wants_copy(d->run, image);
}

/* Copies an image to the device. The caller holds the lock, which is released during the copy. */
static void copy_image(pair_device *d, uint32_t image) {
  hs_pairs *run = d->run;
  char reason[PAIR_MESSAGE_BYTES] = "", message[PAIR_MESSAGE_BYTES];
  pair_run_hold(run);
  pthread_mutex_unlock(&run->lock);
  const stage_status status = pair_image_upload(d, image);
  if (status != STAGE_OK) hs_message_set(reason, sizeof reason, "%s", run->engine->error_text()); /* clears it */
  hs_message_set(message, sizeof message, "the device: %s", reason);
  pthread_mutex_lock(&run->lock);
  if (status == STAGE_OUT_OF_MEMORY && is_last(d))
    pair_image_fail(run, image, HS_ERR_MEMORY, message);
  else if (status != STAGE_OK)
    lose(d, status_of(status), reason);
  pair_run_release(run);
}

/* Makes the next pair's images available on the device. False: no pair may be taken now, or the device waits for the
   batch that has been filled so far. The caller holds the lock, which is released while images are copied. */
static bool prepare_next(pair_device *d, const device_batch *batch, size_t *index) {
  hs_pairs *run = d->run;
  while (!has_ended(run) && !d->is_lost && pair_run_next(run, index)) {
    const hs_image_pair *pair = &run->pairs[*index];
    const bool lacks_first = lacks(d, pair->first);
    if (!lacks_first && !lacks(d, pair->second)) return true;
    if (batch->count > 0 && d->in_flight == 0) return false;
    copy_image(d, lacks_first ? pair->first : pair->second);
  }
  return false;
}

/* Takes pairs for a batch until none is left or the next one does not fit. The caller holds the lock, which is released
   while images are copied. *alone: whether the next pair, *index, does not fit any batch. */
static void fill(pair_device *d, device_batch *batch, bool *alone, size_t *index) {
  hs_pairs *run = d->run;
  uint64_t used = 0, bytes = 0;
  batch->count = 0;
  *alone = false;
  while (batch->count < PAIRS_PER_BATCH && prepare_next(d, batch, index)) {
    const hs_image_pair *pair = &run->pairs[*index];
    match_request request;
    *alone = !fits_batch(d, *index, &request, &bytes);
    if (*alone || used + bytes > run->batch_bytes) return;
    pair_run_take(run, *index);
    used += bytes;
    batch->limits = request.limits;
    batch->index[batch->count] = *index;
    batch->images[batch->count++] = (descriptor_pair){run->images[pair->first].on_device[d->number],
                                                      run->images[pair->second].on_device[d->number]};
  }
}

/* Starts another batch. The caller holds the lock, which is released during the work. */
static void begin(pair_device *d) {
  hs_pairs *run = d->run;
  const int32_t number = (d->oldest + d->in_flight) % PAIR_BATCHES;
  device_batch *batch = &d->batches[number];
  bool alone;
  size_t next = 0;
  fill(d, batch, &alone, &next);
  if (batch->count == 0) {
    if (alone) take_alone(d, next);
    return;
  }
  d->in_flight++;
  if (d->is_lost) return;
  pthread_mutex_unlock(&run->lock);
  const stage_status status =
      run->engine->begin(d->matcher, number, batch->images, batch->count, &batch->limits, run->match.mutual != 0);
  pthread_mutex_lock(&run->lock);
  if (status != STAGE_OK) lose(d, status_of(status), run->engine->error_text());
}

/* Waits for the oldest batch, and passes its pairs on. The caller holds the lock, which is released during the wait. */
static void finish(pair_device *d) {
  hs_pairs *run = d->run;
  device_batch *batch = &d->batches[d->oldest];
  pair_record *records[PAIRS_PER_BATCH] = {NULL};
  pthread_mutex_unlock(&run->lock);
  const stage_status status = run->engine->finish(d->matcher, d->oldest);
  for (uint32_t i = 0; status == STAGE_OK && i < batch->count; i++) {
    uint32_t count;
    const match_pair *found = run->engine->result(d->matcher, d->oldest, i, &count);
    records[i] = pair_record_make(run, batch->index[i], count, run->options.verify != NULL);
    if (records[i] && count > 0) memcpy(records[i]->matches, found, count * sizeof *found);
  }
  pthread_mutex_lock(&run->lock);
  if (status != STAGE_OK) { /* the batch stays in the ring, so its pairs are left with the others */
    lose(d, status_of(status), run->engine->error_text());
    return;
  }
  d->oldest = (d->oldest + 1) % PAIR_BATCHES;
  d->in_flight--;
  for (uint32_t i = 0; i < batch->count; i++) hand_on(d, batch->index[i], records[i]);
  pair_run_wake_verifiers(run);
}

/* Waits for the batches in flight, because they still write to memory that is freed later, and leaves their pairs.
   Without the lock. */
static void leave_batches(pair_device *d) {
  for (; d->in_flight > 0; d->in_flight--) {
    const device_batch *batch = &d->batches[d->oldest];
    (void)d->run->engine->finish(d->matcher, d->oldest);
    pthread_mutex_lock(&d->run->lock);
    for (uint32_t i = 0; i < batch->count; i++) pair_run_leave(d->run, batch->index[i]);
    pthread_mutex_unlock(&d->run->lock);
    d->oldest = (d->oldest + 1) % PAIR_BATCHES;
  }
}

void *pair_device_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  pair_device *d = argument;
  hs_pairs *run = d->run;
  int32_t previous;
  const stage_status entered = run->engine->push(d->matcher, &previous);
  pthread_mutex_lock(&run->lock);
  if (entered != STAGE_OK) lose(d, status_of(entered), run->engine->error_text());
  size_t next;
  while (!has_ended(run) && !d->is_lost)
    if (d->in_flight < PAIR_BATCHES && pair_run_next(run, &next))
      begin(d);
    else if (d->in_flight > 0)
      finish(d);
    else
      pthread_cond_wait(&run->matching, &run->lock);
  pthread_mutex_unlock(&run->lock);
  leave_batches(d);
  if (entered == STAGE_OK) run->engine->pop(previous);
  return NULL;
}
