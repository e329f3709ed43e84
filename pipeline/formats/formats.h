/*
 * Feature files: the table of formats, what a reader and a writer are given, and the entry points that
 * the public functions, the command line and the tests share. FORMATS.md describes the layouts.
 */
#ifndef HARTSIFT_FORMATS_FORMATS_H
#define HARTSIFT_FORMATS_FORMATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"

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
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_source;

/* What a writer gets. The features have been validated: finite, sigma > 0, descriptors present. */
typedef struct feature_target {
  const char *path; /* for messages */
  FILE *stream;
  FILE *beside_stream; /* for formats with a beside_ending; else null */
  const hs_features *features;
  hs_bin_layout layout;   /* of the descriptors in memory */
  const char *image_name; /* or null */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} feature_target;

typedef struct feature_format {
  hs_format id;
  const char *name;          /* as the command line calls it */
  const char *summary;       /* one line for a list of formats */
  const char *endings[3];    /* with the dot, lower case; unused ones null */
  const char *beside_ending; /* a second file carries this instead of endings[0]; or null */
  bool without_descriptors;  /* can hold HS_DESCRIPTOR_NONE */
  /* A write error of the stream need not be reported: committing the file finds it. */
  hs_status (*write)(const feature_target *target);
  /* features: {0}; whatever a failing reader leaves in it is freed by the caller. */
  hs_status (*read)(const feature_source *source, hs_features *features);
  /* Whether the content looks like this format; cheap, sees only the beginning. */
  bool (*probe)(const uint8_t *bytes, size_t size);
  /* For a file that holds more than one list and is opened by other means, else null: instead of write and read, with
     neither stream nor bytes. */
  hs_status (*write_into)(const feature_target *target);
  hs_status (*read_from)(const feature_source *source, hs_features *features);
} feature_format;

extern const feature_format format_colmap, format_colmap_db, format_npz, format_csv, format_json, format_lowe,
    format_vlfeat, format_opencv, format_openmvg, format_bin, format_visualsfm, format_oxford;

/* The i-th format in the order of the table, null past the end. */
const feature_format *format_at(size_t index);
/* Null for HS_FORMAT_AUTO, unknown values and unknown names. */
const feature_format *format_by_id(hs_format id);
const feature_format *format_by_name(const char *name);
/* By ending, whatever its case; null when there is none. */
const feature_format *format_by_ending(const char *path);
/* By content, null when no format knows it; `first` (or null) is asked before the others. */
const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first);

/* Reads one format from memory. On failure *features is unchanged; on success its old arrays are freed. */
hs_status features_read_memory(const feature_format *format, const feature_source *source, hs_features *features);

/* Reads a regular file of a size that source->max_features may need. *bytes: from source->allocator, to be released
   also on failure. Statuses: HS_ERR_IO, HS_ERR_LIMIT, HS_ERR_MEMORY, with a message. */
hs_status source_load_file(const feature_source *source, const char *path, uint8_t **bytes, size_t *size);

/* Sets "path: reason" as the message and returns `status`. */
#if defined(__GNUC__)
#  define FORMATS_PRINTF __attribute__((format(printf, 3, 4)))
#else
#  define FORMATS_PRINTF
#endif
hs_status source_fail(const feature_source *source, hs_status status, const char *format, ...) FORMATS_PRINTF;
hs_status target_fail(const feature_target *target, hs_status status, const char *format, ...) FORMATS_PRINTF;

/* Whether the target's features can be written at all: finite, sigma > 0, descriptors present. HS_ERR_ARGUMENT. */
hs_status features_check(const feature_target *target);

/* Room for what a file claims: refuses more than max_features before allocating. count becomes 0 or the
   claim only through the reader. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status source_reserve(const feature_source *source, hs_features *features, uint64_t count, hs_descriptor_type type);

#endif
