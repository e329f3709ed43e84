/*
 * Pages written through the only descriptor of a file, into space that is allocated in advance: the content, the size
 * at the end, and a limit of the file's size.
 */
#include <errno.h>
#ifdef __linux__
#  include <sys/resource.h>
#endif

#include "tests/support/test.h"

#include "os/os_files.h"
#include "pipeline/formats/colmap/page_file.h"

enum { PAGE = 4096, PAGES = WRITE_QUEUE_RUN_BYTES / PAGE, START = 3 * PAGE };

#ifdef __linux__

static const uint8_t content[PAGE] = {7, 6, 5};

typedef struct fixture {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  int descriptor;
  page_file file;
  write_page pages[PAGES];
  bool allocates; /* false: the folder is in memory */
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  scratch_folder_make(&f->folder);
  scratch_folder_path(&f->folder, "file", f->path);
  FILE *file = fopen(f->path, "wb");
  assert_non_null(file);
  for (int i = 0; i < START; i++) assert_int_equal(fputc(1, file), 1);
  assert_int_equal(fclose(file), 0);
  f->descriptor = os_open(f->path, OS_READ_WRITE);
  assert_true(f->descriptor >= 0);
  page_file_open(&f->file, f->path);
  for (int i = 0; i < PAGES; i++)
    f->pages[i] = (write_page){.head = {1, 2, (uint8_t)(i >> 8), (uint8_t)i}, .content = content, .size = PAGE - 4};
  f->pages[PAGES - 1].size = 5;
  f->allocates = os_allocate(f->descriptor, START, 1);
  assert_true(f->allocates || errno == ENOTSUP || errno == EOPNOTSUPP);
  assert_true(os_truncate(f->descriptor, START));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  os_close(f->descriptor);
  scratch_folder_remove(&f->folder);
  return 0;
}

#  define TEST_ON_FIXTURE(NAME) TEST_GIVEN(NAME, fixture, f, set_up, tear_down)

static int64_t size_of(const fixture *f) {
  os_info info;
  assert_true(os_info_of_open(f->descriptor, &info));
  return (int64_t)info.size;
}

static void check_run(const fixture *f, int64_t offset) {
  static uint8_t bytes[WRITE_QUEUE_RUN_BYTES];
  assert_int_equal(os_read_at(f->descriptor, bytes, sizeof bytes, (uint64_t)offset), sizeof bytes);
  for (int i = 0; i < PAGES; i++) {
    uint8_t expected[PAGE] = {0};
    memcpy(expected, f->pages[i].head, 4);
    memcpy(expected + 4, content, f->pages[i].size);
    assert_memory_equal(bytes + i * PAGE, expected, PAGE);
  }
}

static bool write_run(fixture *f, int64_t offset) { return page_file_write(&f->file, f->pages, PAGES, PAGE, offset); }

TEST_ON_FIXTURE(test_descriptor) {
  os_info info;
  assert_true(page_file_is_open(&f->file));
  assert_int_equal(f->file.descriptor, f->descriptor);
  assert_true(os_info_of(f->path, &info));
  const int second = os_open(f->path, OS_READ);
  assert_int_equal(os_only_descriptor(&info), -1); /* which one is SQLite's? */
  os_close(second);
  assert_int_equal(os_only_descriptor(&info), f->descriptor);
  info.number++;
  assert_int_equal(os_only_descriptor(&info), -1);
  page_file nothing;
  page_file_open(&nothing, "no such file");
  assert_false(page_file_is_open(&nothing));
}

/* During the writes the file is larger. Afterwards it ends with the last byte that any function wrote. */
TEST_ON_FIXTURE(test_size) {
  const int64_t run = WRITE_QUEUE_RUN_BYTES, end = START + 2 * run;
  for (int round = 0; round < 2; round++) {
    assert_true(os_truncate(f->descriptor, START));
    assert_true(write_run(f, START));
    if (f->allocates) assert_int_equal(size_of(f), START + run + PAGE_FILE_AHEAD);
    assert_true(write_run(f, START + run));
    if (f->allocates) assert_int_equal(size_of(f), START + run + PAGE_FILE_AHEAD);
    if (round == 1) page_file_note(&f->file, end + PAGE);
    assert_true(page_file_trim(&f->file));
    assert_int_equal(size_of(f), round == 1 && f->allocates ? end + PAGE : end);
    check_run(f, START);
    check_run(f, START + run);
  }
  assert_true(os_truncate(f->descriptor, (uint64_t)end));
  assert_true(write_run(f, START)); /* within the file nothing is allocated */
  assert_int_equal(size_of(f), end);
}

/* More than is allocated at once. */
TEST_ON_FIXTURE(test_many_runs) {
  const int64_t run = WRITE_QUEUE_RUN_BYTES, count = PAGE_FILE_AHEAD / run * 2 + 5;
  for (int64_t i = 0; i < count; i++) assert_true(write_run(f, START + i * run));
  page_file_end(&f->file);
  assert_int_equal(size_of(f), START + count * run);
  for (int64_t i = 0; i < count; i += 9) check_run(f, START + i * run);
}

/* Allocating beyond the limit of a file's size raises no signal. Without allocated space the runs are written up to the
 * limit. */
TEST_ON_FIXTURE(test_limit) {
  const int64_t run = WRITE_QUEUE_RUN_BYTES;
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small = {.rlim_cur = (rlim_t)(START + 2 * run), .rlim_max = old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool allocates = os_allocate(f->descriptor, START, (uint64_t)(2 * run + 1));
  const int error = errno;
  const bool writes = write_run(f, START) && write_run(f, START + run);
  const bool is_refused = f->file.is_refused;
  page_file_end(&f->file);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_false(allocates);
  assert_int_equal(error, f->allocates ? EFBIG : ENOTSUP);
  assert_true(writes && is_refused);
  assert_false(f->file.is_refused);
  assert_int_equal(size_of(f), START + 2 * run);
  check_run(f, START + run);
}

/* If later space is refused, the space that is not used yet is given back at once, and the write takes what it needs.
 */
TEST_ON_FIXTURE(test_limit_later) {
  const int64_t run = WRITE_QUEUE_RUN_BYTES, last = START + PAGE_FILE_AHEAD + run / 2;
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small = {.rlim_cur = (rlim_t)(last + run), .rlim_max = old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool writes = write_run(f, START) && write_run(f, last);
  const bool is_refused = f->file.is_refused;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_true(writes && is_refused);
  assert_int_equal(f->file.allocated, 0);
  assert_int_equal(size_of(f), last + run);
  check_run(f, START);
  check_run(f, last);
}

/* A failed write reports its reason; the end of the transaction does not change errno. */
TEST_ON_FIXTURE(test_failure) {
  const int descriptor = os_open(f->path, OS_READ);
  f->file.descriptor = descriptor;
  errno = 0;
  assert_false(write_run(f, START));
  assert_int_equal(errno, EBADF);
  page_file_end(&f->file);
  assert_int_equal(errno, EBADF);
  assert_int_equal(size_of(f), START);
  os_close(descriptor);
}

/* More parts than a system call takes, some of them empty. */
TEST_ON_FIXTURE(test_parts) {
  enum { PARTS = 700, EACH = 3 };
  static uint8_t bytes[PARTS * EACH], found[PARTS * EACH];
  os_part parts[PARTS];
  size_t size = 0;
  for (int i = 0; i < PARTS; i++) {
    parts[i] = (os_part){bytes + size, (size_t)(i % (EACH + 1))};
    size += parts[i].size;
  }
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i * 37);
  assert_true(os_write_parts_at(f->descriptor, parts, PARTS, 10));
  assert_int_equal(os_read_at(f->descriptor, found, size, 10), size);
  assert_memory_equal(found, bytes, size);
}

#else

TEST(test_elsewhere) {
  page_file file;
  page_file_open(&file, ".");
  assert_false(page_file_is_open(&file));
  assert_false(os_allocate(0, 0, PAGE));
}

#endif
