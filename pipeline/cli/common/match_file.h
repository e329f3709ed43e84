/*
 * Files of matches between two lists of features: CSV, JSON, and the text that COLMAP's matches_importer reads.
 * FORMATS.md describes the layouts.
 */
#ifndef HARTSIFT_CLI_COMMON_MATCH_FILE_H
#define HARTSIFT_CLI_COMMON_MATCH_FILE_H

#include "pipeline/formats/formats.h"

typedef enum match_format { MATCH_FORMAT_CSV = 0, MATCH_FORMAT_JSON = 1, MATCH_FORMAT_COLMAP = 2 } match_format;

/* Content of a file of matches. When writing, it belongs to the caller; after reading, match_table_free frees it. */
typedef struct match_table {
  hs_matches matches;          /* distances: 0 if the file has none; next_distance is not stored */
  uint8_t *inliers;            /* matches.count entries, 1 or 0; null: not verified */
  const hs_geometry *geometry; /* writing JSON: the verified geometry; null: none. Reading: null */
  const char *name_a, *name_b; /* writing: of the images or feature files. Reading: null */
  const char *colmap_names[2]; /* writing COLMAP's text: names with folders; null: name_a and name_b without folders */
  uint64_t count_a, count_b;   /* writing: features of each list. Reading: above every index */
  const hs_allocator *allocator; /* reading: of inliers */
} match_table;

void match_table_free(match_table *table);

/* By the name's ending, case-insensitive: .json, .txt (COLMAP), else CSV. */
match_format match_format_by_ending(const char *path);

/* False if the ending belongs only to feature files: such an output is a mistake that would replace features or even
   a database. */
bool match_format_fits(const char *path);

/* The format that match_table_load would use, from the file's beginning; CSV if it cannot be opened. */
match_format match_format_of_file(const char *path);

/* Writes the table atomically; path "-": standard output. message: null, or a buffer for the reason of a failure.
   Statuses: HS_ERR_IO, HS_ERR_ARGUMENT (a name that COLMAP's text cannot hold). */
hs_status match_table_save(const char *path, match_format format, const match_table *table, char *message,
                           size_t message_bytes);

/* Reads an untrusted file of any format, detected by content. count_a, count_b: features of the lists; a larger
   index is an error, and so is another count in JSON. max_memory_bytes: as in hs_file_options. *table changes only
   on success. Statuses: HS_ERR_IO, HS_ERR_FORMAT, HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status match_table_load(const char *path, uint64_t count_a, uint64_t count_b, uint64_t max_memory_bytes,
                           const hs_allocator *allocator, match_table *table, char *message, size_t message_bytes);

/* As match_table_load, from memory. */
hs_status match_table_read(const feature_source *source, uint64_t count_a, uint64_t count_b, match_table *table);

/* Writes to a stream; errors stay in it. */
void match_table_write(FILE *stream, match_format format, const match_table *table);

#endif
