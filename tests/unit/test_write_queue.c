/*
 * Deferred writes on a separate thread: the resulting file, reads in between, and failures.
 */
#include <errno.h>
#include <pthread.h>

#include "tests/support/test.h"

#include "pipeline/base/number_tools.h"
#include "pipeline/formats/colmap/write_queue.h"

/* The file exceeds the queue, which fails only when its thread has written. */
enum { FILE_BYTES = 2 * WRITE_QUEUE_PIECES * WRITE_QUEUE_PIECE_BYTES, PAGE = 4096, NEAR_PAGES = 1024, NO_ROOM = 13 };

static uint64_t next_random(uint64_t *state) { return splitmix64_mix(*state += SPLITMIX64_STEP); }

/* State of a file in memory. */
typedef struct fixture {
  write_queue *queue;
  uint8_t *file, *expected;
  size_t writes, bytes; /* numbers of successful writes and of their bytes */
  size_t runs;          /* number of the writes of pages */
  int64_t full_from;    /* writes beyond this offset fail; 0: none fails */
  pthread_t caller;
  bool by_caller;       /* whether a write happened on the adding thread */
  pthread_mutex_t gate; /* a write waits for it */
} fixture;

static int write_file(void *file, const void *bytes, size_t size, int64_t offset) {
  fixture *f = file;
  if (pthread_equal(pthread_self(), f->caller)) f->by_caller = true;
  if (f->full_from > 0 && offset >= f->full_from) {
    errno = EFBIG;
    return NO_ROOM;
  }
  pthread_mutex_lock(&f->gate);
  memcpy(f->file + offset, bytes, size);
  pthread_mutex_unlock(&f->gate);
  f->writes++;
  f->bytes += size;
  return 0;
}

/* Writes pages of PAGE bytes. */
static int write_pages(void *file, const write_page *pages, size_t count, size_t page_bytes, int64_t offset) {
  static uint8_t bytes[WRITE_QUEUE_RUN_BYTES];
  memset(bytes, 0, count * page_bytes);
  for (size_t i = 0; i < count; i++) {
    memcpy(bytes + i * page_bytes, pages[i].head, sizeof pages[i].head);
    memcpy(bytes + i * page_bytes + sizeof pages[i].head, pages[i].content, pages[i].size);
  }
  ((fixture *)file)->runs++;
  return write_file(file, bytes, count * page_bytes, offset);
}

static int make(void **state, write_pages_function function) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->file = calloc(1, FILE_BYTES);
  f->expected = calloc(1, FILE_BYTES);
  assert_true(f->file && f->expected);
  f->caller = pthread_self();
  assert_int_equal(pthread_mutex_init(&f->gate, NULL), 0);
  f->queue = write_queue_make(write_file, function, f);
  assert_non_null(f->queue);
  *state = f;
  return 0;
}

static int set_up(void **state) { return make(state, NULL); }

static int set_up_for_pages(void **state) { return make(state, write_pages); }

static int tear_down(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  write_queue_free(f->queue);
  pthread_mutex_destroy(&f->gate);
  free(f->file);
  free(f->expected);
  return 0;
}

#define TEST_ON_FIXTURE(NAME) TEST_GIVEN(NAME, fixture, f, set_up, tear_down)
#define TEST_OF_PAGES(NAME)   TEST_GIVEN(NAME, fixture, f, set_up_for_pages, tear_down)

/* Adds pages whose bytes depend on `number`. */
static int add_page(fixture *f, int64_t page, size_t pages, uint64_t number) {
  static uint8_t bytes[64 * PAGE];
  uint64_t random = number;
  for (size_t i = 0; i < pages * PAGE; i += sizeof random) {
    const uint64_t next = next_random(&random);
    memcpy(bytes + i, &next, sizeof next);
  }
  memcpy(f->expected + page * PAGE, bytes, pages * PAGE);
  const int code = write_queue_add(f->queue, bytes, pages * PAGE, page * PAGE);
  memset(bytes, 0, pages * PAGE); /* changes nothing, because the queue has copied the bytes */
  return code;
}

/* Reads a page, which must be the one that was added last. Returns whether the queue had it. */
static bool read_page(fixture *f, int64_t at) {
  uint8_t bytes[PAGE];
  bool is_copied = false;
  assert_int_equal(write_queue_read(f->queue, bytes, PAGE, at, &is_copied), 0);
  if (!is_copied) memcpy(bytes, f->file + at, PAGE);
  assert_memory_equal(bytes, f->expected + at, PAGE);
  return is_copied;
}

/* Consecutive pages become few writes, on the queue's thread. */
TEST_ON_FIXTURE(test_in_a_row) {
  for (int64_t page = 0; page < FILE_BYTES / PAGE; page++) assert_int_equal(add_page(f, page, 1, (uint64_t)page), 0);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
  assert_int_equal(f->writes, FILE_BYTES / WRITE_QUEUE_PIECE_BYTES);
  assert_false(f->by_caller);
  assert_true(write_queue_cpu_s(f->queue) >= 0 && write_queue_cpu_s(f->queue) < 60);
#ifndef _WIN32 /* which counts whole ticks */
  assert_true(write_queue_cpu_s(f->queue) > 0);
#endif
}

/* Pages are at any offsets, overlap, and have every size up to more than a piece. The last write wins, and reads return
 * the written data. */
TEST_ON_FIXTURE(test_anywhere) {
  uint64_t random = 5;
  for (uint64_t i = 0; i < 3000; i++) {
    const uint64_t place = next_random(&random);
    const size_t pages = place % 50 == 0 ? 40 : 1 + place % 3;
    const int64_t page = (int64_t)(next_random(&random) % (NEAR_PAGES - pages));
    assert_int_equal(add_page(f, page, pages, i), 0);
    if (i % 7 != 0) continue;
    const int64_t read = (int64_t)(next_random(&random) % NEAR_PAGES);
    const int64_t at = (i % 2 == 0 ? page : read) * PAGE;
    (void)read_page(f, at);
  }
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
}

/* A page that waits is read from the queue, also if an older version of it waits too. A range of two pieces is
 * written first. */
TEST_ON_FIXTURE(test_waiting) {
  pthread_mutex_lock(&f->gate); /* nothing is written until it is free */
  assert_int_equal(add_page(f, 3, 1, 1), 0);
  assert_int_equal(add_page(f, 9, 1, 2), 0);
  assert_int_equal(add_page(f, 3, 1, 3), 0);
  uint8_t bytes[2 * PAGE];
  bool is_copied = false;
  assert_int_equal(write_queue_read(f->queue, bytes, PAGE, 9 * PAGE, &is_copied), 0);
  assert_true(is_copied);
  assert_memory_equal(bytes, f->expected + 9 * PAGE, PAGE);
  assert_int_equal(write_queue_read(f->queue, bytes, PAGE, 3 * PAGE, &is_copied), 0);
  assert_true(is_copied);
  assert_memory_equal(bytes, f->expected + 3 * PAGE, PAGE);
  assert_int_equal(f->writes, 0);
  pthread_mutex_unlock(&f->gate);
  assert_int_equal(add_page(f, 8, 1, 4), 0);
  assert_int_equal(write_queue_read(f->queue, bytes, 2 * PAGE, 8 * PAGE, &is_copied), 0);
  assert_false(is_copied);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
  assert_false(read_page(f, 3 * PAGE));
}

/* After a failure nothing more is written, and every call reports the failure, with the errno of the other thread,
 * until it is cleared. */
TEST_ON_FIXTURE(test_failure) {
  assert_int_equal(add_page(f, 0, 1, 1), 0);
  assert_int_equal(write_queue_drain(f->queue), 0);
  f->full_from = 64 * PAGE;
  int code = 0;
  int64_t page = 32;
  while (code == 0 && page < FILE_BYTES / PAGE) code = add_page(f, page++, 1, 2);
  assert_int_equal(code, NO_ROOM);
  assert_int_equal(errno, EFBIG);
  uint8_t bytes[PAGE];
  bool is_copied = false;
  assert_int_equal(write_queue_read(f->queue, bytes, PAGE, 0, &is_copied), NO_ROOM);
  errno = 0;
  assert_int_equal(write_queue_drain(f->queue), NO_ROOM);
  assert_int_equal(errno, EFBIG);
  const size_t written = f->bytes;
  (void)add_page(f, 1, 1, 3);
  assert_int_equal(write_queue_drain(f->queue), NO_ROOM);
  assert_int_equal(f->bytes, written);
  write_queue_forget(f->queue);
  assert_int_equal(add_page(f, 1, 1, 3), 0);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_int_equal(f->bytes, written + PAGE);
  assert_memory_equal(f->file, f->expected, 2 * PAGE);
}

/* Adds a page whose content is not copied. The content of all pages is at `content`. */
static int lend_page(fixture *f, int64_t page, const uint8_t *content, size_t size) {
  const write_page lent = {.head = {1, 2, 3, (uint8_t)page}, .content = content, .size = size};
  uint8_t *const expected = f->expected + page * PAGE;
  memset(expected, 0, PAGE);
  memcpy(expected, lent.head, sizeof lent.head);
  memcpy(expected + sizeof lent.head, content, size);
  return write_queue_add_page(f->queue, &lent, PAGE, page * PAGE);
}

/* Adds pages that are not copied, of any length, among others. Each is there when it is read, and the last write wins.
 */
static void lend_pages(fixture *f) {
  static uint8_t content[NEAR_PAGES + PAGE];
  uint64_t random = 7;
  for (size_t i = 0; i < sizeof content; i++) content[i] = (uint8_t)(next_random(&random) | 1);
  for (uint64_t i = 0; i < 6000; i++) {
    const uint64_t place = next_random(&random);
    const int64_t page = i % 3 == 0 ? (int64_t)(place % NEAR_PAGES) : (int64_t)(i % NEAR_PAGES);
    const size_t size = place % 5 == 0 ? place % (PAGE - 3) : PAGE - 4;
    if (place % 11 == 0)
      assert_int_equal(add_page(f, page, 1, i), 0);
    else
      assert_int_equal(lend_page(f, page, content + place % NEAR_PAGES, size), 0);
    if (i % 40 == 0) (void)read_page(f, page * PAGE);
  }
  const uint64_t mark = write_queue_mark(f->queue);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_true(write_queue_written(f->queue) >= mark);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
}

TEST_ON_FIXTURE(test_lent_pages) {
  lend_pages(f);
  assert_int_equal(f->runs, 0);
}

TEST_OF_PAGES(test_lent_pages_in_runs) {
  lend_pages(f);
  assert_true(f->runs > 0);
}

/* Consecutive pieces become one write, unless it would be too large. A gap and copied bytes end it. */
TEST_OF_PAGES(test_runs) {
  enum { RUN = WRITE_QUEUE_RUN_BYTES / PAGE };
  static const uint8_t content[PAGE] = {5};
  int64_t page = 0;
  pthread_mutex_lock(&f->gate); /* nothing is written until it is free */
  for (; page < 2 * RUN + 3; page++) assert_int_equal(lend_page(f, page, content, PAGE - 4), 0);
  for (page++; page < 2 * RUN + 9; page++) assert_int_equal(lend_page(f, page, content, 9), 0);
  assert_int_equal(add_page(f, page++, 1, 4), 0);
  assert_int_equal(lend_page(f, page, content, 0), 0);
  pthread_mutex_unlock(&f->gate);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_int_equal(f->runs, 5);
  assert_int_equal(f->writes, 6);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
}

/* After a run that failed, nothing is written until the failure is cleared. */
TEST_OF_PAGES(test_failed_run) {
  static const uint8_t content[PAGE] = {5};
  f->full_from = 8 * PAGE;
  for (int64_t page = 8; page < 80; page++) assert_int_equal(lend_page(f, page, content, 9), 0);
  const uint64_t mark = write_queue_mark(f->queue);
  assert_int_equal(write_queue_drain(f->queue), NO_ROOM);
  assert_int_equal(errno, EFBIG);
  assert_true(write_queue_written(f->queue) >= mark); /* the content is not needed any more */
  (void)lend_page(f, 0, content, 9);
  assert_int_equal(write_queue_drain(f->queue), NO_ROOM);
  assert_int_equal(f->bytes, 0);
  write_queue_forget(f->queue);
  assert_int_equal(lend_page(f, 1, content, 9), 0);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_int_equal(f->bytes, PAGE);
}

/* The mark counts the piece that is being filled. Pages of one row become one write. */
TEST_ON_FIXTURE(test_mark) {
  static const uint8_t content[PAGE] = {5};
  assert_int_equal(write_queue_mark(f->queue), 0);
  for (int64_t page = 0; page < 16; page++) assert_int_equal(lend_page(f, page, content, PAGE - 4), 0);
  const uint64_t mark = write_queue_mark(f->queue);
  assert_true(write_queue_written(f->queue) < mark);
  assert_int_equal(write_queue_drain(f->queue), 0);
  assert_true(write_queue_written(f->queue) >= mark);
  assert_int_equal(write_queue_mark(f->queue), mark);
  assert_int_equal(f->writes, 1);
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
}

/* At the end everything added has been written, with or without a flush. */
TEST_ON_FIXTURE(test_end) {
  assert_int_equal(add_page(f, 3, 1, 9), 0);
  write_queue_free(f->queue);
  f->queue = NULL;
  assert_memory_equal(f->file, f->expected, FILE_BYTES);
}
