/*
 * What the files of the batch engine share: the run, its slots, its threads and what they wait for. Only they include it.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_RUN_H
#define HARTSIFT_CLI_BATCH_BATCH_RUN_H

#include <pthread.h>

#include "pipeline/cli/batch/batch_engine.h"
#include "pipeline/cli/batch/bounded_queue.h"
#include "pipeline/cli/batch/buffer_pool.h"

/* One image on its way. */
typedef struct batch_slot {
  size_t index;
  hs_image image, mask; /* data null: not read, or not needed any more; no mask */
  hs_exif exif;
  hs_load_notes notes;
  hs_features *features;
  hs_status status;
  bool unwanted;  /* only passes by, to keep the order */
  void *prepared; /* what the features were made into */
  int32_t width, height, device;
  double submitted_ms, milliseconds;
  char message[BATCH_MESSAGE_BYTES];
} batch_slot;

typedef enum batch_role { BATCH_READER, BATCH_FEEDER, BATCH_PREPARER, BATCH_WRITER, BATCH_ROLES } batch_role;

typedef struct batch_thread {
  batch_run *batch;
  batch_role role;
  int32_t number; /* within its role */
  pthread_t handle;
  bool started;
  double waited_s; /* for work; a feeder: with no image in flight */
} batch_thread;

typedef struct batch_feeder batch_feeder;

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
  bounded_queue free_slots, ready, finished, prepared, free_lists;

  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool has_lock;
  int32_t first_gpu; /* CUDA device of the first context on one; -1: all are on the CPU */
  size_t next;       /* image to begin; this and all below under the lock */
  bool stopped;
  int32_t counts[BATCH_ROLES], running[BATCH_ROLES]; /* threads of each role */
  int32_t live_devices;
  double cpu_s[BATCH_ROLES], waited_s[BATCH_ROLES], lived_s[BATCH_ROLES]; /* sums over the threads of a role */
  double pixels_read;                                                     /* of all images that are ready or were */
  size_t images_read;
  double started_s, first_s; /* first_s: until the first result, 0 before */
};

/* Seconds since a fixed moment. */
double batch_now_s(void);

bool batch_is_stopped(batch_run *batch);

/* bounded_queue_pop, counted as time that the thread waited. */
void *batch_pop(batch_thread *thread, bounded_queue *queue);

#endif
