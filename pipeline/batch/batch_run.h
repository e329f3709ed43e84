/*
 * Internal state of a batch: the batch, its slots, its threads and the queues between them. Only batch/ includes it.
 *
 * Slots circulate: free -> (reading) -> ready -> (device) -> finished -> (the caller) -> free; an image that cannot be
 * read goes to finished at once. Every queue has the capacity for all slots, so only the lack of a slot or of a list
 * for results makes a thread wait for a later stage.
 *
 * Several devices: each has a feeder, a thread with a context of its own (batch_run_feeder). Images are not assigned to
 * devices: a feeder takes the next image from `ready` when it has capacity (batch_feeder.most), so that a faster device
 * takes more. A device that is four times slower than all others together leaves the last images to them
 * (device_share_leaves). A device that fails gets a new context for its images in flight; if there is none, these fail
 * and the other devices take the rest (feeder_renew). There are as many readers as cores, whatever the number of GPUs;
 * without a GPU 1 + cores / 8 (count_threads).
 */
#ifndef HARTSIFT_BATCH_BATCH_RUN_H
#define HARTSIFT_BATCH_BATCH_RUN_H

#include "os/os_threads.h"
#include "pipeline/batch/batch_bounds.h"
#include "pipeline/context/options.h"
#include "pipeline/include/hartsift_batch.h"

enum {
  BATCH_MESSAGE_BYTES = 1024,
  BATCH_THREADS_MAX = 1024, /* maximum number of readers, and of results held */
  BATCH_FLYING_MAX = 256,   /* maximum of hs_options.in_flight */
  /* Maximum size of a JPEG that idle cores decode faster than a GPU: small files have little parallelism. */
  BATCH_SMALL_BYTES = 64 << 10
};

/* An image that was added. Views and texts are copied into one block of memory. */
typedef struct batch_input {
  void *block;
  hs_source source; /* pixels, a file or its bytes; the mask is a copy in block, load is null */
  const char *name;
  void *user;
} batch_input;

/* One image in progress. */
typedef struct batch_slot {
  hs_batch_result result; /* returned to the user; complete once the slot is finished */
  batch_input input;
  hs_source source; /* pixels, or a JPEG for the device; empty before reading and after use */
  hs_image mask;    /* data null: no mask */
  hs_exif exif;
  hs_load_notes notes;
  hs_features *features;
  double submitted_ms;
  /* is_returned: the user has the result; is_held: the result has features, and counts in hs_batch.held */
  bool is_returned, is_held;
  char message[BATCH_MESSAGE_BYTES];
} batch_slot;

typedef enum batch_role { BATCH_READER, BATCH_FEEDER, BATCH_ROLES } batch_role;

typedef struct batch_thread {
  hs_batch *batch;
  batch_role role;
  int32_t number; /* index among the threads of its role */
  pthread_t handle;
  bool started;
  double waited_s; /* time spent waiting for work; of a feeder: only time without an image in flight */
} batch_thread;

/* Measured speed of a device. */
typedef struct device_speed {
  double guess;          /* assumed pixels per second before the first result */
  double pixels, busy_s; /* finished pixels, and the time spent on them */
  double began_s;        /* time at which the device last became busy; 0: idle */
} device_speed;

/* A device and the images in flight on it. */
typedef struct batch_feeder {
  hs_batch *batch;
  int32_t device;
  hs_options options;
  hs_expert_options expert;             /* options.expert points here */
  hs_context *context;                  /* context of the device; null: the device is lost */
  uint64_t submitted;                   /* images submitted to this context */
  batch_slot *flying[BATCH_FLYING_MAX]; /* image n of the context is at n % BATCH_FLYING_MAX; null: none */
  int32_t count, most;                  /* count: number of images in flight; most: its maximum */
  device_speed speed; /* measured speed; this field and the next two are protected by the batch's lock */
  bool is_lost;
  double flying_pixels;
  double waited_s, lived_s;       /* times of the thread, set when it ends */
  char lost[BATCH_MESSAGE_BYTES]; /* reason why the context is null */
} batch_feeder;

struct hs_batch {
  hs_batch_options options; /* options with readers and held resolved; devices and load are unused */
  hs_load_options load;
  int64_t process; /* process that created the batch */
  buffer_pool pool;
  hs_allocator pixels; /* allocator of the pool */
  batch_slot *slots;
  hs_features *lists;
  batch_feeder *feeders; /* options.device_count entries */
  batch_thread *threads;
  /* finished slots: with in_order at index % slot_count, else a ring that begins at finished_first */
  batch_slot **waiting;
  size_t slot_count, list_count, thread_count;
  bounded_queue free_slots, ready, free_lists;

  pthread_mutex_t lock;
  pthread_cond_t arrived;  /* an input arrived, or no more will arrive */
  pthread_cond_t finished; /* a slot for the user is finished, or the end was reached */
  bool has_lock, is_started;
  bool on_gpu; /* whether at least one context uses a GPU */

  /* All fields below are protected by the lock. */
  batch_input *inputs; /* ring of input_capacity entries, which grows */
  size_t input_first, input_count, input_capacity;
  size_t added, begun, given; /* images */
  size_t finished_first, finished_count;
  size_t unreleased, held; /* unreleased: number of results that the user holds; held: those of them with features */
  bool no_more, stopped;
  int32_t counts[BATCH_ROLES], running[BATCH_ROLES]; /* number of threads of each role: started, and still running */
  int32_t live_devices;
  double cpu_s[BATCH_ROLES], waited_s[BATCH_ROLES], lived_s[BATCH_ROLES]; /* sums over the threads of a role */
  double pixels_read; /* number of pixels of all images that were read */
  size_t images_read;
  double started_s;
};

/* ---- batch_bounds.c: slots */

bool batch_is_stopped(hs_batch *batch);

/* bounded_queue_pop; the wait counts as idle time of the thread. */
void *batch_pop(batch_thread *thread, bounded_queue *queue);

/* Passes the slot's complete result to the user. */
void batch_finish(hs_batch *batch, batch_slot *slot);

/* Makes the slot free for another image. */
void batch_recycle(hs_batch *batch, batch_slot *slot);

/* Drops an unfinished image: its slot becomes free without a result. */
void batch_drop(hs_batch *batch, batch_slot *slot);

/* Frees a slot's pixels and mask, unless the user owns them. */
void batch_drop_pixels(batch_slot *slot);

/* ---- batch_reader.c */

/* Reads images until none is left. A thread takes a slot before an image, so that at most slot_count images are in
   progress. */
void batch_run_reader(batch_thread *thread);

/* Decodes a small encoded JPEG on the CPU if cores are idle and the GPU decoder was not requested; the pixels are
   equal. */
void batch_decode_small(hs_batch *batch, batch_slot *slot);

/* Decodes a file that stayed encoded. On failure *status and the message (message_bytes capacity) give the reason. */
bool batch_decode_again(hs_batch *batch, batch_slot *slot, hs_status *status, char *message, size_t message_bytes);

/* ---- batch_feeder.c */

/* Creates the context of feeder->device from its options; message and statuses as in hs_batch_open. */
hs_status batch_feeder_open(batch_feeder *feeder, char *message, size_t message_bytes);

/* Submits ready images while there is capacity, until no more will come. */
void batch_run_feeder(batch_thread *thread);

/* Inputs of the decision whether a device takes the next image or leaves it to other devices. A slow device would still
   be busy when fast ones have finished, and extraction on the CPU takes cores away from the decoding for a GPU. */
typedef struct device_share {
  double own, others; /* speeds in pixels per second: of this device, and sum of all others */
  /* pixels. taken: in flight on this device, plus the next image; waiting: waiting for any device */
  double taken, waiting;
} device_share;

/* Returns the current speed in pixels per second. */
double device_speed_now(const device_speed *speed, double now_s);
/* device_speed_begin: call when an idle device gets an image. device_speed_end: call when it has finished its last
   one. */
void device_speed_begin(device_speed *speed, double now_s);
void device_speed_end(device_speed *speed, double now_s);

/* True if the other devices together are at least four times as fast. With a smaller factor the decisions would flip,
   because the measurement is coarse. */
bool device_share_is_slow(const device_share *share);
/* True if the other devices would finish all waiting images before this device finishes the next one. */
bool device_share_leaves(const device_share *share);

#endif
