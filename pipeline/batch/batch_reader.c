/* Reader threads of a batch: they read images, and decode those that no device decodes. */
#include "pipeline/base/text.h"
#include "pipeline/batch/batch_run.h"
#include "pipeline/source/source.h"

/* Waits for the next image. False: no more images. The wait counts as idle time. */
static bool take_next(batch_thread *thread, batch_slot *slot) {
  hs_batch *batch = thread->batch;
  double before = 0;
  pthread_mutex_lock(&batch->lock);
  while (!batch->stopped && batch->input_count == 0 && !batch->no_more) {
    if (before == 0) before = clock_s(CLOCK_MONOTONIC);
    pthread_cond_wait(&batch->arrived, &batch->lock);
  }
  const bool taken = !batch->stopped && batch->input_count > 0;
  if (taken) {
    *slot = (batch_slot){.input = batch->inputs[batch->input_first]};
    batch->input_first = (batch->input_first + 1) % batch->input_capacity;
    batch->input_count--;
    slot->result = (hs_batch_result){.index = batch->begun++,
                                     .name = slot->input.name,
                                     .user = slot->input.user,
                                     .message = slot->message,
                                     .device = -1,
                                     .exif = &slot->exif,
                                     .notes = &slot->notes};
  }
  pthread_mutex_unlock(&batch->lock);
  if (before > 0) thread->waited_s += clock_s(CLOCK_MONOTONIC) - before;
  return taken;
}

static hs_status load_input(const batch_slot *slot, const hs_load_options *load, hs_source *loaded) {
  hs_source source = slot->input.source;
  source.load = load;
  source.mask = NULL; /* find_mask fits it to the loaded image */
  return hs_load_source(&source, loaded);
}

static hs_status find_mask(hs_batch *batch, batch_slot *slot) {
  const hs_batch_options *o = &batch->options;
  if (slot->input.source.mask) {
    const hs_status status = source_fit_mask(&slot->source.image, slot->input.source.mask, &batch->pixels, &slot->mask);
    if (status != HS_OK) return status;
  }
  if (!o->mask) return HS_OK;
  hs_image before = slot->mask;
  const hs_status status = o->mask(o->user, slot->result.index, slot->input.user, &slot->source.image, &slot->mask,
                                   slot->message, sizeof slot->message);
  if (slot->mask.memory != before.memory) hs_image_free(&before); /* replaced */
  return status;
}

static void read_image(hs_batch *batch, batch_slot *slot) {
  const hs_batch_options *o = &batch->options;
  hs_load_options load = batch->load;
  hs_batch_result *result = &slot->result;
  load.exif = &slot->exif;
  load.notes = &slot->notes;
  load.message = slot->message;
  load.message_bytes = sizeof slot->message;
  if (slot->input.source.mask) load.keep_encoded = 0; /* a mask is in host memory, so the picture must be too */
  result->status = load_input(slot, &load, &slot->source);
  const hs_image *image = &slot->source.image;
  result->width = image->original_width ? image->original_width : image->width;
  result->height = image->original_height ? image->original_height : image->height;
  if (result->status == HS_OK && o->loaded)
    result->status = o->loaded(o->user, result->index, slot->input.user, slot->message, sizeof slot->message);
  if (result->status == HS_OK) result->status = find_mask(batch, slot);
  /* drops a message that the user's functions wrote without a failure */
  if (result->status == HS_OK) slot->message[0] = '\0';
  if (result->status != HS_OK) hs_source_free(&slot->source);
  if (result->status != HS_OK && slot->message[0] == '\0')
    hs_message_set(slot->message, sizeof slot->message, "%s", hs_status_string(result->status));
}

/* True if at least as many images wait for devices as there are readers: then cores are idle. */
static bool has_time(hs_batch *batch) { return bounded_queue_count(&batch->ready) >= (size_t)batch->options.readers; }

void batch_decode_small(hs_batch *batch, batch_slot *slot) {
  hs_load_options load = batch->load;
  hs_image decoded;
  hs_load_notes notes;
  if (slot->source.kind != HS_SOURCE_JPEG || slot->source.size > BATCH_SMALL_BYTES ||
      batch->feeders[0].options.decoder == HS_DECODER_GPU || !has_time(batch))
    return;
  load.notes = &notes;
  load.exif = NULL; /* reading has set EXIF; a failure here (out of memory) would clear it */
  /* if the file is damaged, the device's decoder reports it as for other files */
  if (hs_load_image_memory(slot->source.bytes, slot->source.size, &load, &decoded) != HS_OK) return;
  hs_source_free(&slot->source);
  slot->source = hs_source_pixels(&decoded);
  slot->notes = notes;
}

bool batch_decode_again(hs_batch *batch, batch_slot *slot, hs_status *status, char *message, size_t message_bytes) {
  hs_load_options load = batch->load;
  char said[BATCH_MESSAGE_BYTES] = "";
  hs_source pixels;
  if (slot->source.kind != HS_SOURCE_JPEG) return false;
  load.exif = &slot->exif;
  load.notes = &slot->notes;
  load.keep_encoded = 0;
  load.message = said;
  load.message_bytes = sizeof said;
  const hs_status read = load_input(slot, &load, &pixels);
  if (read == HS_OK) {
    hs_source_free(&slot->source);
    slot->source = pixels;
    return true;
  }
  *status = read;
  slot->result.width = slot->result.height = 0;
  hs_message_set(message, message_bytes, "%s", said);
  return false;
}

static void note_read(hs_batch *batch, const batch_slot *slot) {
  pthread_mutex_lock(&batch->lock);
  batch->pixels_read += (double)slot->result.width * slot->result.height;
  batch->images_read++;
  pthread_mutex_unlock(&batch->lock);
}

void batch_run_reader(batch_thread *thread) {
  hs_batch *batch = thread->batch;
  const hs_batch_options *o = &batch->options;
  for (;;) {
    batch_slot *slot = batch_pop(thread, &batch->free_slots);
    if (!slot) return; /* no slot: the batch is destroyed while the user holds all results */
    if (!take_next(thread, slot)) {
      bounded_queue_push(&batch->free_slots, slot);
      return;
    }
    slot->result.skipped = o->wanted && !o->wanted(o->user, slot->result.index, slot->input.user);
    if (slot->result.skipped) {
      batch_finish(batch, slot);
      continue;
    }
    read_image(batch, slot);
    if (slot->result.status == HS_OK) batch_decode_small(batch, slot);
    note_read(batch, slot);
    if (slot->result.status == HS_OK)
      bounded_queue_push(&batch->ready, slot);
    else
      batch_finish(batch, slot);
  }
}
