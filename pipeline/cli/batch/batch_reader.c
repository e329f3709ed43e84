/* The threads of a batch that read images, and decode what the devices do not. */
#include "pipeline/cli/batch/batch_reader.h"

#include "pipeline/base/message.h"

static bool batch_take_next(batch_run *batch, size_t *index) {
  pthread_mutex_lock(&batch->lock);
  const bool taken = !batch->stopped && batch->next < batch->work.count;
  if (taken) *index = batch->next++;
  pthread_mutex_unlock(&batch->lock);
  return taken;
}

static void batch_read_image(batch_run *batch, size_t index, batch_slot *slot) {
  hs_load_options load = batch->load;
  *slot = (batch_slot){.index = index, .device = -1};
  load.exif = &slot->exif;
  load.notes = &slot->notes;
  load.message = slot->message;
  load.message_bytes = sizeof slot->message;
  slot->status = hs_load_image(batch->work.path(batch->work.user, index), &load, &slot->image);
  slot->width = slot->image.original_width ? slot->image.original_width : slot->image.width;
  slot->height = slot->image.original_height ? slot->image.original_height : slot->image.height;
  if (slot->status == HS_OK && batch->work.loaded)
    slot->status = batch->work.loaded(batch->work.user, index, slot->message, sizeof slot->message);
  if (slot->status == HS_OK && batch->work.mask)
    slot->status =
        batch->work.mask(batch->work.user, index, &slot->image, &slot->mask, slot->message, sizeof slot->message);
  if (slot->status != HS_OK) hs_image_free(&slot->image);
  if (slot->status != HS_OK && slot->message[0] == '\0')
    hs_message_set(slot->message, sizeof slot->message, "%s", hs_status_string(slot->status));
}

/* Cores have time while as many images wait for the devices as there are readers. */
static bool batch_has_time(batch_run *batch) {
  return bounded_queue_count(&batch->ready) >= (size_t)batch->work.readers;
}

void batch_decode_small(batch_run *batch, batch_slot *slot) {
  hs_load_options load = batch->load;
  hs_image decoded;
  hs_load_notes notes;
  if (slot->image.layout != HS_JPEG || slot->image.stride_bytes > BATCH_SMALL_BYTES ||
      batch->work.devices[0].decoder == HS_DECODER_GPU || !batch_has_time(batch))
    return;
  load.keep_encoded = 0;
  load.notes = &notes;
  load.exif = NULL; /* reading gave it; a failure here, for want of memory say, would clear it */
  /* What is wrong with a file is said as for those that a device finds damaged. */
  if (hs_load_image_memory(slot->image.data, slot->image.stride_bytes, &load, &decoded) != HS_OK) return;
  hs_image_free(&slot->image);
  slot->image = decoded;
  slot->notes = notes;
}

static void batch_note_read(batch_run *batch, const batch_slot *slot) {
  pthread_mutex_lock(&batch->lock);
  batch->pixels_read += (double)slot->width * slot->height;
  batch->images_read++;
  pthread_mutex_unlock(&batch->lock);
}

void batch_run_reader(batch_thread *thread) {
  batch_run *batch = thread->batch;
  for (;;) {
    size_t index = 0;
    batch_slot *slot = batch_pop(thread, &batch->free_slots);
    if (!batch_take_next(batch, &index)) {
      bounded_queue_push(&batch->free_slots, slot);
      return;
    }
    if (!batch->work.wanted || batch->work.wanted(batch->work.user, index)) {
      batch_read_image(batch, index, slot);
      if (slot->status == HS_OK) batch_decode_small(batch, slot);
      batch_note_read(batch, slot);
      bounded_queue_push(slot->status == HS_OK ? &batch->ready : &batch->finished, slot);
    } else if (batch->work.in_order) {
      *slot = (batch_slot){.index = index, .unwanted = true};
      bounded_queue_push(&batch->finished, slot);
    } else {
      bounded_queue_push(&batch->free_slots, slot);
    }
  }
}
