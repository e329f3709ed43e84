/*
 * The threads of a batch and the queues between them; see batch_engine.h.
 *
 * A slot goes round: free -> (reading) -> ready -> (device) -> finished -> (writing) -> free, with work.prepare by way of
 * finished -> (preparing) -> prepared -> (writing); an image that cannot be
 * read goes to finished at once. Every queue has room for all slots, so only the lack of a slot or of a list for
 * results makes a thread wait for those behind it. Nobody gives images to devices: the feeder of each takes the next from
 * `ready` when it has room, so a faster device takes more. What is slow shows in the CPU seconds of `batch --json`.
 */
#include <string.h>
#include <time.h>

#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/cli/batch/batch_feeder.h"
#include "pipeline/cli/batch/batch_reader.h"
#include "pipeline/context/engine.h"

enum { BATCH_CORES_PER_READER = 8 }; /* on the CPU, extracting takes about that many times as long as decoding */

static double batch_cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- writing */

static void batch_note_first(batch_run *batch) {
  pthread_mutex_lock(&batch->lock);
  if (batch->first_s == 0) batch->first_s = batch_now_s() - batch->started_s;
  pthread_mutex_unlock(&batch->lock);
}

static batch_result batch_result_of(const batch_slot *slot) {
  return (batch_result){.index = slot->index,
                        .status = slot->status,
                        .message = slot->message,
                        .width = slot->width,
                        .height = slot->height,
                        .features = slot->features,
                        .prepared = slot->prepared,
                        .exif = &slot->exif,
                        .notes = &slot->notes,
                        .device = slot->device,
                        .milliseconds = slot->milliseconds};
}

static void batch_release_list(batch_run *batch, batch_slot *slot) {
  if (slot->features) bounded_queue_push(&batch->free_lists, slot->features);
  slot->features = NULL;
}

static void batch_run_preparer(batch_thread *thread) {
  batch_run *batch = thread->batch;
  for (batch_slot *slot; (slot = batch_pop(thread, &batch->finished)) != NULL;) {
    if (slot->features) {
      const batch_result result = batch_result_of(slot);
      slot->prepared = batch->work.prepare(batch->work.user, &result);
      batch_release_list(batch, slot);
    }
    bounded_queue_push(&batch->prepared, slot);
  }
}

static void batch_deliver(batch_run *batch, int32_t writer, batch_slot *slot) {
  const batch_result result = batch_result_of(slot);
  if (!slot->unwanted) batch->work.done(batch->work.user, writer, &result);
  if (slot->status == HS_OK && !slot->unwanted) batch_note_first(batch);
  slot->prepared = NULL;
  batch_release_list(batch, slot);
  bounded_queue_push(&batch->free_slots, slot);
}

static void batch_run_writer(batch_thread *thread) {
  batch_run *batch = thread->batch;
  for (;;) {
    batch_slot *slot = batch_pop(thread, &batch->finished);
    if (!slot) return;
    batch_deliver(batch, thread->number, slot);
  }
}

/* The only writer of an ordered batch. */
static void batch_run_ordered_writer(batch_thread *thread) {
  batch_run *batch = thread->batch;
  bounded_queue *queue = batch->work.prepare ? &batch->prepared : &batch->finished;
  size_t next = 0;
  for (;;) {
    batch_slot *slot = batch_pop(thread, queue);
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
static void batch_role_ended(const batch_thread *thread, double cpu_s) {
  batch_run *batch = thread->batch;
  const batch_role role = thread->role;
  pthread_mutex_lock(&batch->lock);
  batch->running[role]--;
  batch->cpu_s[role] += cpu_s;
  batch->waited_s[role] += thread->waited_s;
  batch->lived_s[role] += batch_now_s() - batch->started_s;
  if (role == BATCH_FEEDER) batch->feeders[thread->number].waited_s = thread->waited_s;
  if (role == BATCH_FEEDER) batch->feeders[thread->number].lived_s = batch_now_s() - batch->started_s;
  const bool no_reader = batch->running[BATCH_READER] == 0;
  const bool no_feeder = batch->running[BATCH_FEEDER] == 0;
  const bool no_preparer = no_reader && no_feeder && batch->running[BATCH_PREPARER] == 0;
  const bool all = no_preparer && batch->running[BATCH_WRITER] == 0;
  if (all) pthread_cond_broadcast(&batch->ended);
  pthread_mutex_unlock(&batch->lock);
  if (no_reader) bounded_queue_close(&batch->ready);
  if (no_reader && no_feeder) bounded_queue_close(&batch->finished);
  if (no_preparer) bounded_queue_close(&batch->prepared);
}

static void *batch_run_thread(void *argument) {
  batch_thread *thread = argument;
  if (thread->role == BATCH_READER)
    batch_run_reader(thread);
  else if (thread->role == BATCH_FEEDER)
    batch_run_feeder(thread);
  else if (thread->role == BATCH_PREPARER)
    batch_run_preparer(thread);
  else if (thread->batch->work.in_order)
    batch_run_ordered_writer(thread);
  else
    batch_run_writer(thread);
  batch_role_ended(thread, batch_cpu_s());
  return NULL;
}

const char *batch_backend(const batch_run *batch, int32_t device) {
  return hs_backend_report(batch->feeders[device].context);
}

hs_status batch_start(batch_run *batch) {
  size_t made = 0;
  hs_status status = HS_OK;
  memcpy(batch->running, batch->counts, sizeof batch->running);
  batch->started_s = batch_now_s();
  /* Consumers start before producers: if a thread cannot be started, the threads that run still come to an end. */
  for (int role = BATCH_WRITER; role >= BATCH_READER; role--) {
    for (int32_t i = 0; i < batch->counts[role]; i++) {
      batch_thread *thread = &batch->threads[made++];
      *thread = (batch_thread){.batch = batch, .role = (batch_role)role, .number = i};
      thread->started = status == HS_OK && pthread_create(&thread->handle, NULL, batch_run_thread, thread) == 0;
      if (!thread->started) {
        status = HS_ERR_THREAD;
        batch_stop(batch);
        batch_role_ended(thread, 0);
      }
    }
  }
  return status;
}

/* ---- making and ending */

static void *batch_calloc(const batch_run *batch, size_t count, size_t size) {
  size_t bytes = 0;
  void *memory = hs_size_mul(count, size, &bytes) ? hs_memory_alloc(batch->work.allocator, bytes) : NULL;
  return memory ? memset(memory, 0, bytes) : NULL;
}

/* The making of one context, in a thread of its own where there are several. */
typedef struct context_job {
  batch_feeder *feeder;
  pthread_t thread;
  bool started;
  hs_status status;
  char message[BATCH_MESSAGE_BYTES];
} context_job;

static void *batch_open_context(void *argument) {
  context_job *job = argument;
  job->status = batch_feeder_open(job->feeder, job->message, sizeof job->message);
  return NULL;
}

/* All at once: a GPU's takes a fifth of a second. The first failure counts; notes of the others are kept. */
static hs_status batch_make_contexts(batch_run *batch, char *message, size_t message_bytes) {
  const int32_t count = batch->work.device_count;
  context_job *jobs = batch_calloc(batch, (size_t)count, sizeof *jobs);
  hs_status status = jobs ? HS_OK : HS_ERR_MEMORY;
  batch->first_gpu = -1;
  for (int32_t i = 0; i < count && jobs; i++) {
    batch->feeders[i].batch = batch;
    batch->feeders[i].device = i;
    jobs[i].feeder = &batch->feeders[i];
    jobs[i].started = count > 1 && pthread_create(&jobs[i].thread, NULL, batch_open_context, &jobs[i]) == 0;
    if (!jobs[i].started) (void)batch_open_context(&jobs[i]);
  }
  for (int32_t i = 0; i < count && jobs; i++) {
    if (jobs[i].started) pthread_join(jobs[i].thread, NULL);
    const hs_context *context = batch->feeders[i].context;
    if (status == HS_OK && (jobs[i].status != HS_OK || jobs[i].message[0] != '\0'))
      hs_message_set(message, message_bytes, "%s", jobs[i].message);
    if (status == HS_OK) status = jobs[i].status;
    if (batch->first_gpu < 0 && status == HS_OK && context->engine->offloads)
      batch->first_gpu = context->options.device_index;
  }
  hs_memory_release(batch->work.allocator, jobs);
  batch->live_devices = count;
  return status;
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

/* Whether a device decodes JPEGs: then they stay encoded, whichever device takes them. A mask lies on the host, and
   beside it the picture. message: of the first whose pixels are not libjpeg's. */
static bool batch_keeps_encoded(const batch_run *batch, char *message, size_t message_bytes) {
  bool any = false;
  char reason[BATCH_MESSAGE_BYTES];
  for (int32_t i = 0; i < batch->work.device_count && !batch->work.mask; i++) {
    const int32_t decodes = hs_decodes_jpeg(batch->feeders[i].context, reason, sizeof reason);
    any = any || decodes > 0;
    if (decodes < 0 && message_bytes > 0 && message[0] == '\0')
      hs_message_set(message, message_bytes, "the GPU does not decode JPEGs: %s", reason);
  }
  return any;
}

static void batch_count(batch_run *batch) {
  batch_work *work = &batch->work;
  const int32_t cores = cpu_usable_threads();
  if (work->readers == 0) work->readers = batch->first_gpu >= 0 ? cores : 1 + cores / BATCH_CORES_PER_READER;
  if (work->writers == 0) work->writers = work->readers;
  batch->counts[BATCH_READER] = work->readers;
  batch->counts[BATCH_FEEDER] = work->device_count;
  batch->counts[BATCH_PREPARER] = work->prepare ? work->writers : 0;
  batch->counts[BATCH_WRITER] = work->in_order ? 1 : work->writers;
  const size_t users = (size_t)batch->counts[BATCH_PREPARER] + (size_t)batch->counts[BATCH_WRITER]; /* of results */
  size_t flying = 0;
  for (int32_t i = 0; i < work->device_count; i++) flying += (size_t)batch->feeders[i].most;
  for (int role = 0; role < BATCH_ROLES; role++) batch->thread_count += (size_t)batch->counts[role];
  /* For each writer one being written and one waiting; for each device one being filled. */
  batch->list_count = 2 * users + (size_t)work->device_count;
  /* For each reader one being read and one ready. */
  batch->slot_count = 2 * (size_t)work->readers + flying + batch->list_count;
  if (work->in_order && !work->prepare)
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
      !bounded_queue_make(&batch->finished, slots) || !bounded_queue_make(&batch->prepared, slots) ||
      !bounded_queue_make(&batch->free_lists, batch->list_count))
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
  if (batch->work.load) batch->load = *batch->work.load;
  batch->load.keep_encoded = batch_keeps_encoded(batch, message, message_bytes);
  if (!batch_make_room(batch) || !buffer_pool_make(&batch->pool, batch->work.allocator)) return HS_ERR_MEMORY;
  batch->pixels = buffer_pool_allocator(&batch->pool);
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
    ended = true;
    for (int role = 0; role < BATCH_ROLES; role++) ended = ended && batch->running[role] == 0;
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
    reason = context != NULL && context->engine->offloads && context->no_device[0] != '\0' ? context->no_device : NULL;
  }
  return reason;
}

/* The part of their time that threads did not wait for work. */
static double batch_busy(double waited_s, double lived_s) { return lived_s > 0 ? 1 - waited_s / lived_s : 0; }

double batch_device_busy(batch_run *batch, int32_t device) {
  pthread_mutex_lock(&batch->lock);
  const batch_feeder *feeder = &batch->feeders[device];
  const double busy = batch_busy(feeder->waited_s, feeder->lived_s);
  pthread_mutex_unlock(&batch->lock);
  return busy;
}

batch_numbers batch_get_numbers(batch_run *batch) {
  const buffer_pool_numbers pool = buffer_pool_counts(&batch->pool);
  pthread_mutex_lock(&batch->lock);
  const batch_numbers numbers = {.read_cpu_s = batch->cpu_s[BATCH_READER],
                                 .write_cpu_s = batch->cpu_s[BATCH_PREPARER] + batch->cpu_s[BATCH_WRITER],
                                 .read_busy = batch_busy(batch->waited_s[BATCH_READER], batch->lived_s[BATCH_READER]),
                                 .write_busy = batch_busy(batch->waited_s[BATCH_WRITER], batch->lived_s[BATCH_WRITER]),
                                 .first_s = batch->first_s,
                                 .pixel_bytes_most = pool.most_bytes,
                                 .pixel_buffers_made = pool.made_count,
                                 .fallback = batch_fallback(batch)};
  pthread_mutex_unlock(&batch->lock);
  return numbers;
}

/* What the threads leave behind: all have ended. */
static void batch_free_contents(batch_run *batch) {
  for (size_t i = 0; batch->slots && i < batch->slot_count; i++) batch_drop_pixels(&batch->slots[i]);
  for (size_t i = 0; batch->slots && i < batch->slot_count; i++)
    if (batch->slots[i].prepared) batch->work.discard(batch->work.user, batch->slots[i].prepared);
  for (size_t i = 0; batch->lists && i < batch->list_count; i++) hs_features_free(&batch->lists[i]);
  for (int32_t i = 0; batch->feeders && i < batch->work.device_count; i++) hs_destroy(batch->feeders[i].context);
  bounded_queue_free(&batch->free_slots);
  bounded_queue_free(&batch->ready);
  bounded_queue_free(&batch->finished);
  bounded_queue_free(&batch->prepared);
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
