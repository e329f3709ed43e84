/* Images in flight: a ring of slots between the caller and the workers. */

#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/frame/in_flight.h"

enum {
  IN_FLIGHT_DEFAULT = 8,
  IN_FLIGHT_FILES = 64,      /* for files on a GPU: a core needs longer to read a file than the GPU for its frame */
  IN_FLIGHT_THROUGHPUT = 48, /* with HS_WORKLOAD_THROUGHPUT on a GPU: enough for its workers and their next images */
  /* The ring of HS_WORKLOAD_THROUGHPUT has more slots than images may be in flight, so that small images may overtake
     an earlier large one. */
  THROUGHPUT_RING = 128
};

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* Releases the results of an image. The caller holds the lock. */
static void give_back(in_flight_ring *f, uint64_t image) {
  in_flight_slot *s = ring_slot(f, image);
  if (!f->on_device) return;
  if (--f->workers[s->worker].held[s->set] == 0) pthread_cond_broadcast(&f->work);
}

static bool open_lock(in_flight_ring *f) {
  pthread_cond_t *conditions[] = {&f->work, &f->done, &f->unread};
  const size_t wanted = sizeof conditions / sizeof *conditions;
  size_t made = 0;
  if (pthread_mutex_init(&f->lock, NULL) != 0) return false;
  while (made < wanted && pthread_cond_init(conditions[made], NULL) == 0) made++;
  if (made == wanted) return true;
  while (made > 0) pthread_cond_destroy(conditions[--made]);
  pthread_mutex_destroy(&f->lock);
  return false;
}

/* Starts `workers` workers, with signals blocked (os_signals_block). */
static hs_status start_workers(in_flight_ring *f, hs_context *owner, int32_t workers) {
  os_signal_mask saved;
  hs_status st = HS_OK;
  if (!os_signals_block(&saved)) return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot block signals for the workers");
  for (int32_t i = 0; i < workers && st == HS_OK; i++) {
    in_flight_worker *worker = &f->workers[i];
    worker->ring = f;
    st = backend_clone(owner, in_flight_worker_threads(f, i), &worker->context);
    if (st != HS_OK) break;
    backend_statistics(worker->context, &worker->statistics);
    pthread_mutex_lock(&f->lock);
    const bool started = os_thread_start(&worker->thread, in_flight_worker_main, worker);
    f->worker_count += started;
    pthread_mutex_unlock(&f->lock);
    if (started) continue;
    backend_release(worker->context);
    st = CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot start a thread for image %d in flight", i + 1);
  }
  os_signals_restore(&saved);
  return st;
}

static bool has_worker(in_flight_ring *f, int32_t worker) {
  pthread_mutex_lock(&f->lock);
  const bool runs = worker < f->worker_count;
  pthread_mutex_unlock(&f->lock);
  return runs;
}

/* Ends the workers. Once `ending` is set, no worker starts another one, so after worker i is joined, has_worker(i + 1)
   no longer changes. */
static void stop_workers(in_flight_ring *f) {
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  pthread_cond_broadcast(&f->work);
  pthread_cond_broadcast(&f->unread);
  pthread_mutex_unlock(&f->lock);
  for (int32_t i = 0; i < f->reader_count; i++) pthread_join(f->readers[i], NULL);
  for (int32_t i = 0; has_worker(f, i); i++) {
    pthread_join(f->workers[i].thread, NULL);
    backend_release(f->workers[i].context);
  }
  for (int32_t i = 0; i < f->slot_count; i++) {
    hs_features_free(f->on_device ? &f->slots[i].own : &f->slots[i].features);
    picture_free(&f->slots[i].picture);
  }
  pthread_cond_destroy(&f->unread);
  pthread_cond_destroy(&f->done);
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->lock);
}

void in_flight_end(hs_context *c) {
  if (!c->in_flight) return;
  /* A forked child has no workers. The state of the parent's workers is incomplete at the moment of the fork, so their
     memory is not freed until the process ends. */
  if (c->process == os_process_id()) stop_workers(c->in_flight);
  hs_memory_release(c->options.allocator, c->in_flight);
  c->in_flight = NULL;
}

int32_t in_flight_max(const hs_context *c, bool for_files) {
  if (c->options.in_flight > 0) return c->options.in_flight;
  if (!c->engine->offloads) return IN_FLIGHT_DEFAULT;
  if (context_for_throughput(c)) return IN_FLIGHT_THROUGHPUT;
  return for_files ? IN_FLIGHT_FILES : IN_FLIGHT_DEFAULT;
}

static hs_status start(hs_context *owner, bool for_files) {
  const int32_t in_flight = in_flight_max(owner, for_files), threads = context_threads(owner);
  const bool throughput = context_for_throughput(owner);
  const int32_t gpu_workers = throughput ? GPU_WORKERS_THROUGHPUT : GPU_WORKERS;
  const int32_t workers = least(in_flight, owner->engine->offloads ? gpu_workers : least(threads, CPU_WORKERS));
  const int32_t slots = throughput && in_flight < THROUGHPUT_RING ? THROUGHPUT_RING : in_flight;
  /* one slot more than images in flight, because the caller may be reading its results */
  const size_t bytes = sizeof(in_flight_ring) + sizeof(in_flight_slot) * ((size_t)slots + 1);
  in_flight_ring *f = hs_memory_alloc(owner->options.allocator, bytes);
  if (!f) return CONTEXT_FAIL(owner, HS_ERR_MEMORY, "cannot allocate %zu bytes for images in flight", bytes);
  memset(f, 0, bytes);
  f->slot_count = slots + 1;
  f->worker_max = workers;
  f->threads = threads;
  f->on_device = owner->engine->offloads;
  f->any_order = throughput;
  f->most = in_flight;
  if (!open_lock(f)) {
    hs_memory_release(owner->options.allocator, f);
    return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot make a lock for images in flight");
  }
  const hs_status st = start_workers(f, owner, f->on_device ? 1 : workers);
  owner->in_flight = f;
  if (st == HS_OK) return HS_OK;
  in_flight_end(owner);
  return st;
}

void in_flight_add_statistics(in_flight_ring *f, hs_statistics *sum) {
  if (!f) return;
  pthread_mutex_lock(&f->lock);
  for (int32_t i = 0; i < f->worker_count; i++) {
    const hs_statistics *s = &f->workers[i].statistics;
    if (s->frames > 0) {
      sum->way = s->way;
      sum->way_reason = s->way_reason;
    }
    sum->frames += s->frames;
    sum->regrown_frames += s->regrown_frames;
    sum->workspace_bytes += s->workspace_bytes;
    sum->device_bytes += s->device_bytes;
  }
  pthread_mutex_unlock(&f->lock);
}

/* Returns how many workers may have an image of this size on the device at once. The number is computed only if the
   size changes. */
static int32_t workers_for(hs_context *c, const hs_image *image) {
  in_flight_ring *f = c->in_flight;
  if (!f->on_device) return CPU_WORKERS;
  if (f->sized_width != image->width || f->sized_height != image->height) {
    f->sized_workers = in_flight_workers_for(c, image->width, image->height);
    f->sized_width = image->width;
    f->sized_height = image->height;
    context_clear_error(c);
  }
  return f->sized_workers;
}

/* Frees slots whose images were taken out of order, once they are the oldest. Waits while the caller may be reading the
   slot before them. */
static void skip_taken(in_flight_ring *f) {
  while (!f->viewed && f->oldest != f->end && ring_slot(f, f->oldest)->taken) f->oldest++;
}

/* Returns the slot of the next image, cleared except for its lists; null: all are in use. The caller holds the lock. */
static in_flight_slot *open_slot(hs_context *c) {
  in_flight_ring *f = c->in_flight;
  skip_taken(f);
  if (f->waited_for >= f->most || f->end - f->oldest + 1 >= (uint64_t)f->slot_count) {
    (void)CONTEXT_FAIL(c, HS_ERR_CAPACITY, "%d images are in flight: wait for one", (int)f->waited_for);
    return NULL;
  }
  in_flight_slot *s = ring_slot(f, f->end);
  s->from_source = s->unreadable = false;
  s->done = s->taken = s->fell_back = s->is_own = false;
  return s;
}

/* Submits a filled slot. The caller holds the lock. */
static void submit_slot(in_flight_ring *f, const in_flight_slot *s) {
  f->end++;
  f->waited_for++;
  if (s->state == SLOT_READY)
    in_flight_wake_workers(f);
  else
    pthread_cond_signal(&f->unread);
}

static hs_status submit_picture(hs_context *c, const hs_source *source) {
  const hs_image *image = &source->image;
  position_filter filter;
  hs_status st = picture_check(c, source);
  if (st == HS_OK) st = image_view_filter(c, image, source->mask, &filter);
  if (st == HS_OK && source->kind == HS_SOURCE_JPEG) (void)decoder_check_ready(c);
  if (st == HS_OK && !c->in_flight) st = start(c, false);
  if (st != HS_OK) return st;
  in_flight_ring *f = c->in_flight;
  const int32_t worker_limit = workers_for(c, image), group_max = in_flight_group_max(f, c, image, worker_limit);
  pthread_mutex_lock(&f->lock);
  in_flight_slot *s = open_slot(c);
  if (s) {
    s->picture = picture_view(source);
    s->state = SLOT_READY;
    s->worker_limit = worker_limit;
    s->group_max = source->mask ? 1 : group_max;
    submit_slot(f, s);
  }
  pthread_mutex_unlock(&f->lock);
  return s ? HS_OK : HS_ERR_CAPACITY;
}

hs_status hs_submit(hs_context *c, const hs_image *image, const hs_image *mask) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image is null");
  hs_source source = hs_source_pixels(image);
  source.mask = mask;
  return submit_picture(c, &source);
}

/* Submits a source that the library reads. */
static hs_status submit_opened(hs_context *c, const opened_source *opened) {
  hs_status st = c->in_flight ? HS_OK : start(c, true);
  if (st != HS_OK) return st;
  in_flight_ring *f = c->in_flight;
  if (f->on_device) st = in_flight_start_readers(f, c);
  if (st != HS_OK) return st;
  pthread_mutex_lock(&f->lock);
  in_flight_slot *s = open_slot(c);
  if (s) {
    s->from_source = true;
    s->opened = *opened;
    s->state = f->on_device ? SLOT_UNREAD : SLOT_READY;
    s->worker_limit = f->on_device ? 0 : CPU_WORKERS;
    s->group_max = f->on_device ? 0 : 1;
    submit_slot(f, s);
  }
  pthread_mutex_unlock(&f->lock);
  return s ? HS_OK : HS_ERR_CAPACITY;
}

hs_status hs_submit_source(hs_context *c, const hs_source *source) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!source) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "source is null");
  opened_source opened;
  hs_status st = source_check(c, source);
  if (st != HS_OK) return st;
  if (source_is_picture(source)) return submit_picture(c, source);
  if (source->kind == HS_SOURCE_ROWS)
    return CONTEXT_FAIL(c, HS_ERR_UNSUPPORTED,
                        "source.kind is rows, which hs_extract_source takes: submit pixels, a file or its bytes");
  st = source_open(c, source, &opened);
  return st == HS_OK ? submit_opened(c, &opened) : st;
}

hs_status hs_submit_file(hs_context *context, const char *path, const hs_load_options *load, const hs_image *mask) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_source source = hs_source_file(path);
  source.load = load;
  source.mask = mask;
  return hs_submit_source(context, &source);
}

hs_status hs_submit_encoded(hs_context *context, const void *bytes, size_t size, const hs_load_options *load,
                            const hs_image *mask) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_source source = hs_source_encoded(bytes, size);
  source.load = load;
  source.mask = mask;
  return hs_submit_source(context, &source);
}

/* Finds the first image that is done and not taken. The caller holds the lock. */
static bool find_done(in_flight_ring *f, uint64_t *image) {
  for (*image = f->oldest; *image != f->end; ++*image)
    if (ring_slot(f, *image)->done && !ring_slot(f, *image)->taken) return true;
  return false;
}

/* Waits for the oldest image, or for any image. Its slot stays occupied until the next call, because the caller may be
   reading it. */
static hs_status wait_one(hs_context *c, bool any, uint64_t *image) {
  in_flight_ring *f = c->in_flight;
  if (!f) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "no image is in flight");
  pthread_mutex_lock(&f->lock);
  if (f->viewed) give_back(f, f->oldest - 1);
  f->viewed = false;
  skip_taken(f);
  const bool there = f->oldest != f->end;
  *image = f->oldest;
  while (there && !(any ? find_done(f, image) : ring_slot(f, *image)->done)) pthread_cond_wait(&f->done, &f->lock);
  if (there) ring_slot(f, *image)->taken = true;
  f->waited_for -= there;
  f->viewed = there && !any;
  if (f->viewed)
    f->oldest++; /* the image's slot is then the slot before the oldest */
  else
    skip_taken(f);
  if (there && any && ring_slot(f, *image)->status != HS_OK) give_back(f, *image);
  pthread_mutex_unlock(&f->lock);
  if (!there) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "no image is in flight");
  const in_flight_slot *s = ring_slot(f, *image);
  f->waited = *image;
  if (s->status != HS_OK) {
    hs_message_set(c->error, sizeof c->error, "%s", s->error);
    hs_message_set(c->error_location, sizeof c->error_location, "%s", s->location);
  }
  if (s->fell_back) backend_note_fallback(c, s->error);
  return s->status;
}

/* Waits for the oldest image. Refused with HS_WORKLOAD_THROUGHPUT: images that overtake others occupy the workers'
   memory for results, so that the oldest image might never get any. */
static hs_status wait_oldest(hs_context *c, uint64_t *image) {
  if (context_for_throughput(c))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "options.workload is HS_WORKLOAD_THROUGHPUT: expected hs_wait_any");
  return wait_one(c, false, image);
}

hs_status hs_wait_view(hs_context *c, const hs_features **features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "features is null");
  *features = NULL;
  uint64_t image;
  const hs_status st = wait_oldest(c, &image);
  if (st == HS_OK) *features = &ring_slot(c->in_flight, image)->features;
  return st;
}

/* Moves a result to the caller's list. On the CPU, a result that was not viewed before takes its memory with it,
   because there may be many more slots than images in flight. */
static hs_status hand_over(hs_context *c, uint64_t image, hs_features *features) {
  in_flight_ring *f = c->in_flight;
  in_flight_slot *slot = ring_slot(f, image);
  hs_status st = HS_OK;
  if (!f->on_device && !f->viewed) {
    hs_features_free(features);
    *features = slot->features;
    memset(&slot->features, 0, sizeof slot->features);
  } else if (f->on_device && !slot->is_own) {
    st = c->engine->give(f->workers[slot->worker].context, slot->set, &slot->features, features);
  } else {
    st = features_copy(features, &slot->features, c->options.allocator);
  }
  pthread_mutex_lock(&f->lock);
  if (st == HS_OK || !f->viewed) give_back(f, image);
  if (st == HS_OK) f->viewed = false;
  pthread_mutex_unlock(&f->lock);
  return st == HS_OK ? st : CONTEXT_FAIL(c, st, "out of memory for %zu features", slot->features.count);
}

hs_status hs_wait(hs_context *c, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "features is null");
  uint64_t image;
  const hs_status st = wait_oldest(c, &image);
  return st == HS_OK ? hand_over(c, image, features) : st;
}

hs_status hs_wait_any(hs_context *c, hs_features *features, uint64_t *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (image) *image = UINT64_MAX;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!features || !image) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "%s is null", features ? "image" : "features");
  if (hs_count_in_flight(c) == 0) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "no image is in flight");
  const hs_status st = wait_one(c, true, image);
  return st == HS_OK ? hand_over(c, *image, features) : st;
}

int32_t hs_count_in_flight(const hs_context *c) {
  if (!c || !c->in_flight) return 0;
  in_flight_ring *f = c->in_flight;
  pthread_mutex_lock(&f->lock);
  const int32_t count = f->waited_for;
  pthread_mutex_unlock(&f->lock);
  return count;
}

hs_frame_way in_flight_way(const hs_context *c, const char **reason) {
  *reason = c->in_flight ? ring_slot(c->in_flight, c->in_flight->waited)->way_reason : NULL;
  return c->in_flight ? ring_slot(c->in_flight, c->in_flight->waited)->way : HS_WAY_NONE;
}
