/*
 * A run over many pairs: what its threads share.
 *
 * The scheduler plans phases and reads their images. Workers take the phase's pairs in turn as soon as both images are
 * read, match and verify them, and store a record; hs_pairs_next returns records in the order of the pairs. If a GPU
 * matches, the device's thread takes the pairs, many at a time, and workers verify its matches from a queue.
 * Everything below `lock` is read and written under it, unless a comment says whose it is.
 */
#ifndef HARTSIFT_PAIRS_PAIR_RUN_H
#define HARTSIFT_PAIRS_PAIR_RUN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pipeline/base/adopt.h"
#include "pipeline/context/engine.h"
#include "pipeline/geometry/verify.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/match_call.h"

/* ------------------------------------------------------------------ phases (pair_scheduler.c)

   A phase is a set of images that memory holds at a time, and all pairs among them. Where everything fits there is one
   phase. Where not, half of the memory is given to the first images of the next pairs and half to second images, so that
   of n images, of which memory holds m, each is read about 2 n / m times. */

/* Memory spaces that images take: the host's and the device's. */
enum { PAIR_SPACES = 2 };

typedef struct pair_phase_request {
  const hs_image_pair *pairs;
  const uint8_t *is_done;             /* of each pair; not 0: it is no candidate */
  size_t begin, end;                  /* those looked at, in order */
  size_t horizon;                     /* the end for pairs out of order, whose results must wait; at most `end` */
  const uint64_t *bytes[PAIR_SPACES]; /* that each image takes; null: nothing of this space */
  uint64_t budget[PAIR_SPACES];
  bool in_order; /* only candidates in a row from the first on */
} pair_phase_request;

/* marks [image_count]: the phase's images have its number, larger than of all earlier phases. */
typedef struct pair_phase {
  uint32_t *marks, number;
  uint32_t *pairs; /* [number of candidates]: indices of the phase's, ascending */
  size_t count;
} pair_phase;

/* Fills the phase; it has at least the first candidate, if there is one, whether that fits or not. */
void pair_phase_plan(const pair_phase_request *request, pair_phase *phase);

/* ------------------------------------------------------------------ the run */

enum { PAIR_SPACE_HOST, PAIR_SPACE_DEVICE };
enum {
  PAIR_MESSAGE_BYTES = 512,
  PAIRS_MATCHED_MAX = 2048, /* on a device, not yet verified */
  LOOKAHEAD_A_WORKER = 4    /* pairs near the head that are worked on however much is held */
};

typedef enum pair_image_state { PAIR_IMAGE_ABSENT, PAIR_IMAGE_READY, PAIR_IMAGE_FAILED } pair_image_state;

/* An image of the collection. Between its reading and the end of the phase only `state` changes, from ABSENT. */
typedef struct pair_image {
  pair_image_state state;
  hs_status status; /* of a failed one, and why: null or an allocation */
  char *message;
  const hs_features *features; /* of a ready one: the caller's, or own */
  hs_features own;
  uint64_t number;               /* of its reading, from 1 on */
  device_descriptors *on_device; /* null: none, or its descriptors are floats */
} pair_image;

/* A processed pair; one allocation, followed by the matches and the inliers. */
typedef struct pair_record {
  hs_pair_result result;
  hs_pair_geometry found;
  hs_match_pair *matches;
  uint8_t *inliers;
  size_t bytes;
  char *message;            /* of a failed one, stored after the struct */
  struct pair_record *next; /* of those that wait for verification */
} pair_record;

typedef struct pair_worker {
  hs_pairs *run;
  pthread_t thread;
  lone_matcher matcher;
  verify_scratch scratch;
} pair_worker;

struct hs_pairs {
  hs_context *context; /* null: destroyed */
  const hs_allocator *allocator;
  pid_t process;
  hs_collection collection;
  const hs_image_pair *pairs;
  size_t count;
  hs_pairs_options options;
  hs_match_options match;   /* options.match points here, */
  hs_verify_options verify; /* and options.verify, if there is one */
  stage_ops ops;
  uint64_t *image_bytes[PAIR_SPACES];
  uint64_t image_budget[PAIR_SPACES], held_budget;
  size_t features_max;        /* of an image that workers have memory for */
  const engine_pairs *engine; /* null: workers match */
  pair_matcher *device;       /* null: workers match; otherwise the device's thread does */
  uint64_t batch_bytes;

  pthread_mutex_t lock;
  pthread_cond_t work;     /* for workers: a pair may be taken, or the run ends */
  pthread_cond_t matching; /* for the device's thread: the same */
  pthread_cond_t progress; /* for the scheduler: a pair has ended, or has been given out */
  pthread_cond_t ready;    /* for hs_pairs_next */
  bool is_ending;
  hs_status failure; /* that ended the run */
  char message[PAIR_MESSAGE_BYTES];
  bool has_told_failure; /* hs_pairs_next: it gives nothing more, whatever is done yet */

  pair_image *images;
  uint64_t readings;
  pair_phase phase;
  size_t next;      /* of the phase's pairs, to be taken */
  size_t active;    /* taken, not done */
  uint8_t *is_done; /* of each pair */
  pair_record **records;
  size_t head;           /* the pair to be given out next */
  uint64_t held_bytes;   /* of records not returned yet: finished, or waiting for verification */
  uint64_t record_bytes; /* of all records so far, and how many: what one takes on average */
  size_t record_count;
  size_t lookahead;                    /* pairs from head on that are worked on however much is held */
  pair_record *given;                  /* the caller looks at it */
  pair_record *matched, *last_matched; /* wait for verification, oldest first */
  size_t matched_count;

  pthread_t scheduler;
  bool has_scheduler;
  pthread_t device_thread;
  bool has_device_thread;
  int32_t worker_count;
  pair_worker workers[];
};

/* ---- pair_state.c: records */

/* A record with room for matches; null: no memory. */
pair_record *pair_record_make(const hs_pairs *run, size_t index, size_t match_count, bool has_inliers);
/* One of a pair that failed. */
pair_record *pair_record_failed(const hs_pairs *run, size_t index, hs_status status, const char *message);
void pair_record_free(const hs_pairs *run, pair_record *record);

/* ---- pair_state.c; all under the lock */

/* Ends the run with a failure, the first of which counts. */
void pair_run_fail(hs_pairs *run, hs_status status, const char *message);

/* Wakes those who take pairs. */
void pair_run_wake(hs_pairs *run);

/* Hands a matched record on to verification, and takes the oldest one; null: none waits. */
void pair_run_put_matched(hs_pairs *run, pair_record *record);
pair_record *pair_run_take_matched(hs_pairs *run);

/* Whether the phase's next pair may be taken now. */
bool pair_run_may_take(const hs_pairs *run);

/* Whether nothing of the phase is left to do, or nothing of it may be done before other pairs are given out. */
bool pair_run_phase_over(const hs_pairs *run);

/* Puts a taken pair's record in its place; null: no memory for one. */
void pair_run_finish(hs_pairs *run, size_t index, pair_record *record);

/* ---- threads */

void *pair_scheduler_main(void *run);
void *pair_worker_main(void *worker);
void *pair_device_main(void *run);

/* ---- pair_images.c */

/* Reads an image that is absent, without the lock; by the scheduler. */
void pair_image_read(hs_pairs *run, uint32_t image);
void pair_image_forget(hs_pairs *run, uint32_t image);
/* Frees what the device holds of all images, before the run's device goes. */
void pair_images_leave_device(hs_pairs *run);

/* ---- pair_verify.c */

/* The options of a caller, of this version or another, over the defaults. */
hs_status pairs_adopt_options(const hs_pairs_options *callers, hs_pairs_options *mine, char reason[ADOPT_REASON_BYTES]);

/* What is wrong with a field of these, or null. */
const char *pairs_options_fault(const hs_pairs_options *options);

/* Verifies a record's matches: fills what was found and the inliers. message: why it failed, PAIR_MESSAGE_BYTES. */
hs_status pair_verify(const hs_pairs *run, verify_scratch *scratch, pair_record *record, char *message);

/* Options for matching a verified pair again along its model. */
void pair_guide(const hs_pairs *run, const pair_record *record, hs_match_options *guided);

/* How a run shares out the memory that it may take. */

/* Fills image_bytes, the budgets and worker_count (0: not even one worker fits) of a run whose other inputs are
   complete. threads: the most workers. False: no memory. */
bool pair_memory_plan(hs_pairs *run, int32_t threads);

/* Whether a pair's images fit at all. */
bool pair_memory_fits(const hs_pairs *run, const hs_image_pair *pair);

/* ------------------------------------------------------------------ the end of a context */

struct hs_context;

/* Stops the run's threads; the run itself stays its caller's to end, and gives no more pairs than were done. */
void pairs_detach(struct hs_context *context);

#endif
