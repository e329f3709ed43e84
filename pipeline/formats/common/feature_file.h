/* What a reader and a writer of feature files are given, and what they may ask. */
#ifndef HARTSIFT_FORMATS_COMMON_FEATURE_FILE_H
#define HARTSIFT_FORMATS_COMMON_FEATURE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/formats/common/content_digest.h"
#include "pipeline/include/hartsift.h"

/* Default of hs_file_options.max_features, and the most that are written. */
#define FEATURES_MAX_DEFAULT (UINT64_C(1) << 27)

/* What a reader gets: the whole content, not to be trusted, and where the reason of a failure goes. */
typedef struct feature_source {
  const char *path; /* for messages */
  const uint8_t *bytes;
  size_t size;
  const char *beside_path; /* of the second file, for formats with a beside_ending; else null */
  const uint8_t *beside_bytes;
  size_t beside_size;
  const char *image_name; /* which list of a file that holds several; or null */
  uint64_t max_features;
  uint64_t max_memory_bytes; /* 0: a share of what this process may hold; UINT64_MAX: no limit */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_source;

/* What a writer gets. The features have been validated: finite, sigma > 0, descriptors present. */
typedef struct feature_target {
  const char *path; /* for messages */
  FILE *stream;
  FILE *beside_stream;   /* for formats with a beside_ending; else null */
  digest_state *written; /* gets what the streams get, the second file's bytes behind the first's; or null */
  bool is_staged;        /* atomic_file's */
  const hs_features *features;
  hs_bin_layout layout;   /* of the descriptors in memory */
  const char *image_name; /* or null */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_target;

/* Reads a regular file of a size that source->max_features may need; content that gzip has compressed is decompressed.
   *bytes: from source->allocator, to be released also on failure. Statuses: HS_ERR_IO, HS_ERR_LIMIT, HS_ERR_MEMORY, of
   compressed content HS_ERR_FORMAT and HS_ERR_UNSUPPORTED too, with a message. */
hs_status source_load_file(const feature_source *source, const char *path, uint8_t **bytes, size_t *size);

/* The beginning of a regular file, more than any probe looks at; decompressed; 0 bytes when it is none or cannot be read. */
enum { SOURCE_BEGINNING_BYTES = 4096 };
size_t source_read_beginning(const char *path, uint8_t bytes[SOURCE_BEGINNING_BYTES]);

/* Sets "path: reason" as the message and returns `status`. */
#if defined(__GNUC__)
#  define FORMATS_PRINTF __attribute__((format(printf, 3, 4)))
#else
#  define FORMATS_PRINTF
#endif
hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) FORMATS_PRINTF;
hs_status target_fail(const feature_target *target, hs_status status, const char *format, ...) FORMATS_PRINTF;

/* Whether the target's features can be written at all: finite, sigma > 0, descriptors present, of an origin that can be
   and that agrees with the target's layout. HS_ERR_ARGUMENT. */
hs_status features_check(const feature_target *target);

/* Refuses features of a picture that was turned, for a program that reads it as stored. HS_ERR_ARGUMENT. */
hs_status features_check_unturned(const feature_target *target, const char *program);

/* Refuses what needs more than max_memory_bytes beside the content itself. HS_ERR_LIMIT. */
hs_status source_check_memory(const feature_source *source, uint64_t bytes);

/* Room for what a file claims: refuses more than max_features and max_memory_bytes before allocating. count becomes 0 or the
   claim only through the reader. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type);
/* The same with frames. */
hs_status source_reserve_framed(const feature_source *source, hs_features *features, uint64_t count,
                                hs_descriptor_type type);

/* ---- Content that gzip has compressed (RFC 1952), as Bundler keeps its keys (.key.gz) and OpenCV its storages
   (.yml.gz). */

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
