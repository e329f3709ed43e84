/* Zip archives: writes stored entries, reads single entries. */
#include "pipeline/formats/common/zip_archive.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/content_digest.h"

/* 1 January 1980, the earliest possible date, so that the archive's bytes do not depend on the day. */
static const uint16_t zip_date = 0x0021;
/* Version 2.0 of the format, which plain entries need. */
static const uint16_t zip_version = 20;

void zip_write_begin(zip_writer *writer, FILE *stream, digest_state *written) {
  sink_begin(&writer->sink, stream, written);
  writer->count = 0;
}

/* Writes the fields that local and central headers share, from the needed version to the length of the name. */
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
  if (writer->count == ZIP_ENTRIES_MAX) return false;
  feature_sink measure;
  sink_begin_measure(&measure, crc_zip);
  produce(&measure, user);
  sink_flush(&measure);
  uint64_t end = writer->sink.total + ZIP_LOCAL_BYTES + strlen(name) + measure.total;
  /* the limit leaves space for the directory */
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

/* ---- Reading. Archives are not trusted: every offset is checked against the content, sizes against limits, data
   against its CRC-32. */

#ifndef HARTSIFT_HAVE_ZLIB
#  define HARTSIFT_HAVE_ZLIB 0
#endif
#if HARTSIFT_HAVE_ZLIB
#  include <zlib.h>
#endif

/* Maximum length of the archive's comment, which may follow the end record; id of the zip64 field. */
enum { ZIP_COMMENT_MAX = 65535, ZIP64_EXTRA = 1 };
/* Maximum expansion by deflate; a larger claim is false. */
enum { DEFLATE_EXPANSION_MAX = 1032 };

/* An entry with the properties that the directory gives. */
typedef struct zip_found {
  uint16_t flags, method;
  uint32_t check;
  uint64_t packed_size, size, offset;
} zip_found;

/* Position of the directory. */
typedef struct zip_directory {
  size_t at, end;
  uint32_t count;
} zip_directory;

static hs_status zip_find_directory(const feature_source *source, zip_directory *directory) {
  size_t size = source->size;
  if (size < ZIP_END_BYTES) return source_fail(source, HS_ERR_FORMAT, "too short for a zip archive");
  size_t last = size - ZIP_END_BYTES;
  size_t least = last > ZIP_COMMENT_MAX ? last - ZIP_COMMENT_MAX : 0;
  size_t at = last;
  while (at > least && bytes_get_u32(source->bytes + at) != ZIP_END_MARK) at--;
  const uint8_t *record = source->bytes + at;
  if (bytes_get_u32(record) != ZIP_END_MARK || at + ZIP_END_BYTES + bytes_get_u16(record + 20) != size)
    return source_fail(source, HS_ERR_FORMAT, "the zip archive has no end record: truncated?");
  uint32_t directory_size = bytes_get_u32(record + 12);
  uint32_t directory_at = bytes_get_u32(record + 16);
  if (directory_at == UINT32_MAX || directory_size == UINT32_MAX)
    return source_fail(source, HS_ERR_UNSUPPORTED, "zip archives beyond 4 GiB are not read");
  if (directory_at > at || directory_size > at - directory_at)
    return source_fail(source, HS_ERR_FORMAT, "the directory of the zip archive is outside it");
  directory->at = directory_at;
  directory->end = directory_at + directory_size;
  directory->count = bytes_get_u16(record + 10);
  return HS_OK;
}

/* Reads the extra fields. If a 32-bit size is all ones, the zip64 field has the sizes, in this order. */
static bool zip_read_extra(const uint8_t *extra, size_t extra_size, zip_found *found) {
  uint64_t *const fields[] = {&found->size, &found->packed_size, &found->offset};
  while (extra_size >= 4) {
    size_t id = bytes_get_u16(extra);
    size_t length = bytes_get_u16(extra + 2);
    if (length > extra_size - 4) return false;
    const uint8_t *at = extra + 4;
    size_t left = id == ZIP64_EXTRA ? length : 0;
    for (size_t i = 0; i < 3 && id == ZIP64_EXTRA; i++) {
      if (*fields[i] != UINT32_MAX) continue;
      if (left < 8) return false;
      *fields[i] = bytes_get_u64(at);
      at += 8;
      left -= 8;
    }
    extra += 4 + length;
    extra_size -= 4 + length;
  }
  return true;
}

/* Searches the directory for an entry; *present: whether it was found. */
static hs_status zip_find_entry(const feature_source *source, const char *name, zip_found *found, bool *present) {
  zip_directory directory = {0};
  hs_status status = zip_find_directory(source, &directory);
  size_t at = directory.at;
  *present = false;
  for (uint32_t i = 0; status == HS_OK && i < directory.count && !*present; i++) {
    const uint8_t *record = source->bytes + at;
    if (directory.end - at < ZIP_CENTRAL_BYTES || bytes_get_u32(record) != ZIP_CENTRAL_MARK)
      return source_fail(source, HS_ERR_FORMAT, "the directory of the zip archive is damaged");
    size_t name_size = bytes_get_u16(record + 28);
    size_t extra_size = bytes_get_u16(record + 30);
    size_t record_size = ZIP_CENTRAL_BYTES + name_size + extra_size + bytes_get_u16(record + 32);
    if (record_size > directory.end - at)
      return source_fail(source, HS_ERR_FORMAT, "the directory of the zip archive is damaged");
    at += record_size;
    const uint8_t *record_name = record + ZIP_CENTRAL_BYTES;
    if (name_size != strlen(name) || memcmp(record_name, name, name_size) != 0) continue;
    *found = (zip_found){.flags = bytes_get_u16(record + 8),
                         .method = bytes_get_u16(record + 10),
                         .check = bytes_get_u32(record + 16),
                         .packed_size = bytes_get_u32(record + 20),
                         .size = bytes_get_u32(record + 24),
                         .offset = bytes_get_u32(record + 42)};
    if (!zip_read_extra(record_name + name_size, extra_size, found))
      return source_fail(source, HS_ERR_FORMAT, "%s: damaged extra field in the zip archive", name);
    *present = true;
  }
  return status;
}

/* Finds the packed bytes of an entry, which follow its local header. */
static hs_status zip_locate(const feature_source *source, const char *name, const zip_found *found,
                            const uint8_t **packed) {
  uint64_t size = source->size;
  if (found->offset > size || size - found->offset < ZIP_LOCAL_BYTES)
    return source_fail(source, HS_ERR_FORMAT, "%s is outside the zip archive", name);
  const uint8_t *header = source->bytes + found->offset;
  uint64_t start = found->offset + ZIP_LOCAL_BYTES + bytes_get_u16(header + 26) + bytes_get_u16(header + 28);
  if (bytes_get_u32(header) != ZIP_LOCAL_MARK || start > size || size - start < found->packed_size)
    return source_fail(source, HS_ERR_FORMAT, "%s is outside the zip archive", name);
  *packed = source->bytes + start;
  return HS_OK;
}

#if HARTSIFT_HAVE_ZLIB
/* Inflates raw deflate data. *made: number of bytes written, up to `size`; *whole: the data ended there. */
static hs_status zip_inflate(const feature_source *source, const uint8_t *packed, size_t packed_size, uint8_t *out,
                             size_t size, size_t *made, bool *whole) {
  const hs_allocator *allocator = source->allocator;
  z_stream stream = {.zalloc = zlib_alloc, .zfree = zlib_release, .opaque = (voidpf)&allocator};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return HS_ERR_MEMORY;
  int result = Z_OK;
  size_t in_at = 0;
  size_t out_at = 0;
  while (result == Z_OK) {
    uInt in_part = packed_size - in_at < UINT32_MAX / 2 ? (uInt)(packed_size - in_at) : (uInt)(UINT32_MAX / 2);
    uInt out_part = size - out_at < UINT32_MAX / 2 ? (uInt)(size - out_at) : (uInt)(UINT32_MAX / 2);
    stream.next_in = (z_const Bytef *)(packed + in_at);
    stream.avail_in = in_part;
    stream.next_out = out + out_at;
    stream.avail_out = out_part;
    result = inflate(&stream, Z_NO_FLUSH);
    in_at += in_part - stream.avail_in;
    out_at += out_part - stream.avail_out;
  }
  (void)inflateEnd(&stream);
  if (result == Z_MEM_ERROR) return HS_ERR_MEMORY;
  *made = out_at;
  *whole = result == Z_STREAM_END && out_at == size && in_at == packed_size;
  return result == Z_DATA_ERROR ? HS_ERR_FORMAT : HS_OK;
}

static hs_status zip_unpack(const feature_source *source, const char *name, const zip_found *found,
                            const uint8_t *packed, zip_entry *entry) {
  entry->size = (size_t)found->size;
  /* one byte more, because zlib needs a valid pointer even if the entry is empty */
  entry->owned = hs_memory_alloc(source->allocator, entry->size + 1);
  if (!entry->owned) return source_fail(source, HS_ERR_MEMORY, "out of memory for %s", name);
  entry->bytes = entry->owned;
  size_t made = 0;
  bool whole = false;
  hs_status status = zip_inflate(source, packed, (size_t)found->packed_size, entry->owned, entry->size, &made, &whole);
  if (status == HS_OK && !whole) status = HS_ERR_FORMAT;
  if (status == HS_ERR_MEMORY) return source_fail(source, status, "out of memory for %s", name);
  return status == HS_OK ? HS_OK : source_fail(source, status, "%s: damaged compressed data", name);
}

static hs_status zip_unpack_beginning(const feature_source *source, const char *name, const zip_found *found,
                                      const uint8_t *packed, uint8_t *out, size_t *held) {
  const size_t wanted = *held;
  bool whole = false;
  hs_status status = zip_inflate(source, packed, (size_t)found->packed_size, out, wanted, held, &whole);
  if (status == HS_ERR_MEMORY) return source_fail(source, status, "out of memory for %s", name);
  if (status == HS_OK && *held < wanted) status = HS_ERR_FORMAT;
  return status == HS_OK ? HS_OK : source_fail(source, status, "%s: damaged compressed data", name);
}
#else
static hs_status zip_unpack_beginning(const feature_source *source, const char *name, const zip_found *found,
                                      const uint8_t *packed, uint8_t *out, size_t *held) {
  (void)found;
  (void)packed;
  (void)out;
  (void)held;
  return source_fail(source, HS_ERR_UNSUPPORTED, "%s is compressed, and this build has no zlib", name);
}

static hs_status zip_unpack(const feature_source *source, const char *name, const zip_found *found,
                            const uint8_t *packed, zip_entry *entry) {
  (void)found;
  (void)packed;
  (void)entry;
  return source_fail(source, HS_ERR_UNSUPPORTED, "%s is compressed, and this build has no zlib", name);
}
#endif

/* Finds an entry's packed bytes, and checks the sizes that the archive claims for them. */
static hs_status zip_check_entry(const feature_source *source, const char *name, const zip_found *found,
                                 const uint8_t **packed) {
  hs_status status = zip_locate(source, name, found, packed);
  if (status != HS_OK) return status;
  if ((found->flags & 1u) != 0) return source_fail(source, HS_ERR_UNSUPPORTED, "%s is encrypted", name);
  if (found->method == ZIP_STORED && found->size != found->packed_size)
    return source_fail(source, HS_ERR_FORMAT, "%s has two sizes", name);
  if (found->method == ZIP_DEFLATED && found->size / DEFLATE_EXPANSION_MAX > found->packed_size)
    return source_fail(source, HS_ERR_FORMAT, "%s claims more bytes than its data can give", name);
  if (found->method != ZIP_STORED && found->method != ZIP_DEFLATED)
    return source_fail(source, HS_ERR_UNSUPPORTED, "%s is compressed by an unknown method", name);
  return HS_OK;
}

static hs_status zip_open_entry(const feature_source *source, const char *name, const zip_found *found,
                                zip_entry *entry) {
  const uint8_t *packed = NULL;
  hs_status status = zip_check_entry(source, name, found, &packed);
  if (status != HS_OK) return status;
  if (found->method == ZIP_STORED) {
    entry->bytes = packed;
    entry->size = (size_t)found->size;
  } else {
    status = zip_unpack(source, name, found, packed, entry);
    if (status != HS_OK) return status;
  }
  if (crc_zip(0, entry->bytes, entry->size) != found->check)
    return source_fail(source, HS_ERR_FORMAT, "%s: the checksum is wrong", name);
  return HS_OK;
}

hs_status zip_read_entry(const feature_source *source, const char *name, uint64_t most_bytes, zip_entry *entry) {
  zip_found found = {0};
  bool present = false;
  *entry = (zip_entry){0};
  hs_status status = zip_find_entry(source, name, &found, &present);
  if (status != HS_OK || !present) return status;
  if (found.size > most_bytes || found.size > SIZE_MAX - 1)
    return source_fail(source, HS_ERR_LIMIT, "%s is larger than the limit on features allows", name);
  status = zip_open_entry(source, name, &found, entry);
  if (status != HS_OK) zip_release_entry(source, entry);
  return status;
}

hs_status zip_read_beginning(const feature_source *source, const char *name, uint8_t *out, size_t capacity,
                             size_t *held, uint64_t *size) {
  zip_found found = {0};
  const uint8_t *packed = NULL;
  bool present = false;
  *held = 0;
  hs_status status = zip_find_entry(source, name, &found, &present);
  if (status != HS_OK || !present) return status;
  status = zip_check_entry(source, name, &found, &packed);
  if (status != HS_OK) return status;
  if (found.size == 0) return source_fail(source, HS_ERR_FORMAT, "%s is empty", name);
  *size = found.size;
  *held = found.size < capacity ? (size_t)found.size : capacity;
  if (found.method == ZIP_DEFLATED) return zip_unpack_beginning(source, name, &found, packed, out, held);
  memcpy(out, packed, *held);
  return HS_OK;
}

void zip_release_entry(const feature_source *source, zip_entry *entry) {
  hs_memory_release(source->allocator, entry->owned);
  *entry = (zip_entry){0};
}
