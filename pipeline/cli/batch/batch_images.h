/*
 * The images of a batch: which of them are wanted, and what becomes of each that has been read and extracted; the threads
 * that take results and write them.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_IMAGES_H
#define HARTSIFT_CLI_BATCH_BATCH_IMAGES_H

#include <pthread.h>

#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/batch/batch_store.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/include/hartsift_batch.h"

/* An image in the database that is not permanent yet. */
typedef struct batch_pending {
  size_t place;
  batch_record record;
  int32_t device;
  double milliseconds;
} batch_pending;

typedef struct batch_job batch_job;

/* A thread that takes results. The last one of a database's writes, the others make rows for it. */
typedef struct batch_writer {
  batch_job *job;
  int32_t number;
  pthread_t handle;
  bool started;
  double waited_s; /* for work */
} batch_writer;

/* A result that waits for its turn in the database. */
typedef struct batch_prepared_result {
  const hs_batch_result *result; /* null: none */
  batch_prepared *prepared;      /* null after a failure */
} batch_prepared_result;

struct batch_job {
  const option_set *set;
  int32_t shard, shards;
  hs_format format;
  batch_devices devices;
  hs_options options;       /* but for the device */
  hs_expert_options expert; /* of options */
  hs_options device_options[BATCH_DEVICES_MOST];
  const hs_options *device_pointers[BATCH_DEVICES_MOST];
  cli_input input;
  hs_image mask; /* of --mask; data null: none */
  image_masks masks;
  batch_list list;
  batch_store store;
  batch_manifest manifest;
  hs_batch *run;
  size_t count, added;   /* images of this shard, and those that the run has */
  batch_writer *writers; /* writer_count */
  int32_t writer_count;
  double started_s;
  /* Not the lock below: a thread may hold that for as long as its output is blocked. */
  pthread_mutex_t flow;            /* of what follows */
  pthread_cond_t changed;          /* a row of a database is there; a writer ended */
  batch_prepared_result *prepared; /* of a database: image i at i % capacity */
  size_t capacity;
  int32_t writers_running;
  double write_cpu_s, waited_s, lived_s; /* sums over the writers */
  pthread_mutex_t lock;                  /* of what follows, and of the manifest */
  double first_s;                        /* from the start to the first result */
  batch_report report;
  char fatal[CLI_MESSAGE_BYTES];                 /* why nothing more can be recorded or written: the batch stops; "" */
  batch_pending pending[BATCH_DATABASE_PENDING]; /* of the one writer of a database */
  size_t pending_count;
};

/* Makes job->run. device_options must be filled. message and statuses as hs_batch_open has them. */
hs_status batch_images_open(batch_job *job, char *message, size_t message_bytes);

/* Starts the threads that take results. HS_ERR_THREAD, HS_ERR_MEMORY: the run is stopped. */
hs_status batch_images_start(batch_job *job);

/* Adds images until enough of them wait for the run, or all are added. Statuses of hs_batch_add. */
hs_status batch_images_add(batch_job *job);

/* Waits until all threads that take results have ended or the time has passed; true when they have ended. */
bool batch_images_wait(batch_job *job, int32_t milliseconds);

/* Ends run and threads; what is not written is dropped. */
void batch_images_end(batch_job *job);

/* Names an image of an earlier run whose file is gone, and whose features stay. */
void batch_images_note_gone(batch_job *job, const char *name);

/* Makes permanent what is in the database, and only then calls it done. In the thread of the one writer, or after it. */
void batch_images_commit(batch_job *job);

#endif
