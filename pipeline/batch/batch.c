/* Batches: the public functions, and the threads of a batch; see hartsift_batch.h and batch_run.h. */
#include <limits.h>
#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/batch/batch_run.h"
#include "pipeline/context/engine.h"
#include "pipeline/image_io/image_io.h"

enum { BATCH_CORES_PER_READER = 8 }; /* CPU extraction takes about 8 times as long as decoding */

OPTIONS_END_WITH(hs_batch_options, user);
static const options_kind batch_options_kind = OPTIONS_KIND(hs_batch_options, devices);
static const options_kind progress_kind = OPTIONS_KIND(hs_batch_progress, added);
static const options_kind statistics_kind = OPTIONS_KIND(hs_batch_statistics, read_cpu_s);

/* ---- threads */

/* Records the end of a thread of a role. The last reader closes the queue of ready images. */
static void role_ended(const batch_thread *thread, double cpu_s) {
  hs_batch *batch = thread->batch;
  const batch_role role = thread->role;
  const double lived_s = clock_s(CLOCK_MONOTONIC) - batch->started_s;
  pthread_mutex_lock(&batch->lock);
  batch->running[role]--;
  batch->cpu_s[role] += cpu_s;
  batch->waited_s[role] += thread->waited_s;
  batch->lived_s[role] += lived_s;
  if (role == BATCH_FEEDER) batch->feeders[thread->number].waited_s = thread->waited_s;
  if (role == BATCH_FEEDER) batch->feeders[thread->number].lived_s = lived_s;
  const bool no_reader = batch->running[BATCH_READER] == 0;
  pthread_cond_broadcast(&batch->finished);
  pthread_mutex_unlock(&batch->lock);
  if (no_reader) bounded_queue_close(&batch->ready);
}

static void *run_thread(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  batch_thread *thread = argument;
  if (thread->role == BATCH_READER)
    batch_run_reader(thread);
  else
    batch_run_feeder(thread);
  role_ended(thread, clock_s(CLOCK_THREAD_CPUTIME_ID));
  return NULL;
}

static void stop(hs_batch *batch) {
  pthread_mutex_lock(&batch->lock);
  batch->stopped = true;
  pthread_cond_broadcast(&batch->arrived);
  pthread_mutex_unlock(&batch->lock);
}

/* Starts the threads, consumers before producers. If a thread cannot be started, those already running can still
   end. */
static hs_status start_threads(hs_batch *batch) {
  os_signal_mask saved;
  size_t made = 0;
  const bool is_masked = os_signals_block(&saved);
  hs_status status = is_masked ? HS_OK : HS_ERR_THREAD;
  for (int role = BATCH_FEEDER; role >= BATCH_READER; role--) {
    for (int32_t i = 0; i < batch->counts[role]; i++) {
      batch_thread *thread = &batch->threads[made++];
      *thread = (batch_thread){.batch = batch, .role = (batch_role)role, .number = i};
      thread->started = status == HS_OK && os_thread_start(&thread->handle, run_thread, thread);
      if (thread->started) continue;
      status = HS_ERR_THREAD;
      stop(batch);
      role_ended(thread, 0);
    }
  }
  if (is_masked) os_signals_restore(&saved);
  return status;
}

/* ---- opening */

static void *clear_alloc(const hs_batch *batch, size_t count, size_t size) {
  size_t bytes = 0;
  void *memory = hs_size_mul(count, size, &bytes) ? hs_memory_alloc(batch->options.allocator, bytes) : NULL;
  return memory ? memset(memory, 0, bytes) : NULL;
}

/* A job that opens one context; it has its own thread if there are several contexts. */
typedef struct context_job {
  batch_feeder *feeder;
  pthread_t thread;
  bool started;
  hs_status status;
  char message[BATCH_MESSAGE_BYTES];
} context_job;

static void *open_context(void *argument) {
  context_job *job = argument;
  job->status = batch_feeder_open(job->feeder, job->message, sizeof job->message);
  return NULL;
}

/* Opens all contexts in parallel: a GPU context takes 0.2 s. The first failure is reported; messages of the other
   contexts are kept. */
static hs_status open_contexts(hs_batch *batch, char *message, size_t message_bytes) {
  const int32_t count = batch->options.device_count;
  context_job *jobs = clear_alloc(batch, (size_t)count, sizeof *jobs);
  hs_status status = jobs ? HS_OK : HS_ERR_MEMORY;
  for (int32_t i = 0; i < count && jobs; i++) {
    jobs[i].feeder = &batch->feeders[i];
    jobs[i].started = count > 1 && os_thread_start(&jobs[i].thread, open_context, &jobs[i]);
    if (!jobs[i].started) (void)open_context(&jobs[i]);
  }
  for (int32_t i = 0; i < count && jobs; i++) {
    if (jobs[i].started) pthread_join(jobs[i].thread, NULL);
    if (status == HS_OK && (jobs[i].status != HS_OK || jobs[i].message[0] != '\0'))
      hs_message_set(message, message_bytes, "%s", jobs[i].message);
    if (status == HS_OK) status = jobs[i].status;
    if (status == HS_OK) batch->on_gpu = batch->on_gpu || batch->feeders[i].context->engine->offloads;
  }
  hs_memory_release(batch->options.allocator, jobs);
  batch->live_devices = count;
  return status;
}

static bool make_lock(hs_batch *batch) {
  if (pthread_mutex_init(&batch->lock, NULL) != 0) return false;
  bool made = pthread_cond_init(&batch->arrived, NULL) == 0;
  const bool has_arrived = made;
  made = made && os_condition_make(&batch->finished);
  if (!made && has_arrived) pthread_cond_destroy(&batch->arrived);
  if (!made) pthread_mutex_destroy(&batch->lock);
  batch->has_lock = made;
  return made;
}

/* True if a device decodes JPEGs; then files stay encoded, whichever device takes them. False with a mask: a mask is in
   host memory, so the decoded picture must be there too. *message: set for the first device whose pixels differ from
   libjpeg's. */
static bool keeps_encoded(const hs_batch *batch, char *message, size_t message_bytes) {
  bool any = false;
  char reason[BATCH_MESSAGE_BYTES];
  for (int32_t i = 0; i < batch->options.device_count && !batch->options.mask; i++) {
    const int32_t decodes = hs_decodes_jpeg(batch->feeders[i].context, reason, sizeof reason);
    any = any || decodes > 0;
    if (decodes < 0 && message_bytes > 0 && message[0] == '\0')
      hs_message_set(message, message_bytes, "the GPU does not decode JPEGs: %s", reason);
  }
  return any;
}

static void count_threads(hs_batch *batch) {
  hs_batch_options *o = &batch->options;
  const int32_t cores = cpu_usable_threads();
  if (o->readers == 0) o->readers = batch->on_gpu ? cores : 1 + cores / BATCH_CORES_PER_READER;
  if (o->held == 0) o->held = o->readers;
  batch->counts[BATCH_READER] = o->readers;
  batch->counts[BATCH_FEEDER] = o->device_count;
  batch->thread_count = (size_t)o->readers + (size_t)o->device_count;
  size_t flying = 0;
  for (int32_t i = 0; i < o->device_count; i++) flying += (size_t)batch->feeders[i].most;
  /* lists: two for each result that the caller may hold (one held, one waiting), and one for each device, which is
     being filled */
  batch->list_count = 2 * (size_t)o->held + (size_t)o->device_count;
  /* slots: for each reader one image that is being read and one that is ready */
  batch->slot_count = 2 * (size_t)o->readers + flying + batch->list_count;
  /* all images may wait for the first one, and each needs a list */
  if (o->in_order) batch->list_count = batch->slot_count;
}

static bool make_tables(hs_batch *batch) {
  count_threads(batch);
  const size_t slots = batch->slot_count;
  batch->slots = clear_alloc(batch, slots, sizeof *batch->slots);
  batch->lists = clear_alloc(batch, batch->list_count, sizeof *batch->lists);
  batch->threads = clear_alloc(batch, batch->thread_count, sizeof *batch->threads);
  batch->waiting = clear_alloc(batch, slots, sizeof *batch->waiting);
  if (!batch->slots || !batch->lists || !batch->threads || !batch->waiting ||
      !bounded_queue_make(&batch->free_slots, slots) || !bounded_queue_make(&batch->ready, slots) ||
      !bounded_queue_make(&batch->free_lists, batch->list_count))
    return false;
  for (size_t i = 0; i < slots; i++) bounded_queue_push(&batch->free_slots, &batch->slots[i]);
  for (size_t i = 0; i < batch->list_count; i++) bounded_queue_push(&batch->free_lists, &batch->lists[i]);
  return true;
}

/* Copies the options of each device and sets their workload to throughput. */
static hs_status copy_devices(hs_batch *batch, char *message, size_t message_bytes) {
  hs_batch_options *o = &batch->options;
  const hs_options *const *devices = o->devices;
  if (!devices) o->device_count = 1;
  batch->feeders = clear_alloc(batch, (size_t)o->device_count, sizeof *batch->feeders);
  if (!batch->feeders) return HS_ERR_MEMORY;
  hs_status status = HS_OK;
  for (int32_t i = 0; i < o->device_count && status == HS_OK; i++) {
    batch_feeder *feeder = &batch->feeders[i];
    *feeder = (batch_feeder){.batch = batch, .device = i};
    if (!devices)
      status = hs_options_init(&feeder->options, HS_PROFILE_LOWE);
    else if (!devices[i])
      status = HS_ERR_ARGUMENT;
    else
      status = options_complete(&feeder->options, &feeder->expert, devices[i], message, message_bytes);
    feeder->options.workload = HS_WORKLOAD_THROUGHPUT;
  }
  return status;
}

static hs_status prepare(hs_batch *batch, char *message, size_t message_bytes) {
  if (!make_lock(batch)) return HS_ERR_MEMORY;
  hs_status status = copy_devices(batch, message, message_bytes);
  if (status == HS_OK) status = open_contexts(batch, message, message_bytes);
  if (status != HS_OK) return status;
  batch->load.keep_encoded = keeps_encoded(batch, message, message_bytes);
  if (!make_tables(batch) || !buffer_pool_make(&batch->pool, batch->options.allocator)) return HS_ERR_MEMORY;
  batch->pixels = buffer_pool_allocator(&batch->pool);
  batch->load.allocator = &batch->pixels;
  return HS_OK;
}

static hs_status check_options(const hs_batch_options *o, char *message, size_t message_bytes) {
  const struct {
    const char *name;
    int32_t value, least, most;
  } ranges[] = {
      {"device_count", o->device_count, o->devices ? 1 : 0, o->devices ? HS_BATCH_DEVICES_MAX : 0},
      {"readers", o->readers, 0, BATCH_THREADS_MAX},
      {"held", o->held, 0, BATCH_THREADS_MAX},
      {"in_order", o->in_order, 0, 1},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    if (ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most) continue;
    return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "options.%s is %d, expected %d..%d", ranges[i].name,
                           (int)ranges[i].value, (int)ranges[i].least, (int)ranges[i].most);
  }
  if (!o->allocator || (o->allocator->alloc && o->allocator->release)) return HS_OK;
  return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "options.allocator lacks alloc or release");
}

hs_status hs_batch_options_init_sized(hs_batch_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, batch_options_kind);
}

static hs_status adopt_options(const hs_batch_options *callers, hs_batch_options *mine, hs_load_options *load,
                               char *message, size_t message_bytes) {
  char reason[ADOPT_REASON_BYTES] = "";
  *mine = (hs_batch_options){.struct_size = sizeof *mine};
  hs_status status = callers ? options_adopt(mine, callers, batch_options_kind, reason) : HS_OK;
  if (status == HS_OK) status = load_options_take(mine->load, load, reason);
  hs_message_set(message, message_bytes, "%s", reason);
  return status == HS_OK ? check_options(mine, message, message_bytes) : status;
}

hs_status hs_batch_open(hs_batch **opened, const hs_batch_options *options, char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_batch_options mine;
  hs_load_options load;
  char unread[1];
  if (!message || message_bytes == 0) {
    message = unread;
    message_bytes = sizeof unread;
  }
  hs_message_set(message, message_bytes, "%s", "");
  if (opened) *opened = NULL;
  hs_status status = opened ? adopt_options(options, &mine, &load, message, message_bytes) : HS_ERR_ARGUMENT;
  hs_batch *batch = status == HS_OK ? hs_memory_alloc(mine.allocator, sizeof *batch) : NULL;
  if (batch) {
    *batch = (hs_batch){.options = mine, .load = load, .process = os_process_id()};
    batch->load.exif = NULL;
    batch->load.notes = NULL;
    batch->load.message = NULL;
    status = prepare(batch, message, message_bytes);
  } else if (status == HS_OK) {
    status = HS_ERR_MEMORY;
  }
  if (status == HS_OK) {
    *opened = batch;
    return HS_OK;
  }
  if (message[0] == '\0') hs_message_set(message, message_bytes, "%s", hs_status_string(status));
  hs_batch_destroy(batch);
  return status;
}

/* ---- adding */

static const char *copy_text(unsigned char **memory, const char *text) {
  char *copy = (char *)*memory;
  const size_t bytes = strlen(text) + 1;
  memcpy(copy, text, bytes);
  *memory += bytes;
  return copy;
}

/* Returns whether a batch takes the source. */
static bool is_source(const hs_source *s) {
  const void *const needed = s->kind == HS_SOURCE_FILE      ? (const void *)s->path
                             : s->kind == HS_SOURCE_ENCODED ? s->bytes
                             : s->kind == HS_SOURCE_PIXELS  ? s->image.data
                                                            : NULL;
  return needed && RESERVED_IS_CLEAR(s->reserved);
}

/* Copies a caller's image struct, but not its pixels and bytes. False: out of memory. */
static bool copy_input(hs_batch *batch, const hs_batch_image *image, batch_input *input) {
  const hs_source *source = &image->source;
  const char *path = source->kind == HS_SOURCE_FILE ? source->path : NULL, *name = image->name ? image->name : "";
  const size_t views = source->mask ? sizeof *source->mask : 0,
               texts = (path ? strlen(path) + 1 : 0) + strlen(name) + 1;
  unsigned char *memory = buffer_pool_plain_alloc(&batch->pool, views + texts);
  *input = (batch_input){.block = memory, .source = *source, .user = image->user};
  if (!memory) return false;
  input->source.load = NULL;
  input->source.image.memory = NULL; /* the memory still belongs to the caller */
  if (source->mask) {
    hs_image *mask = memcpy(memory, source->mask, sizeof *mask);
    mask->memory = NULL;
    input->source.mask = mask;
    memory += sizeof *mask;
  }
  if (path) input->source.path = copy_text(&memory, path);
  input->name = path && !image->name ? input->source.path : copy_text(&memory, name);
  return true;
}

/* Appends an input to the ring. The caller holds the lock. */
static bool append_input(hs_batch *batch, const batch_input *input) {
  if (batch->input_count == batch->input_capacity) {
    const size_t capacity = batch->input_capacity == 0 ? 64 : 2 * batch->input_capacity;
    size_t bytes = 0;
    batch_input *inputs =
        hs_size_mul(capacity, sizeof *inputs, &bytes) ? buffer_pool_plain_alloc(&batch->pool, bytes) : NULL;
    if (!inputs) return false;
    for (size_t i = 0; i < batch->input_count; i++)
      inputs[i] = batch->inputs[(batch->input_first + i) % batch->input_capacity];
    buffer_pool_plain_release(&batch->pool, batch->inputs);
    batch->inputs = inputs;
    batch->input_capacity = capacity;
    batch->input_first = 0;
  }
  batch->inputs[(batch->input_first + batch->input_count) % batch->input_capacity] = *input;
  batch->input_count++;
  batch->added++;
  pthread_cond_signal(&batch->arrived);
  return true;
}

/* Returns why no image may be added now, or HS_OK. The caller holds the lock. */
static hs_status adding_status(const hs_batch *batch) {
  return batch->stopped ? HS_ERR_CANCELLED : batch->no_more ? HS_ERR_ARGUMENT : HS_OK;
}

/* Starts the threads before the first image is added. If that fails, no thread reads memory that the caller may
   free. */
static hs_status start_once(hs_batch *batch) {
  pthread_mutex_lock(&batch->lock);
  const hs_status status = adding_status(batch);
  const bool must_start = status == HS_OK && !batch->is_started;
  if (must_start) {
    memcpy(batch->running, batch->counts, sizeof batch->running);
    batch->started_s = clock_s(CLOCK_MONOTONIC);
    batch->is_started = true;
  }
  pthread_mutex_unlock(&batch->lock);
  return must_start ? start_threads(batch) : status;
}

hs_status hs_batch_add(hs_batch *batch, const hs_batch_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  batch_input input;
  if (!batch || !image || !is_source(&image->source) || !RESERVED_IS_CLEAR(image->reserved) ||
      batch->process != os_process_id())
    return HS_ERR_ARGUMENT;
  if (!copy_input(batch, image, &input)) return HS_ERR_MEMORY;
  hs_status status = start_once(batch);
  if (status == HS_OK) {
    pthread_mutex_lock(&batch->lock);
    status = adding_status(batch);
    if (status == HS_OK && !append_input(batch, &input)) status = HS_ERR_MEMORY;
    pthread_mutex_unlock(&batch->lock);
  }
  if (status != HS_OK) buffer_pool_plain_release(&batch->pool, input.block);
  return status;
}

hs_status hs_batch_end(hs_batch *batch) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  pthread_mutex_lock(&batch->lock);
  batch->no_more = true;
  pthread_cond_broadcast(&batch->arrived);
  pthread_cond_broadcast(&batch->finished);
  pthread_mutex_unlock(&batch->lock);
  return HS_OK;
}

void hs_batch_stop(hs_batch *batch) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || batch->process != os_process_id()) return;
  stop(batch);
  pthread_mutex_lock(&batch->lock);
  pthread_cond_broadcast(&batch->finished);
  pthread_mutex_unlock(&batch->lock);
}

/* ---- results */

/* Returns the next finished slot; null: none. The caller holds the lock. */
static batch_slot *take_finished(hs_batch *batch) {
  const size_t position = batch->options.in_order ? batch->given : batch->finished_first;
  batch_slot **next = &batch->waiting[position % batch->slot_count];
  batch_slot *slot = batch->finished_count > 0 ? *next : NULL;
  if (!slot) return NULL;
  *next = NULL;
  batch->finished_first++;
  batch->finished_count--;
  batch->given++;
  batch->unreleased++;
  slot->is_returned = true;
  slot->is_held = slot->features != NULL;
  batch->held += slot->is_held;
  return slot;
}

/* True if no further slot will finish. The caller holds the lock. */
static bool threads_ended(const hs_batch *batch) {
  if (!batch->is_started) return batch->no_more || batch->stopped;
  return batch->running[BATCH_READER] == 0 && batch->running[BATCH_FEEDER] == 0;
}

/* True if the user must release results before the next one is returned. The caller holds the lock. */
static bool holds_all(const hs_batch *batch) {
  return batch->held >= (size_t)batch->options.held || batch->unreleased == batch->slot_count;
}

hs_status hs_batch_next(hs_batch *batch, int32_t wait_ms, const hs_batch_result **result) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (result) *result = NULL;
  if (!batch || !result || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  const struct timespec until = os_deadline(wait_ms);
  int error = 0;
  pthread_mutex_lock(&batch->lock);
  bool is_full = holds_all(batch);
  batch_slot *slot = is_full ? NULL : take_finished(batch);
  while (!slot && !is_full && !threads_ended(batch) && error == 0) {
    if (wait_ms < 0)
      error = pthread_cond_wait(&batch->finished, &batch->lock);
    else
      error = os_condition_wait(&batch->finished, &batch->lock, &until);
    is_full = holds_all(batch); /* other threads of the caller took results meanwhile */
    slot = is_full ? NULL : take_finished(batch);
  }
  pthread_mutex_unlock(&batch->lock);
  if (slot) *result = &slot->result;
  return is_full ? HS_ERR_CAPACITY : HS_OK;
}

/* Returns the slot of a result that the user holds, of which the result is the first field; null: the result is not
   held. */
static batch_slot *slot_of(hs_batch *batch, const hs_batch_result *result) {
  _Static_assert(offsetof(batch_slot, result) == 0, "a slot begins with its result");
  const uintptr_t first = (uintptr_t)batch->slots, at = (uintptr_t)result;
  if (at < first || (at - first) % sizeof(batch_slot) != 0 || (at - first) / sizeof(batch_slot) >= batch->slot_count)
    return NULL;
  batch_slot *slot = &batch->slots[(at - first) / sizeof(batch_slot)];
  pthread_mutex_lock(&batch->lock);
  const bool is_returned = slot->is_returned;
  pthread_mutex_unlock(&batch->lock);
  return is_returned ? slot : NULL;
}

/* Takes the slot's features back from the caller. is_end: the result is released too. */
static void return_list(hs_batch *batch, batch_slot *slot, bool is_end) {
  hs_features *list = slot->features;
  slot->features = NULL;
  slot->result.features = NULL;
  pthread_mutex_lock(&batch->lock);
  batch->held -= slot->is_held;
  batch->unreleased -= is_end;
  slot->is_held = false;
  slot->is_returned = !is_end;
  /* the thread that was woken for a result may not have been allowed to take it */
  if (batch->finished_count > 0) pthread_cond_signal(&batch->finished);
  pthread_mutex_unlock(&batch->lock);
  if (list) bounded_queue_push(&batch->free_lists, list);
}

hs_status hs_batch_take_features(hs_batch *batch, const hs_batch_result *result, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || !result || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  batch_slot *slot = slot_of(batch, result);
  if (!slot || (features && !slot->features)) return HS_ERR_ARGUMENT;
  if (features) {
    hs_features_free(features);
    *features = *slot->features;
    *slot->features = (hs_features){0};
  }
  return_list(batch, slot, false);
  return HS_OK;
}

hs_status hs_batch_release(hs_batch *batch, const hs_batch_result *result) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  batch_slot *slot = result ? slot_of(batch, result) : NULL;
  if (!slot) return result ? HS_ERR_ARGUMENT : HS_OK;
  return_list(batch, slot, true);
  batch_recycle(batch, slot);
  return HS_OK;
}

/* ---- facts */

/* Copies values to a user's struct, whose struct_size is set. */
static hs_status give_facts(void *callers, size_t struct_size, const void *facts, options_kind kind) {
  return struct_size < kind.least ? HS_ERR_OPTION : options_give(callers, struct_size, facts, kind);
}

hs_status hs_batch_get_progress(hs_batch *batch, hs_batch_progress *progress) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || !progress || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  pthread_mutex_lock(&batch->lock);
  const bool is_next_missing =
      batch->finished_count == 0 || (batch->options.in_order && !batch->waiting[batch->given % batch->slot_count]);
  const hs_batch_progress now = {.struct_size = sizeof now,
                                 .added = batch->added,
                                 .begun = batch->begun,
                                 .given = batch->given,
                                 .capacity = batch->slot_count,
                                 .readers = batch->options.readers,
                                 .held = batch->options.held,
                                 .ended = threads_ended(batch) && is_next_missing};
  pthread_mutex_unlock(&batch->lock);
  return give_facts(progress, progress->struct_size, &now, progress_kind);
}

/* Returns the share of the threads' lifetime that was not spent waiting for work. */
static double busy_share(double waited_s, double lived_s) { return lived_s > 0 ? 1 - waited_s / lived_s : 0; }

/* Returns the first device's reason for falling back to the CPU; null: no device fell back. Only after the threads have
   ended, because a feeder may replace its context before. */
static const char *fallback_of(const hs_batch *batch) {
  const char *reason = NULL;
  for (int32_t i = 0; i < batch->options.device_count && !reason && threads_ended(batch); i++) {
    const hs_context *context = batch->feeders[i].context;
    if (context && context->engine->offloads && context->no_device[0] != '\0') reason = context->no_device;
  }
  return reason;
}

hs_status hs_batch_get_statistics(hs_batch *batch, hs_batch_statistics *statistics) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || !statistics || batch->process != os_process_id()) return HS_ERR_ARGUMENT;
  const buffer_pool_numbers pool = buffer_pool_counts(&batch->pool);
  pthread_mutex_lock(&batch->lock);
  const hs_batch_statistics now = {.struct_size = sizeof now,
                                   .read_cpu_s = batch->cpu_s[BATCH_READER],
                                   .read_busy = busy_share(batch->waited_s[BATCH_READER], batch->lived_s[BATCH_READER]),
                                   .pixel_bytes = pool.most_bytes,
                                   .pixel_buffers = pool.made_count,
                                   .fallback = fallback_of(batch)};
  pthread_mutex_unlock(&batch->lock);
  return give_facts(statistics, statistics->struct_size, &now, statistics_kind);
}

double hs_batch_device_busy(hs_batch *batch, int32_t device) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || device < 0 || device >= batch->options.device_count || batch->process != os_process_id()) return 0;
  pthread_mutex_lock(&batch->lock);
  const batch_feeder *feeder = &batch->feeders[device];
  const double busy = busy_share(feeder->waited_s, feeder->lived_s);
  pthread_mutex_unlock(&batch->lock);
  return busy;
}

const char *hs_batch_backend_report(const hs_batch *batch, int32_t device) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || device < 0 || device >= batch->options.device_count) return "";
  return hs_backend_report(batch->feeders[device].context);
}

/* ---- the end */

/* Frees everything that is left after all threads have ended. */
static void free_contents(hs_batch *batch) {
  for (size_t i = 0; batch->slots && i < batch->slot_count; i++) {
    batch_drop_pixels(&batch->slots[i]);
    if (batch->pool.made) buffer_pool_plain_release(&batch->pool, batch->slots[i].input.block);
  }
  for (size_t i = 0; i < batch->input_count; i++)
    buffer_pool_plain_release(&batch->pool, batch->inputs[(batch->input_first + i) % batch->input_capacity].block);
  if (batch->inputs) buffer_pool_plain_release(&batch->pool, batch->inputs);
  for (size_t i = 0; batch->lists && i < batch->list_count; i++) hs_features_free(&batch->lists[i]);
  for (int32_t i = 0; batch->feeders && i < batch->options.device_count; i++) hs_destroy(batch->feeders[i].context);
  bounded_queue_free(&batch->free_slots);
  bounded_queue_free(&batch->ready);
  bounded_queue_free(&batch->free_lists);
  buffer_pool_free(&batch->pool);
}

void hs_batch_destroy(hs_batch *batch) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!batch || batch->process != os_process_id()) return;
  const hs_allocator *allocator = batch->options.allocator;
  if (batch->has_lock) stop(batch);
  /* wakes threads that wait for results which the user has not released */
  if (batch->free_slots.items) bounded_queue_close(&batch->free_slots);
  if (batch->free_lists.items) bounded_queue_close(&batch->free_lists);
  for (size_t i = 0; batch->threads && i < batch->thread_count; i++)
    if (batch->threads[i].started) pthread_join(batch->threads[i].handle, NULL);
  free_contents(batch);
  if (batch->has_lock) {
    pthread_cond_destroy(&batch->finished);
    pthread_cond_destroy(&batch->arrived);
    pthread_mutex_destroy(&batch->lock);
  }
  hs_memory_release(allocator, batch->slots);
  hs_memory_release(allocator, batch->lists);
  hs_memory_release(allocator, batch->threads);
  hs_memory_release(allocator, batch->waiting);
  hs_memory_release(allocator, batch->feeders);
  hs_memory_release(allocator, batch);
}
