/* Images in flight: a ring of slots between the caller and the lanes. */
#include "pipeline/frame/in_flight.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cpu/float_environment.h"
#include "cpu/threads.h"
#include "cpu/worker_signals.h"
#include "pipeline/frame/small_images.h"
#include "pipeline/device/backend.h"
#include "pipeline/device/cuda_frame.h"
#include "pipeline/base/features.h"
#include "pipeline/context/image_view.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/frame/run_frame.h"

/* Most lanes of each kind. On a GPU four fill the multiprocessors with large images and eight with small ones. */
enum { CUDA_LANES = 8, CPU_LANES = 16, IN_FLIGHT_DEFAULT = 8 };

/* One image between hs_submit and the end of its results. */
typedef struct in_flight_slot {
  hs_image image, mask;
  bool masked, done;
  bool fell_back; /* error says why */
  hs_status status;
  hs_features features; /* CPU: the slot's own list; GPU: a view of the lane's pinned results, or of `own` */
  hs_features own;      /* GPU: of an image that the CPU did, because it did not fit */
  int32_t group_most;   /* images like this one that may share its launches; 1: it goes alone */
  int32_t lanes_most;   /* GPU: lanes from this one on leave it to the others, for the device's memory */
  int32_t lane, set;    /* whose results these are; GPU only */
  char error[ERROR_TEXT_BYTES], location[ERROR_LOCATION_BYTES];
} in_flight_slot;

static void keep_error(in_flight_slot *s, const hs_context *lane) {
  hs_message_set(s->error, sizeof s->error, "%s", lane->error);
  hs_message_set(s->location, sizeof s->location, "%s", lane->error_location);
}

typedef struct in_flight_lane {
  in_flight_ring *ring;
  hs_context *context;
  pthread_t thread;
  int32_t held[CUDA_RESULT_SETS]; /* results in each set that the caller has not given back */
  hs_statistics statistics;       /* as it started, then after its last image */
} in_flight_lane;

/* Images are numbered as they are submitted; image n lies in slot n % slot_count. All under the lock. */
struct in_flight_ring {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  bool ending, viewed; /* viewed: image oldest - 1 is still being looked at */
  bool on_device;
  int32_t lane_count, slot_count;
  int32_t sized_width, sized_height, sized_lanes; /* lanes_most of the image submitted last */
  uint64_t oldest, next, end; /* first not waited for, first that no lane has taken, one past the last */
  in_flight_lane lanes[CPU_LANES];
  in_flight_slot slots[];
};

static in_flight_slot *slot_of(in_flight_ring *f, uint64_t image) { return &f->slots[image % (uint64_t)f->slot_count]; }

/* A set of the lane's results that may be written, -1: none. */
static int32_t free_set(const in_flight_lane *lane) {
  for (int32_t i = 0; i < CUDA_RESULT_SETS; i++)
    if (lane->held[i] == 0) return i;
  return -1;
}

/* The CPU does an image that does not fit the device. */
static void fall_back(in_flight_lane *lane, in_flight_slot *s) {
  hs_context *c = lane->context;
  keep_error(s, c);
  s->status = extract_on_cpu(c, &s->image, s->masked ? &s->mask : NULL, &s->own);
  s->features = s->own;
  s->fell_back = s->status == HS_OK;
  if (s->status != HS_OK) keep_error(s, c);
}

/* Runs one image in the lane's context, without the lock. */
static void run_slot(in_flight_lane *lane, in_flight_slot *s) {
  hs_context *c = lane->context;
  const hs_image *mask = s->masked ? &s->mask : NULL;
  if (lane->ring->on_device) {
    const hs_features *view = NULL;
    s->status = hs_extract_view(c, &s->image, mask, &view);
    s->features = s->status == HS_OK ? *view : (hs_features){0};
    if (backend_falls_back(c, s->status)) {
      fall_back(lane, s);
      return;
    }
  } else {
    s->status = hs_extract(c, &s->image, mask, &s->features);
  }
  if (s->status != HS_OK) keep_error(s, c);
}

/* Runs a group. Its images share one device and one allocation, so they fail, or fall back to the CPU, together. */
static void run_group(in_flight_lane *lane, uint64_t first, int32_t count) {
  in_flight_ring *f = lane->ring;
  const hs_image *images[CUDA_GROUP_MAX] = {NULL};
  hs_features views[CUDA_GROUP_MAX];
  for (int32_t i = 0; i < count; i++) images[i] = &slot_of(f, first + (uint64_t)i)->image;
  const hs_status st = small_images_run(lane->context, images, count, views);
  for (int32_t i = 0; i < count; i++) {
    in_flight_slot *s = slot_of(f, first + (uint64_t)i);
    s->status = st;
    if (st == HS_OK) s->features = views[i];
    if (backend_falls_back(lane->context, st))
      fall_back(lane, s);
    else if (st != HS_OK)
      keep_error(s, lane->context);
  }
}

static void run_images(in_flight_lane *lane, uint64_t first, int32_t count, int32_t set) {
  if (lane->ring->on_device) cuda_frame_use_results(lane->context, set);
  if (count > 1)
    run_group(lane, first, count);
  else
    run_slot(lane, slot_of(lane->ring, first));
}

/* Whether an image waits and this lane may take it. Under the lock. */
static bool may_take(in_flight_lane *lane) {
  in_flight_ring *f = lane->ring;
  if (f->next == f->end) return false;
  return lane - f->lanes < slot_of(f, f->next)->lanes_most && free_set(lane) >= 0;
}

/* How many of the waiting images the lane takes as one group: images alike, as many as are worth it, but no more than
   its share, so that other lanes get work too; a power of two, so that few graphs suffice. Under the lock. */
static int32_t group_to_take(const in_flight_lane *lane) {
  in_flight_ring *f = lane->ring;
  const in_flight_slot *first = slot_of(f, f->next);
  const uint64_t waiting = f->end - f->next, share = (waiting + (uint64_t)f->lane_count - 1) / (uint64_t)f->lane_count;
  int32_t alike = 1, count = 1;
  while ((uint64_t)alike < share && alike < first->group_most) {
    const in_flight_slot *s = slot_of(f, f->next + (uint64_t)alike);
    if (s->group_most == 1 || !small_images_alike(&first->image, &s->image)) break;
    alike++;
  }
  while (2 * count <= alike) count *= 2;
  return count;
}

/* Wakes lanes because images wait. One signal suffices if every lane may take the next image. Otherwise all are woken,
   because the signal could go to a lane that may not take it and would go back to sleep. Under the lock. */
static void wake_lanes(in_flight_ring *f) {
  bool anyone = slot_of(f, f->next)->lanes_most >= f->lane_count;
  for (int32_t i = 0; i < f->lane_count && anyone; i++) anyone = free_set(&f->lanes[i]) >= 0;
  if (anyone)
    pthread_cond_signal(&f->work);
  else
    pthread_cond_broadcast(&f->work);
}

/* Waits for images and takes them; returns how many, 0 when the lanes must end. Under the lock. */
static int32_t take(in_flight_lane *lane, uint64_t *first) {
  in_flight_ring *f = lane->ring;
  while (!f->ending && !may_take(lane)) pthread_cond_wait(&f->work, &f->lock);
  if (f->ending) return 0;
  const int32_t count = group_to_take(lane), set = free_set(lane);
  *first = f->next;
  f->next += (uint64_t)count;
  for (int32_t i = 0; i < count; i++) {
    in_flight_slot *s = slot_of(f, *first + (uint64_t)i);
    s->lane = (int32_t)(lane - f->lanes);
    s->set = set;
  }
  if (f->on_device) lane->held[set] += count;
  if (f->next != f->end) wake_lanes(f); /* other lanes may take the images behind */
  return count;
}

static void *lane_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  in_flight_lane *lane = argument;
  in_flight_ring *f = lane->ring;
  uint64_t first;
  pthread_mutex_lock(&f->lock);
  for (int32_t count = take(lane, &first); count > 0; count = take(lane, &first)) {
    const int32_t set = slot_of(f, first)->set;
    pthread_mutex_unlock(&f->lock);
    run_images(lane, first, count, set);
    pthread_mutex_lock(&f->lock);
    backend_statistics(lane->context, &lane->statistics);
    for (int32_t i = 0; i < count; i++) slot_of(f, first + (uint64_t)i)->done = true;
    pthread_cond_broadcast(&f->done);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

/* The image's results are no longer needed. Under the lock. */
static void give_back(in_flight_ring *f, uint64_t image) {
  in_flight_slot *s = slot_of(f, image);
  if (!f->on_device) return;
  if (--f->lanes[s->lane].held[s->set] == 0) pthread_cond_broadcast(&f->work);
}

static bool open_lock(in_flight_ring *f) {
  if (pthread_mutex_init(&f->lock, NULL) != 0) return false;
  if (pthread_cond_init(&f->work, NULL) == 0) {
    if (pthread_cond_init(&f->done, NULL) == 0) return true;
    pthread_cond_destroy(&f->work);
  }
  pthread_mutex_destroy(&f->lock);
  return false;
}

/* Lanes that share `threads`, with signals blocked as workers have them. */
static hs_status start_lanes(in_flight_ring *f, hs_context *owner, int32_t lanes, int32_t threads) {
  sigset_t blocked, saved;
  hs_status st = HS_OK;
  worker_signals_blocked(&blocked);
  if (pthread_sigmask(SIG_SETMASK, &blocked, &saved) != 0)
    return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot block signals for the lanes");
  for (int32_t i = 0; i < lanes && st == HS_OK; i++) {
    in_flight_lane *lane = &f->lanes[i];
    lane->ring = f;
    st = backend_clone(owner, threads / lanes + (i < threads % lanes ? 1 : 0), &lane->context);
    if (st != HS_OK) break;
    backend_statistics(lane->context, &lane->statistics);
    if (pthread_create(&lane->thread, NULL, lane_main, lane) == 0) {
      f->lane_count++;
      continue;
    }
    backend_release(lane->context);
    st = CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot start a thread for image %d in flight", i + 1);
  }
  pthread_sigmask(SIG_SETMASK, &saved, NULL);
  return st;
}

static void stop_lanes(in_flight_ring *f) {
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  pthread_cond_broadcast(&f->work);
  pthread_mutex_unlock(&f->lock);
  for (int32_t i = 0; i < f->lane_count; i++) {
    pthread_join(f->lanes[i].thread, NULL);
    backend_release(f->lanes[i].context);
  }
  for (int32_t i = 0; i < f->slot_count; i++) hs_features_free(f->on_device ? &f->slots[i].own : &f->slots[i].features);
  pthread_cond_destroy(&f->done);
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->lock);
}

void in_flight_end(hs_context *c) {
  if (!c->in_flight) return;
  /* In a forked child there are no lanes, and what the parent's hold is in whatever state the fork found it in: that
     memory is left to the end of the process. */
  if (c->process == getpid()) stop_lanes(c->in_flight);
  hs_memory_release(c->options.allocator, c->in_flight);
  c->in_flight = NULL;
}

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static hs_status start(hs_context *owner) {
  const int32_t in_flight = owner->options.in_flight > 0 ? owner->options.in_flight : IN_FLIGHT_DEFAULT;
  const int32_t threads = context_threads(owner);
  const int32_t lanes = least(in_flight, owner->cuda ? CUDA_LANES : least(threads, CPU_LANES));
  /* One slot more than may be in flight: the one whose results are being looked at. */
  const size_t bytes = sizeof(in_flight_ring) + sizeof(in_flight_slot) * ((size_t)in_flight + 1);
  in_flight_ring *f = hs_memory_alloc(owner->options.allocator, bytes);
  if (!f) return CONTEXT_FAIL(owner, HS_ERR_MEMORY, "cannot allocate %zu bytes for images in flight", bytes);
  memset(f, 0, bytes);
  f->slot_count = in_flight + 1;
  f->on_device = owner->cuda != NULL;
  if (!open_lock(f)) {
    hs_memory_release(owner->options.allocator, f);
    return CONTEXT_FAIL(owner, HS_ERR_THREAD, "cannot make a lock for images in flight");
  }
  const hs_status st = start_lanes(f, owner, lanes, threads);
  owner->in_flight = f;
  if (st == HS_OK) return HS_OK;
  in_flight_end(owner);
  return st;
}

void in_flight_add_statistics(in_flight_ring *f, hs_statistics *sum) {
  if (!f) return;
  pthread_mutex_lock(&f->lock);
  for (int32_t i = 0; i < f->lane_count; i++) {
    const hs_statistics *s = &f->lanes[i].statistics;
    sum->frames += s->frames;
    sum->regrown_frames += s->regrown_frames;
    sum->workspace_bytes += s->workspace_bytes;
    sum->device_bytes += s->device_bytes;
  }
  pthread_mutex_unlock(&f->lock);
}

/* How many lanes may have an image of this size on the device at once; computed again only when the size changes. */
static int32_t lanes_for(hs_context *c, const hs_image *image) {
  in_flight_ring *f = c->in_flight;
  if (!c->cuda) return CPU_LANES;
  if (f->sized_width != image->width || f->sized_height != image->height) {
    f->sized_lanes = cuda_frame_lanes(c, image->width, image->height);
    f->sized_width = image->width;
    f->sized_height = image->height;
    context_clear_error(c);
  }
  return f->sized_lanes;
}

hs_status hs_submit(hs_context *c, const hs_image *image, const hs_image *mask) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image is null");
  source_view source;
  place_filter filter;
  hs_status st = image_view_source(c, image, &source);
  if (st == HS_OK) st = image_view_filter(c, image, mask, &filter);
  if (st == HS_OK && !c->in_flight) st = start(c);
  if (st != HS_OK) return st;
  in_flight_ring *f = c->in_flight;
  const int32_t lanes_most = lanes_for(c, image);
  /* Each lane may hold the memory of a group, so a group has the device's room divided by the number of lanes. */
  const int32_t room_for = lanes_most / f->lane_count;
  const int32_t group_most = least(small_images_most(c, image), room_for > 1 ? room_for : 1);
  pthread_mutex_lock(&f->lock);
  const uint64_t count = f->end - f->oldest;
  const bool room = count + 1 < (uint64_t)f->slot_count;
  if (room) {
    in_flight_slot *s = slot_of(f, f->end);
    s->image = *image;
    s->masked = mask != NULL;
    if (mask) s->mask = *mask;
    s->done = s->fell_back = false;
    s->lanes_most = lanes_most;
    s->group_most = mask ? 1 : group_most;
    f->end++;
    wake_lanes(f);
  }
  pthread_mutex_unlock(&f->lock);
  return room ? HS_OK
              : CONTEXT_FAIL(c, HS_ERR_CAPACITY, "%llu images are in flight: wait for one", (unsigned long long)count);
}

/* Waits for the oldest image; its slot stays occupied until the next call, because the caller may be reading it. */
static hs_status wait_oldest(hs_context *c, const in_flight_slot **slot) {
  in_flight_ring *f = c->in_flight;
  if (!f) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "no image is in flight");
  pthread_mutex_lock(&f->lock);
  if (f->viewed) give_back(f, f->oldest - 1);
  f->viewed = false;
  const bool any = f->oldest != f->end;
  in_flight_slot *s = slot_of(f, f->oldest);
  while (any && !s->done) pthread_cond_wait(&f->done, &f->lock);
  if (any) f->oldest++;
  f->viewed = any;
  pthread_mutex_unlock(&f->lock);
  if (!any) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "no image is in flight");
  if (s->status != HS_OK) {
    hs_message_set(c->error, sizeof c->error, "%s", s->error);
    hs_message_set(c->error_location, sizeof c->error_location, "%s", s->location);
  }
  if (s->fell_back) backend_note_fallback(c, s->error);
  *slot = s;
  return s->status;
}

hs_status hs_wait_view(hs_context *c, const hs_features **features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "features is null");
  *features = NULL;
  const in_flight_slot *slot = NULL;
  const hs_status st = wait_oldest(c, &slot);
  if (st == HS_OK) *features = &slot->features;
  return st;
}

hs_status hs_wait(hs_context *c, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "features is null");
  const in_flight_slot *slot = NULL;
  hs_status st = wait_oldest(c, &slot);
  if (st != HS_OK) return st;
  in_flight_ring *f = c->in_flight;
  if (f->on_device && !slot->fell_back)
    st = cuda_frame_give(f->lanes[slot->lane].context, slot->set, &slot->features, features);
  else
    st = features_copy(features, &slot->features, c->options.allocator);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "cannot make room for %zu features", slot->features.count);
  pthread_mutex_lock(&f->lock);
  give_back(f, f->oldest - 1);
  f->viewed = false;
  pthread_mutex_unlock(&f->lock);
  return HS_OK;
}

int32_t hs_count_in_flight(const hs_context *c) {
  if (!c || !c->in_flight) return 0;
  in_flight_ring *f = c->in_flight;
  pthread_mutex_lock(&f->lock);
  const int32_t count = (int32_t)(f->end - f->oldest);
  pthread_mutex_unlock(&f->lock);
  return count;
}
