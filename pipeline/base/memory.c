/* Memory: allocation through hs_allocator, and memory limits of the machine and its control groups; see memory.h. */
#include "pipeline/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"

/* Larger blocks use huge pages where available. Otherwise every row of the pyramid is on another page, and address
   translation took a fifth of the time. */
enum { HUGE_PAGE_BYTES = 2 << 20, HUGE_PAGES_FROM = 4 * HUGE_PAGE_BYTES };

void *hs_memory_alloc(const hs_allocator *allocator, size_t bytes) {
  if (bytes == 0) bytes = 1;
  if (allocator && allocator->alloc) return allocator->alloc(bytes, allocator->user);
  const bool large = bytes >= HUGE_PAGES_FROM;
  return os_memory_alloc(bytes, large ? HUGE_PAGE_BYTES : HS_MEMORY_ALIGNMENT, large);
}

void hs_memory_release(const hs_allocator *allocator, void *pointer) {
  if (!pointer) return;
  if (!allocator || !allocator->alloc)
    os_memory_free(pointer);
  else if (allocator->release)
    allocator->release(pointer, allocator->user);
}

bool hs_size_mul(size_t a, size_t b, size_t *out) {
  if (a != 0 && b > (size_t)-1 / a) return false;
  *out = a * b;
  return true;
}

bool hs_size_add(size_t a, size_t b, size_t *out) {
  if (b > (size_t)-1 - a) return false;
  *out = a + b;
  return true;
}

/* ---- Memory of the machine and of control groups: Linux, Documentation/admin-guide/cgroup-v2.rst ("memory.max") and
   cgroup-v1/memory.rst ("memory.limit_in_bytes"). */

enum { FILE_TEXT_BYTES = 4096, FILE_PATH_BYTES = 4608 };

static void take_least(machine_memory *memory, uint64_t bytes, const char *of) {
  if (bytes < memory->bytes) *memory = (machine_memory){bytes, of};
}

/* Reads the beginning of a small kernel file as text; "" if it does not exist. */
static void read_text(const char *path, char text[FILE_TEXT_BYTES]) {
  const int descriptor = os_open(path, OS_READ);
  int64_t got = 0, filled = 0;
  while (descriptor >= 0 && (got = os_read(descriptor, text + filled, (size_t)(FILE_TEXT_BYTES - 1 - filled))) > 0)
    filled += got;
  if (descriptor >= 0) os_close(descriptor);
  text[filled] = '\0';
}

/* Applies the limit in a group's file; "max" and other non-numbers mean no limit. */
static void take_file(machine_memory *memory, const char *path) {
  char text[FILE_TEXT_BYTES], *end = text;
  read_text(path, text);
  errno = 0;
  const unsigned long long bytes = strtoull(text, &end, 10);
  if (end > text && text[0] != '-' && errno == 0) take_least(memory, bytes, "this control group");
}

/* Applies the limits of a group and of all its parents. mount: where groups of this kind are mounted; group: "/a/b". In
   a container the path may be that of the host; only its mounted parts exist. */
static void take_groups(machine_memory *memory, const char *mount, char *group, const char *file) {
  char path[FILE_PATH_BYTES];
  for (;;) {
    const size_t length = strlen(group);
    if (length > 0 && group[length - 1] == '/') group[length - 1] = '\0';
    const int bytes = snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
    if (bytes > 0 && (size_t)bytes < sizeof path) take_file(memory, path);
    char *slash = strrchr(group, '/');
    if (!slash) return;
    *slash = '\0';
  }
}

/* True if "memory" is in the comma-separated list of controllers. */
static bool has_memory(const char *names, size_t length) {
  static const char name[] = "memory";
  for (const char *end = names + length; names < end; names += strcspn(names, ",:") + 1)
    if (strncmp(names, name, sizeof name - 1) == 0 && strcspn(names, ",:") == sizeof name - 1) return true;
  return false;
}

machine_memory machine_memory_in_groups(machine_memory memory, const char *root) {
  char text[FILE_TEXT_BYTES], path[FILE_PATH_BYTES], *rest = NULL;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  read_text(path, text);
  /* Lines are "NUMBER:CONTROLLERS:GROUP"; version 2 has number 0 and no controllers. */
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group) continue;
    const bool is_unified = group == names + 1;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, is_unified ? "" : "/memory");
    if (is_unified)
      take_groups(&memory, path, group + 1, "memory.max");
    else if (has_memory(names + 1, (size_t)(group - names - 1)))
      take_groups(&memory, path, group + 1, "memory.limit_in_bytes");
  }
  return memory;
}

machine_memory machine_memory_now(void) {
  machine_memory memory = {UINT64_MAX, "this machine"};
  take_least(&memory, os_memory_bytes(), "this machine");
  take_least(&memory, os_address_bytes(), "the limit of the address space");
  return machine_memory_in_groups(memory, "");
}

uint64_t machine_memory_limit(uint64_t max_memory_bytes) {
  if (max_memory_bytes != 0) return max_memory_bytes;
  const uint64_t share = machine_memory_now().bytes / MACHINE_MEMORY_SHARE;
  return share > MACHINE_MEMORY_ALWAYS_BYTES ? share : MACHINE_MEMORY_ALWAYS_BYTES;
}

bool machine_memory_allows(uint64_t max_memory_bytes, uint64_t bytes) {
  if (max_memory_bytes == 0 && bytes <= MACHINE_MEMORY_ALWAYS_BYTES) return true;
  return bytes <= machine_memory_limit(max_memory_bytes);
}

void machine_memory_describe_limit(uint64_t max_memory_bytes, char text[MACHINE_MEMORY_LIMIT_TEXT_BYTES]) {
  const uint64_t limit = machine_memory_limit(max_memory_bytes);
  if (max_memory_bytes != 0)
    snprintf(text, MACHINE_MEMORY_LIMIT_TEXT_BYTES, "the %" PRIu64 " bytes of max_memory_bytes", limit);
  else
    snprintf(text, MACHINE_MEMORY_LIMIT_TEXT_BYTES,
             "the %" PRIu64 " bytes that are half the memory of %s; max_memory_bytes sets another limit", limit,
             machine_memory_now().of);
}
