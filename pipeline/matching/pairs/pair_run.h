/*
 * State that the threads of a run over many pairs share.
 *
 * The scheduler plans phases and reads their images. Workers take the phase's pairs in turn as soon as both images are
 * read, match and verify them, and store a record; hs_pairs_next returns records in the order of the pairs. If GPUs
 * match, the thread of each takes the pairs, many at a time, and workers verify the matches from a queue; if a CPU is
 * among the devices, workers without a pair to verify match too. The lock protects the fields of hs_pairs that follow
 * it, unless a comment says otherwise.
 *
 * A GPU that fails while other devices work is lost: its pairs are no longer taken, so the next phase has them again.
 * A GPU with so little free memory that it would limit the others is lost from the start.
 */
#ifndef HARTSIFT_MATCHING_PAIRS_PAIR_RUN_H
#define HARTSIFT_MATCHING_PAIRS_PAIR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os_threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/context/engine.h"
#include "pipeline/matching/geometry/verify.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/match_call.h"

/* ------------------------------------------------------------------ phases (pair_scheduler.c)

   A phase is a set of images that memory holds at once, and all pairs among them. If all images fit, one phase is
   enough.
   Otherwise half of the memory is for first images of the next pairs, and half for second images. If memory holds m of
   n images, each image is then read about 2 n / m times. */

/* Memory spaces of images: host and device. */
enum { PAIR_SPACES = 2 };

typedef struct pair_phase_request {
  const hs_image_pair *pairs;
  const uint8_t *is_done; /* [pair]: not 0 if the pair is done, so it is no candidate */
  size_t begin, end;      /* range of the pairs that are considered, in order */
  /* end of the pairs that may be processed out of order, whose results must wait for earlier ones; at most `end` */
  size_t horizon;
  const uint64_t *bytes[PAIR_SPACES]; /* [image]: bytes of the image in each space; null: the space is not used */
  uint64_t budget[PAIR_SPACES];
  bool in_order; /* true: the phase consists of consecutive candidates from the first one on */
} pair_phase_request;

/* Images and pairs of a phase. marks[image_count]: equals `number` for the images of the phase. `number` is larger than
   in all earlier phases. */
typedef struct pair_phase {
  uint32_t *marks, number;
  uint32_t *pairs; /* [number of candidates]: indices of the phase's pairs, ascending */
  size_t count;
} pair_phase;

/* Fills the phase. If there is a candidate, the phase contains at least the first one, even if that exceeds the
   budget. */
void pair_phase_plan(const pair_phase_request *request, pair_phase *phase);

/* ------------------------------------------------------------------ the run */

enum { PAIR_SPACE_HOST, PAIR_SPACE_DEVICE };
enum {
  PAIR_MESSAGE_BYTES = 512,
  PAIRS_GIVEN_MAX = 256,    /* maximum number of results that hs_pairs_next takes from the run at one time */
  PAIRS_MATCHED_MAX = 2048, /* maximum number of pairs that the device has matched and no worker has verified yet */
  /* number of pairs from the head on, per worker, that are processed even if the memory for results is full */
  LOOKAHEAD_A_WORKER = 4
};

typedef enum pair_progress { PAIR_WAITING, PAIR_DONE, PAIR_TAKEN } pair_progress;

typedef enum pair_image_state { PAIR_IMAGE_ABSENT, PAIR_IMAGE_READY, PAIR_IMAGE_FAILED } pair_image_state;

/* An image of the collection. Reading it changes `state` from ABSENT; then the other fields do not change until the
   phase ends. */
typedef struct pair_image {
  pair_image_state state;
  hs_status status; /* status of a failed image; its reason is `message` (null or an allocation) */
  char *message;
  const hs_features *features; /* features of a ready image: the caller's, or `own` */
  hs_features own;
  uint64_t number; /* number of this image in the sequence of readings, from 1 on */
  /* [device]: copy on each device, made by its thread; null: not copied, or the descriptors are floats */
  device_descriptors **on_device;
} pair_image;

/* Record of a processed pair: one allocation, in which matches and inliers follow the struct. */
typedef struct pair_record {
  hs_pair_result result;
  hs_pair_geometry found;
  hs_match_pair *matches;
  uint8_t *inliers;
  size_t bytes;
  char *message;            /* reason of a failed pair, stored after the struct */
  struct pair_record *next; /* next record in the list of pairs waiting for verification */
} pair_record;

typedef struct pair_worker {
  hs_pairs *run;
  pthread_t thread;
  one_thread_matcher matcher;
  verify_scratch scratch;
} pair_worker;

/* The pairs of a batch. */
typedef struct device_batch {
  size_t index[PAIRS_PER_BATCH];
  descriptor_pair images[PAIRS_PER_BATCH];
  uint32_t count;
  match_limits limits;
} device_batch;

/* A context that matches on its GPU, and its thread. */
typedef struct pair_device {
  hs_pairs *run;
  hs_context *context;
  int32_t number;                     /* index in hs_pairs.devices */
  int32_t context_number;             /* number for hs_pair_result.device */
  pair_matcher *matcher;              /* null: not open */
  device_batch batches[PAIR_BATCHES]; /* ring: `in_flight` batches from `oldest` on are in flight */
  int32_t oldest, in_flight;
  bool is_lost; /* the device failed while others work; protected by the run's lock */
  pthread_t thread;
  bool has_thread;
} pair_device;

struct hs_pairs {
  hs_context *context; /* context of the run; null: it, or a further context, was destroyed */
  /* all contexts, the run's first */
  hs_context *contexts[1 + HS_PAIRS_CONTEXTS_MAX];
  int32_t context_count;
  const hs_allocator *allocator;
  int64_t process;
  hs_collection collection;
  const hs_image_pair *pairs;
  size_t count;
  hs_pairs_options options;
  hs_match_options match;   /* options.match points to this copy */
  hs_verify_options verify; /* options.verify points to this copy, unless it is null */
  stage_ops ops;
  uint64_t *image_bytes[PAIR_SPACES];
  uint64_t image_budget[PAIR_SPACES], held_budget, given_budget; /* given_budget: bytes of `given` */
  size_t features_max;        /* largest feature count for which workers have memory */
  const engine_pairs *engine; /* matching by devices; null: there are none */
  pair_device *devices;       /* [device_count] */
  int32_t device_count;
  bool workers_match;  /* workers match, because there is no device or a context is on the CPU */
  int32_t host_number; /* hs_pair_result.device of the pairs that workers match */
  uint64_t batch_bytes;

  /* Records that hs_pairs_next has taken and not returned yet: given_count of them from given_first on. Only
     hs_pairs_next uses these fields, without the lock. */
  pair_record *given[PAIRS_GIVEN_MAX];
  size_t given_first, given_count;
  pair_record *returned; /* record that was returned to the caller; valid until its next call */

  pthread_mutex_t lock;
  pthread_cond_t work;     /* wakes workers: a pair may be taken, or the run ends */
  pthread_cond_t matching; /* wakes the devices' threads: a pair may be taken, or the run ends */
  pthread_cond_t progress; /* wakes the scheduler: a pair is done, or its result was returned to the caller */
  pthread_cond_t ready;    /* wakes hs_pairs_next */
  bool is_ending;
  hs_status failure; /* failure that ended the run; else HS_OK */
  char message[PAIR_MESSAGE_BYTES];
  bool has_reported_failure; /* hs_pairs_next has returned the failure, so it returns no further results */

  pair_image *images;
  device_descriptors **copies; /* the lists on_device of all images */
  uint64_t readings;
  pair_phase phase;
  /* the phase's pairs in the order in which their images become available: [phase.count]; and the numbers of the images
     in the order of reading: [image]. reading_starts: [image + 1], for sorting */
  uint32_t *by_reading, *reading_order, *reading_starts;
  /* next: index in the phase's pairs of the first pair that is not taken; ahead: the same in by_reading */
  size_t next, ahead;
  size_t active;    /* number of pairs that are taken and not done */
  uint8_t *is_done; /* [pair]: a pair_progress */
  pair_record **records;
  size_t head;           /* index of the pair whose result hs_pairs_next takes next */
  uint64_t held_bytes;   /* bytes of records that have not been returned: finished, or waiting for verification */
  uint64_t record_bytes; /* bytes of all record_count records so far, for their average size */
  size_t record_count;
  size_t lookahead; /* number of pairs from the head on that are processed even if results exceed held_budget */
  pair_record *matched, *last_matched; /* list of records waiting for verification, oldest first */
  size_t matched_count;
  int32_t waiting_workers;         /* number of workers that wait for a pair or a record */
  int32_t lost_devices, last_lost; /* last_lost: context_number of the device that was lost last */
  char lost[PAIR_MESSAGE_BYTES];   /* reason why it was lost */

  pthread_t scheduler;
  bool has_scheduler;
  int32_t worker_count;
  pair_worker workers[];
};

/* ---- pair_state.c: records */

/* Allocates a record for `match_count` matches; null: out of memory. */
pair_record *pair_record_make(const hs_pairs *run, size_t index, size_t match_count, bool has_inliers);
/* Makes the record of a pair that failed; null: out of memory. */
pair_record *pair_record_failed(const hs_pairs *run, size_t index, hs_status status, const char *message);
void pair_record_free(const hs_pairs *run, pair_record *record);

/* ---- pair_state.c: called under the lock */

/* Ends the run with a failure. Only the first failure is kept. */
void pair_run_fail(hs_pairs *run, hs_status status, const char *message);

/* Wakes the threads that take pairs. */
void pair_run_wake(hs_pairs *run);

/* Appends a matched record to the list that waits for verification. */
void pair_run_put_matched(hs_pairs *run, pair_record *record);
/* Wakes workers for the list; call after adding records. */
void pair_run_wake_verifiers(hs_pairs *run);
/* Takes the oldest record of the list; null: the list is empty. */
pair_record *pair_run_take_matched(hs_pairs *run);

/* Finds the pair to take next: the first of the phase, or while its images are still being read, the first whose images
   are there. False: no pair may be taken now. */
bool pair_run_next(hs_pairs *run, size_t *index);

/* Marks a found pair as taken. */
void pair_run_take(hs_pairs *run, size_t index);

/* True if the phase has no pair left, or only pairs that must wait until others are returned. */
bool pair_run_phase_over(const hs_pairs *run);

/* Stores the record of a taken pair as its result. record null: there was no memory for it. */
void pair_run_finish(hs_pairs *run, size_t index, pair_record *record);

/* Ends the use of a taken pair that has no result: the next phase has it again. */
void pair_run_leave(hs_pairs *run, size_t index);

/* Between these calls the phase does not end. */
void pair_run_hold(hs_pairs *run);
void pair_run_release(hs_pairs *run);

/* ---- threads */

void *pair_scheduler_main(void *run);
void *pair_worker_main(void *worker);
void *pair_device_main(void *device);

/* ---- pair_images.c */

/* Reads an absent image. Called by the scheduler, without the lock. */
void pair_image_read(hs_pairs *run, uint32_t image);
void pair_image_forget(hs_pairs *run, uint32_t image);
/* Copies an image that the device lacks to it. Called by the device's thread, without the lock, while a pair counts as
   active. STAGE_OK without a copy: the descriptors are no bytes. */
stage_status pair_image_upload(pair_device *device, uint32_t image);
/* True if pairs of the image need a copy on devices. The image is ready. */
bool pair_image_wants_copy(const hs_pairs *run, uint32_t image);
/* Marks a ready image as failed. The caller holds the lock. */
void pair_image_fail(hs_pairs *run, uint32_t image, hs_status status, const char *message);
/* Frees the memory of all images on all devices. Required before the devices' matchers are closed. */
void pair_images_leave_devices(hs_pairs *run);

/* ---- pair_verify.c */

/* Copies a caller's options, of any version, over the defaults. */
hs_status pairs_adopt_options(const hs_pairs_options *callers, hs_pairs_options *mine, char reason[ADOPT_REASON_BYTES]);

/* Returns the fault of an invalid field; null: all are valid. */
const char *pairs_options_fault(const hs_pairs_options *options);

/* Verifies a record's matches; sets record->found and the inliers. message[PAIR_MESSAGE_BYTES]: reason of a failure. */
hs_status pair_verify(const hs_pairs *run, verify_scratch *scratch, pair_record *record, char *message);

/* Makes the options with which a verified pair is matched again, guided by its model. */
void pair_guide(const hs_pairs *run, const pair_record *record, hs_match_options *guided);

/* ---- pair_memory.c: how a run divides its memory */

/* Sets image_bytes, the budgets, the devices that are left out and worker_count (0: the memory does not suffice for one
   worker) of a run whose other inputs are complete. threads: maximum number of workers. False: out of memory. */
bool pair_memory_plan(hs_pairs *run, int32_t threads);

/* True if the memory suffices for the pair's two images. */
bool pair_memory_fits(const hs_pairs *run, const hs_image_pair *pair);

/* ------------------------------------------------------------------ the end of a context */

struct hs_context;

/* Stops the threads of the context's run. The caller must still end the run, which then returns only pairs that are
   done. */
void pairs_detach(struct hs_context *context);

#endif
