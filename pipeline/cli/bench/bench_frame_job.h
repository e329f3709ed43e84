/*
 * hartsift itself as a contender of bench_rounds.h: one image with one set of options, frame after frame.
 */
#ifndef HARTSIFT_CLI_BENCH_BENCH_FRAME_JOB_H
#define HARTSIFT_CLI_BENCH_BENCH_FRAME_JOB_H

#include "pipeline/cli/bench/bench_rounds.h"
#include "pipeline/include/hartsift.h"

typedef struct bench_frame_job {
  hs_context *context;
  const hs_image *image;      /* must outlive the job */
  bool takes_view;            /* results stay in the context's memory: on a GPU, pinned memory that it wrote */
  hs_features features;       /* without takes_view: kept from frame to frame */
  const hs_features *results; /* of the last frame */
} bench_frame_job;

/* Makes the context and fills the contender. After a failure, with a message, nothing is left to close. */
hs_status bench_frame_job_open(bench_frame_job *job, const hs_options *options, const hs_image *image,
                               bench_contender *contender, char *message, size_t message_bytes);
void bench_frame_job_close(bench_frame_job *job);

/* "lowe", "opencv", ... */
const char *bench_profile_name(hs_profile profile);

#endif
