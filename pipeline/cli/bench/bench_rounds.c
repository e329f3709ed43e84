/* Timing of several contenders in turn, and its report; see bench_rounds.h. */
#include "pipeline/cli/bench/bench_rounds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/formats/common/content_digest.h"

/* ---- frames of hartsift */

static bool run_frame(void *state) {
  bench_frame_job *job = state;
  if (job->takes_view) return hs_extract_view(job->context, job->image, NULL, &job->results) == HS_OK;
  job->results = &job->features;
  return hs_extract(job->context, job->image, NULL, &job->features) == HS_OK;
}

static size_t count_features(const void *state) { return ((const bench_frame_job *)state)->results->count; }

static uint64_t digest_results(const void *state) { return digest_features(((const bench_frame_job *)state)->results); }

const char *bench_profile_name(hs_profile profile) {
  static const char *const names[] = {"lowe", "opencv", "vlfeat", "colmap"};
  return names[profile];
}

static const char *bench_device_name(hs_device device) {
  return device == HS_DEVICE_CUDA ? "cuda" : device == HS_DEVICE_HYBRID ? "hybrid" : "cpu";
}

hs_status bench_frame_job_open(bench_frame_job *job, const hs_options *options, const hs_image *image,
                               bench_contender *contender, char *message, size_t message_bytes) {
  memset(job, 0, sizeof *job);
  message[0] = '\0';
  const hs_status status = hs_create_explained(&job->context, options, message, message_bytes);
  if (status != HS_OK) {
    if (message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
    return status;
  }
  job->image = image;
  job->takes_view = options->device == HS_DEVICE_CUDA;
  const bool uses_threads = options->device != HS_DEVICE_CUDA;
  *contender = (bench_contender){.name = "hartsift",
                                 .profile = bench_profile_name(options->profile),
                                 .device = bench_device_name(options->device),
                                 .threads = !uses_threads          ? 1
                                            : options->threads > 0 ? options->threads
                                                                   : cpu_usable_threads(),
                                 .state = job,
                                 .run = run_frame,
                                 .features = count_features,
                                 .digest = digest_results};
  return HS_OK;
}

void bench_frame_job_close(bench_frame_job *job) {
  hs_features_free(&job->features);
  hs_destroy(job->context);
  memset(job, 0, sizeof *job);
}

/* ---- rounds */

/* With rounds 0: time for all rounds of one image, milliseconds, and limits of their number. */
static const double bench_budget_ms = 6000.0;
enum { BENCH_AUTO_ROUNDS_MIN = 5, BENCH_AUTO_ROUNDS_MAX = 50, BENCH_WARM_UP = 1 };

static bool verify(const bench_contender *c, char *message, size_t message_bytes) {
  uint64_t first = 0;
  for (int run = 0; run < 2; run++) {
    if (!c->run(c->state)) {
      snprintf(message, message_bytes, "%s (%s, %" PRId32 " threads) failed", c->name, c->profile, c->threads);
      return false;
    }
    const uint64_t digest = c->digest(c->state);
    if (run > 0 && digest != first) {
      snprintf(message, message_bytes, "%s (%s, %" PRId32 " threads): two runs give different features", c->name,
               c->profile, c->threads);
      return false;
    }
    first = digest;
  }
  return true;
}

static double time_run(const bench_contender *c) {
  const double start = cli_milliseconds();
  (void)c->run(c->state); /* the result was verified before */
  return cli_milliseconds() - start;
}

static int compare_times(const void *one, const void *other) {
  const double a = *(const double *)one;
  const double b = *(const double *)other;
  return (a > b) - (a < b);
}

static double sorted_median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_times);
  return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Computes the figures. times: for each contender a row of `rounds` entries; scratch: one row. */
static void fill_figures(bench_contender *contenders, size_t count, const double *times, size_t rounds,
                         double *scratch) {
  for (size_t c = 0; c < count; c++) {
    bench_figures *figures = &contenders[c].figures;
    for (size_t r = 0; r < rounds; r++) scratch[r] = times[c * rounds + r] / times[r];
    figures->ratio = sorted_median(scratch, rounds);
    memcpy(scratch, times + c * rounds, rounds * sizeof *scratch);
    figures->median_ms = sorted_median(scratch, rounds);
    figures->min_ms = scratch[0];
    figures->p90_ms = scratch[(rounds * 9) / 10];
    figures->features = contenders[c].features(contenders[c].state);
  }
}

/* Returns how many rounds of this duration fit the budget. */
static size_t rounds_within_budget(double round_ms) {
  const double fitting = bench_budget_ms / (round_ms > 0.001 ? round_ms : 0.001);
  return fitting < BENCH_AUTO_ROUNDS_MIN ? BENCH_AUTO_ROUNDS_MIN
                                         : (fitting > BENCH_AUTO_ROUNDS_MAX ? BENCH_AUTO_ROUNDS_MAX : (size_t)fitting);
}

static size_t rounds_that_fit(const bench_contender *contenders, size_t count) {
  double round_ms = 0.0;
  for (size_t c = 0; c < count; c++) round_ms += time_run(&contenders[c]);
  return rounds_within_budget(round_ms);
}

bool bench_rounds_try(const bench_contender *contender, double *round_ms) {
  if (!contender->run(contender->state)) return false;
  *round_ms += time_run(contender);
  return true;
}

double bench_rounds_seconds(double round_ms, int32_t rounds) {
  const size_t kept = rounds > 0 ? (size_t)rounds : rounds_within_budget(round_ms);
  const size_t extra = 2 + BENCH_WARM_UP +
                       /* runs: two for verification, those for warm-up, and one to estimate the number of rounds */
                       (rounds > 0 ? 0 : 1);
  return (double)(kept + extra) * round_ms * 1e-3;
}

bool bench_rounds_run(bench_contender *contenders, size_t count, int32_t rounds, char *message, size_t message_bytes) {
  for (size_t c = 0; c < count; c++)
    if (!verify(&contenders[c], message, message_bytes)) return false;
  const size_t kept = rounds > 0 ? (size_t)rounds : rounds_that_fit(contenders, count);
  double *times = kept <= BENCH_ROUNDS_MAX ? malloc((count + 1) * kept * sizeof *times) : NULL;
  if (!times) {
    snprintf(message, message_bytes, "out of memory for %zu rounds", kept);
    return false;
  }
  for (size_t r = 0; r < kept + BENCH_WARM_UP; r++) {
    for (size_t turn = 0; turn < count; turn++) {
      /* the order rotates, so that no contender always follows one other contender */
      const size_t c = (turn + r) % count;
      const double ms = time_run(&contenders[c]);
      if (r >= BENCH_WARM_UP) times[c * kept + r - BENCH_WARM_UP] = ms;
    }
  }
  fill_figures(contenders, count, times, kept, times + count * kept);
  free(times);
  return true;
}

const char *bench_short_name(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : name;
}

void bench_report_start(bench_report *report) {
  if (report->table) {
    fprintf(report->table,
            "| image | size | program | profile | device | threads | features | median ms | min ms | p90 ms |%s\n",
            report->with_ratio ? " times the first |" : "");
    fprintf(report->table, "|---|---|---|---|---|--:|--:|--:|--:|--:|%s\n", report->with_ratio ? "--:|" : "");
  }
  if (report->json) fputc('[', report->json);
}

void bench_report_add(bench_report *report, const char *name, int32_t width, int32_t height, const bench_contender *c) {
  const bench_figures *f = &c->figures;
  if (report->table) {
    fprintf(report->table, "| %s | %" PRId32 "x%" PRId32 " | %s | %s | %s | %" PRId32 " | %zu | %.3f | %.3f | %.3f |",
            bench_short_name(name), width, height, c->name, c->profile, c->device, c->threads, f->features,
            f->median_ms, f->min_ms, f->p90_ms);
    if (report->with_ratio) fprintf(report->table, " %.2f |", f->ratio);
    fputc('\n', report->table);
    fflush(report->table);
  }
  if (report->json) {
    fprintf(report->json, "%s\n  {\"name\": ", report->has_records ? "," : "");
    cli_write_json_string(report->json, bench_short_name(name));
    fprintf(report->json, ", \"width\": %" PRId32 ", \"height\": %" PRId32 ", \"program\": ", width, height);
    cli_write_json_string(report->json, c->name);
    fprintf(report->json,
            ", \"profile\": \"%s\", \"device\": \"%s\", \"threads\": %" PRId32 ", \"features\": %zu, "
            "\"median_ms\": %.4f, \"min_ms\": %.4f, \"p90_ms\": %.4f, \"ratio\": %.4f}",
            c->profile, c->device, c->threads, f->features, f->median_ms, f->min_ms, f->p90_ms, f->ratio);
  }
  report->has_records = true;
}

void bench_report_end(bench_report *report) {
  if (report->json) fputs("\n]\n", report->json);
}
