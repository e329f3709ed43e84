/*
 * Times several implementations of the same work, interleaved in one process, so that a change of the machine's speed
 * affects all of them. Used by the subcommand bench and the comparison with other libraries.
 */
#ifndef HARTSIFT_CLI_BENCH_BENCH_ROUNDS_H
#define HARTSIFT_CLI_BENCH_BENCH_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"

enum { BENCH_NAME_BYTES = 64, BENCH_ROUNDS_MAX = 10000 };

/* Results of one contender. */
typedef struct bench_figures {
  size_t features;
  double median_ms, min_ms, p90_ms;
  double ratio; /* median over the rounds of its time divided by the first contender's */
} bench_figures;

/* One implementation of the work. */
typedef struct bench_contender {
  char name[BENCH_NAME_BYTES];
  const char *profile, *device; /* as the records name them */
  int32_t threads;
  void *state;
  bool (*run)(void *state);              /* one frame, from pixels in memory to features in memory */
  size_t (*features)(const void *state); /* number of features of the last run */
  uint64_t (*digest)(const void *state); /* digest of the last run's features */
  bench_figures figures;                 /* filled by bench_rounds_run */
} bench_contender;

/* Verifies every contender (two runs give the same features), warms up, times `rounds` rounds and fills the figures.
   rounds 0: as many as fit into a few seconds, 5 to 50. False with a message. */
bool bench_rounds_run(bench_contender *contenders, size_t count, int32_t rounds, char *message, size_t message_bytes);

/* Runs a contender twice and adds the second run's milliseconds to the estimate. False: it failed. */
bool bench_rounds_try(const bench_contender *contender, double *round_ms);
/* Estimated seconds of bench_rounds_run with rounds of this duration. */
double bench_rounds_seconds(double round_ms, int32_t rounds);

/* ---- the report: a table in Markdown or a list of records in JSON */

typedef struct bench_report {
  FILE *table; /* null: none */
  FILE *json;  /* null: none */
  bool with_ratio;
  bool has_records;
} bench_report;

void bench_report_start(bench_report *report);
/* name: path of the image, printed without its folder. */
void bench_report_add(bench_report *report, const char *name, int32_t width, int32_t height,
                      const bench_contender *contender);
void bench_report_end(bench_report *report);
/* The name without its folder. */
const char *bench_short_name(const char *name);

/* ---- hartsift itself as a contender: one image with one set of options, frame after frame */

typedef struct bench_frame_job {
  hs_context *context;
  const hs_image *image;      /* must outlive the job */
  bool takes_view;            /* results stay in the context's memory: on a GPU, pinned memory */
  hs_features features;       /* without takes_view: reused from frame to frame */
  const hs_features *results; /* of the last frame */
} bench_frame_job;

/* Creates the context and fills the contender. On failure, with a message, nothing stays open. */
hs_status bench_frame_job_open(bench_frame_job *job, const hs_options *options, const hs_image *image,
                               bench_contender *contender, char *message, size_t message_bytes);
void bench_frame_job_close(bench_frame_job *job);

/* "lowe", "opencv", ... */
const char *bench_profile_name(hs_profile profile);

#endif
