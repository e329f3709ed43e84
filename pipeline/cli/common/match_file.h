/*
 * Files of matches between two lists of features: CSV, JSON, and the text that COLMAP's matches_importer reads.
 * FORMATS.md describes the layouts.
 */
#ifndef HARTSIFT_CLI_COMMON_MATCH_FILE_H
#define HARTSIFT_CLI_COMMON_MATCH_FILE_H

#include "pipeline/formats/formats.h"

typedef enum match_format { MATCH_FORMAT_CSV = 0, MATCH_FORMAT_JSON = 1, MATCH_FORMAT_COLMAP = 2 } match_format;

/* Content of a file of matches. For writing, the caller owns the memory; after reading, match_table_free frees it. */
typedef struct match_table {
  hs_matches matches;          /* distances are 0 if the file has none; next_distance is not stored */
  uint8_t *inliers;            /* [matches.count]: 1 or 0; null: not verified */
  const hs_geometry *geometry; /* writing JSON: the verified geometry; null: none. Reading: null */
  const char *name_a, *name_b; /* writing: names of the images or feature files. Reading: null */
  /* writing COLMAP's text: names with folders; null: name_a and name_b are written without folders */
  const char *colmap_names[2];
  uint64_t count_a, count_b;     /* writing: number of features of each list. Reading: larger than every index */
  const hs_allocator *allocator; /* reading: allocator of inliers */
} match_table;

void match_table_free(match_table *table);

/* Returns the format for a name's ending, in either case: .json, .txt (COLMAP), else CSV. */
match_format match_format_by_ending(const char *path);

/* False if the ending belongs only to feature files. Such an output is a mistake, and would replace features or even a
   database. */
bool match_format_fits(const char *path);

/* Returns the format that match_table_load would detect, from the file's beginning; CSV if the file cannot be
   opened. */
match_format match_format_of_file(const char *path);

/* Writes the table atomically. path: "-" means standard output. message: null, or a buffer for the reason of a failure.
   Statuses: HS_ERR_IO, HS_ERR_ARGUMENT (a name that COLMAP's text cannot hold). */
hs_status match_table_save(const char *path, match_format format, const match_table *table, char *message,
                           size_t message_bytes);

/* Reads an untrusted file of any format, detected by content. count_a, count_b: numbers of features in the lists. An
   index beyond them, or another count in JSON, is an error. max_memory_bytes: as in hs_file_options. *table changes
   only on success. Statuses: HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status match_table_load(const char *path, uint64_t count_a, uint64_t count_b, uint64_t max_memory_bytes,
                           const hs_allocator *allocator, match_table *table, char *message, size_t message_bytes);

/* As match_table_load, from memory. */
hs_status match_table_read(const feature_source *source, uint64_t count_a, uint64_t count_b, match_table *table);

/* Writes the table to a stream; the stream keeps errors (ferror). */
void match_table_write(FILE *stream, match_format format, const match_table *table);

#endif
