/*
 * The images of a batch: selects those to process, and runs the threads that take results and write them.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_IMAGES_H
#define HARTSIFT_CLI_BATCH_BATCH_IMAGES_H

#include "os/os_threads.h"
#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/batch/batch_store.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/include/hartsift_batch.h"

/* An image that was added to the database but is not committed yet. */
typedef struct batch_pending {
  size_t position;
  batch_record record;
  batch_computed computed;
} batch_pending;

typedef struct batch_job batch_job;

/* A thread that takes results. With a database, the last thread writes rows and the others make them. */
typedef struct batch_writer {
  batch_job *job;
  int32_t number;
  pthread_t handle;
  bool started;
  double waited_s; /* time spent waiting for work, seconds */
} batch_writer;

/* A result whose rows are ready, but must wait until earlier images are in the database. */
typedef struct batch_prepared_result {
  const hs_batch_result *result; /* result to write; null: none */
  batch_prepared *prepared;      /* what was prepared for writing; null after a failure */
} batch_prepared_result;

struct batch_job {
  const option_set *set;
  int32_t shard, shards;
  hs_format format;
  cli_devices devices;
  hs_options options;       /* options of the extraction, without the device */
  hs_expert_options expert; /* options.expert points here */
  hs_options device_options[HS_BATCH_DEVICES_MAX];
  const hs_options *device_pointers[HS_BATCH_DEVICES_MAX];
  cli_input input;
  hs_image mask; /* image of --mask; data null: no mask */
  image_masks masks;
  batch_list list;
  batch_store store;
  batch_manifest manifest;
  hs_batch *run;
  size_t count, added;   /* number of images of this shard, and of those added to the run */
  batch_writer *writers; /* writer_count */
  int32_t writer_count;
  double started_s;
  /* Separate from the lock below, which a thread may hold while its output is blocked. */
  /* protects the fields below. Separate from `lock`, which a thread may hold while its output is blocked */
  pthread_mutex_t flow;
  pthread_cond_t changed;          /* rows are ready, or a writer has ended */
  batch_prepared_result *prepared; /* ring of results prepared for a database; image i is at index i % capacity */
  size_t capacity;
  int32_t writers_running;
  double write_cpu_s, waited_s, lived_s; /* sums over all writers, seconds */
  pthread_mutex_t lock;                  /* protects the fields below and the manifest */
  double first_s;                        /* time from the start to the first result, seconds */
  batch_report report;
  char fatal[CLI_MESSAGE_BYTES]; /* reason why nothing more can be recorded or written, which stops the batch; or "" */
  batch_pending pending[BATCH_DATABASE_PENDING]; /* used only by the thread that writes a database */
  size_t pending_count;
};

/* Opens job->run; job->device_options must be set. Message and statuses as in hs_batch_open. */
hs_status batch_images_open(batch_job *job, char *message, size_t message_bytes);

/* Starts the writer threads. After HS_ERR_THREAD or HS_ERR_MEMORY the run is stopped. */
hs_status batch_images_start(batch_job *job);

/* Adds images until enough are waiting, or all are added. Statuses: as hs_batch_add. */
hs_status batch_images_add(batch_job *job);

/* Waits at most `milliseconds` until all writers have ended. Returns whether they have. */
bool batch_images_wait(batch_job *job, int32_t milliseconds);

/* Ends the run and its threads; results that are not written are dropped. */
void batch_images_end(batch_job *job);

/* Reports an image of an earlier run whose file no longer exists; its features stay. */
void batch_images_note_gone(batch_job *job, const char *name);

/* Commits the database, then marks its images as done. Called by the writer, or after it has ended. */
void batch_images_commit(batch_job *job);

#endif
