/*
 * Signals blocked by the library's threads, read from the system.
 *
 * Covers threads of contexts, of images in flight and of runs over pairs. None of these threads runs a signal handler
 * of the caller, except a crash handler, because the caller does not know of the thread.
 */
#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "tests/support/collection_maker.h"

enum { THREADS_MAX = 64 };

typedef struct thread_list {
  long numbers[THREADS_MAX];
  size_t count;
} thread_list;

static thread_list list_threads(void) {
  thread_list threads = {.count = 0};
  DIR *folder = opendir("/proc/self/task");
  if (!folder) skip_because("needs /proc");
  for (const struct dirent *entry = readdir(folder); entry && threads.count < THREADS_MAX; entry = readdir(folder))
    if (entry->d_name[0] != '.') threads.numbers[threads.count++] = strtol(entry->d_name, NULL, 10);
  closedir(folder);
  return threads;
}

/* Reads the mask of blocked signals; bit n - 1 is signal n. Returns false if the thread has ended. */
static bool blocked_by(long number, uint64_t *blocked) {
  char path[64], line[256];
  unsigned long long mask = 0;
  bool found = false;
  snprintf(path, sizeof path, "/proc/self/task/%ld/status", number);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  while (!found && fgets(line, sizeof line, file)) found = sscanf(line, "SigBlk: %llx", &mask) == 1;
  fclose(file);
  *blocked = mask;
  return found;
}

/* Reads the mask of a thread. The C library blocks all signals while a thread starts, so this waits until the thread's
 * mask leaves the signals of `wanted` unblocked, or for some minutes. */
static bool settled_mask(long number, uint64_t wanted, uint64_t *mask) {
  const struct timespec pause = {.tv_nsec = 1000000};
  bool is_there = blocked_by(number, mask);
  for (int i = 0; i < 300000 && is_there && (*mask & wanted) != 0; i++) {
    nanosleep(&pause, NULL);
    is_there = blocked_by(number, mask);
  }
  return is_there;
}

/* Returns the mask of the calling thread, which is the first thread. */
static uint64_t own_mask(void) {
  uint64_t mask = 0;
  assert_true(blocked_by(getpid(), &mask));
  return mask;
}

static uint64_t bit_of(int signal_number) { return UINT64_C(1) << (signal_number - 1); }

/* Fails unless all threads started since `before` block every signal except their own faults. */
static void check_new_threads(const thread_list *before, size_t at_least) {
  static const int blocked[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGWINCH};
  static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  const thread_list now = list_threads();
  uint64_t faults = 0;
  size_t seen = 0;
  for (size_t k = 0; k < sizeof open / sizeof open[0]; k++) faults |= bit_of(open[k]);
  for (size_t i = 0; i < now.count; i++) {
    bool is_new = true;
    for (size_t k = 0; k < before->count; k++) is_new = is_new && now.numbers[i] != before->numbers[k];
    uint64_t mask = 0;
    if (!is_new || !settled_mask(now.numbers[i], faults, &mask)) continue;
    seen++;
    for (size_t k = 0; k < sizeof blocked / sizeof blocked[0]; k++)
      if ((mask & bit_of(blocked[k])) == 0) fail_msg("a thread takes signal %d", blocked[k]);
    for (size_t k = 0; k < sizeof open / sizeof open[0]; k++)
      if ((mask & bit_of(open[k])) != 0) fail_msg("a thread blocks signal %d, its own fault", open[k]);
  }
  if (seen < at_least) fail_msg("%zu new threads, expected %zu", seen, at_least);
}

/* Fails unless the mask of the calling thread is unchanged. */
static void check_own(uint64_t mask) { assert_true(own_mask() == mask); }

static hs_context *make_context(int32_t threads) {
  hs_options options = extraction_options(HS_PROFILE_LOWE);
  options.threads = threads;
  options.in_flight = 3;
  return extraction_context(&options);
}

TEST(test_context) {
  const thread_list before = list_threads();
  const uint64_t mask = own_mask();
  scoped_context *context = make_context(3);
  check_new_threads(&before, 2);
  check_own(mask);
}

TEST(test_pictures_in_flight) {
  scoped_context *context = make_context(2);
  const thread_list before = list_threads();
  const uint64_t mask = own_mask();
  scoped_image picture = extraction_scene(64, 48, 3, NULL);
  scoped_features features = {0};
  assert_int_equal(hs_submit(context, &picture, NULL), HS_OK);
  check_new_threads(&before, 1);
  check_own(mask);
  assert_int_equal(hs_wait(context, &features), HS_OK);
  check_new_threads(&before, 1);
}

TEST(test_pairs) {
  scoped_context *context = make_context(2);
  const thread_list before = list_threads();
  const uint64_t mask = own_mask();
  SCOPED_BY(collection_maker_free) test_collection made;
  collection_maker_fill(&made, 3, 60, HS_DESCRIPTOR_U8, 3);
  const hs_collection_image images[2] = {{.features = &made.features[0]}, {.features = &made.features[1]}};
  const hs_collection collection = {.images = images, .image_count = 2};
  const hs_image_pair pair = {0, 1};
  const hs_pair_result *result = NULL;
  scoped_run *run = NULL;
  assert_int_equal(hs_pairs_start(&run, context, &collection, &pair, 1, NULL), HS_OK);
  check_new_threads(&before, 1);
  check_own(mask);
  assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
}
