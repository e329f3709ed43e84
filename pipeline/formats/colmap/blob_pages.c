/* Pages of SQLite's file that hold a large blob; see blob_pages.h. */
#include "pipeline/formats/colmap/blob_pages.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/number_tools.h"

enum {
  NEXT_BYTES = 4,
  FEWEST_PAGES = 4,          /* of a shorter blob little is saved */
  LOCKING_BYTE = 0x40000000, /* SQLite never uses the page that contains it */
  /* the file format's constants for the part of a row in a table's page */
  LOCAL_MOST = 35,
  LOCAL_LEAST = 23,
  PAGE_HEAD = 12
};

static uint32_t locking_page(const blob_pages *b) { return LOCKING_BYTE / b->page_bytes + 1; }

static int64_t number_of(const blob_pages *b, int64_t index) {
  const int64_t number = (int64_t)b->first + index;
  return number + (b->first < locking_page(b) && number >= locking_page(b));
}

int64_t blob_pages_index(const blob_pages *b, int64_t page) {
  if (page < b->first || page == locking_page(b)) return -1;
  const int64_t index = page - b->first - (b->first < locking_page(b) && page > locking_page(b));
  return index < b->count ? index : -1;
}

bool blob_pages_plan(blob_pages *b, size_t before, uint32_t page_count) {
  const size_t payload = before + b->size, least = (b->usable - PAGE_HEAD) * 32u / 255u - LOCAL_LEAST;
  const size_t most = b->usable - LOCAL_MOST, content = b->usable - NEXT_BYTES;
  if (payload <= most || b->page_bytes > WRITE_QUEUE_PIECE_BYTES || b->page_bytes < WRITE_QUEUE_PAGE_LEAST)
    return false;
  const size_t even = least + (payload - least) % content; /* the chain's last page is then full */
  const size_t kept = even <= most ? even : least;
  const size_t pages = (payload - kept + content - 1) / content;
  if (kept < before || pages < FEWEST_PAGES || page_count + pages + 2 >= UINT32_MAX) return false;
  b->local = kept - before;
  b->count = b->unseen = (uint32_t)pages;
  b->first = page_count + 1;
  b->first += b->first == locking_page(b);
  b->seen = hs_memory_alloc(NULL, pages / 8 + 1);
  if (!b->seen) return false;
  memset(b->seen, 0, pages / 8 + 1);
  return true;
}

void blob_pages_free(blob_pages *b) {
  hs_memory_release(b->allocator, b->bytes);
  hs_memory_release(NULL, b->seen);
  *b = (blob_pages){0};
}

static void put_next(const blob_pages *b, int64_t index, uint8_t head[NEXT_BYTES]) {
  const uint32_t next = index + 1 < b->count ? (uint32_t)number_of(b, index + 1) : 0;
  for (int i = 0; i < NEXT_BYTES; i++) head[i] = (uint8_t)(next >> (24 - 8 * i));
}

bool blob_pages_are_empty(const blob_pages *b, int64_t index, const uint8_t *page) {
  static const uint8_t zeros[WRITE_QUEUE_PIECE_BYTES];
  uint8_t head[NEXT_BYTES];
  put_next(b, index, head);
  return memcmp(page, head, NEXT_BYTES) == 0 && memcmp(page + NEXT_BYTES, zeros, b->usable - NEXT_BYTES) == 0;
}

write_page blob_pages_page(const blob_pages *b, int64_t index) {
  const size_t each = b->usable - NEXT_BYTES, at = b->local + (size_t)index * each;
  write_page page = {.content = b->bytes + at, .size = b->size - at < each ? b->size - at : each};
  put_next(b, index, page.head);
  return page;
}

/* Bytes of an integer in a record; 0 and 1 need none. */
static size_t integer_bytes(int64_t value) {
  return value <= 1 ? 0 : value <= INT8_MAX ? 1 : value <= INT16_MAX ? 2 : value < 1 << 23 ? 3 : 4;
}

size_t blob_pages_before(int64_t rows, int64_t columns, size_t blob_bytes) {
  size_t header = 4; /* its own length, and the types of key, rows and columns */
  for (uint64_t type = 12 + 2 * (uint64_t)blob_bytes; type > 0; type >>= 7) header++;
  return header + integer_bytes(rows) + integer_bytes(columns);
}
