/*
 * Images in flight: workers, each a thread with its own context, process what hs_submit puts into the ring. Results are
 * returned in the order of submission.
 *
 * A worker of a GPU context has its own stream, memory and graphs, so that copies and kernels of different images overlap;
 * it alternates between two sets of pinned results, and starts no image while both hold results that have not been
 * waited for. A worker of a CPU context has its share of the threads.
 */
#ifndef HARTSIFT_FRAME_IN_FLIGHT_H
#define HARTSIFT_FRAME_IN_FLIGHT_H

#include <pthread.h>

#include "pipeline/base/text.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/source/source.h"

/* ------------------------------------------------------------------ calls from other rooms */

typedef struct in_flight_ring in_flight_ring;

/* Ends the workers and frees the ring, if there is one: images that no worker has taken are dropped, the others are
   finished. */
void in_flight_end(hs_context *context);

/* Most images that the context lets be submitted and not yet taken, by options.in_flight and options.workload. for_files:
   the first is a file. */
int32_t in_flight_max(const hs_context *context, bool for_files);

/* The way of the image that the last hs_wait... of this context returned. */
hs_frame_way in_flight_way(const hs_context *context);

/* Adds what the workers hold and have done to *statistics. null is allowed. */
void in_flight_add_statistics(in_flight_ring *ring, hs_statistics *statistics);

/* ------------------------------------------------------------------ the ring: only for in_flight*.c */

enum {
  GPU_WORKERS = 8, /* workers on a GPU: four fill the multiprocessors with large images, eight with small ones */
  /* With HS_WORKLOAD_THROUGHPUT: more than fill it from memory, because a worker's picture is decoded before its frame. */
  GPU_WORKERS_THROUGHPUT = 16,
  CPU_WORKERS = 16, /* most workers on a CPU */
  READERS_MAX = 64
};

/* How far an image is before a worker may take it. */
typedef enum slot_state {
  SLOT_UNREAD, /* a file that a reader is to read; a CPU's workers read their own, which are ready at once */
  SLOT_READING,
  SLOT_READY,
  SLOT_TAKEN /* by a worker */
} slot_state;

/* One image between hs_submit and the end of its results. */
typedef struct in_flight_slot {
  source_picture picture; /* a view of the caller's, or what was read */
  slot_state state;
  opened_source opened;         /* from_source: where the picture comes from */
  bool from_source, unreadable; /* unreadable: status and error say why */
  bool done, taken;             /* taken: by the caller */
  bool fell_back;               /* error says why */
  bool is_own;                  /* GPU: features views `own` */
  hs_status status;
  hs_frame_way way;     /* of the frame that found the features */
  hs_features features; /* CPU: the slot's own list; GPU: a view of the worker's pinned results, or of `own` */
  hs_features own;      /* GPU: of an image too large for the device: computed by the CPU or in tiles */
  int32_t group_max;    /* images like this one that may share its launches; 1: it goes alone; 0: not known yet */
  int32_t worker_limit; /* GPU: first worker that must not take this image (device memory); 0: not known */
  int32_t worker, set;  /* whose results these are; GPU only */
  char error[ERROR_TEXT_BYTES], location[ERROR_LOCATION_BYTES];
} in_flight_slot;

typedef struct in_flight_worker {
  struct in_flight_ring *ring;
  hs_context *context;
  pthread_t thread;
  int32_t held[RESULT_SETS]; /* results in each set that the caller has not given back */
  hs_statistics statistics;  /* as it started, then after its last image */
} in_flight_worker;

/* Images are numbered in the order of submission; image n is in slot n % slot_count. All under the lock. */
struct in_flight_ring {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  bool ending, viewed; /* viewed: image oldest - 1 is still being looked at */
  bool on_device;
  bool any_order;                   /* images that are ready overtake those that are not */
  int32_t most, waited_for;         /* images submitted and not yet taken: most, and now */
  int32_t worker_count, worker_max; /* workers that run, and that are to; a GPU's come one after another */
  int32_t slot_count, threads;      /* threads: that the workers share */
  int32_t sized_width, sized_height, sized_workers; /* worker_limit of the image submitted last */
  pthread_t readers[READERS_MAX];                   /* GPU: read files ahead of the workers */
  int32_t reader_count;
  pthread_cond_t unread;
  hs_frame_way waited_way;    /* of the image that the caller waited for last */
  uint64_t oldest, next, end; /* first not waited for, first that no worker has taken, one past the last */
  in_flight_worker workers[CPU_WORKERS];
  in_flight_slot slots[];
};

static inline in_flight_slot *ring_slot(struct in_flight_ring *f, uint64_t image) {
  return &f->slots[image % (uint64_t)f->slot_count];
}

/* ---- in_flight_workers.c */

/* A worker's thread: takes images and runs them until the ring ends. `worker`: its in_flight_worker. Returns null. */
void *in_flight_worker_main(void *worker);
/* How many of the threads belong to a worker. */
int32_t in_flight_worker_threads(const struct in_flight_ring *ring, int32_t worker);
/* Wakes workers because images wait. One signal suffices if every worker may take the next image. Otherwise all are woken,
   because the signal could go to a worker that may not take it and would go back to sleep. Under the lock. */
void in_flight_wake_workers(struct in_flight_ring *ring);
/* How many images of this size may be on the device at once, by the device's memory. Of large ones at most GPU_WORKERS:
   one in each worker keeps the device busy, so that a group of them would take memory and gain nothing. */
int32_t in_flight_workers_for(hs_context *c, int32_t width, int32_t height);
/* Most images like this one that may share launches. Each worker may hold the memory of a group, so a group has the device's
   room, `worker_limit` images, divided by the number of workers. */
int32_t in_flight_group_max(const struct in_flight_ring *ring, const hs_context *c, const hs_image *image,
                            int32_t worker_limit);

/* ---- in_flight_workers.c: reading files */

/* Starts the readers of a GPU's ring for the first file. HS_ERR_THREAD: none could be started. */
hs_status in_flight_start_readers(struct in_flight_ring *ring, hs_context *owner);
/* Reads a slot's source, and sets its picture, or why it is unreadable. Without the lock; nobody else may have the slot. */
void in_flight_read_slot(in_flight_slot *slot);

/* ------------------------------------------------------------------ groups of small images (small_images.c)

   Small images of one size share the launches of a GPU, because the launches of a frame take longer than the work on a
   thumbnail. */

/* The largest useful group of images like this one; 1: no group. A power of two, at most FRAME_GROUP_MAX. */
int32_t small_images_max(const hs_context *context, const hs_image *image);

/* Whether two images may share a group. */
bool small_images_alike(const hs_source *a, const hs_source *b);

/* Runs pictures[count], all alike, without their masks, and lets views[count] show their features in the context's pinned
   results. Either all succeed or none. Statuses: as hs_extract. */
hs_status small_images_run(hs_context *context, const hs_source *const *pictures, int32_t count, hs_features *views);

#endif
