/*
 * Progress line, messages and records of a batch; see batch_report.h.
 */
#include "pipeline/cli/batch/batch_report.h"

#include <inttypes.h>
#include <string.h>

void batch_report_begin(batch_report *report, const option_set *set, size_t total) {
  *report = (batch_report){
      .has_json = set->values[OPTION_JSON].given, .is_quiet = set->values[OPTION_QUIET].given, .total = total};
  progress_line_begin(&report->line, report->is_quiet);
}

static void print_record(const char *name, const batch_record *record, double milliseconds) {
  const bool is_done = record->status == HS_OK;
  printf("{\"image\": ");
  cli_write_json_string(stdout, name);
  if (record->width > 0)
    printf(", \"width\": %" PRId32 ", \"height\": %" PRId32, record->width, record->height);
  else
    printf(", \"width\": null, \"height\": null");
  if (is_done)
    printf(", \"features\": %" PRIu64, record->features);
  else
    printf(", \"features\": null");
  if (record->state == BATCH_DONE)
    printf(", \"milliseconds\": %.3f", milliseconds);
  else
    printf(", \"milliseconds\": null");
  if (is_done)
    printf(", \"digest\": \"%016" PRIx64 "\"", record->digest);
  else
    printf(", \"digest\": null");
  printf(", \"kept\": %s, \"status\": \"%s\", \"error\": ", record->state == BATCH_KEPT ? "true" : "false",
         hs_status_name(record->status));
  cli_write_json_string(stdout, is_done ? NULL : record->message);
  printf("}\n");
  fflush(stdout);
}

void batch_report_image(batch_report *report, const char *name, const batch_record *record, int32_t device,
                        double milliseconds) {
  if (record->state == BATCH_KEPT)
    report->kept++;
  else if (record->state == BATCH_DONE)
    report->done++;
  else
    report->failed++;
  report->empty += record->state != BATCH_FAILED && record->features == 0;
  if (device >= 0 && record->state == BATCH_DONE) report->of_device[device]++;
  if (report->has_json) print_record(name, record, milliseconds);
  if (record->state == BATCH_FAILED) {
    progress_line_clear(&report->line);
    cli_error_about(COMMAND_BATCH, name, record->message ? record->message : hs_status_string(record->status));
  }
}

void batch_report_notes(batch_report *report, const hs_load_notes *notes) {
  if (notes->damages > 0) {
    report->damaged++;
    progress_line_clear(&report->line);
    cli_error(COMMAND_BATCH, "warning: %s: pixels may be wrong, --strict refuses them", notes->damage);
  }
  if (notes->is_low_range && report->low_range++ == 0) {
    progress_line_clear(&report->line);
    cli_error(COMMAND_BATCH, "warning: %s (--value-range LOW:HIGH)", notes->low_range);
  }
}

/* Prints a warning for each kind of damage in processed images. */
static void report_doubts(const batch_report *report) {
  if (report->damaged > 0)
    cli_error(COMMAND_BATCH, "warning: decoders reported damage in %zu of %zu images done", report->damaged,
              report->done);
  if (report->low_range > 0)
    cli_error(COMMAND_BATCH, "warning: %zu of %zu images done %s little of the range of the samples: see --value-range",
              report->low_range, report->done, report->low_range == 1 ? "uses" : "use");
}

void batch_report_gone(batch_report *report, const char *name, const char *place) {
  char text[CLI_MESSAGE_BYTES];
  report->gone++;
  progress_line_clear(&report->line);
  snprintf(text, sizeof text, "is gone; its features stay in %s", place);
  cli_error_about(COMMAND_BATCH, name, text);
}

/* Images per second in this run, without failed ones. */
static double rate_of(const batch_report *report) { return progress_line_rate(&report->line, report->done); }

void batch_report_progress(batch_report *report) {
  const size_t worked = report->done + report->failed;
  progress_line_draw(&report->line, report->kept + worked, report->total, worked, report->failed);
}

static void print_summary(const batch_report *report, double seconds, const batch_devices *devices,
                          const batch_times *times) {
  printf("{\"summary\": {\"images\": %zu, \"done\": %zu, \"kept\": %zu, \"failed\": %zu, \"without_features\": %zu, "
         "\"changed\": %zu, \"gone\": %zu, "
         "\"seconds\": %.3f, "
         "\"images_per_second\": %.3f, \"first_second\": %.3f, \"cpu_seconds\": {\"read\": %.3f, \"extract\": %.3f, "
         "\"write\": %.3f}, \"busy\": {\"read\": %.3f, \"write\": %.3f, \"devices\": [",
         report->total, report->done, report->kept, report->failed, report->empty, report->changed, report->gone,
         seconds, rate_of(report), times->first_s, times->read_cpu_s, times->extract_cpu_s, times->write_cpu_s,
         times->read_busy, times->write_busy);
  for (int32_t i = 0; i < devices->count; i++) printf("%s%.3f", i > 0 ? ", " : "", times->device_busy[i]);
  printf("]}, \"devices\": [");
  for (int32_t i = 0; i < devices->count; i++) {
    char name[32];
    batch_device_name(&devices->each[i], name, sizeof name);
    printf("%s{\"device\": \"%s\", \"images\": %zu}", i > 0 ? ", " : "", name, report->of_device[i]);
  }
  printf("]}}\n");
}

void batch_report_end(batch_report *report, const batch_devices *devices, const batch_times *times) {
  const double seconds = progress_line_seconds(&report->line);
  progress_line_clear(&report->line);
  if (report->has_json) print_summary(report, seconds, devices, times);
  report_doubts(report);
  if (!report->is_quiet) {
    fprintf(stderr, "%zu image%s: %zu done, %zu kept, %zu failed", report->total, report->total == 1 ? "" : "s",
            report->done, report->kept, report->failed);
    if (report->changed > 0) fprintf(stderr, ", %zu changed since they were done", report->changed);
    if (report->gone > 0) fprintf(stderr, ", %zu gone", report->gone);
    if (report->empty > 0) fprintf(stderr, ", %zu without a feature", report->empty);
    fprintf(stderr, ", %.1f s", seconds);
    if (report->done > 0) fprintf(stderr, ", %.1f a second on ", rate_of(report));
    for (int32_t i = 0; i < devices->count && report->done > 0; i++) {
      char name[32];
      batch_device_name(&devices->each[i], name, sizeof name);
      fprintf(stderr, "%s%s", i > 0 ? ", " : "", name);
    }
    fputc('\n', stderr);
  }
}
