/*
 * The threads of a batch and the queues between them; see batch_engine.h.
 *
 * A slot goes round: free -> (reading) -> ready -> (device) -> finished -> (writing) -> free; an image that cannot be
 * read goes to finished at once. Every queue has room for all slots, so only the lack of a slot or of a list for
 * results makes a thread wait for those behind it. Nobody gives images to devices: the feeder of each takes the next from
 * `ready` when it has room, so a faster device takes more. What is slow shows in the CPU seconds of `batch --json`.
 */
#include "pipeline/cli/batch/batch_engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/usable_threads.h"
#include "pipeline/cli/batch/bounded_queue.h"
#include "pipeline/cli/batch/buffer_pool.h"
#include "pipeline/context/context.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"

enum {
  BATCH_CORES_PER_READER = 8, /* on the CPU, extracting takes about that many times as long as decoding */
  BATCH_IN_FLIGHT = 8,        /* the meaning of 0 in hs_options.in_flight */
  BATCH_IN_FLIGHT_MOST = 256  /* its range */
};

/* One image on its way. */
typedef struct batch_slot {
  size_t index;
  hs_image image; /* data null: not read, or not needed any more */
  hs_exif exif;
  hs_features *features;
  hs_status status;
  bool unwanted; /* only passes by, to keep the order */
  int32_t width, height, device;
  double submitted_ms, milliseconds;
  char message[BATCH_MESSAGE_BYTES];
} batch_slot;

/* A device and the images it is working on, oldest first. */
typedef struct batch_feeder {
  batch_run *batch;
  int32_t device;
  hs_context *context; /* null: lost */
  batch_slot *flying[BATCH_IN_FLIGHT_MOST];
  int32_t first, count;
  char lost[BATCH_MESSAGE_BYTES]; /* why the context is null */
} batch_feeder;

typedef enum batch_role { BATCH_READER, BATCH_FEEDER, BATCH_WRITER } batch_role;

typedef struct batch_thread {
  batch_run *batch;
  batch_role role;
  int32_t number; /* within its role */
  pthread_t handle;
  bool started;
} batch_thread;

struct batch_run {
  batch_work work;
  hs_load_options load;
  buffer_pool pool;
  hs_allocator pixels; /* the pool's */
  batch_slot *slots;
  hs_features *lists;
  batch_feeder *feeders;
  batch_thread *threads;
  batch_slot **waiting; /* in_order: finished before those in front of them, at index % slot_count */
  size_t slot_count, list_count, thread_count;
  bounded_queue free_slots, ready, finished, free_lists;

  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool has_lock;
  int32_t first_gpu; /* CUDA device of the first context on one; -1: all are on the CPU */
  size_t next;       /* image to begin; this and all below under the lock */
  bool stopped;
  int32_t running[3]; /* threads of each role */
  int32_t live_devices;
  double cpu_s[3];
};

static double batch_clock_s(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double batch_now_ms(void) { return batch_clock_s(CLOCK_MONOTONIC) * 1e3; }

static bool batch_is_stopped(batch_run *batch) {
  pthread_mutex_lock(&batch->lock);
  const bool stopped = batch->stopped;
  pthread_mutex_unlock(&batch->lock);
  return stopped;
}

/* ---- reading */

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
  load.message = slot->message;
  load.message_bytes = sizeof slot->message;
  slot->status = hs_load_image(batch->work.path(batch->work.user, index), &load, &slot->image);
  slot->width = slot->image.width;
  slot->height = slot->image.height;
  if (slot->status != HS_OK && slot->message[0] == '\0')
    hs_message_set(slot->message, sizeof slot->message, "%s", hs_status_string(slot->status));
}

/* Takes a slot before an image, so that never more images are in progress than there are slots. */
static void batch_run_reader(batch_run *batch) {
  for (;;) {
    size_t index = 0;
    batch_slot *slot = bounded_queue_pop(&batch->free_slots);
    if (!batch_take_next(batch, &index)) {
      bounded_queue_push(&batch->free_slots, slot);
      return;
    }
    if (!batch->work.wanted || batch->work.wanted(batch->work.user, index)) {
      batch_read_image(batch, index, slot);
      bounded_queue_push(slot->status == HS_OK ? &batch->ready : &batch->finished, slot);
    } else if (batch->work.in_order) {
      *slot = (batch_slot){.index = index, .unwanted = true};
      bounded_queue_push(&batch->finished, slot);
    } else {
      bounded_queue_push(&batch->free_slots, slot);
    }
  }
}

/* ---- devices */

static void batch_finish(batch_run *batch, batch_slot *slot) {
  hs_image_free(&slot->image);
  bounded_queue_push(&batch->finished, slot);
}

static void batch_fail(batch_run *batch, batch_slot *slot, hs_status status, const char *reason) {
  slot->status = status;
  hs_message_set(slot->message, sizeof slot->message, "%s", reason[0] != '\0' ? reason : hs_status_string(status));
  batch_finish(batch, slot);
}

static batch_slot *feeder_pop_oldest(batch_feeder *feeder) {
  batch_slot *slot = feeder->flying[feeder->first];
  feeder->first = (feeder->first + 1) % BATCH_IN_FLIGHT_MOST;
  feeder->count--;
  return slot;
}

static void feeder_append(batch_feeder *feeder, batch_slot *slot) {
  feeder->flying[(feeder->first + feeder->count) % BATCH_IN_FLIGHT_MOST] = slot;
  feeder->count++;
}

static void feeder_submit(batch_feeder *feeder, batch_slot *slot);

/* After a failure of the device class: makes a new context and submits the images in flight again. This ends, because
   each call follows the failure of one image. */
static void feeder_renew(batch_feeder *feeder) {
  batch_run *batch = feeder->batch;
  batch_slot *again[BATCH_IN_FLIGHT_MOST];
  int32_t count = 0;
  while (feeder->count > 0) again[count++] = feeder_pop_oldest(feeder);
  hs_destroy(feeder->context);
  const hs_status status =
      hs_create_explained(&feeder->context, &batch->work.devices[feeder->device], feeder->lost, sizeof feeder->lost);
  if (status != HS_OK && feeder->lost[0] == '\0')
    hs_message_set(feeder->lost, sizeof feeder->lost, "%s", hs_status_string(status));
  for (int32_t i = 0; i < count; i++) feeder_submit(feeder, again[i]);
}

/* Waits for the oldest image in flight. */
static void feeder_collect(batch_feeder *feeder) {
  batch_run *batch = feeder->batch;
  hs_features *list = bounded_queue_pop(&batch->free_lists);
  batch_slot *slot = feeder_pop_oldest(feeder);
  const hs_status status = hs_wait(feeder->context, list);
  slot->milliseconds = batch_now_ms() - slot->submitted_ms;
  if (status == HS_OK) {
    slot->features = list;
    batch_finish(batch, slot);
    return;
  }
  bounded_queue_push(&batch->free_lists, list);
  batch_fail(batch, slot, status, hs_last_error(feeder->context));
  if (hs_status_class_of(status) == HS_CLASS_DEVICE) feeder_renew(feeder);
}

/* Hands an image over; it may come back failed at once. */
static void feeder_submit(batch_feeder *feeder, batch_slot *slot) {
  slot->device = feeder->device;
  while (feeder->context) {
    slot->submitted_ms = batch_now_ms();
    const hs_status status = hs_submit(feeder->context, &slot->image, feeder->batch->work.mask);
    const hs_status_class kind = hs_status_class_of(status);
    if (status == HS_OK) {
      feeder_append(feeder, slot);
      return;
    }
    /* Memory or threads may become free when the next image ends. */
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

/* True when this device is lost and another one still works. */
static bool feeder_may_leave(batch_feeder *feeder) {
  batch_run *batch = feeder->batch;
  if (feeder->context) return false;
  pthread_mutex_lock(&batch->lock);
  const bool others = batch->live_devices > 1;
  if (others) batch->live_devices--;
  pthread_mutex_unlock(&batch->lock);
  return others;
}

static void batch_run_feeder(batch_run *batch, int32_t device) {
  batch_feeder *feeder = &batch->feeders[device];
  while (!feeder_may_leave(feeder)) {
    batch_slot *slot = feeder->count == 0 ? bounded_queue_pop(&batch->ready) : bounded_queue_try_pop(&batch->ready);
    if (!slot && feeder->count == 0) return; /* nothing will come */
    if (!slot) {
      feeder_collect(feeder);
    } else if (batch_is_stopped(batch)) {
      hs_image_free(&slot->image);
      bounded_queue_push(&batch->free_slots, slot);
    } else {
      feeder_submit(feeder, slot);
    }
  }
}

/* ---- writing */

static void batch_deliver(batch_run *batch, int32_t writer, batch_slot *slot) {
  const batch_result result = {.index = slot->index,
                               .status = slot->status,
                               .message = slot->message,
                               .width = slot->width,
                               .height = slot->height,
                               .features = slot->features,
                               .exif = &slot->exif,
                               .device = slot->device,
                               .milliseconds = slot->milliseconds};
  if (!slot->unwanted) batch->work.done(batch->work.user, writer, &result);
  if (slot->features) bounded_queue_push(&batch->free_lists, slot->features);
  bounded_queue_push(&batch->free_slots, slot);
}

static void batch_run_writer(batch_run *batch, int32_t writer) {
  for (;;) {
    batch_slot *slot = bounded_queue_pop(&batch->finished);
    if (!slot) return;
    batch_deliver(batch, writer, slot);
  }
}

/* The only writer of an ordered batch. */
static void batch_run_ordered_writer(batch_run *batch) {
  size_t next = 0;
  for (;;) {
    batch_slot *slot = bounded_queue_pop(&batch->finished);
    if (!slot) return;
    batch->waiting[slot->index % batch->slot_count] = slot;
    for (batch_slot **place = &batch->waiting[next % batch->slot_count]; *place;
         place = &batch->waiting[next % batch->slot_count]) {
      slot = *place;
      *place = NULL;
      next++;
      batch_deliver(batch, 0, slot);
    }
  }
}

/* ---- threads */

/* The last of those that fill a queue closes it. */
static void batch_role_ended(batch_run *batch, batch_role role, double cpu_s) {
  pthread_mutex_lock(&batch->lock);
  batch->running[role]--;
  batch->cpu_s[role] += cpu_s;
  const bool no_reader = batch->running[BATCH_READER] == 0;
  const bool no_feeder = batch->running[BATCH_FEEDER] == 0;
  const bool all = no_reader && no_feeder && batch->running[BATCH_WRITER] == 0;
  if (all) pthread_cond_broadcast(&batch->ended);
  pthread_mutex_unlock(&batch->lock);
  if (no_reader) bounded_queue_close(&batch->ready);
  if (no_reader && no_feeder) bounded_queue_close(&batch->finished);
}

static void *batch_run_thread(void *argument) {
  const batch_thread *thread = argument;
  batch_run *batch = thread->batch;
  switch (thread->role) {
  case BATCH_READER:
    batch_run_reader(batch);
    break;
  case BATCH_FEEDER:
    batch_run_feeder(batch, thread->number);
    break;
  case BATCH_WRITER:
    if (batch->work.in_order)
      batch_run_ordered_writer(batch);
    else
      batch_run_writer(batch, thread->number);
    break;
  }
  batch_role_ended(batch, thread->role, batch_clock_s(CLOCK_THREAD_CPUTIME_ID));
  return NULL;
}

const char *batch_backend(const batch_run *batch, int32_t device) {
  return hs_backend_report(batch->feeders[device].context);
}

hs_status batch_start(batch_run *batch) {
  const int32_t counts[3] = {batch->work.readers, batch->work.device_count, batch->work.writers};
  size_t made = 0;
  hs_status status = HS_OK;
  memcpy(batch->running, counts, sizeof counts);
  /* Consumers start before producers: if a thread cannot be started, the threads that run still come to an end. */
  for (int role = BATCH_WRITER; role >= BATCH_READER; role--) {
    for (int32_t i = 0; i < counts[role]; i++) {
      batch_thread *thread = &batch->threads[made++];
      *thread = (batch_thread){.batch = batch, .role = (batch_role)role, .number = i};
      thread->started = status == HS_OK && pthread_create(&thread->handle, NULL, batch_run_thread, thread) == 0;
      if (!thread->started) {
        status = HS_ERR_THREAD;
        batch_stop(batch);
        batch_role_ended(batch, (batch_role)role, 0);
      }
    }
  }
  return status;
}

/* ---- making and ending */

static hs_status batch_make_contexts(batch_run *batch, char *message, size_t message_bytes) {
  batch->first_gpu = -1;
  for (int32_t i = 0; i < batch->work.device_count; i++) {
    batch_feeder *feeder = &batch->feeders[i];
    feeder->batch = batch;
    feeder->device = i;
    const hs_status status = hs_create_explained(&feeder->context, &batch->work.devices[i], message, message_bytes);
    if (status != HS_OK) return status;
    if (batch->first_gpu < 0 && feeder->context->cuda) batch->first_gpu = feeder->context->options.device_index;
  }
  batch->live_devices = batch->work.device_count;
  return HS_OK;
}

static bool batch_make_lock(batch_run *batch) {
  pthread_condattr_t attributes;
  if (pthread_mutex_init(&batch->lock, NULL) != 0) return false;
  batch->has_lock = pthread_condattr_init(&attributes) == 0;
  if (batch->has_lock) {
    batch->has_lock = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(&batch->ended, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
  }
  if (!batch->has_lock) pthread_mutex_destroy(&batch->lock);
  return batch->has_lock;
}

static void *batch_calloc(const batch_run *batch, size_t count, size_t size) {
  size_t bytes = 0;
  void *memory = hs_size_mul(count, size, &bytes) ? hs_memory_alloc(batch->work.allocator, bytes) : NULL;
  return memory ? memset(memory, 0, bytes) : NULL;
}

static void batch_count(batch_run *batch) {
  batch_work *work = &batch->work;
  const int32_t cores = cpu_usable_threads();
  if (work->readers == 0) work->readers = batch->first_gpu >= 0 ? cores : 1 + cores / BATCH_CORES_PER_READER;
  work->writers = work->in_order ? 1 : work->writers == 0 ? work->readers : work->writers;
  size_t in_flight = 0;
  for (int32_t i = 0; i < work->device_count; i++)
    in_flight += (size_t)(work->devices[i].in_flight > 0 ? work->devices[i].in_flight : BATCH_IN_FLIGHT);
  batch->thread_count = (size_t)work->readers + (size_t)work->device_count + (size_t)work->writers;
  /* For each writer one being written and one waiting; for each device one being filled. */
  batch->list_count = 2 * (size_t)work->writers + (size_t)work->device_count;
  /* For each reader one being read and one ready. */
  batch->slot_count = 2 * (size_t)work->readers + in_flight + batch->list_count;
  if (work->in_order)
    batch->list_count = batch->slot_count; /* all may be waiting for the first one, which needs a list too */
}

static bool batch_make_room(batch_run *batch) {
  batch_count(batch);
  batch->slots = batch_calloc(batch, batch->slot_count, sizeof *batch->slots);
  batch->lists = batch_calloc(batch, batch->list_count, sizeof *batch->lists);
  batch->threads = batch_calloc(batch, batch->thread_count, sizeof *batch->threads);
  batch->waiting = batch_calloc(batch, batch->slot_count, sizeof *batch->waiting);
  const size_t slots = batch->slot_count;
  if (!batch->slots || !batch->lists || !batch->threads || !batch->waiting ||
      !bounded_queue_make(&batch->free_slots, slots) || !bounded_queue_make(&batch->ready, slots) ||
      !bounded_queue_make(&batch->finished, slots) || !bounded_queue_make(&batch->free_lists, batch->list_count))
    return false;
  for (size_t i = 0; i < slots; i++) bounded_queue_push(&batch->free_slots, &batch->slots[i]);
  for (size_t i = 0; i < batch->list_count; i++) bounded_queue_push(&batch->free_lists, &batch->lists[i]);
  return true;
}

static hs_status batch_prepare(batch_run *batch, char *message, size_t message_bytes) {
  batch->feeders = batch_calloc(batch, (size_t)batch->work.device_count, sizeof *batch->feeders);
  if (!batch->feeders || !batch_make_lock(batch)) return HS_ERR_MEMORY;
  const hs_status status = batch_make_contexts(batch, message, message_bytes);
  if (status != HS_OK) return status;
  if (!batch_make_room(batch) || !buffer_pool_make(&batch->pool, batch->first_gpu, batch->work.allocator))
    return HS_ERR_MEMORY;
  batch->pixels = buffer_pool_allocator(&batch->pool);
  if (batch->work.load) batch->load = *batch->work.load;
  batch->load.struct_size = sizeof batch->load;
  batch->load.allocator = &batch->pixels;
  return HS_OK;
}

hs_status batch_make(batch_run **made, const batch_work *work, char *message, size_t message_bytes) {
  *made = NULL;
  hs_message_set(message, message_bytes, "%s", "");
  batch_run *batch = hs_memory_alloc(work->allocator, sizeof *batch);
  hs_status status = HS_ERR_MEMORY;
  if (batch) {
    *batch = (batch_run){.work = *work};
    status = batch_prepare(batch, message, message_bytes);
  }
  if (status != HS_OK) {
    if (message_bytes > 0 && message[0] == '\0') hs_message_set(message, message_bytes, "%s", hs_status_string(status));
    batch_free(batch);
    return status;
  }
  *made = batch;
  return HS_OK;
}

void batch_stop(batch_run *batch) {
  pthread_mutex_lock(&batch->lock);
  batch->stopped = true;
  pthread_mutex_unlock(&batch->lock);
}

bool batch_wait(batch_run *batch, int32_t milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + (int64_t)milliseconds * 1000000;
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  bool ended = false;
  int error = 0;
  pthread_mutex_lock(&batch->lock);
  for (;;) {
    ended = batch->running[BATCH_READER] + batch->running[BATCH_FEEDER] + batch->running[BATCH_WRITER] == 0;
    if (ended || error != 0) break;
    error = pthread_cond_timedwait(&batch->ended, &batch->lock, &until);
  }
  pthread_mutex_unlock(&batch->lock);
  return ended;
}

/* The reason of the first device that left images to the CPU; null: none did. */
static const char *batch_fallback(const batch_run *batch) {
  const char *reason = NULL;
  for (int32_t i = 0; i < batch->work.device_count && !reason; i++) {
    const hs_context *context = batch->feeders[i].context;
    reason = context != NULL && context->cuda && context->no_device[0] != '\0' ? context->no_device : NULL;
  }
  return reason;
}

batch_numbers batch_get_numbers(batch_run *batch) {
  const buffer_pool_numbers pool = buffer_pool_counts(&batch->pool);
  pthread_mutex_lock(&batch->lock);
  const batch_numbers numbers = {.read_cpu_s = batch->cpu_s[BATCH_READER],
                                 .write_cpu_s = batch->cpu_s[BATCH_WRITER],
                                 .pixel_bytes_most = pool.most_bytes,
                                 .pixel_buffers_made = pool.made_count,
                                 .fallback = batch_fallback(batch)};
  pthread_mutex_unlock(&batch->lock);
  return numbers;
}

/* What the threads leave behind: all have ended. */
static void batch_free_contents(batch_run *batch) {
  for (size_t i = 0; batch->slots && i < batch->slot_count; i++) hs_image_free(&batch->slots[i].image);
  for (size_t i = 0; batch->lists && i < batch->list_count; i++) hs_features_free(&batch->lists[i]);
  for (int32_t i = 0; batch->feeders && i < batch->work.device_count; i++) hs_destroy(batch->feeders[i].context);
  bounded_queue_free(&batch->free_slots);
  bounded_queue_free(&batch->ready);
  bounded_queue_free(&batch->finished);
  bounded_queue_free(&batch->free_lists);
  buffer_pool_free(&batch->pool);
}

void batch_free(batch_run *batch) {
  if (!batch) return;
  const hs_allocator *allocator = batch->work.allocator;
  if (batch->has_lock) batch_stop(batch);
  for (size_t i = 0; batch->threads && i < batch->thread_count; i++)
    if (batch->threads[i].started) pthread_join(batch->threads[i].handle, NULL);
  batch_free_contents(batch);
  if (batch->has_lock) {
    pthread_cond_destroy(&batch->ended);
    pthread_mutex_destroy(&batch->lock);
  }
  hs_memory_release(allocator, batch->slots);
  hs_memory_release(allocator, batch->lists);
  hs_memory_release(allocator, batch->threads);
  hs_memory_release(allocator, batch->waiting);
  hs_memory_release(allocator, batch->feeders);
  hs_memory_release(allocator, batch);
}
