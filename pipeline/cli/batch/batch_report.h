/*
 * What `batch` says: a progress line on a terminal, failures, records, the summary.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_REPORT_H
#define HARTSIFT_CLI_BATCH_BATCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/batch/batch_settings.h"
#include "pipeline/cli/common/progress.h"

typedef struct batch_report {
  bool has_json, is_quiet;
  progress_line line;
  size_t total, kept, done, failed; /* images; done: in this run */
  size_t damaged, low_range; /* images done that the decoder reported damage of; whose samples use little of 16 bits */
  size_t empty;              /* of those kept or done: without a feature */
  size_t changed, gone;      /* since an earlier run */
  size_t of_device[BATCH_DEVICES_MOST];
} batch_report;

/* Where the time of a batch went. */
typedef struct batch_times {
  double read_cpu_s, extract_cpu_s, write_cpu_s;
  double first_s;                         /* from the start to the first result */
  double read_busy, write_busy;           /* parts of their time that these threads did not wait for work */
  double device_busy[BATCH_DEVICES_MOST]; /* parts in which the devices had an image in flight */
} batch_times;

void batch_report_begin(batch_report *report, const option_set *set, size_t total);

/* Counts an image that has its record; names it when it failed. device: -1 for none. */
void batch_report_image(batch_report *report, const char *name, const batch_record *record, int32_t device,
                        double milliseconds);

/* Counts what was noticed in an image's file: names each that is damaged, and the first of a low range. */
void batch_report_notes(batch_report *report, const hs_load_notes *notes);
/* Counts and names an image of an earlier run whose file is gone. place: where its features are. */
void batch_report_gone(batch_report *report, const char *name, const char *place);

/* Draws the progress line, on a terminal. */
void batch_report_progress(batch_report *report);

/* Ends the progress line and says how it went. */
void batch_report_end(batch_report *report, const batch_devices *devices, const batch_times *times);

#endif
