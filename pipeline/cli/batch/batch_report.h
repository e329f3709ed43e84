/*
 * Settings of `batch`, and its output: a progress line on a terminal, failures, records of images, the summary.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_REPORT_H
#define HARTSIFT_CLI_BATCH_BATCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/progress.h"

/* ------------------------------------------------------------ settings: what the results depend on */

/* Inputs of the settings in addition to the options. */
typedef struct batch_inputs {
  bool as_stored;       /* JPEGs are read as stored, without their EXIF orientation */
  uint64_t mask_digest; /* digest of the mask; 0: none */
} batch_inputs;

/* Returns the settings on which features and files depend, as one line: the version of the arithmetic, the format, and
   the values of all options that change results (given or not); not those of devices, threads and limits. The caller
   frees it; null: out of memory. format: name of the format. */
char *batch_settings_text(const option_set *set, const hs_options *options, const char *format,
                          const batch_inputs *inputs);

typedef struct batch_report {
  bool has_json, is_quiet;
  progress_line line;
  size_t total, kept, done, failed; /* numbers of images; done: processed in this run */
  /* processed images with reported damage, and with 16-bit samples that hardly use their range */
  size_t damaged, low_range;
  size_t empty;         /* kept or processed images that have no features */
  size_t changed, gone; /* images that changed, or are missing, since an earlier run */
  size_t of_device[HS_BATCH_DEVICES_MAX];
} batch_report;

/* Times of a batch, seconds. */
typedef struct batch_times {
  double read_cpu_s, extract_cpu_s, write_cpu_s;
  double first_s;                           /* seconds from the start to the first result */
  double read_busy, write_busy;             /* share of the lifetime of these threads in which they worked */
  double device_busy[HS_BATCH_DEVICES_MAX]; /* share of time in which each device had an image in flight */
} batch_times;

void batch_report_begin(batch_report *report, const option_set *set, size_t total);

/* How the features of an image were computed: fields of hs_batch_result. */
typedef struct batch_computed {
  int32_t device; /* index of the device; -1: none */
  double milliseconds;
  int32_t way;
  const char *way_reason;
} batch_computed;

/* Counts an image with its record, and reports a failure. */
void batch_report_image(batch_report *report, const char *name, const batch_record *record,
                        const batch_computed *computed);

/* Counts damage and low value ranges of a file. Reports each damaged image, and the first image with a low range. */
void batch_report_notes(batch_report *report, const hs_load_notes *notes);
/* Counts and reports an image of an earlier run whose file no longer exists. place: where its features are. */
void batch_report_gone(batch_report *report, const char *name, const char *location);

/* Draws the progress line, if standard error is a terminal. */
void batch_report_progress(batch_report *report);

/* Removes the progress line and prints the summary. */
void batch_report_end(batch_report *report, const cli_devices *devices, const batch_times *times);

#endif
