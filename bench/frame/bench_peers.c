/*
 * Compares hartsift with OpenCV's cv::SIFT or VLFeat on the CPU.
 *
 * Measures the peak memory of each contender in a separate process. Then times all contenders on the same pictures,
 * interleaved in one process, on one thread and on all. Installed as hartsift-bench-peers, the program that `hartsift
 * bench --against` executes.
 *
 * usage: hartsift-bench-peers --against opencv|vlfeat [--repeats N] [--threads N] [--json] [--] [IMAGE ...]
 * Times profile lowe and the profile named after the other library; profile vlfeat at contrast 0.04, as VLFeat.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/frame/peer_library.h"
#include "cpu/schedule/threads.h"
#include "pipeline/cli/bench/bench_rounds.h"

enum { CONTENDERS = 3, MESSAGE_BYTES = 1024, TEXT_BYTES = 64 };

typedef struct peers_options {
  /* child: "N" in a child process, which prints its peak memory after running only contender N, or no contender */
  const char *against, *child;
  int32_t repeats, threads; /* 0: the default number */
  bool json;
  const char *const *images;
  int image_count;
} peers_options;

/* The contenders for one picture and one number of threads: hartsift with profile lowe, hartsift with the peer's
 * profile, and the peer. */
typedef struct peers_group {
  bool is_opencv;
  bench_frame_job frames[CONTENDERS - 1];
  bench_contender contenders[CONTENDERS];
  size_t open;
} peers_group;

static int complain(const char *what, const char *why) {
  fprintf(stderr, "hartsift-bench-peers: %s: %s\n", what, why);
  return 1;
}

static bool peer_is_built(bool is_opencv) { return is_opencv ? HARTSIFT_BENCH_OPENCV : HARTSIFT_BENCH_VLFEAT; }

static bool open_peer(peers_group *group, const hs_image *image, int32_t threads) {
  bench_contender *contender = &group->contenders[CONTENDERS - 1];
  (void)threads;
#if HARTSIFT_BENCH_OPENCV
  if (group->is_opencv) return peer_opencv_open(contender, image, threads);
#endif
#if HARTSIFT_BENCH_VLFEAT
  if (!group->is_opencv) return peer_vlfeat_open(contender, image);
#endif
  (void)contender;
  (void)image;
  return false;
}

static void close_contender(peers_group *group, size_t which) {
  if (which < CONTENDERS - 1) {
    bench_frame_job_close(&group->frames[which]);
    return;
  }
#if HARTSIFT_BENCH_OPENCV
  if (group->is_opencv) peer_opencv_close(&group->contenders[which]);
#endif
#if HARTSIFT_BENCH_VLFEAT
  if (!group->is_opencv) peer_vlfeat_close(&group->contenders[which]);
#endif
}

/* Opens contender number `which`. Returns false with a message on failure. */
static bool open_contender(peers_group *group, size_t which, const hs_image *image, int32_t threads, char *message) {
  if (which == CONTENDERS - 1) {
    snprintf(message, MESSAGE_BYTES, "out of memory");
    return open_peer(group, image, threads);
  }
  hs_options options;
  hs_options_init(&options, which == 0 ? HS_PROFILE_LOWE : group->is_opencv ? HS_PROFILE_OPENCV : HS_PROFILE_VLFEAT);
  options.device = HS_DEVICE_CPU;
  options.threads = threads;
  options.contrast = 0.04f;
  return bench_frame_job_open(&group->frames[which], &options, image, &group->contenders[which], message,
                              MESSAGE_BYTES) == HS_OK;
}

static bool time_group(const peers_options *o, bench_report *report, const char *name, const hs_image *image,
                       int32_t threads) {
  char message[MESSAGE_BYTES] = "";
  peers_group group = {.is_opencv = strcmp(o->against, "opencv") == 0};
  while (group.open < CONTENDERS && open_contender(&group, group.open, image, threads, message)) group.open++;
  const bool done =
      group.open == CONTENDERS && bench_rounds_run(group.contenders, CONTENDERS, o->repeats, message, sizeof message);
  for (size_t i = 0; done && i < CONTENDERS; i++)
    bench_report_add(report, name, image->width, image->height, &group.contenders[i]);
  if (!done) (void)complain(name, message);
  for (size_t i = 0; i < group.open; i++) close_contender(&group, i);
  return done;
}

static bool load_picture(const char *name, hs_image *image) {
  char message[MESSAGE_BYTES] = "";
  const hs_load_options load = {.struct_size = sizeof load, .message = message, .message_bytes = sizeof message};
  if (hs_load_image(name, &load, image) != HS_OK) {
    (void)complain(name, message);
    return false;
  }
  if (image->type != HS_U8) {
    (void)complain(name, "not an 8-bit picture, which is what all of the libraries take");
    hs_image_free(image);
    return false;
  }
  return true;
}

static bool time_picture(const peers_options *o, bench_report *report, const char *name) {
  hs_image image = {0};
  const int32_t most = o->threads > 0 ? o->threads : cpu_usable_threads();
  if (!load_picture(name, &image)) return false;
  bool done = true;
  if (o->threads == 0 && most > 1) done = time_group(o, report, name, &image, 1);
  done = time_group(o, report, name, &image, most) && done;
  hs_image_free(&image);
  return done;
}

/* ---- peak memory: each contender runs in a separate process, which prints its maximum resident size in KiB */

static int run_child(const peers_options *o) {
  char message[MESSAGE_BYTES] = "";
  hs_image image = {0};
  struct rusage usage;
  const size_t which = (size_t)strtoul(o->child, NULL, 10);
  peers_group group = {.is_opencv = strcmp(o->against, "opencv") == 0};
  if (o->image_count != 1 || !load_picture(o->images[0], &image)) return 1;
  if (which < CONTENDERS) { /* otherwise the child measures a process that only holds the picture */
    const int32_t threads = o->threads > 0 ? o->threads : cpu_usable_threads();
    if (!open_contender(&group, which, &image, threads, message)) return complain(o->images[0], message);
    if (!group.contenders[which].run(group.contenders[which].state)) return complain(o->images[0], "the frame failed");
  }
  if (getrusage(RUSAGE_SELF, &usage) != 0) return complain(o->images[0], "no resource usage");
  printf("%ld\n", usage.ru_maxrss);
  return 0;
}

/* Returns the peak resident size of a child process in KiB, 0 if the child failed. */
static long child_peak(const peers_options *o, const char *program, const char *image, size_t which) {
  char number[TEXT_BYTES], threads[TEXT_BYTES], answer[TEXT_BYTES] = "";
  int ends[2];
  snprintf(number, sizeof number, "%zu", which);
  snprintf(threads, sizeof threads, "%" PRId32, o->threads);
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(program, program, "--against", o->against, "--child", number, "--threads", threads, "--", image,
          (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got = 1; got > 0 && used < sizeof answer - 1; used += (size_t)(got > 0 ? got : 0))
    got = read(ends[0], answer + used, sizeof answer - 1 - used);
  close(ends[0]);
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return ended ? strtol(answer, NULL, 10) : 0;
}

static bool report_memory(const peers_options *o, const char *program, FILE *table) {
  static const char *const opencv_names[CONTENDERS + 1] = {"hartsift lowe", "hartsift opencv", "OpenCV", "none"};
  static const char *const vlfeat_names[CONTENDERS + 1] = {"hartsift lowe", "hartsift vlfeat", "VLFeat", "none"};
  const char *const *names = strcmp(o->against, "opencv") == 0 ? opencv_names : vlfeat_names;
  bool done = true;
  fprintf(table,
          "| image | program | peak resident MiB | above a process with the picture only |\n|---|---|--:|--:|\n");
  for (int i = 0; i < o->image_count; i++) {
    const char *image = bench_short_name(o->images[i]);
    const long idle = child_peak(o, program, o->images[i], CONTENDERS);
    for (size_t which = 0; which < CONTENDERS; which++) {
      const long peak = child_peak(o, program, o->images[i], which);
      const double peak_mib = (double)peak / 1024.0;
      const double above_mib = (double)(peak - idle) / 1024.0;
      const bool measured = peak > 0 && idle > 0;
      done = done && measured;
      fprintf(table, "| %s | %s | %.1f | %.1f |\n", image, names[which], peak_mib, above_mib);
    }
  }
  fputc('\n', table);
  fflush(table);
  return done;
}

/* ---- the program */

static bool parse(peers_options *o, int argc, char **argv) {
  static const char *const default_images[] = {"@scene:640x480", "@scene:1280x960", "@scene:1920x1080",
                                               "@scene:3840x2160"};
  static const struct option known[] = {
      {"against", required_argument, NULL, 'a'}, {"child", required_argument, NULL, 'c'},
      {"json", no_argument, NULL, 'j'},          {"repeats", required_argument, NULL, 'r'},
      {"threads", required_argument, NULL, 't'}, {NULL, 0, NULL, 0},
  };
  *o =
      (peers_options){.images = default_images, .image_count = (int)(sizeof default_images / sizeof default_images[0])};
  for (int option = 0; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (option) {
    case 'a':
      o->against = optarg;
      break;
    case 'c':
      o->child = optarg;
      break;
    case 'j':
      o->json = true;
      break;
    case 'r':
      o->repeats = (int32_t)strtol(optarg, NULL, 10);
      break;
    case 't':
      o->threads = (int32_t)strtol(optarg, NULL, 10);
      break;
    default:
      return false;
    }
  }
  if (optind < argc) {
    o->images = (const char *const *)(argv + optind);
    o->image_count = argc - optind;
  }
  return o->against != NULL && (strcmp(o->against, "opencv") == 0 || strcmp(o->against, "vlfeat") == 0);
}

static bool time_all(const peers_options *o, bench_report *report) {
  bool done = true;
  bench_report_start(report);
  for (int i = 0; i < o->image_count; i++) done = time_picture(o, report, o->images[i]) && done;
  bench_report_end(report);
  return done;
}

static int run_all(const peers_options *o, const char *program) {
  bench_report report = {.with_ratio = true};
  *(o->json ? &report.json : &report.table) = stdout;
  /* Memory is measured first: a child inherits the peak of this process, which must therefore still be small. */
  bool done = o->json || report_memory(o, program, stdout);
  done = time_all(o, &report) && done;
  return done ? 0 : 1;
}

int main(int argc, char **argv) {
  peers_options options;
  if (!parse(&options, argc, argv)) {
    fprintf(
        stderr,
        "usage: hartsift-bench-peers --against opencv|vlfeat [--repeats N] [--threads N] [--json] [--] [IMAGE ...]\n");
    return 2;
  }
  if (!peer_is_built(strcmp(options.against, "opencv") == 0))
    return complain(options.against, "this program was built without that library");
  return options.child ? run_child(&options) : run_all(&options, argv[0]);
}
