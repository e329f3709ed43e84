/*
 * The CUDA driver as cuda/runtime loads and calls it, played by fake_cuda.c: versions, missing functions and errors
 * become reasons; kernels are looked up once, and only those that are launched; a list becomes a graph, which is
 * changed.
 *
 * A process loads one driver, so each case is this program again: with the variable TEST_DRIVER_MODE, with a fake
 * driver or without one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "cuda/runtime/device.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/launch_list.h"

/* Bytes of kernels, which the fake driver does not read. */
const unsigned char hartsift_kernels_runtime_kernels[] = {1};
extern const unsigned char hartsift_kernels_played[];
const unsigned char hartsift_kernels_played[] = {2};

LAUNCH_MODULE(played)
LAUNCH_KERNEL(played, first_kernel, uint32_t, const void *)
LAUNCH_KERNEL(played, large_kernel, uint32_t)
LAUNCH_KERNEL(played, missing_kernel, uint32_t)

/* ------------------------------------------------------------------ what a case prints */

static void print_reason(void) {
  char reason[400] = "";
  device_info info;
  const int32_t count = device_count(reason, sizeof reason);
  printf("%d devices: %s\n", (int)count, reason);
  if (count == 0) return;
  const stage_status st = device_query(0, &info, reason, sizeof reason);
  printf("%s, %d.%d, driver %d, code %d, status %d: %s\n", info.name, (int)info.major, (int)info.minor,
         (int)info.driver, (int)info.code, (int)st, reason);
}

typedef union fake_function {
  void *object;
  const char *(*text)(void);
  void (*act)(void);
} fake_function;

static fake_function function_of_fake(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return (fake_function){.object = library ? dlsym(library, name) : NULL};
}

static void print_log(void) {
  const fake_function log = function_of_fake("fake_cuda_log");
  printf("%s--\n", log.object ? log.text() : "no fake driver\n");
}

static void check(stage_status got) {
  if (got != STAGE_OK) printf("status %d: %s\n", (int)got, device_error_text());
}

/* Without device_enter the first device is used; with it, contexts are restored. */
static void print_contexts(void) {
  int32_t outer = -1, inner = -1;
  void *memory = NULL;
  check(device_alloc(&memory, 16));
  device_free(memory);
  check(device_enter(1, &outer));
  check(device_enter(1, &inner));
  device_leave(inner);
  device_leave(outer);
  check(device_enter(7, &outer));
  printf("previous %d\n", (int)outer);
  print_log();
}

/* The GPU that alone is shown keeps its number, and the driver calls it 0. Later calls have no effect. */
static void print_shown(void) {
  int32_t outer = -1, none = -1;
  void *memory = NULL;
  char reason[400] = "";
  device_info info;
  device_show_only(3);
  printf("%d devices\n", (int)device_count(reason, sizeof reason));
  check(device_query(3, &info, reason, sizeof reason));
  device_show_only(1);
  printf("CUDA_VISIBLE_DEVICES %s\n", getenv("CUDA_VISIBLE_DEVICES"));
  check(device_alloc(&memory, 16));
  device_free(memory);
  check(device_enter(3, &outer));
  device_leave(outer);
  check(device_enter(0, &none));
  print_log();
}

static launch_shape shape_of(uint32_t blocks, size_t shared_bytes, cuda_stream stream) {
  return (launch_shape){launch_1d(blocks), launch_1d(64), shared_bytes, stream};
}

static void print_launches(void) {
  cuda_stream stream = NULL;
  check(device_stream_create_urgent(&stream, 2));
  check(launch_first_kernel(shape_of(1, 0, stream), 11, NULL));
  check(launch_first_kernel(shape_of(2, 100, stream), 12, NULL));
  check(launch_large_kernel(shape_of(3, 50000, stream), 13));
  check(launch_large_kernel(shape_of(4, 50000, stream), 14));
  for (int i = 0; i < 2; i++) printf("resident %u\n", launch_resident_blocks(&first_kernel, 64, 0));
  check(launch_missing_kernel(shape_of(1, 0, stream), 15));
  device_stream_destroy(stream);
  print_log();
}

/* Lists a clearing of `bytes` bytes, a copy of them to the host and a kernel. */
static void list_work(launch_list *list, listed_graph *graph, unsigned char *from, unsigned char *to, size_t bytes,
                      uint32_t blocks) {
  check(launch_list_begin(list));
  stage_status st = device_clear(from, bytes, NULL);
  if (st == STAGE_OK) st = device_copy_from(to, from, bytes, NULL);
  if (st == STAGE_OK) st = launch_first_kernel(shape_of(blocks, 0, NULL), 0, to);
  check(launch_list_end(list, st));
  check(launch_list_to_graph(list, NULL, graph));
}

static void print_lists(void) {
  unsigned char from[64], to[64];
  launch_list *list = calloc(1, launch_list_bytes());
  listed_graph graph = {0};
  if (!list) return;
  for (size_t bytes = 16; bytes <= 64; bytes *= 2) {
    memset(from, 1, sizeof from);
    memset(to, 2, sizeof to);
    list_work(list, &graph, from, to, bytes, (uint32_t)bytes);
    printf("listed: %d\n", to[0]);
    check(device_graph_launch(graph.graph, NULL));
    printf("run: %d %d\n", to[bytes - 1], bytes < sizeof to ? to[bytes] : -1);
    print_log();
  }
  listed_graph_free(&graph);
  free(list);
}

/* A kernel is launched in a capture for the first time. */
static void print_capture(void) {
  cuda_graph graph = NULL;
  check(device_capture_begin(NULL));
  check(launch_first_kernel(shape_of(1, 0, NULL), 11, NULL));
  check(device_capture_end(NULL, &graph));
  check(device_graph_launch(graph, NULL));
  device_graph_destroy(graph);
  print_log();
}

/* Rows of three bytes go to the device and, from its second row on, to the host. */
static void print_rows(void) {
  const char from[] = "abc.def.ghi.";
  char to[] = "------------";
  void *memory = NULL;
  check(device_alloc(&memory, 64));
  check(device_copy_rows_to(memory, 16, from, 4, 3, 3, NULL));
  check(device_copy_rows_to(to, 4, (char *)memory + 16, 16, 3, 2, NULL));
  printf("%s, pageable %d %d\n", to, device_is_pageable(to), device_is_pageable(memory));
  device_free(memory);
}

static void print_sizes(void) {
  void *memory = &memory, *mapped = &mapped;
  check(device_alloc(&memory, 0));
  printf("%d\n", !memory);
  device_free(memory);
  memory = &memory;
  check(device_alloc_pinned(&memory, &mapped, 0));
  printf("%d %d\n", !memory, !mapped);
  device_free_pinned(memory);
}

static void print_foreign_stream(void) {
  int32_t previous = -1;
  cuda_stream stream = NULL;
  check(device_enter(0, &previous));
  check(device_stream_create(&stream));
  printf("foreign %d\n", device_stream_is_foreign(stream));
  device_stream_destroy(stream);
  device_leave(previous);
}

/* Another user of the driver resets the device. */
static void print_reset(void) {
  int32_t previous = -1;
  check(device_enter(0, &previous));
  device_leave(previous);
  function_of_fake("fake_cuda_reset").act();
  check(device_enter(0, &previous));
  device_leave(previous);
  print_reason();
}

/* In a forked child there is no driver, and nothing waits for a lock. */
static void print_fork(void) {
  void *memory = NULL;
  int32_t previous = -1;
  int status = -1;
  check(device_enter(0, &previous));
  check(device_alloc(&memory, 16));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    device_free(memory);
    device_leave(previous);
    check(device_enter(0, &previous));
    check(launch_first_kernel(shape_of(1, 0, NULL), 11, NULL));
    printf("lost %d\n", device_is_lost());
    print_reason();
    fflush(stdout);
    _exit(0);
  }
  const bool ended = waitpid(child, &status, 0) == child;
  printf("ended %d %d, lost %d\n", ended, status, device_is_lost());
  device_free(memory);
  device_leave(previous);
}

enum { THREADS = 4 };

static void *launch_often(void *start) {
  (void)pthread_barrier_wait(start);
  for (uint32_t i = 0; i < 20; i++) {
    check(launch_first_kernel(shape_of(1, 0, NULL), i, NULL));
    check(launch_large_kernel(shape_of(1, 50000, NULL), i));
    if (launch_resident_blocks(&first_kernel, 64, 0) != 6) printf("resident\n");
  }
  return NULL;
}

/* Kernels are launched for the first time by several threads at once. */
static void print_threads(void) {
  pthread_t threads[THREADS];
  pthread_barrier_t start;
  (void)pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) (void)pthread_create(&threads[i], NULL, launch_often, &start);
  for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
  (void)pthread_barrier_destroy(&start);
  print_log();
}

static const struct {
  const char *name;
  void (*print)(void);
} modes[] = {{"reason", print_reason},     {"contexts", print_contexts}, {"shown", print_shown},
             {"launches", print_launches}, {"lists", print_lists},       {"capture", print_capture},
             {"rows", print_rows},         {"sizes", print_sizes},       {"foreign", print_foreign_stream},
             {"reset", print_reset},       {"fork", print_fork},         {"threads", print_threads}};

TEST_AT_START(print_mode) {
  const char *mode = getenv("TEST_DRIVER_MODE");
  for (size_t i = 0; mode && i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp(mode, modes[i].name) == 0) {
      modes[i].print();
      exit(0);
    }
}

/* ------------------------------------------------------------------ what it must print */

/* Runs a mode; folder null: without a driver. */
static void run(const char *folder, const char *settings, const char *mode, char *out, size_t bytes) {
  char command[1000], program[400] = "";
  assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  (void)snprintf(command, sizeof command, "FAKE_CUDA='%s' LD_LIBRARY_PATH='%s' TEST_DRIVER_MODE=%s '%s' 2>&1", settings,
                 folder ? folder : "/nonexistent", mode, program);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  const size_t length = fread(out, 1, bytes - 1, pipe);
  out[length] = 0;
  assert_int_equal(pclose(pipe), 0);
}

static void assert_reason(const char *folder, const char *settings, const char *words) {
  char out[2000];
  run(folder, settings, "reason", out, sizeof out);
  if (!strstr(out, words)) fail_msg("%s: \"%s\" without \"%s\"", settings, out, words);
}

TEST(test_reasons) {
  void *real = dlopen("libcuda.so.1", RTLD_NOW);
  if (!real) assert_reason(NULL, "", "0 devices: no CUDA driver");
  if (real) (void)dlclose(real);
  assert_reason(FAKE_CUDA, "version=12040", "1 devices: \nfake GPU 0, 9.2, driver 12040, code 1, status 0: \n");
  assert_reason(FAKE_CUDA, "version=12000", "driver 12000, code 1, status 0: \n");
  assert_reason(FAKE_CUDA, "version=11080", "too old: it knows CUDA up to 11.8, this build needs 12.0");
  assert_reason(FAKE_CUDA_LACKING, "version=12040",
                "0 devices: the CUDA driver lacks the function cuGraphExecKernelNodeSetParams_v2");
  assert_reason(FAKE_CUDA_LACKING, "version=11080", "too old");
  assert_reason(FAKE_CUDA, "init=100", "0 devices: the driver shows no GPU");
  assert_reason(FAKE_CUDA, "init=803", "of different versions");
  assert_reason(FAKE_CUDA, "init=999", "a fake error");
  assert_reason(FAKE_CUDA, "gpus=0", "0 devices: the driver shows no GPU");
  assert_reason(FAKE_CUDA, "load=209", "status 3: this build has no code for the device");
}

TEST(test_contexts) {
  char out[2000];
  run(FAKE_CUDA, "gpus=2", "contexts", out, sizeof out);
  assert_string_equal(out, "status 3: a fake error\nprevious -1\nretain 0\nretain 1\n--\n");
}

TEST(test_one_device_is_shown) {
  char out[2000];
  unsetenv("CUDA_VISIBLE_DEVICES");
  run(FAKE_CUDA, "gpus=1", "shown", out, sizeof out);
  assert_string_equal(out, "4 devices\nCUDA_VISIBLE_DEVICES 3\nstatus 3: a fake error\n"
                           "retain 0\nload\nkernel device_probe_kernel\n--\n");
}

/* A module is loaded once, a kernel looked up once; its shared memory is allowed where it needs that. */
TEST(test_launches) {
  char out[4000];
  run(FAKE_CUDA, "", "launches", out, sizeof out);
  assert_string_equal(out, "resident 6\nresident 6\nstatus 3: a fake error\n"
                           "retain 0\nstream -5\nload\nkernel first_kernel\n"
                           "launch first_kernel 1x1x1 64x1x1 0: 11\nrun first_kernel\n"
                           "launch first_kernel 2x1x1 64x1x1 100: 12\nrun first_kernel\n"
                           "kernel large_kernel\nset large_kernel 50000\n"
                           "launch large_kernel 3x1x1 64x1x1 50000: 13\nrun large_kernel\n"
                           "launch large_kernel 4x1x1 64x1x1 50000: 14\nrun large_kernel\n"
                           "resident first_kernel 64 0\n--\n");
}

TEST(test_rows) {
  char out[2000];
  run(FAKE_CUDA, "", "rows", out, sizeof out);
  assert_string_equal(out, "def-ghi-----, pageable 1 0\n");
}

TEST(test_capture) {
  char out[2000];
  run(FAKE_CUDA, "", "capture", out, sizeof out);
  assert_string_equal(out, "retain 0\nload\nkernel first_kernel\nlaunch first_kernel 1x1x1 64x1x1 0: 11\n"
                           "instantiate 8\nrun first_kernel\n--\n");
}

#define LISTED_ONCE "load\nkernel first_kernel\nlaunch first_kernel 16x1x1 64x1x1 0: 0\n"

/* The first list makes a graph, later ones change it; if the driver refuses, they make another. */
TEST(test_lists) {
  char out[4000];
  run(FAKE_CUDA, "", "lists", out, sizeof out);
  assert_string_equal(out, "listed: 2\nrun: 0 2\nretain 0\n" LISTED_ONCE "instantiate 8\nrun first_kernel\n--\n"
                           "listed: 2\nrun: 0 2\nchange first_kernel 32 64\nrun first_kernel\n--\n"
                           "listed: 2\nrun: 0 -1\nchange first_kernel 64 64\nrun first_kernel\n--\n");
  run(FAKE_CUDA, "update=1 priorities=0", "lists", out, sizeof out);
  assert_non_null(strstr(out, "listed: 2\nrun: 0 -1\nlaunch first_kernel 64x1x1 64x1x1 0: 0\n"
                              "instantiate 8\ninstantiate 0\nrun first_kernel\n--\n"));
}

TEST(test_sizes_of_zero) {
  char out[2000];
  run(FAKE_CUDA, "", "sizes", out, sizeof out);
  assert_string_equal(out, "1\n1 1\n");
}

TEST(test_foreign_stream) {
  char out[2000];
  run(FAKE_CUDA, "", "foreign", out, sizeof out);
  assert_string_equal(out, "foreign 0\n");
  run(FAKE_CUDA, "foreign=1", "foreign", out, sizeof out);
  assert_string_equal(out, "foreign 1\n");
}

/* The driver gives the new context another number, or calls the old one destroyed. */
TEST(test_reset) {
  char out[2000];
  for (int i = 0; i < 2; i++) {
    run(FAKE_CUDA, i == 0 ? "" : "destroyed=1", "reset", out, sizeof out);
    assert_non_null(strstr(out, "status 3: the program has reset the device (cudaDeviceReset)"));
    assert_non_null(strstr(out, "fake GPU 0, 9.2, driver 13000, code 1, status 3: the program has reset the device"));
  }
}

TEST(test_forked_child) {
  char out[2000];
  run(FAKE_CUDA, "", "fork", out, sizeof out);
  assert_string_equal(out,
                      "status 3: this process was forked from one that had used a GPU\n"
                      "status 3: this process was forked from one that had used a GPU\n"
                      "lost 1\n0 devices: this process was forked from one that had used a GPU, which CUDA does not "
                      "support: start processes anew (Python: multiprocessing's \"spawn\"), or fork before the "
                      "first use of a GPU\nended 1 0, lost 0\n");
}

static size_t count_of(const char *text, const char *words) {
  size_t count = 0;
  for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) count++;
  return count;
}

TEST(test_threads) {
  char out[20000];
  run(FAKE_CUDA, "slow=1", "threads", out, sizeof out);
  assert_int_equal(count_of(out, "load\n"), 1);
  assert_int_equal(count_of(out, "retain 0\n"), 1);
  assert_int_equal(count_of(out, "run first_kernel\n"), THREADS * 20);
  assert_int_equal(count_of(out, "run large_kernel\n"), THREADS * 20);
  assert_null(strstr(out, "status"));
  assert_null(strstr(out, "WARNING"));
}
