/*
 * Zip archives of stored entries.
 */
#include <string.h>

#include "pipeline/formats/common/byte_order.h"
#include "pipeline/formats/common/crc.h"
#include "pipeline/formats/common/zip_archive.h"
#include "pipeline/formats/common/zip_layout.h"

/* 1 January 1980, the earliest date: the same features give the same bytes on any day. */
static const uint16_t zip_date = 0x0021;
/* Version 2.0 of the format is needed for plain entries. */
static const uint16_t zip_version = 20;

void zip_write_begin(zip_writer *writer, FILE *stream, digest_state *written) {
  sink_begin(&writer->sink, stream, written);
  writer->count = 0;
}

/* The fields that local and central headers share, from the version needed to the name's length. */
static void zip_pack_common(uint8_t *out, const zip_written *entry) {
  bytes_put_u16(out, zip_version);
  bytes_put_u16(out + 2, 0);
  bytes_put_u16(out + 4, ZIP_STORED);
  bytes_put_u16(out + 6, 0);
  bytes_put_u16(out + 8, zip_date);
  bytes_put_u32(out + 10, entry->check);
  bytes_put_u32(out + 14, entry->size);
  bytes_put_u32(out + 18, entry->size);
  bytes_put_u16(out + 22, (uint16_t)strlen(entry->name));
}

bool zip_write_entry(zip_writer *writer, const char *name, zip_produce produce, const void *user) {
  if (writer->count == ZIP_ENTRIES_MOST) return false;
  feature_sink measure;
  sink_begin_measure(&measure, crc_zip);
  produce(&measure, user);
  sink_flush(&measure);
  uint64_t end = writer->sink.total + ZIP_LOCAL_BYTES + strlen(name) + measure.total;
  /* The directory needs some room as well. */
  if (end > UINT32_MAX - 65536u) return false;
  zip_written *entry = &writer->entries[writer->count++];
  *entry = (zip_written){
      .name = name, .check = measure.check, .size = (uint32_t)measure.total, .offset = (uint32_t)writer->sink.total};
  uint8_t header[ZIP_LOCAL_BYTES] = {0};
  bytes_put_u32(header, ZIP_LOCAL_MARK);
  zip_pack_common(header + 4, entry);
  sink_bytes(&writer->sink, header, sizeof header);
  sink_text(&writer->sink, name);
  produce(&writer->sink, user);
  return true;
}

void zip_write_end(zip_writer *writer) {
  uint32_t directory_at = (uint32_t)writer->sink.total;
  for (size_t i = 0; i < writer->count; i++) {
    const zip_written *entry = &writer->entries[i];
    uint8_t header[ZIP_CENTRAL_BYTES] = {0};
    bytes_put_u32(header, ZIP_CENTRAL_MARK);
    bytes_put_u16(header + 4, zip_version);
    zip_pack_common(header + 6, entry);
    bytes_put_u32(header + 42, entry->offset);
    sink_bytes(&writer->sink, header, sizeof header);
    sink_text(&writer->sink, entry->name);
  }
  uint32_t directory_size = (uint32_t)writer->sink.total - directory_at;
  uint8_t end[ZIP_END_BYTES] = {0};
  bytes_put_u32(end, ZIP_END_MARK);
  bytes_put_u16(end + 8, (uint16_t)writer->count);
  bytes_put_u16(end + 10, (uint16_t)writer->count);
  bytes_put_u32(end + 12, directory_size);
  bytes_put_u32(end + 16, directory_at);
  sink_bytes(&writer->sink, end, sizeof end);
  sink_flush(&writer->sink);
}
