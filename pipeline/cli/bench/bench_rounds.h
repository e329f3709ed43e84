/*
 * Times several implementations of the same work in turn, in one process, so that a change of the machine's speed
 * affects all of them. Used by the subcommand bench and by the comparison with other libraries.
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
  double ratio; /* median, over the rounds, of this contender's time divided by the first contender's */
} bench_figures;

/* One implementation of the work. */
typedef struct bench_contender {
  char name[BENCH_NAME_BYTES];
  const char *profile, *device; /* names in records */
  int32_t threads;
  void *state;
  bool (*run)(void *state);              /* runs one frame: from pixels in memory to features in memory */
  size_t (*features)(const void *state); /* number of features of the last run */
  uint64_t (*digest)(const void *state); /* digest of the last run's features */
  bench_figures figures;                 /* set by bench_rounds_run */
} bench_contender;

/* Verifies every contender (two runs must give the same features), warms up, times `rounds` rounds and computes the
   figures. rounds 0: as many as fit into a few seconds, between 5 and 50. False with a message. */
bool bench_rounds_run(bench_contender *contenders, size_t count, int32_t rounds, char *message, size_t message_bytes);

/* Runs a contender twice and adds the second run's time to *round_ms. False: it failed. */
bool bench_rounds_try(const bench_contender *contender, double *round_ms);
/* Returns the estimated seconds of bench_rounds_run with rounds of this duration. */
double bench_rounds_seconds(double round_ms, int32_t rounds);

/* ---- the report: a table in Markdown or a list of records in JSON */

typedef struct bench_report {
  FILE *table; /* output for the table; null: none */
  FILE *json;  /* output for JSON; null: none */
  bool with_ratio;
  bool has_records;
} bench_report;

void bench_report_start(bench_report *report);
/* Adds the results of an image. name: path of the image, which is printed without its folder. */
void bench_report_add(bench_report *report, const char *name, int32_t width, int32_t height,
                      const bench_contender *contender);
void bench_report_end(bench_report *report);
/* Returns the name without its folder. */
const char *bench_short_name(const char *name);

/* ---- hartsift itself as a contender: one image with one set of options, frame after frame */

typedef struct bench_frame_job {
  hs_context *context;
  const hs_image *image;      /* must outlive the job */
  bool takes_view;            /* results stay in memory of the context; on a GPU, pinned memory */
  hs_features features;       /* results without takes_view; the list is reused for each frame */
  const hs_features *results; /* results of the last frame */
} bench_frame_job;

/* Creates the context and sets up the contender. After a failure, with a message, nothing stays open. */
hs_status bench_frame_job_open(bench_frame_job *job, const hs_options *options, const hs_image *image,
                               bench_contender *contender, char *message, size_t message_bytes);
void bench_frame_job_close(bench_frame_job *job);

/* Returns a profile's name: "lowe", "opencv", ... */
const char *bench_profile_name(hs_profile profile);

#endif
