/*
 * A device of a batch and the images it is working on.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_FEEDER_H
#define HARTSIFT_CLI_BATCH_BATCH_FEEDER_H

#include "pipeline/cli/batch/batch_run.h"
#include "pipeline/cli/batch/device_share.h"

enum {
  BATCH_FLYING_MOST = 256 /* the range of hs_options.in_flight */
};

struct batch_feeder {
  batch_run *batch;
  int32_t device;
  hs_context *context;                   /* null: lost */
  uint64_t submitted;                    /* to this context */
  batch_slot *flying[BATCH_FLYING_MOST]; /* image n of the context at n % BATCH_FLYING_MOST; null: none */
  int32_t count, most;                   /* of them */
  device_speed speed;                    /* this and the next under the run's lock */
  bool is_lost;
  double flying_pixels;
  double waited_s, lived_s;       /* of its thread, set when it ends */
  char lost[BATCH_MESSAGE_BYTES]; /* why the context is null */
};

/* Before the process uses a GPU: asks the driver for as many hardware queues as the lanes' streams need, because work that
   shares a queue waits for what is in front of it. What the user has set stays. */
void batch_want_queues(void);

/* Frees the picture and the mask of a slot. */
void batch_drop_pixels(batch_slot *slot);

/* Makes the context of feeder->device; message and statuses as batch_make has them. */
hs_status batch_feeder_open(batch_feeder *feeder, char *message, size_t message_bytes);

/* Takes images that are ready and submits them as there is room, until none will come. */
void batch_run_feeder(batch_thread *thread);

#endif
