/* Inputs and functions of the readers and writers of feature files. */
#ifndef HARTSIFT_FORMATS_COMMON_FEATURE_FILE_H
#define HARTSIFT_FORMATS_COMMON_FEATURE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/formats/common/content_digest.h"
#include "pipeline/include/hartsift.h"

/* Default of hs_file_options.max_features, and maximum number of features that are written. */
#define FEATURES_MAX_DEFAULT (UINT64_C(1) << 27)

/* Input of a reader: the complete, untrusted content, and the buffer for error messages. */
typedef struct feature_source {
  const char *path; /* path for messages */
  const uint8_t *bytes;
  size_t size;
  const char *second_path; /* path of the second file, for formats with a second_ending; otherwise null */
  const uint8_t *second_bytes;
  size_t second_size;
  const char *image_name; /* name of the wanted list, for a file that has several; or null */
  uint64_t max_features;
  uint64_t max_memory_bytes; /* 0: a share of this process's memory; UINT64_MAX: no limit */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_source;

/* Input of a writer. The features have been validated: finite, sigma above 0, descriptors present. */
typedef struct feature_target {
  const char *path; /* path for messages */
  FILE *stream;
  FILE *second_stream; /* for formats with a second_ending; otherwise null */
  /* digest of the bytes written, those of the second file after those of the first; null: not computed */
  digest_state *written;
  bool is_staged; /* see atomic_file */
  const hs_features *features;
  hs_bin_layout layout;   /* bin order of the descriptors in memory */
  const char *image_name; /* name of the image, or null */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_target;

/* Reads a regular file, and decompresses gzip content. The size of the file must be plausible for max_features
   features. *bytes: from source->allocator; the caller frees it, also after a failure. Statuses, with a message:
   HS_ERR_IO, HS_ERR_LIMIT, HS_ERR_MEMORY, for gzip also HS_ERR_FORMAT and HS_ERR_UNSUPPORTED. */
hs_status source_load_file(const feature_source *source, const char *path, uint8_t **bytes, size_t *size);

/* Reads the decompressed beginning of a regular file, to detect its format. Returns 0 bytes if it is no regular file or
   cannot be read. */
enum { SOURCE_BEGINNING_BYTES = 4096 };
size_t source_read_beginning(const char *path, uint8_t bytes[SOURCE_BEGINNING_BYTES]);

/* Sets "path: reason" as the message, and returns `status`. */
#if defined(__GNUC__)
#  define FORMATS_PRINTF __attribute__((format(printf, 3, 4)))
#else
#  define FORMATS_PRINTF
#endif
hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) FORMATS_PRINTF;
hs_status target_fail(const feature_target *target, hs_status status, const char *format, ...) FORMATS_PRINTF;

/* Checks the target's features: finite, sigma above 0, descriptors present, valid origin that agrees with the target's
   layout. HS_ERR_ARGUMENT. */
hs_status features_check(const feature_target *target);

/* Refuses features of a picture that was rotated by its EXIF orientation, for a program that reads the picture as
   stored. HS_ERR_ARGUMENT. */
hs_status features_check_unturned(const feature_target *target, const char *program);

/* Checks that max_memory_bytes allows `bytes` of memory in addition to the content. HS_ERR_LIMIT. */
hs_status source_check_memory(const feature_source *source, uint64_t bytes);

/* Ensures capacity for the number of features that a file claims. max_features and max_memory_bytes limit it before
   allocation. The reader sets count. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type);
/* As source_reserve, with frames. */
hs_status source_reserve_framed(const feature_source *source, hs_features *features, uint64_t count,
                                hs_descriptor_type type);

/* ---- gzip-compressed content (RFC 1952), used by Bundler (.key.gz) and OpenCV (.yml.gz). */

/* True if bytes begin with gzip's signature. */
bool gzip_begins(const uint8_t *bytes, size_t size);

/* Replaces *bytes, *size (from source->allocator) by the decompressed content of all gzip members; unchanged on
   failure. path: for messages. most: upper bound of the decompressed size. Statuses: HS_ERR_FORMAT, HS_ERR_LIMIT,
   HS_ERR_MEMORY, HS_ERR_UNSUPPORTED (a build without zlib). */
hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes, size_t *size);

/* Decompresses the beginning of the content, at most `capacity` bytes, from packed[packed_size]. Returns the number of
   bytes; 0 on failure. */
size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t capacity);

/* zlib's memory functions; user: address of a pointer to the allocator. */
void *zlib_alloc(void *user, unsigned items, unsigned size);
void zlib_release(void *user, void *pointer);

#endif
