/* The workers of images in flight: each takes images out of the ring, one or a group of small ones, and runs them in
   its context. */
#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/features.h"
#include "pipeline/context/engine.h"
#include "pipeline/frame/extract.h"
#include "pipeline/frame/in_flight.h"

static void keep_error(in_flight_slot *s, const hs_context *worker) {
  hs_message_set(s->error, sizeof s->error, "%s", worker->error);
  hs_message_set(s->location, sizeof s->location, "%s", worker->error_location);
}

static void keep_way(in_flight_slot *s, const hs_context *worker) {
  s->way = worker->statistics.way;
  s->way_reason = worker->statistics.way_reason;
}

/* Returns a set of the worker's results that may be written, -1: none. */
static int32_t free_set(const in_flight_worker *worker) {
  for (int32_t i = 0; i < RESULT_SETS; i++)
    if (worker->held[i] == 0) return i;
  return -1;
}

/* Runs an image on the CPU because it does not fit the device. */
static void fall_back(in_flight_worker *worker, in_flight_slot *s) {
  hs_context *c = worker->context;
  keep_error(s, c);
  s->status = extract_picture(c, &s->picture, true, &s->own);
  keep_way(s, c);
  s->features = s->own;
  s->fell_back = s->is_own = s->status == HS_OK;
  if (s->status != HS_OK) keep_error(s, c);
}

/* Moves the features of a frame in tiles, which are in lists of the worker's context, to the slot. */
static void keep_own(hs_context *c, in_flight_slot *s) {
  hs_features_free(&s->own);
  s->own = c->view;
  memset(&c->view, 0, sizeof c->view);
  s->is_own = true;
}

/* Runs one image in the worker's context, without the lock. */
static void run_image(in_flight_worker *worker, in_flight_slot *s) {
  hs_context *c = worker->context;
  if (s->from_source && !worker->ring->on_device) in_flight_read_slot(s);
  if (s->unreadable) return;
  if (worker->ring->on_device) {
    const hs_features *view = NULL;
    s->status = extract_picture_view(c, &s->picture, &view);
    s->features = s->status == HS_OK ? *view : (hs_features){0};
    if (s->status == HS_OK && view == &c->view) keep_own(c, s);
    if (backend_falls_back(c, s->status)) {
      fall_back(worker, s);
      return;
    }
  } else {
    s->status = extract_picture(c, &s->picture, false, &s->features);
  }
  keep_way(s, c);
  if (s->status != HS_OK) keep_error(s, c);
}

/* Runs one image. If a file that stayed encoded proves damaged, it is read again and decoded on the host, which gives
   the reason. */
static void run_slot(in_flight_worker *worker, in_flight_slot *s) {
  run_image(worker, s);
  if (!s->from_source || s->unreadable || !picture_wants_pixels(&s->picture, s->status)) return;
  picture_free(&s->picture);
  s->opened.keep_encoded = false;
  in_flight_read_slot(s);
  run_image(worker, s);
}

/* Runs images one after another, each with its own list, because a worker's results hold only one frame. */
static void run_apart(in_flight_worker *worker, uint64_t first, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    in_flight_slot *s = ring_slot(worker->ring, first + (uint64_t)i);
    run_slot(worker, s);
    if (s->status != HS_OK || s->is_own) continue;
    s->status = features_copy(&s->own, &s->features, worker->context->options.allocator);
    s->features = s->own;
    s->is_own = true;
    if (s->status == HS_OK) continue;
    (void)CONTEXT_FAIL(worker->context, s->status, "out of memory for %zu features", s->features.count);
    keep_error(s, worker->context);
  }
}

/* Runs a group. Its images share one device and one allocation, so all fail or fall back to the CPU together. Files
   that stayed encoded are an exception, because one of them may be damaged. */
static void run_group(in_flight_worker *worker, uint64_t first, int32_t count) {
  in_flight_ring *f = worker->ring;
  const hs_source *pictures[FRAME_GROUP_MAX] = {NULL};
  hs_features views[FRAME_GROUP_MAX];
  for (int32_t i = 0; i < count; i++) pictures[i] = &ring_slot(f, first + (uint64_t)i)->picture.source;
  const hs_status st = small_images_run(worker->context, pictures, count, views);
  if (picture_wants_pixels(&ring_slot(f, first)->picture, st)) {
    run_apart(worker, first, count);
    return;
  }
  for (int32_t i = 0; i < count; i++) {
    in_flight_slot *s = ring_slot(f, first + (uint64_t)i);
    s->status = st;
    keep_way(s, worker->context);
    if (st == HS_OK) s->features = views[i];
    if (backend_falls_back(worker->context, st))
      fall_back(worker, s);
    else if (st != HS_OK)
      keep_error(s, worker->context);
  }
}

/* Converts a file's features to the original image and frees its pixels. */
static void end_file(in_flight_slot *s) {
  if (s->from_source && s->status == HS_OK) picture_to_original(&s->picture, &s->features);
  picture_free(&s->picture);
}

static void run_images(in_flight_worker *worker, uint64_t first, int32_t count, int32_t set) {
  if (worker->ring->on_device) worker->context->engine->use_results(worker->context, set);
  if (count > 1)
    run_group(worker, first, count);
  else
    run_slot(worker, ring_slot(worker->ring, first));
  for (int32_t i = 0; i < count; i++) end_file(ring_slot(worker->ring, first + (uint64_t)i));
}

int32_t in_flight_group_max(const in_flight_ring *f, const hs_context *c, const hs_image *image, int32_t worker_limit) {
  const int32_t fitting = worker_limit / f->worker_max, most = fitting > 1 ? fitting : 1;
  const int32_t alike = small_images_max(c, image);
  return alike < most ? alike : most;
}

int32_t in_flight_workers_for(hs_context *c, int32_t width, int32_t height) {
  enum { LARGE_PIXELS = 1 << 22 };
  const int32_t workers = c->engine->frames_in_memory(c, width, height);
  return (int64_t)width * height > LARGE_PIXELS && workers > GPU_WORKERS ? GPU_WORKERS : workers;
}

/* Sets the limits of a file that depend on its size, which was unknown at submission. The caller holds the lock. */
static void size_file(const in_flight_worker *worker, in_flight_slot *s) {
  const in_flight_ring *f = worker->ring;
  if (s->worker_limit > 0) return;
  const hs_image *image = &s->picture.source.image;
  s->worker_limit = s->unreadable ? f->worker_max : in_flight_workers_for(worker->context, image->width, image->height);
  s->group_max =
      s->unreadable || s->picture.is_masked ? 1 : in_flight_group_max(f, worker->context, image, s->worker_limit);
  context_clear_error(worker->context);
}

/* Returns the image that workers take next; f->end: none is ready. If results are taken in order, this is the first
   waiting image, because results of overtaking images could fill all memory for results. The caller holds the lock. */
static uint64_t first_ready(in_flight_ring *f) {
  uint64_t image = f->next;
  while (f->any_order && image != f->end && ring_slot(f, image)->state != SLOT_READY) image++;
  return image != f->end && ring_slot(f, image)->state == SLOT_READY ? image : f->end;
}

/* Returns whether an image is ready that this worker may take, and sets *image. The caller holds the lock. */
static bool may_take(in_flight_worker *worker, uint64_t *image) {
  in_flight_ring *f = worker->ring;
  *image = first_ready(f);
  if (*image == f->end) return false;
  size_file(worker, ring_slot(f, *image));
  return worker - f->workers < ring_slot(f, *image)->worker_limit && free_set(worker) >= 0;
}

/* Returns how many of the waiting images the worker takes as one group: images alike, up to group_max, but at most its
   share, so that other workers get work too. The number is a power of two, so that few graphs suffice. The caller holds
   the lock. */
static int32_t group_to_take(const in_flight_worker *worker, uint64_t image) {
  in_flight_ring *f = worker->ring;
  const in_flight_slot *first = ring_slot(f, image);
  const uint64_t waiting = f->end - image, share = (waiting + (uint64_t)f->worker_max - 1) / (uint64_t)f->worker_max;
  int32_t alike = 1, count = 1;
  while ((uint64_t)alike < share && alike < first->group_max) {
    in_flight_slot *s = ring_slot(f, image + (uint64_t)alike);
    if (s->state != SLOT_READY) break;
    size_file(worker, s);
    if (s->group_max == 1 || !small_images_alike(&first->picture.source, &s->picture.source)) break;
    alike++;
  }
  while (2 * count <= alike) count *= 2;
  return count;
}

void in_flight_wake_workers(in_flight_ring *f) {
  const uint64_t image = first_ready(f);
  if (image == f->end) return;
  bool anyone = ring_slot(f, image)->worker_limit >= f->worker_max;
  for (int32_t i = 0; i < f->worker_count && anyone; i++) anyone = free_set(&f->workers[i]) >= 0;
  if (anyone)
    pthread_cond_signal(&f->work);
  else
    pthread_cond_broadcast(&f->work);
}

/* Waits for images and takes them. Returns their number, 0 if the worker must end. The caller holds the lock. */
static int32_t take(in_flight_worker *worker, uint64_t *first) {
  in_flight_ring *f = worker->ring;
  while (!f->ending && !may_take(worker, first)) pthread_cond_wait(&f->work, &f->lock);
  if (f->ending) return 0;
  const int32_t count = group_to_take(worker, *first), set = free_set(worker);
  for (int32_t i = 0; i < count; i++) {
    in_flight_slot *s = ring_slot(f, *first + (uint64_t)i);
    s->state = SLOT_TAKEN;
    s->worker = (int32_t)(worker - f->workers);
    s->set = set;
  }
  while (f->next != f->end && ring_slot(f, f->next)->state == SLOT_TAKEN) f->next++;
  if (f->on_device) worker->held[set] += count;
  in_flight_wake_workers(f); /* other workers may take the following images */
  return count;
}

int32_t in_flight_worker_threads(const in_flight_ring *f, int32_t worker) {
  return f->threads / f->worker_max + (worker < f->threads % f->worker_max ? 1 : 0);
}

/* Starts the next worker as a copy of this one. The driver needs milliseconds for its memory and streams, during which
   the running workers continue. If the worker cannot be started, the running ones do all the work. */
static void start_next(in_flight_worker *worker) {
  in_flight_ring *f = worker->ring;
  in_flight_worker *next = worker + 1;
  const int32_t number = (int32_t)(next - f->workers);
  pthread_mutex_lock(&f->lock);
  const bool wanted = !f->ending && number == f->worker_count && number < f->worker_max;
  pthread_mutex_unlock(&f->lock);
  if (!wanted) return;
  const hs_status st = backend_clone(worker->context, in_flight_worker_threads(f, number), &next->context);
  context_clear_error(worker->context);
  if (st != HS_OK) return;
  next->ring = f;
  backend_statistics(next->context, &next->statistics);
  pthread_mutex_lock(&f->lock);
  const bool started = !f->ending && os_thread_start(&next->thread, in_flight_worker_main, next);
  f->worker_count += started;
  pthread_mutex_unlock(&f->lock);
  if (!started) backend_release(next->context);
}

void *in_flight_worker_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  in_flight_worker *worker = argument;
  in_flight_ring *f = worker->ring;
  uint64_t first;
  if (f->on_device) start_next(worker);
  pthread_mutex_lock(&f->lock);
  for (int32_t count = take(worker, &first); count > 0; count = take(worker, &first)) {
    const int32_t set = ring_slot(f, first)->set;
    pthread_mutex_unlock(&f->lock);
    run_images(worker, first, count, set);
    pthread_mutex_lock(&f->lock);
    backend_statistics(worker->context, &worker->statistics);
    for (int32_t i = 0; i < count; i++) ring_slot(f, first + (uint64_t)i)->done = true;
    pthread_cond_broadcast(&f->done);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* ------------------------------------------------- threads that read and decode files for a GPU's workers */

void in_flight_read_slot(in_flight_slot *s) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  s->status = source_read(&s->opened, &s->picture, s->error, sizeof s->error);
  s->unreadable = s->status != HS_OK;
  hs_message_set(s->location, sizeof s->location, "%s at in_flight_workers.c:%d", hs_status_name(s->status), __LINE__);
}

/* Returns the first image that no thread has begun to read; null: none. The caller holds the lock. */
static in_flight_slot *take_unread(struct in_flight_ring *f) {
  for (uint64_t image = f->next; image != f->end; image++) {
    in_flight_slot *s = ring_slot(f, image);
    if (s->state != SLOT_UNREAD) continue;
    s->state = SLOT_READING;
    return s;
  }
  return NULL;
}

static void *reader_main(void *argument) {
  struct in_flight_ring *f = argument;
  pthread_mutex_lock(&f->lock);
  while (!f->ending) {
    in_flight_slot *s = take_unread(f);
    if (!s) {
      pthread_cond_wait(&f->unread, &f->lock);
      continue;
    }
    pthread_mutex_unlock(&f->lock);
    in_flight_read_slot(s);
    pthread_mutex_lock(&f->lock);
    s->state = SLOT_READY;
    pthread_cond_broadcast(&f->work);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

hs_status in_flight_start_readers(struct in_flight_ring *f, hs_context *owner) {
  os_signal_mask saved;
  const int32_t threads = context_threads(owner), slots = f->slot_count - 1;
  int32_t wanted = threads < slots ? threads : slots;
  if (wanted > READERS_MAX) wanted = READERS_MAX;
  if (f->reader_count > 0) return HS_OK;
  if (!os_signals_block(&saved)) return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot block signals for the readers");
  while (f->reader_count < wanted && os_thread_start(&f->readers[f->reader_count], reader_main, f)) f->reader_count++;
  os_signals_restore(&saved);
  return f->reader_count > 0 ? HS_OK : CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot start a thread that reads files");
}
