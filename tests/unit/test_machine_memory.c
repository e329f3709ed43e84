/*
 * Memory available to this process: limits of control groups of both versions, the limit of the address space, and the
 * share for a file.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/test.h"

#include "pipeline/base/memory.h"

static const machine_memory machine = {UINT64_C(8) << 30, "this machine"};

/* Writes a file and the folders above it. */
static void put(const scratch_folder *folder, const char *name, const char *text) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, name, path);
  for (char *slash = path + strlen(folder->path) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
    *slash = '\0';
    (void)mkdir(path, 0700);
  }
  scratch_write_file(path, text, strlen(text));
}

static void assert_limit(const scratch_folder *folder, uint64_t bytes, const char *of) {
  const machine_memory found = machine_memory_in_groups(machine, folder->path);
  assert_true(found.bytes == bytes);
  assert_string_equal(found.of, of);
}

/* The limit is the minimum of the group's own limit and its ancestors' limits. */
TEST_IN_FOLDER(test_unified_groups) {
  assert_limit(folder, machine.bytes, machine.of); /* another system has no such files */
  put(folder, "proc/self/cgroup", "0::/user/batch\n");
  put(folder, "sys/fs/cgroup/user/batch/memory.max", "max\n");
  assert_limit(folder, machine.bytes, machine.of);
  put(folder, "sys/fs/cgroup/user/memory.max", "1073741824\n");
  assert_limit(folder, 1 << 30, "this control group");
  put(folder, "sys/fs/cgroup/user/batch/memory.max", "536870912\n");
  assert_limit(folder, 1 << 29, "this control group");
  put(folder, "sys/fs/cgroup/memory.max", "268435456\n");
  assert_limit(folder, 1 << 28, "this control group");
}

TEST_IN_FOLDER(test_memory_controller_of_version_1) {
  put(folder, "proc/self/cgroup", "11:hugetlb,memoryless:/a\n7:cpu,memory:/a/b\n1:name=systemd:/a/b/c\n");
  /* the limit of a group of another controller does not count */
  put(folder, "sys/fs/cgroup/memory/a/b/c/memory.limit_in_bytes", "1000\n");
  put(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* unlimited */
  assert_limit(folder, machine.bytes, machine.of);
  put(folder, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
  assert_limit(folder, UINT64_C(2) << 30, "this control group");
}

/* A container sees the host's name of its group, but the group itself is mounted. */
TEST_IN_FOLDER(test_container) {
  put(folder, "proc/self/cgroup", "4:memory:/docker/0123456789abcdef\n");
  put(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576000\n");
  assert_limit(folder, 1048576000, "this control group");
  put(folder, "proc/self/cgroup", "0::/\n");
  put(folder, "sys/fs/cgroup/memory.max", "524288000\n");
  assert_limit(folder, 524288000, "this control group");
}

TEST_IN_FOLDER(test_what_is_no_number_limits_nothing) {
  static const char *const texts[] = {"", "\n", "-5\n", "max", "99999999999999999999999\n", "x1\n"};
  put(folder, "proc/self/cgroup", "nonsense\n:\n::\n0::\n0::/a\n");
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    put(folder, "sys/fs/cgroup/a/memory.max", texts[i]);
    assert_limit(folder, machine.bytes, machine.of);
  }
  char long_name[3000] = "0::/a";
  memset(long_name + 5, '/', sizeof long_name - 6);
  long_name[sizeof long_name - 1] = '\0';
  put(folder, "proc/self/cgroup", long_name);
  put(folder, "sys/fs/cgroup/a/memory.max", "4096");
  assert_limit(folder, 4096, "this control group");
}

TEST(test_limit_of_address_space) {
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  small = before;
  small.rlim_cur = 64 << 20;
  assert_int_equal(setrlimit(RLIMIT_AS, &small), 0); /* until the limit is lifted, no call here may fail */
  const machine_memory found = machine_memory_now();
  char text[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  machine_memory_describe_limit(0, text);
  const int restored = setrlimit(RLIMIT_AS, &before);
  assert_int_equal(restored, 0);
  assert_true(found.bytes == 64 << 20);
  assert_string_equal(text,
                      "the 33554432 bytes that are half the memory of the limit of the address space; max_memory_bytes "
                      "sets another limit");
}

TEST(test_share) {
  const machine_memory now = machine_memory_now();
  char text[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  assert_true(now.bytes > 2 * MACHINE_MEMORY_ALWAYS_BYTES && now.bytes < UINT64_MAX);
  assert_true(machine_memory_limit(0) == now.bytes / 2);
  assert_true(machine_memory_allows(0, now.bytes / 2));
  assert_false(machine_memory_allows(0, now.bytes / 2 + 1));
  assert_true(machine_memory_allows(1000, 1000));
  assert_false(machine_memory_allows(1000, 1001));
  assert_true(machine_memory_allows(UINT64_MAX, UINT64_MAX));
  machine_memory_describe_limit(1000, text);
  assert_string_equal(text, "the 1000 bytes of max_memory_bytes");
}
