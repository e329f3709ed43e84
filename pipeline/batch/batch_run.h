/*
 * What the files of a batch share: the batch, its slots, its threads and the queues between them. Only they include it.
 *
 * A slot goes round: free -> (reading) -> ready -> (device) -> finished -> (the caller) -> free; an image that cannot be
 * read goes to finished at once. Every queue has the capacity for all slots, so only the lack of a slot or of a list for
 * results makes a thread wait for those after it. Nobody assigns images to devices: the feeder of each takes the next from
 * `ready` when it has capacity, so a faster device takes more.
 */
#ifndef HARTSIFT_BATCH_BATCH_RUN_H
#define HARTSIFT_BATCH_BATCH_RUN_H

#include <pthread.h>
#include <sys/types.h>

#include "pipeline/batch/batch_bounds.h"
#include "pipeline/context/options.h"
#include "pipeline/include/hartsift_batch.h"

enum {
  BATCH_MESSAGE_BYTES = 1024,
  BATCH_DEVICES_MAX = 64,
  BATCH_THREADS_MAX = 1024, /* range of readers and of held */
  BATCH_FLYING_MAX = 256,   /* range of hs_options.in_flight */
  /* Most bytes of a JPEG that cores with nothing else to do decode at a higher rate than a GPU, which finds little of such a
     file to decode at once. */
  BATCH_SMALL_BYTES = 64 << 10
};

/* An image that was added. The views and texts are copies, in one block of memory. */
typedef struct batch_input {
  void *block;
  const char *path; /* null: bytes or image */
  const char *name;
  const void *bytes;
  size_t byte_count;
  const hs_image *image, *mask; /* views of the caller's pixels; null: none */
  void *user;
} batch_input;

/* One image in progress. */
typedef struct batch_slot {
  hs_batch_result result; /* what the caller gets; complete once the slot is finished */
  batch_input input;
  hs_source source; /* pixels, or a JPEG for the device; empty: not read, or not needed any more */
  hs_image mask;    /* data null: none */
  hs_exif exif;
  hs_load_notes notes;
  hs_features *features;
  double submitted_ms;
  bool is_given, is_held; /* the caller has the result; with features, so that it counts for hs_batch.held */
  char message[BATCH_MESSAGE_BYTES];
} batch_slot;

typedef enum batch_role { BATCH_READER, BATCH_FEEDER, BATCH_ROLES } batch_role;

typedef struct batch_thread {
  hs_batch *batch;
  batch_role role;
  int32_t number; /* within its role */
  pthread_t handle;
  bool started;
  double waited_s; /* for work; a feeder: with no image in flight */
} batch_thread;

/* How fast a device has been. */
typedef struct device_speed {
  double guess;          /* pixels a second, before it has finished anything */
  double pixels, busy_s; /* finished, and the time in which it had some to do */
  double began_s;        /* when it last began after having nothing to do; 0: it has nothing */
} device_speed;

/* A device and the images in flight on it. */
typedef struct batch_feeder {
  hs_batch *batch;
  int32_t device;
  hs_options options;
  hs_expert_options expert;             /* of options */
  hs_context *context;                  /* null: lost */
  uint64_t submitted;                   /* to this context */
  batch_slot *flying[BATCH_FLYING_MAX]; /* image n of the context at n % BATCH_FLYING_MAX; null: none */
  int32_t count, most;                  /* of them */
  device_speed speed;                   /* this and the next two under the batch's lock */
  bool is_lost;
  double flying_pixels;
  double waited_s, lived_s;       /* of its thread, set when it ends */
  char lost[BATCH_MESSAGE_BYTES]; /* why the context is null */
} batch_feeder;

struct hs_batch {
  hs_batch_options options; /* devices and load are not used, readers and held are chosen */
  hs_load_options load;
  pid_t process; /* that made it */
  buffer_pool pool;
  hs_allocator pixels; /* the pool's */
  batch_slot *slots;
  hs_features *lists;
  batch_feeder *feeders; /* options.device_count */
  batch_thread *threads;
  batch_slot **waiting; /* finished: with in_order at index % slot_count, else a ring from finished_first on */
  size_t slot_count, list_count, thread_count;
  bounded_queue free_slots, ready, free_lists;

  pthread_mutex_t lock;
  pthread_cond_t arrived;  /* an input, or no more of them */
  pthread_cond_t finished; /* a slot for the caller, or the end */
  bool has_lock, is_started;
  bool on_gpu; /* a context works on a GPU */

  /* All below under the lock. */
  batch_input *inputs; /* a ring of input_capacity, which grows */
  size_t input_first, input_count, input_capacity;
  size_t added, begun, given; /* images */
  size_t finished_first, finished_count;
  size_t unreleased, held; /* results that the caller has; of them with features */
  bool no_more, stopped;
  int32_t counts[BATCH_ROLES], running[BATCH_ROLES]; /* threads of each role */
  int32_t live_devices;
  double cpu_s[BATCH_ROLES], waited_s[BATCH_ROLES], lived_s[BATCH_ROLES]; /* sums over the threads of a role */
  double pixels_read;                                                     /* of all images that are ready or were */
  size_t images_read;
  double started_s;
};

/* ---- batch_slots.c */

/* Seconds since a fixed moment. */
double batch_now_s(void);

bool batch_is_stopped(hs_batch *batch);

/* bounded_queue_pop, counted as time that the thread waited. */
void *batch_pop(batch_thread *thread, bounded_queue *queue);

/* The slot's result is complete: hands it to the caller. */
void batch_finish(hs_batch *batch, batch_slot *slot);

/* The slot is free for another image. */
void batch_recycle(hs_batch *batch, batch_slot *slot);

/* Ends an image that is not done: its slot is free again, and it has no result. */
void batch_drop(hs_batch *batch, batch_slot *slot);

/* Frees the pixels and the mask of a slot; the caller's are left alone. */
void batch_drop_pixels(batch_slot *slot);

/* ---- batch_reader.c */

/* Reads images until there is none left. A thread takes a slot before an image, so that never more images are in progress
   than there are slots. */
void batch_run_reader(batch_thread *thread);

/* Decodes a small JPEG that stayed encoded, where cores have time for it and the GPU was not asked for; the pixels are the
   same. */
void batch_decode_small(hs_batch *batch, batch_slot *slot);

/* Decodes a file that stayed encoded. *status, and the message (message_bytes of room): why not. */
bool batch_decode_again(hs_batch *batch, batch_slot *slot, hs_status *status, char *message, size_t message_bytes);

/* ---- batch_feeder.c */

/* Makes the context of feeder->device by its options; message and statuses as hs_batch_open has them. */
hs_status batch_feeder_open(batch_feeder *feeder, char *message, size_t message_bytes);

/* Takes images that are ready and submits them as there is capacity, until none will come. */
void batch_run_feeder(batch_thread *thread);

/* Whether a device takes the next image or leaves it to the others: a slow one would still work on it when fast ones have
   finished everything, and a CPU that extracts takes cores from the decoding that a GPU waits for. */
typedef struct device_share {
  double own, others;    /* pixels a second; others: of all other devices together */
  double taken, waiting; /* pixels: the device's in flight with the next image; those that wait for any device */
} device_share;

/* Pixels a second. */
double device_speed_now(const device_speed *speed, double now_s);
/* The device gets its first image, and has finished its last one. */
void device_speed_begin(device_speed *speed, double now_s);
void device_speed_end(device_speed *speed, double now_s);

/* Whether the others are at least four times as fast. Devices less unequal take images in turn: the measure is coarse. */
bool device_share_is_slow(const device_share *share);
/* Whether, of a slow one, the others are done with all that waits before this device would be with the next image. */
bool device_share_leaves(const device_share *share);

#endif
