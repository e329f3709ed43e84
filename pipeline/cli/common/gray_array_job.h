/*
 * What `stats` and `hist` share: one image as an array for the primitives, a context for the threads, and a text
 * result that goes to standard output or to a file.
 */
#ifndef HARTSIFT_CLI_COMMON_GRAY_ARRAY_JOB_H
#define HARTSIFT_CLI_COMMON_GRAY_ARRAY_JOB_H

#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/common/cli_common.h"

typedef struct gray_array_job {
  const option_set *set;
  hs_context *context;
  cli_input input;
  hs_image image; /* gray, 8 or 16 bits */
  hs_array array; /* its pixels */
  bool json;      /* by --json or the name of the output */
  char message[CLI_MESSAGE_BYTES];
} gray_array_job;

/* Loads the image and makes the context (on the CPU). Prints why when it fails; gray_array_job_free in any case. */
cli_exit gray_array_job_open(gray_array_job *job, const option_set *set);
void gray_array_job_free(gray_array_job *job);

/* The pixels of a gray image. */
hs_array gray_array_of(const hs_image *image);

/* Prints "NAME: message" and gives CLI_FAILED. */
cli_exit gray_array_job_fail(const gray_array_job *job, const char *name);

/* Calls `write` with what -o names, or standard output; the file appears whole or not at all. */
cli_exit gray_array_job_write(gray_array_job *job, void (*write)(FILE *out, const void *result), const void *result);

#endif
