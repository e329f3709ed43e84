/*
 * What `stats` and `hist` share: one image as an array for the primitives, a context for the threads, and a text
 * result that goes to standard output or to a file.
 */
#ifndef HARTSIFT_PIPELINE_CLI_LEVELS_JOB_H
#define HARTSIFT_PIPELINE_CLI_LEVELS_JOB_H

#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/common/cli_common.h"

typedef struct levels_job {
  const option_set *set;
  hs_context *context;
  cli_input input;
  hs_image image; /* gray, 8 or 16 bits */
  hs_array array; /* its pixels */
  bool json;      /* by --json or the name of the output */
  char message[CLI_MESSAGE_BYTES];
} levels_job;

/* Loads the image and makes the context (on the CPU). Prints why when it fails; levels_job_free in any case. */
cli_exit levels_job_open(levels_job *job, const option_set *set);
void levels_job_free(levels_job *job);

/* The pixels of a gray image. */
hs_array levels_array(const hs_image *image);

/* Prints "NAME: message" and gives CLI_FAILED. */
cli_exit levels_job_fail(const levels_job *job, const char *name);

/* Calls `write` with what -o names, or standard output; the file appears whole or not at all. */
cli_exit levels_job_write(levels_job *job, void (*write)(FILE *out, const void *result), const void *result);

#endif
