/*
 * Images in flight. Workers, each a thread with its own context, process the images that hs_submit puts into a ring.
 * Results are returned in the order of submission.
 *
 * A worker of a GPU context has its own stream, memory and graphs, so that copies and kernels of different images
 * overlap. It alternates between two sets of pinned results, and starts no image while the caller has not taken the
 * results in both. Workers of a CPU context share the threads equally.
 */
#ifndef HARTSIFT_FRAME_IN_FLIGHT_H
#define HARTSIFT_FRAME_IN_FLIGHT_H

#include "os/os_threads.h"
#include "pipeline/base/text.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/source/source.h"

/* ------------------------------------------------------------------ calls from other rooms */

typedef struct in_flight_ring in_flight_ring;

/* Ends the workers and frees the ring, if there is one. Images that no worker has taken are dropped; other images are
   finished. */
void in_flight_end(hs_context *context);

/* Returns how many images may be submitted and not yet taken, from options.in_flight and options.workload. for_files:
   the first image is a file. */
int32_t in_flight_max(const hs_context *context, bool for_files);

/* Returns the way of the image that the context's last hs_wait... returned. *reason: the reason for it, null: none. */
hs_frame_way in_flight_way(const hs_context *context, const char **reason);

/* Adds the memory and counts of the workers to *statistics. ring: null is allowed. */
void in_flight_add_statistics(in_flight_ring *ring, hs_statistics *statistics);

/* ------------------------------------------------------------------ the ring: only for in_flight*.c */

enum {
  GPU_WORKERS = 8, /* on a GPU: four workers fill the multiprocessors with large images, eight with small ones */
  /* With HS_WORKLOAD_THROUGHPUT. This is more than pictures from memory need, because each worker's picture is decoded
     before its frame. */
  GPU_WORKERS_THROUGHPUT = 16,
  CPU_WORKERS = 16, /* maximum on a CPU */
  READERS_MAX = 64
};

/* Progress of an image until a worker takes it. */
typedef enum slot_state {
  /* waits for a reader (GPU only: workers of a CPU read files themselves, so the slots are ready at once) */
  SLOT_UNREAD,
  SLOT_READING,
  SLOT_READY,
  SLOT_TAKEN /* a worker has taken it */
} slot_state;

/* One image, from hs_submit until its results are no longer needed. */
typedef struct in_flight_slot {
  source_picture picture; /* view of the caller's picture, or the picture that was read */
  slot_state state;
  opened_source opened;         /* source of the picture, if from_source */
  bool from_source, unreadable; /* unreadable: reading failed; status and error say why */
  bool done, taken;             /* done: by a worker; taken: by the caller */
  bool fell_back;               /* the CPU processed the image instead of the device; error says why */
  bool is_own;                  /* GPU: features refers to `own` */
  hs_status status;
  hs_frame_way way; /* way of the frame that found the features, and the reason for it */
  const char *way_reason;
  hs_features features; /* CPU: the slot's own list; GPU: a view of the worker's pinned results, or of `own` */
  hs_features own;      /* GPU: features found by the CPU or in tiles, of an image too large for the device */
  /* maximum number of images of this kind that may share launches; 1: the image runs alone; 0: not known yet */
  int32_t group_max;
  int32_t worker_limit; /* GPU: only workers below this number may take it (device memory); 0: not known yet */
  int32_t worker, set;  /* GPU only: worker and set that hold its results */
  char error[ERROR_TEXT_BYTES], location[ERROR_LOCATION_BYTES];
} in_flight_slot;

typedef struct in_flight_worker {
  struct in_flight_ring *ring;
  hs_context *context;
  pthread_t thread;
  int32_t held[RESULT_SETS]; /* number of results in each set that the caller still uses */
  hs_statistics statistics;  /* statistics of the worker's context; set after its start, later after its last image */
} in_flight_worker;

/* The ring of images in flight. Images are numbered in the order of submission; image n is in slot n % slot_count. The
   lock protects all fields. */
struct in_flight_ring {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  bool ending, viewed; /* ending: workers must end; viewed: the caller may still be reading image oldest - 1 */
  bool on_device;
  bool any_order;           /* ready images may overtake earlier images that are not ready */
  int32_t most, waited_for; /* limit, and number of images submitted and not yet waited for */
  /* number of running workers, and their final number; a GPU's workers start one after another */
  int32_t worker_count, worker_max;
  int32_t slot_count, threads;                      /* threads: number that all workers share */
  int32_t sized_width, sized_height, sized_workers; /* size of the last submitted image, and its worker_limit */
  pthread_t readers[READERS_MAX];                   /* GPU: threads that read files before workers take them */
  int32_t reader_count;
  pthread_cond_t unread;
  uint64_t waited;            /* the image that the caller waited for last */
  uint64_t oldest, next, end; /* first image not waited for; first that no worker has taken; one past the last */
  in_flight_worker workers[CPU_WORKERS];
  in_flight_slot slots[];
};

static inline in_flight_slot *ring_slot(struct in_flight_ring *f, uint64_t image) {
  return &f->slots[image % (uint64_t)f->slot_count];
}

/* ---- in_flight_workers.c */

/* Main function of a worker's thread: takes images and runs them until the ring ends. worker: an in_flight_worker.
   Returns null. */
void *in_flight_worker_main(void *worker);
/* Returns how many of the ring's threads a worker has. */
int32_t in_flight_worker_threads(const struct in_flight_ring *ring, int32_t worker);
/* Wakes workers for waiting images. The caller holds the lock. If every worker may take the next image, one signal
   suffices. Otherwise all are woken, because the signal could wake a worker that may not take the image and would sleep
   again. */
void in_flight_wake_workers(struct in_flight_ring *ring);
/* Returns how many images of this size may be on the device at once, given its memory. For large images at most
   GPU_WORKERS: one image per worker keeps the device busy, and groups would use memory without gain. */
int32_t in_flight_workers_for(hs_context *c, int32_t width, int32_t height);
/* Returns how many images like this one may share launches. Each worker may hold the memory of a group, so a group has
   at most `worker_limit` (the number that fits the device) divided by the number of workers. */
int32_t in_flight_group_max(const struct in_flight_ring *ring, const hs_context *c, const hs_image *image,
                            int32_t worker_limit);

/* ---- in_flight_workers.c: reading files */

/* Starts the readers of a GPU's ring, for the first file. HS_ERR_THREAD: none could be started. */
hs_status in_flight_start_readers(struct in_flight_ring *ring, hs_context *owner);
/* Reads a slot's source and sets its picture, or the reason why it is unreadable. Call without the lock; no other
   thread may have the slot. */
void in_flight_read_slot(in_flight_slot *slot);

/* ------------------------------------------------------------------ groups of small images (small_images.c)

   Small images of one size share the launches of a GPU, because launching a frame takes longer than the work on a
   thumbnail. */

/* Returns the size of the largest useful group of images like this one: a power of two, at most FRAME_GROUP_MAX; 1: no
   group. */
int32_t small_images_max(const hs_context *context, const hs_image *image);

/* Returns whether two images may be in the same group. */
bool small_images_alike(const hs_source *a, const hs_source *b);

/* Runs pictures[count], all alike, without masks. Sets views[count] to their features in the context's pinned results.
   Either all pictures succeed or none. Statuses: as hs_extract. */
hs_status small_images_run(hs_context *context, const hs_source *const *pictures, int32_t count, hs_features *views);

#endif
