/*
 * Content that gzip has compressed (RFC 1952), as Bundler keeps its keys (.key.gz) and OpenCV its storages (.yml.gz).
 */
#ifndef HARTSIFT_FORMATS_COMMON_GZIP_CONTENT_H
#define HARTSIFT_FORMATS_COMMON_GZIP_CONTENT_H

#include "pipeline/formats/common/feature_file.h"

/* Whether bytes begin as gzip's do. */
bool gzip_begins(const uint8_t *bytes, size_t size);

/* *bytes, *size (from source->allocator) become what they hold when decompressed, all members one after another; on failure
   they stay. path: for messages. most: bytes that the content may have. Statuses: HS_ERR_FORMAT, HS_ERR_LIMIT,
   HS_ERR_MEMORY, HS_ERR_UNSUPPORTED (a build without zlib). */
hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes, size_t *size);

/* The beginning of the content whose compressed beginning is packed[packed_size]: returns how many bytes there are, up to
   `room`; 0 where it cannot be decompressed. */
size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t room);

#endif
