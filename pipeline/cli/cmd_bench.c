/*
 * hartsift bench: measures the time of a frame on this machine, as a table or as JSON records; optionally against
 * another library, by a program that links that library.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "cpu/schedule/threads.h"
#include "pipeline/cli/bench/bench_rounds.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/image_io/image_io.h"

/* Program in the command's folder; it is built if OpenCV or VLFeat is found. */
#define BENCH_PEERS_PROGRAM "hartsift-bench-peers"

static const char *const bench_default_images[] = {"@scene:640x480", "@scene:1280x960", "@scene:1920x1080",
                                                   "@scene:3840x2160"};
enum { BENCH_DEFAULT_IMAGES = sizeof bench_default_images / sizeof bench_default_images[0] };

/* Maximum number of implementations: one thread, all threads, the GPU. */
enum { BENCH_JOBS_MAX = 3 };

typedef struct bench_job {
  const option_set *set;
  cli_input input;
  bench_report report;
  hs_options options[BENCH_JOBS_MAX];
  hs_expert_options expert; /* options.expert points here */
  size_t count;
  bool outlook_is_said;
} bench_job;

static bool has_value(const bench_job *job, option_id id) { return job->set->values[id].is_set; }

static bool gpu_is_usable(const hs_options *options) {
  hs_context *context = NULL;
  const bool usable = hs_create(&context, options) == HS_OK;
  hs_destroy(context);
  return usable;
}

/* Plans the jobs: one thread; all threads, or --threads; the GPU if requested or, with auto, if usable; GPU and CPU
   together on one frame if requested. */
static void plan_ways(bench_job *job) {
  hs_options options;
  cli_fill_options(job->set, &options, &job->expert);
  const hs_device device = options.device;
  if (device == HS_DEVICE_HYBRID) {
    job->options[job->count++] = options;
    return;
  }
  if (device != HS_DEVICE_CUDA) {
    options.device = HS_DEVICE_CPU;
    const int32_t most = options.threads > 0 ? options.threads : cpu_usable_threads();
    const bool only_wanted = has_value(job, OPTION_THREADS) && options.threads > 0;
    options.threads = most;
    if (!only_wanted && most > 1) {
      job->options[job->count] = options;
      job->options[job->count++].threads = 1;
    }
    job->options[job->count++] = options;
  }
  options.device = HS_DEVICE_CUDA;
  if (device == HS_DEVICE_CUDA || (device == HS_DEVICE_AUTO && gpu_is_usable(&options)))
    job->options[job->count++] = options;
}

static cli_exit fail(const char *name, const char *message) {
  cli_error_about(COMMAND_BENCH, name, message);
  return CLI_FAILED;
}

/* Prints the expected duration once. Each job is timed on one image; for the other images the time is estimated from
 * their pixels. */
static void say_outlook(bench_job *job, bench_contender *contenders, size_t count, const hs_image *image) {
  const bool is_default = job->set->operand_count == 0;
  const int images = is_default ? BENCH_DEFAULT_IMAGES : job->set->operand_count;
  const int32_t repeats = (int32_t)job->set->values[OPTION_REPEATS].integer;
  double round_ms = 0, seconds = 0;
  if (job->outlook_is_said || job->set->values[OPTION_QUIET].is_set) return;
  job->outlook_is_said = true;
  for (size_t i = 0; i < count; i++)
    if (!bench_rounds_try(&contenders[i], &round_ms)) return; /* a failure is reported when the job is measured */
  for (int i = 0; i < images; i++) {
    int32_t width = image->width, height = image->height;
    uint32_t seed;
    (void)scene_parse_name(is_default ? bench_default_images[i] : job->set->operands[i], &width, &height, &seed);
    const double share = (double)width * height / ((double)image->width * image->height);
    seconds += bench_rounds_seconds(round_ms * share, repeats);
  }
  cli_note("%d image%s, %zu way%s of each: about %.0f s", images, images == 1 ? "" : "s", count, count == 1 ? "" : "s",
           seconds < 1 ? 1.0 : seconds);
}

static cli_exit time_image(bench_job *job, const char *name, const hs_image *image) {
  char message[CLI_MESSAGE_BYTES] = "";
  bench_frame_job frames[BENCH_JOBS_MAX];
  bench_contender contenders[BENCH_JOBS_MAX];
  size_t open = 0;
  hs_status status = HS_OK;
  while (open < job->count && status == HS_OK) {
    status =
        bench_frame_job_open(&frames[open], &job->options[open], image, &contenders[open], message, sizeof message);
    open += status == HS_OK;
  }
  if (status == HS_OK) say_outlook(job, contenders, open, image);
  cli_exit result = cli_exit_of_create(status);
  if (result != CLI_DONE) {
    (void)fail(name, message);
  } else if (!bench_rounds_run(contenders, open, (int32_t)job->set->values[OPTION_REPEATS].integer, message,
                               sizeof message)) {
    const char *reason = hs_last_error(frames[0].context);
    result = fail(name, reason[0] != '\0' ? reason : message);
  }
  for (size_t i = 0; i < open; i++) {
    if (result == CLI_DONE) bench_report_add(&job->report, name, image->width, image->height, &contenders[i]);
    bench_frame_job_close(&frames[i]);
  }
  return result;
}

static cli_exit time_images(bench_job *job, const char *const *names, int name_count) {
  cli_exit result = CLI_DONE;
  bench_report_start(&job->report);
  for (int i = 0; i < name_count; i++) {
    const char *name = names[i];
    char message[CLI_MESSAGE_BYTES] = "";
    hs_image image = {0};
    const hs_status status = cli_load_image(&job->input, name, false, &image, message, sizeof message);
    const cli_exit one = status == HS_OK ? time_image(job, name, &image) : fail(name, message);
    hs_image_free(&image);
    result = one != CLI_DONE ? one : result;
    if (result == CLI_USAGE || result == CLI_NO_DEVICE) break; /* the failure is the same for every image */
  }
  bench_report_end(&job->report);
  return result;
}

/* Finds the path of the program in this program's folder. */
static bool find_peers_program(char *path, size_t bytes) {
  if (!os_program_path(path, bytes)) return false;
  char *slash = strrchr(path, '/');
  const size_t used = slash ? (size_t)(slash - path) + 1 : 0;
  if (used + sizeof BENCH_PEERS_PROGRAM > bytes) return false;
  memcpy(path + used, BENCH_PEERS_PROGRAM, sizeof BENCH_PEERS_PROGRAM);
  return os_may(path, OS_MAY_RUN);
}

/* Executes the program that links other libraries. Returns only on failure. */
static cli_exit run_peers(const option_set *set) {
  static const option_id passed[] = {OPTION_AGAINST, OPTION_REPEATS, OPTION_THREADS};
  enum { PASSED = sizeof passed / sizeof passed[0] };
  static const option_id refused[] = {OPTION_PROFILE,      OPTION_DEVICE,     OPTION_CONTRAST, OPTION_MAX_FEATURES,
                                      OPTION_FIRST_OCTAVE, OPTION_DESCRIPTOR, OPTION_VARIANT};
  char path[PATH_MAX];
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (set->values[refused[i]].is_set)
      return cli_fail(CLI_USAGE, COMMAND_BENCH,
                      "--%s cannot be used with --against, which sets the same options for both programs",
                      option_get(refused[i])->name);
  }
  if (!find_peers_program(path, sizeof path))
    return cli_fail(CLI_FAILED, COMMAND_BENCH,
                    "--against needs " BENCH_PEERS_PROGRAM
                    " next to this command: install OpenCV or VLFeat for developers (libopencv-dev, libvlfeat-dev), "
                    "then, in hartsift's sources, `cmake --preset default && cmake --build --preset default`, and run "
                    "build/default/hartsift");
  char **arguments = calloc((size_t)set->operand_count + 2 * PASSED + 4, sizeof *arguments);
  char flags[PASSED][32];
  size_t count = 0;
  if (!arguments) return cli_fail(CLI_FAILED, COMMAND_BENCH, "%s", hs_status_string(HS_ERR_MEMORY));
  arguments[count++] = path;
  for (size_t i = 0; i < PASSED; i++) {
    if (set->values[passed[i]].is_set) {
      snprintf(flags[i], sizeof flags[i], "--%s", option_get(passed[i])->name);
      arguments[count++] = flags[i];
      arguments[count++] =
          /* the parameter is not const, but nothing changes it */
          (char *)(uintptr_t)set->values[passed[i]].text;
    }
  }
  if (set->values[OPTION_JSON].is_set) arguments[count++] = (char *)(uintptr_t) "--json";
  arguments[count++] = (char *)(uintptr_t) "--";
  for (int i = 0; i < set->operand_count; i++) arguments[count++] = set->operands[i];
  os_replace_program(path, arguments);
  cli_error(COMMAND_BENCH, "%s: %s", path, strerror(errno));
  free(arguments);
  return CLI_FAILED;
}

cli_exit cmd_bench(const option_set *set) {
  if (set->values[OPTION_AGAINST].is_set) return run_peers(set);
  const bool has_images = set->operand_count > 0;
  const char *const *names = has_images ? (const char *const *)set->operands : bench_default_images;
  bench_job job = {.set = set};
  *(set->values[OPTION_JSON].is_set ? &job.report.json : &job.report.table) = stdout;
  plan_ways(&job);
  cli_input_init(&job.input, set, &job.options[0]);
  const cli_exit result = time_images(&job, names, has_images ? set->operand_count : BENCH_DEFAULT_IMAGES);
  cli_input_free(&job.input);
  return result;
}
