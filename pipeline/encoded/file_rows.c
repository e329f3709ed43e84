/* See file_rows.h. */
#include "pipeline/encoded/file_rows.h"

#include <string.h>

static hs_status rewind_rows(void *reader) { return image_rows_rewind(reader); }

static hs_status read_row(void *reader, uint8_t *row) { return image_rows_read(reader, row); }

bool file_rows_open(const file_source *source, file_rows *f) {
  hs_load_options load = source->load;
  memset(f, 0, sizeof *f);
  load.message = f->reason;
  load.message_bytes = sizeof f->reason;
  const hs_status st = image_rows_open(&f->rows, source->path, source->bytes, source->size, &load);
  if (st != HS_OK || !f->rows.kind) return false;
  f->image = (hs_image){.data = f,
                        .width = f->rows.width,
                        .height = f->rows.height,
                        .type = f->rows.type,
                        .range_low = load.range_low,
                        .range_high = load.range_high};
  f->feed = (row_feed){.reader = &f->rows,
                       .rewind = rewind_rows,
                       .read = read_row,
                       .row_bytes = (size_t)f->rows.width * image_sample_bytes(f->rows.type),
                       .reason = f->reason};
  return true;
}

void file_rows_close(file_rows *f) { image_rows_close(&f->rows); }
