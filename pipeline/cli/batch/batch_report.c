/*
 * Settings, progress and records of a batch; see batch_report.h.
 */
#include "pipeline/cli/batch/batch_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/features.h"
#include "pipeline/formats/common/text_cursor.h"

void batch_report_begin(batch_report *report, const option_set *set, size_t total) {
  *report = (batch_report){
      .has_json = set->values[OPTION_JSON].is_set, .is_quiet = set->values[OPTION_QUIET].is_set, .total = total};
  progress_line_begin(&report->line, report->is_quiet);
}

static void print_record(const char *name, const batch_record *record, const batch_computed *computed) {
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
    printf(", \"milliseconds\": %.3f, \"way\": \"%s\", \"way_reason\": \"%s\"", computed->milliseconds,
           hs_frame_way_name((hs_frame_way)computed->way), computed->way_reason);
  else
    printf(", \"milliseconds\": null, \"way\": null, \"way_reason\": null");
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

void batch_report_image(batch_report *report, const char *name, const batch_record *record,
                        const batch_computed *computed) {
  if (record->state == BATCH_KEPT)
    report->kept++;
  else if (record->state == BATCH_DONE)
    report->done++;
  else
    report->failed++;
  report->empty += record->state != BATCH_FAILED && record->features == 0;
  if (computed->device >= 0 && record->state == BATCH_DONE) report->of_device[computed->device]++;
  if (report->has_json) print_record(name, record, computed);
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

void batch_report_gone(batch_report *report, const char *name, const char *location) {
  char text[CLI_MESSAGE_BYTES];
  report->gone++;
  progress_line_clear(&report->line);
  snprintf(text, sizeof text, "is gone; its features stay in %s", location);
  cli_error_about(COMMAND_BATCH, name, text);
}

/* Returns the images per second of this run, without failed ones. */
static double rate_of(const batch_report *report) { return progress_line_rate(&report->line, report->done); }

void batch_report_progress(batch_report *report) {
  const size_t worked = report->done + report->failed;
  progress_line_draw(&report->line, report->kept + worked, report->total, worked, report->failed);
}

static void print_summary(const batch_report *report, double seconds, const cli_devices *devices,
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
    cli_device_name(&devices->each[i], name, sizeof name);
    printf("%s{\"device\": \"%s\", \"images\": %zu}", i > 0 ? ", " : "", name, report->of_device[i]);
  }
  printf("]}}\n");
}

void batch_report_end(batch_report *report, const cli_devices *devices, const batch_times *times) {
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
      cli_device_name(&devices->each[i], name, sizeof name);
      fprintf(stderr, "%s%s", i > 0 ? ", " : "", name);
    }
    fputc('\n', stderr);
  }
}

/* ------------------------------------------------------------------ settings */

/* ---- settings */

/* True for options of pooling. They are written only if pooling is requested, so that a batch begun by an older version
 * can be continued. */
static bool pools(option_id id) {
  return id == OPTION_DSP || id == OPTION_DSP_SIZES || id == OPTION_DSP_SMALLEST || id == OPTION_DSP_LARGEST;
}

static void write_choice(FILE *out, const char *choices, int32_t index) {
  for (; index > 0; index--) choices += strcspn(choices, "|") + 1;
  fprintf(out, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* Writes " name=value" with the value of the option's field of hs_options. */
static void write_setting(FILE *out, const option_spec *spec, const hs_options *options) {
  const char *field = (const char *)options + spec->field;
  int32_t integer = 0;
  float number = 0;
  uint64_t count = 0;
  char text[NUMBER_TEXT_BYTES];
  fprintf(out, " %s=", spec->name);
  switch (spec->kind) {
  case OPTION_KIND_NUMBER:
    memcpy(&number, field, sizeof number);
    number_from_float(number, text);
    fputs(text, out);
    break;
  case OPTION_KIND_COUNT:
  case OPTION_KIND_BYTES:
    memcpy(&count, field, sizeof count);
    fprintf(out, "%" PRIu64, count);
    break;
  default:
    memcpy(&integer, field, sizeof integer);
    if (spec->kind == OPTION_KIND_CHOICE)
      write_choice(out, spec->choices, integer);
    else
      fprintf(out, "%" PRId32, integer);
    break;
  }
}

/* Writes " name=text" as a part of one line. */
static void write_text(FILE *out, const char *name, const char *text) {
  fprintf(out, " %s=", name);
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < ' ' || *text == '%')
      fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
    else
      fputc(*text, out);
}

char *batch_settings_text(const option_set *set, const hs_options *options, const char *format,
                          const batch_inputs *inputs) {
  os_text text;
  if (!os_text_open(&text)) return NULL;
  FILE *out = text.stream;
  fprintf(out, "method=%d format=%s profile=", (int)origin_method_version(options), format);
  write_choice(out, option_get(OPTION_PROFILE)->choices, (int32_t)options->profile);
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (spec->field != OPTION_NO_FIELD && option_belongs_to((option_id)id, COMMAND_BATCH) &&
        spec->group != HS_OPTIONS_WORK && (options->dsp || !pools((option_id)id)) &&
        (options->affine || id != OPTION_AFFINE))
      write_setting(out, spec, options);
  }
  fprintf(out, " region=%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32, options->region_x, options->region_y,
          options->region_width, options->region_height);
  fprintf(out, " grid=%" PRId32 "x%" PRId32, options->grid_columns, options->grid_rows);
  fprintf(out, " single-camera=%d", set->values[OPTION_SINGLE_CAMERA].is_set);
  /* written only if given, so that a batch begun by an older version can be continued */
  if (set->values[OPTION_SINGLE_CAMERA_PER_FOLDER].is_set) fprintf(out, " single-camera-per-folder=1");
  if (set->values[OPTION_CAMERA_ID].is_set) fprintf(out, " camera-id=%" PRId64, set->values[OPTION_CAMERA_ID].integer);
  if (set->values[OPTION_CAMERA_MODEL].is_set) fprintf(out, " camera-model=%s", set->values[OPTION_CAMERA_MODEL].text);
  if (set->values[OPTION_CAMERA_PARAMS].is_set)
    fprintf(out, " camera-params=%s", set->values[OPTION_CAMERA_PARAMS].text);
  fprintf(out, " no-exif=%d decode-scale=%" PRId32 " mask=%016" PRIx64, inputs->as_stored, cli_decode_scale(set),
          inputs->mask_digest);
  if (set->values[OPTION_MAX_IMAGE_SIZE].is_set)
    fprintf(out, " max-image-size=%" PRId64, set->values[OPTION_MAX_IMAGE_SIZE].integer);
  if (set->values[OPTION_VALUE_RANGE].is_set)
    fprintf(out, " value-range=%.9g:%.9g", set->values[OPTION_VALUE_RANGE].number,
            set->values[OPTION_VALUE_RANGE].high);
  if (set->values[OPTION_STRICT].is_set) fprintf(out, " strict=1");
  if (set->values[OPTION_MASKS].is_set) write_text(out, "masks", set->values[OPTION_MASKS].text);
  return os_text_close(&text) ? text.text : NULL;
}
