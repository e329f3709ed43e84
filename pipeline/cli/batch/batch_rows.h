/*
 * Text of manifests and journals: head, rows, and complete files. Input is untrusted.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_ROWS_H
#define HARTSIFT_CLI_BATCH_BATCH_ROWS_H

#include "pipeline/cli/batch/batch_manifest.h"

/* The first line; the names of the columns; the extra column of runs with a folder of masks; columns about image files,
   which manifests of older versions lack; extra columns of journals. The second line of a file is "# " and the
   settings. */
#define BATCH_RECALL_TITLE           "# hartsift batch 1"
#define BATCH_RECALL_COLUMNS         "image,width,height,features,digest,output_digest,status,error"
#define BATCH_RECALL_MASK_COLUMN     ",mask"
#define BATCH_RECALL_SOURCE_COLUMNS  ",source_bytes,source_time,source_digest"
#define BATCH_RECALL_JOURNAL_COLUMNS ",milliseconds,check"

enum { BATCH_MASK_FIELD = 8, BATCH_FIELDS_MAX = 14, BATCH_COLUMNS_BYTES = 256 };

/* True if the settings of a batch name a folder of masks. */
bool batch_settings_have_masks(const char *settings, size_t length);

/* Write the column names as one line without line end, and return the number of fields of a row. */
void batch_columns_text(batch_columns columns, char text[BATCH_COLUMNS_BYTES]);
int batch_row_fields(batch_columns columns);

/* Fields of a row, unquoted. */
typedef struct batch_row {
  char *text; /* memory of all zero-terminated fields: the row's size plus BATCH_FIELDS_MAX */
  const char *fields[BATCH_FIELDS_MAX];
  int count;
  size_t check_at; /* offset of the row's last comma, before the checksum */
} batch_row;

/* Reads the head, which has three lines; *settings: pointer into the text. False if the head is incomplete. */
bool batch_read_head(const char **cursor, const char *end, bool is_journal, const char **settings, size_t *length,
                     batch_columns *columns);

/* Reads the row at *cursor. False if it is incomplete or has too many fields. */
bool batch_read_row(const char **cursor, const char *end, batch_row *row);

/* Verifies the checksum of a journal's row. The machine may fail while a journal grows, and a changed digit would pass
   for a result. */
bool batch_check_row(const char *text, const batch_row *row);

/* Converts a row to a record: BATCH_CLAIMED, or BATCH_FAILED with its status and without message. False if a field is
   invalid. */
bool batch_row_record(const batch_row *row, batch_columns columns, batch_record *record);

/* Reads a descriptor to its end, into memory from malloc; null with errno. */
char *batch_read_whole(int descriptor, size_t *size);

/* Lists the words of one text that are missing in the other, each after a space. */
void batch_list_differences(const char *one, size_t one_size, const char *other, size_t other_size,
                            char out[CLI_MESSAGE_BYTES]);

/* ---- recalling an earlier run */

/* Reads all manifests and journals with manifest->prefix into manifest->records; this run's last. *whole_bytes:
   readable part of this run's journal. Prints messages. */
cli_exit batch_recall(batch_manifest *manifest, uint64_t *whole_bytes);

/* Estimates for the list's images first, first + step, ... how many are not done according to manifests and journals of
   this prefix, whatever their settings. Takes no lock; the caller's process must not hold one, which this would end. */
size_t batch_count_left(const batch_list *list, const char *prefix, size_t first, size_t step);

/* Reads the rows of a file's text, up to the first incomplete or damaged row (rows of a journal end in a checksum).
   Returns the bytes of head and rows; 0: the head is incomplete. settings_differ: set if the settings are others; no
   row is read then, `settings` points to the file's settings, and the result is their length. */
size_t batch_recall_text(batch_manifest *manifest, const char *text, size_t size, bool is_journal,
                         bool *settings_differ, const char **settings);

/* True for a name made of `base`, optionally "-I-of-N", and ".csv" or ".journal". */
bool batch_is_manifest_name(const char *name, const char *base);

#endif
