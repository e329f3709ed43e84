/* Rows on their way from a file to tiles; see row_band.h. */
#include "pipeline/frame/row_band.h"

#include <string.h>

static bool keep(row_feed *feed, hs_status st) {
  feed->failure = st;
  return st == HS_OK;
}

bool row_band_begin(row_band *b, row_feed *feed, int32_t height, void *memory, size_t bytes) {
  const size_t rows = bytes / feed->row_bytes;
  *b = (row_band){.feed = feed, .memory = memory, .height = height, .capacity = height};
  if (rows < (size_t)height) b->capacity = (int32_t)rows;
  return keep(feed, feed->rewind(feed->reader));
}

static uint8_t *row_at(const row_band *b, int32_t y) { return b->memory + (size_t)(y - b->first) * b->feed->row_bytes; }

/* Drops the rows above y. Those of them that were not read yet are read one over the other. */
static bool move_to(row_band *b, int32_t y) {
  bool ok = true;
  if (y >= b->end) {
    for (; b->end < y && ok; b->end++) ok = keep(b->feed, b->feed->read(b->feed->reader, b->memory));
    b->first = b->end;
    return ok;
  }
  memmove(b->memory, row_at(b, y), (size_t)(b->end - y) * b->feed->row_bytes);
  b->first = y;
  return true;
}

bool row_band_hold(row_band *b, int32_t y0, int32_t y1, source_view *source) {
  assert(y0 >= b->first && y1 - y0 <= b->capacity);
  bool ok = y0 == b->first || move_to(b, y0);
  for (; ok && b->end < y1; b->end++) ok = keep(b->feed, b->feed->read(b->feed->reader, row_at(b, b->end)));
  /* As a number: the address may belong to nothing. */
  source->data = (const void *)((uintptr_t)b->memory - (uintptr_t)b->first * b->feed->row_bytes);
  source->stride_bytes = b->feed->row_bytes;
  return ok;
}

bool row_band_finish(row_band *b) { return move_to(b, b->height); }
