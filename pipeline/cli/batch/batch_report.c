/*
 * Progress and records of a batch; see batch_report.h.
 */
#include "pipeline/cli/batch/batch_report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { REPORT_BAR_COLUMNS = 30, REPORT_TIME_BYTES = 32 };

void batch_report_begin(batch_report *report, const option_set *set, size_t total) {
  *report = (batch_report){.has_json = set->values[OPTION_JSON].given,
                           .is_quiet = set->values[OPTION_QUIET].given,
                           .total = total,
                           .start_ms = cli_milliseconds()};
  report->on_terminal = !report->is_quiet && isatty(STDERR_FILENO) == 1;
}

static void clear_line(batch_report *report) {
  if (report->line_is_drawn) {
    fputs("\r\033[K", stderr);
    report->line_is_drawn = false;
  }
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
  if (device >= 0 && record->state == BATCH_DONE) report->of_device[device]++;
  if (report->has_json) print_record(name, record, milliseconds);
  if (record->state == BATCH_FAILED) {
    clear_line(report);
    cli_error_about(COMMAND_BATCH, name, record->message ? record->message : hs_status_string(record->status));
  }
}

/* Images a second in this run; 0 until the first image is done. */
static double rate_of(const batch_report *report, double seconds) {
  return seconds > 0 ? (double)(report->done + report->failed) / seconds : 0;
}

static void format_time_left(const batch_report *report, double rate, char text[REPORT_TIME_BYTES]) {
  const size_t left = report->total - report->kept - report->done - report->failed;
  const double seconds = rate > 0 ? (double)left / rate : 0;
  if (rate <= 0 || seconds > 1e8) {
    snprintf(text, REPORT_TIME_BYTES, "-:--");
    return;
  }
  const long whole = (long)(seconds + 0.5);
  if (whole >= 3600)
    snprintf(text, REPORT_TIME_BYTES, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    snprintf(text, REPORT_TIME_BYTES, "%ld:%02ld", whole / 60, whole % 60);
}

void batch_report_progress(batch_report *report) {
  if (!report->on_terminal || report->total == 0) return;
  const size_t ended = report->kept + report->done + report->failed;
  const double rate = rate_of(report, (cli_milliseconds() - report->start_ms) * 1e-3);
  const int filled = (int)((double)ended / (double)report->total * REPORT_BAR_COLUMNS);
  char left[REPORT_TIME_BYTES], failed[48] = "";
  format_time_left(report, rate, left);
  if (report->failed > 0) snprintf(failed, sizeof failed, ", %zu failed", report->failed);
  static const char full[] = "##############################";
  fprintf(stderr, "\r[%.*s%*s] %zu of %zu, %.1f a second, %s left%s\033[K", filled, full, REPORT_BAR_COLUMNS - filled,
          "", ended, report->total, rate, left, failed);
  fflush(stderr);
  report->line_is_drawn = true;
}

static void print_summary(const batch_report *report, double seconds, const batch_devices *devices,
                          const batch_cpu_seconds *cpu) {
  printf("{\"summary\": {\"images\": %zu, \"done\": %zu, \"kept\": %zu, \"failed\": %zu, \"seconds\": %.3f, "
         "\"images_per_second\": %.3f, \"cpu_seconds\": {\"read\": %.3f, \"extract\": %.3f, \"write\": %.3f}, "
         "\"devices\": [",
         report->total, report->done, report->kept, report->failed, seconds, rate_of(report, seconds), cpu->read,
         cpu->extract, cpu->write);
  for (int32_t i = 0; i < devices->count; i++) {
    char name[32];
    batch_device_name(&devices->each[i], name, sizeof name);
    printf("%s{\"device\": \"%s\", \"images\": %zu}", i > 0 ? ", " : "", name, report->of_device[i]);
  }
  printf("]}}\n");
}

void batch_report_end(batch_report *report, const batch_devices *devices, const batch_cpu_seconds *cpu) {
  const double seconds = (cli_milliseconds() - report->start_ms) * 1e-3;
  clear_line(report);
  if (report->has_json) print_summary(report, seconds, devices, cpu);
  if (!report->is_quiet) {
    fprintf(stderr, "%zu images: %zu done, %zu kept, %zu failed, %.1f s, %.1f a second on ", report->total,
            report->done, report->kept, report->failed, seconds, rate_of(report, seconds));
    for (int32_t i = 0; i < devices->count; i++) {
      char name[32];
      batch_device_name(&devices->each[i], name, sizeof name);
      fprintf(stderr, "%s%s", i > 0 ? ", " : "", name);
    }
    fputc('\n', stderr);
  }
}
