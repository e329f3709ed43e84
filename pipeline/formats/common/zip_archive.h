/*
 * Zip archives as NumPy's savez writes them. Writes stored entries; reads stored entries and, with zlib, deflated ones.
 */
#ifndef HARTSIFT_FORMATS_COMMON_ZIP_ARCHIVE_H
#define HARTSIFT_FORMATS_COMMON_ZIP_ARCHIVE_H

#include <stdint.h>

#include "pipeline/formats/common/feature_file.h"
#include "pipeline/formats/common/feature_sink.h"

enum { ZIP_ENTRIES_MAX = 16 };

/* ------------------------------------------------------------------ writing */

/* Function that produces an entry's bytes. It is called twice and must give the same bytes each time. */
typedef void (*zip_produce)(feature_sink *sink, const void *user);

typedef struct zip_written {
  const char *name;
  uint32_t check, size, offset;
} zip_written;

typedef struct zip_writer {
  feature_sink sink;
  size_t count;
  zip_written entries[ZIP_ENTRIES_MAX];
} zip_writer;

/* Starts an archive. written: digest as in sink_begin. */
void zip_write_begin(zip_writer *writer, FILE *stream, digest_state *written);
/* Adds a stored entry; `name` must stay valid until zip_write_end. False if the archive would exceed ZIP_ENTRIES_MAX
   entries, or 4 GiB (which would need zip64). */
bool zip_write_entry(zip_writer *writer, const char *name, zip_produce produce, const void *user);
void zip_write_end(zip_writer *writer);

/* ------------------------------------------------------------------ reading */

/* The bytes of an entry: a view of the source if the entry is stored, else owned memory. */
typedef struct zip_entry {
  const uint8_t *bytes; /* data of the entry; null: there is no such entry */
  size_t size;
  uint8_t *owned;
} zip_entry;

/* Finds the entry with this name, checks its extent and CRC-32, and inflates it if needed. If it is missing, returns
   HS_OK with bytes null. Statuses: HS_ERR_FORMAT, HS_ERR_LIMIT (larger than most_bytes), HS_ERR_UNSUPPORTED (unknown
   compression), HS_ERR_MEMORY. */
hs_status zip_read_entry(const feature_source *source, const char *name, uint64_t most_bytes, zip_entry *entry);
/* Reads the size of an entry and its first bytes, up to `capacity`, without allocating memory for the rest and without
   checking the CRC-32. If the entry is missing, returns HS_OK with *held 0; if it is empty, HS_ERR_FORMAT. Other
   statuses: as zip_read_entry. */
hs_status zip_read_beginning(const feature_source *source, const char *name, uint8_t *out, size_t capacity,
                             size_t *held, uint64_t *size);
void zip_release_entry(const feature_source *source, zip_entry *entry);

/* ---- marks and sizes of records (PKWARE's APPNOTE) */

enum { ZIP_LOCAL_BYTES = 30, ZIP_CENTRAL_BYTES = 46, ZIP_END_BYTES = 22, ZIP_STORED = 0, ZIP_DEFLATED = 8 };

#define ZIP_LOCAL_MARK   UINT32_C(0x04034b50)
#define ZIP_CENTRAL_MARK UINT32_C(0x02014b50)
#define ZIP_END_MARK     UINT32_C(0x06054b50)

#endif
