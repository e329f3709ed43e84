/*
 * The images of a batch: which of them are wanted, and what becomes of each that has been read and extracted.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_IMAGES_H
#define HARTSIFT_CLI_BATCH_BATCH_IMAGES_H

#include <pthread.h>

#include "pipeline/cli/batch/batch_engine.h"
#include "pipeline/cli/batch/batch_feeder.h"
#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/batch/batch_store.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/image_masks.h"

/* An image in the database that is not permanent yet. */
typedef struct batch_pending {
  size_t place;
  batch_record record;
  int32_t device;
  double milliseconds;
} batch_pending;

typedef struct batch_job {
  const option_set *set;
  int32_t shard, shards;
  hs_format format;
  batch_devices devices;
  hs_options options;       /* but for the device */
  hs_expert_options expert; /* of options */
  hs_options device_options[BATCH_DEVICES_MOST];
  cli_input input;
  hs_image mask; /* of --mask; data null: none */
  image_masks masks;
  batch_list list;
  batch_store store;
  batch_manifest manifest;
  batch_run *run;
  pthread_mutex_t lock; /* of what follows, and of the manifest */
  batch_report report;
  char fatal[CLI_MESSAGE_BYTES];                 /* why nothing more can be recorded or written: the batch stops; "" */
  batch_pending pending[BATCH_DATABASE_PENDING]; /* of the one writer of a database */
  size_t pending_count;
} batch_job;

/* What the batch's threads are to do with the job's images. device_options must be filled; the job must live as long as
   they. */
void batch_images_work(batch_job *job, batch_work *work);

/* Names an image of an earlier run whose file is gone, and whose features stay. */
void batch_images_note_gone(batch_job *job, const char *name);

/* Makes permanent what is in the database, and only then calls it done. In the thread of the one writer, or after it. */
void batch_images_commit(batch_job *job);

#endif
