/*
 * Frames of hartsift for the benches; see bench_frame_job.h.
 */
#include "pipeline/cli/bench/bench_frame_job.h"

#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/formats/common/content_digest.h"

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
