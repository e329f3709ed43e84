/* A database file through SQLite's own descriptor; see page_file.h. */
#include "pipeline/formats/colmap/page_file.h"

#include <assert.h>
#include <errno.h>

#include "os/os_files.h"

enum { PARTS_OF_A_PAGE = 3, PAGES_MAX = WRITE_QUEUE_RUN_BYTES / WRITE_QUEUE_PAGE_LEAST };

void page_file_open(page_file *f, const char *path) {
  os_info info;
  *f = (page_file){.descriptor = -1};
  if (path && os_info_of(path, &info) && info.kind == OS_REGULAR) f->descriptor = os_only_descriptor(&info);
}

bool page_file_is_open(const page_file *f) { return f->descriptor >= 0; }

bool page_file_trim(page_file *f) {
  if (f->allocated > f->end && !os_truncate(f->descriptor, f->end)) return false;
  f->allocated = f->end = 0;
  return true;
}

/* Allocates space for a write that ends here, and more. A failure is no error: the write then allocates what it needs,
   and the space that was allocated in part is given back to others. */
static void allocate(page_file *f, uint64_t end) {
  os_info info;
  if (f->is_refused || end <= f->allocated) return;
  if (!os_info_of_open(f->descriptor, &info) || end <= info.size) return;
  if (f->allocated == 0) f->end = info.size;
  f->allocated = end + PAGE_FILE_AHEAD;
  f->is_refused = !os_allocate(f->descriptor, info.size, f->allocated - info.size);
  if (f->is_refused) (void)page_file_trim(f);
}

void page_file_note(page_file *f, int64_t end) {
  if (f->end < (uint64_t)end) f->end = (uint64_t)end;
}

bool page_file_write(page_file *f, const write_page *pages, size_t count, size_t page_bytes, int64_t offset) {
  static const uint8_t zeros[WRITE_QUEUE_PIECE_BYTES];
  os_part parts[PARTS_OF_A_PAGE * PAGES_MAX];
  const uint64_t end = (uint64_t)offset + count * page_bytes;
  size_t used = 0;
  assert(count <= PAGES_MAX && page_bytes <= sizeof zeros);
  for (size_t i = 0; i < count; i++) {
    const write_page *page = &pages[i];
    const size_t filled = sizeof page->head + page->size;
    parts[used++] = (os_part){page->head, sizeof page->head};
    parts[used++] = (os_part){page->content, page->size};
    if (filled < page_bytes) parts[used++] = (os_part){zeros, page_bytes - filled};
  }
  allocate(f, end);
  page_file_note(f, (int64_t)end);
  if (!os_write_parts_at(f->descriptor, parts, used, (uint64_t)offset)) return false;
  os_start_write_back(f->descriptor, (uint64_t)offset, count * page_bytes); /* so that a commit waits for less */
  return true;
}

void page_file_end(page_file *f) {
  const int error = errno;
  (void)page_file_trim(f);
  f->allocated = f->end = 0; /* what another process writes from now on is not cut off */
  f->is_refused = false;
  errno = error;
}
