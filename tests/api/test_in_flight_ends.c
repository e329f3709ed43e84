/*
 * Images in flight: failures and destruction of the context, on the CPU and on a GPU; crashes, forks, and the workers'
 * threads and memory, on the CPU.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/context/context.h"
#include "tests/support/extent.h"

/* Returns options for a device. Skips the test if the device is missing. */
static hs_options options_of(hs_device device) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = device;
  if (device != HS_DEVICE_CPU && !extraction_has_gpu()) skip_because(NEEDS_GPU);
  return o;
}

/* An image that needs too much memory fails alone, in order. */
static void check_failure_alone(hs_device device) {
  hs_options o = options_of(device);
  o.max_memory_bytes = 2 << 20;
  scoped_context *c = extraction_context(&o);
  scoped_image small = extraction_scene(60, 50, 1, NULL), large = extraction_scene(400, 300, 1, NULL);
  scoped_features expected = extraction_once(&o, &small), f = {0};
  for (int i = 0; i < 5; i++) assert_int_equal(hs_submit(c, i == 2 ? &large : &small, NULL), HS_OK);
  for (int i = 0; i < 5; i++) {
    const hs_status st = hs_wait(c, &f);
    assert_int_equal(st, i == 2 ? HS_ERR_LIMIT : HS_OK);
    if (i == 2) {
      assert_non_null(strstr(hs_last_error(c), "max_memory_bytes"));
      assert_non_null(strstr(hs_last_error_location(c), "HS_ERR_LIMIT at "));
    } else {
      assert_string_equal(hs_last_error_location(c), "");
    }
    extraction_check_equal(&expected, &f, "beside a failed image"); /* the image after the failed one is correct */
  }
}

TEST(test_failure_alone) { check_failure_alone(HS_DEVICE_CPU); }

TEST(test_failure_alone_cuda) { check_failure_alone(HS_DEVICE_CUDA); }

/* Returns the memory of a frame of this size, on host or device, whichever is larger. */
static uint64_t workspace_of(const hs_options *o, const hs_image *image) {
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, image->width, image->height, &host, &device), HS_OK);
  return host > device ? host : device;
}

/* Returns a limit under which a frame of this size is extracted in tiles. */
static uint64_t limit_of_tiles(hs_options o, const hs_image *image) {
  const uint64_t whole = workspace_of(&o, image);
  o.max_memory_bytes = 1; /* the limit is too small for any frame, so the call reports what the smallest tiles need */
  const uint64_t least = o.max_memory_bytes = workspace_of(&o, image);
  assert_true(workspace_of(&o, image) < whole);
  return least;
}

/* A context is destroyed with images in flight, whole or in tiles, and with results that nobody took. */
static void check_destroy_in_flight(hs_device device) {
  hs_options o = options_of(device);
  scoped_image image = extent_is_short() ? extraction_scene(213, 171, 1, NULL) : extraction_scene(300, 240, 1, NULL);
  for (int32_t k = 0; k < 8; k++) {
    const int32_t threads = o.threads = 1 + k % 4;
    o.max_memory_bytes = 0;
    if (k >= 4) o.max_memory_bytes = limit_of_tiles(o, &image);
    scoped_context *c = extraction_context(&o);
    for (int i = 0; i < 6; i++) assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
    const hs_features *view;
    if (threads == 2) assert_int_equal(hs_wait_view(c, &view), HS_OK);
  }
}

TEST(test_destroy_in_flight) { check_destroy_in_flight(HS_DEVICE_CPU); }

TEST(test_destroy_in_flight_cuda) { check_destroy_in_flight(HS_DEVICE_CUDA); }

static void handle_crash(int number) {
  (void)number;
  _exit(42);
}

/* The worker reads pixels that are missing (a mapped file that was truncated), and the caller's crash handler runs on
 * the worker's thread. */
TEST(test_fault_of_a_lane_is_handled) {
  int child_status = -1;
  const pid_t child = fork();
  if (child == 0) {
    const struct sigaction action = {.sa_handler = handle_crash};
    hs_context *c = extraction_context_of(HS_PROFILE_LOWE);
    void *pixels = mmap(NULL, 64 * 64, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const hs_image image = {.data = pixels, .width = 64, .height = 64, .stride_bytes = 64, .type = HS_U8};
    const hs_features *view;
    if (sigaction(SIGSEGV, &action, NULL) != 0 || sigaction(SIGBUS, &action, NULL) != 0) _exit(2);
    if (hs_submit(c, &image, NULL) != HS_OK) _exit(3);
    (void)hs_wait_view(c, &view);
    _exit(4);
  }
  assert_int_equal(waitpid(child, &child_status, 0), child);
  assert_true(WIFEXITED(child_status));
  assert_int_equal(WEXITSTATUS(child_status), 42);
}

/* The child process has neither threads nor workers to wait for. */
TEST(test_destroyed_in_a_forked_child) {
  scoped_image image = extraction_scene(150, 120, 1, NULL);
  for (int submitted = 0; submitted <= 4; submitted += 2) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    hs_features f = {0};
    int child_status = -1;
    o.threads = 4;
    scoped_context *c = extraction_context(&o);
    assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK);
    hs_features_free(&f);
    for (int i = 0; i < submitted; i++) assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
    const pid_t child = fork();
    if (child == 0) {
      alarm(300); /* ends a child that hangs */
      hs_destroy(c);
      _exit(0);
    }
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
  }
}

enum { THREADS_MAX = 64 };

/* Lists the threads of this process; returns their number, 0 if unknown. A thread that was joined may still be listed
 * for a moment. */
static int threads_of_process(long threads[THREADS_MAX]) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (const struct dirent *e = folder ? readdir(folder) : NULL; e && count < THREADS_MAX; e = readdir(folder))
    if (e->d_name[0] != '.') threads[count++] = strtol(e->d_name, NULL, 10);
  if (folder) closedir(folder);
  return count;
}

/* Returns the number of threads that were started since `before` was listed. */
static int threads_started(const long before[THREADS_MAX], int before_count) {
  long now[THREADS_MAX];
  int started = 0;
  const int count = threads_of_process(now);
  for (int i = 0; i < count; i++) {
    bool is_new = true;
    for (int k = 0; k < before_count; k++) is_new = is_new && now[i] != before[k];
    started += is_new;
  }
  return started;
}

/* Workers share all threads of the options, even if the number does not divide evenly. Their memory counts from the
 * start. */
TEST(test_threads_of_lanes) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_scene(70, 60, 3, NULL);
  scoped_features f = {0};
  hs_statistics before = {.struct_size = sizeof before}, after = before;
  o.in_flight = 3;
  o.threads = 8;
  scoped_context *c = extraction_context(&o);
  assert_int_equal(hs_get_statistics(c, &before), HS_OK);
  long threads[THREADS_MAX];
  const int known = threads_of_process(threads);
  assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
  if (known > 0) assert_int_equal(threads_started(threads, known), o.threads);
  assert_int_equal(hs_get_statistics(c, &after), HS_OK);
  assert_true(after.workspace_bytes >= before.workspace_bytes + 3 * sizeof *c);
  assert_int_equal(hs_wait(c, &f), HS_OK);
}

/* Each allocation fails once: the context stays usable, and nothing leaks. One image is in flight at a time, because
 * the counting allocator serves one thread. */
TEST(test_allocations) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_scene(70, 60, 3, NULL);
  scoped_features expected = extraction_once(&o, &image);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  o.allocator = &allocator;
  o.in_flight = 1;
  o.threads = 2;
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    hs_context *c = extraction_context(&o);
    hs_features f = {0};
    counter.fail_at = counter.made + n;
    hs_status st = hs_submit(c, &image, NULL);
    if (st == HS_OK) st = hs_wait(c, &f);
    failed = counter.made >= counter.fail_at;
    counter.fail_at = 0;
    assert_int_equal(st, failed ? HS_ERR_MEMORY : HS_OK);
    assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
    assert_int_equal(hs_wait(c, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after a failed allocation");
    assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
    assert_int_equal(hs_wait(c, &f), HS_OK);
    /* After every slot has processed the picture, nothing more is allocated. */
    const size_t made = counter.made;
    for (int i = 0; i < (extent_is_short() ? 1 : 4); i++) {
      assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
      assert_int_equal(hs_wait(c, &f), HS_OK);
    }
    assert_int_equal(counter.made, made);
    hs_features_free(&f);
    hs_destroy(c);
    assert_int_equal(counter.alive, 0);
    assert_true(n < 100);
  }
}
