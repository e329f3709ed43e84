/*
 * Manifests and journals as text: their head, their rows, and whole files of them. Nothing read is trusted.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_ROWS_H
#define HARTSIFT_CLI_BATCH_BATCH_ROWS_H

#include "pipeline/cli/batch/batch_manifest.h"

/* The first line; the names of the columns; the further column of runs with masks by name; the columns of the images'
   files, which manifests of earlier versions lack; the columns that a journal adds at the end. The second line is "# "
   and the settings. */
#define BATCH_RECALL_TITLE           "# hartsift batch 1"
#define BATCH_RECALL_COLUMNS         "image,width,height,features,digest,output_digest,status,error"
#define BATCH_RECALL_MASK_COLUMN     ",mask"
#define BATCH_RECALL_SOURCE_COLUMNS  ",source_bytes,source_time,source_digest"
#define BATCH_RECALL_JOURNAL_COLUMNS ",milliseconds,check"

enum { BATCH_MASK_FIELD = 8, BATCH_FIELDS_MOST = 14, BATCH_COLUMNS_BYTES = 256 };

/* Whether the settings of a batch name a folder of masks. */
bool batch_settings_have_masks(const char *settings, size_t length);

/* The names of columns as one line, without its end; how many fields their rows have. */
void batch_columns_text(batch_columns columns, char text[BATCH_COLUMNS_BYTES]);
int batch_row_fields(batch_columns columns);

/* The fields of a row, unquoted. */
typedef struct batch_row {
  char *text; /* room for all fields, each with its final zero: the size of the row and BATCH_FIELDS_MOST */
  const char *fields[BATCH_FIELDS_MOST];
  int count;
  size_t check_at; /* bytes of the row before its last comma */
} batch_row;

/* Reads the three lines above and moves behind them; *settings: within the text. False when they are not whole. */
bool batch_read_head(const char **place, const char *end, bool is_journal, const char **settings, size_t *length,
                     batch_columns *columns);

/* Reads the row at *place and moves behind it; false when it is torn or has more fields than any row. */
bool batch_read_row(const char **place, const char *end, batch_row *row);

/* Whether a journal's row is what was written: a journal grows while the machine may fail, and a digit that changed
   would pass for a result. */
bool batch_check_row(const char *text, const batch_row *row);

/* What a row says: BATCH_CLAIMED, or BATCH_FAILED with its status and without its message. False when a field is not
   what such a row has. */
bool batch_row_record(const batch_row *row, batch_columns columns, batch_record *record);

/* All that a descriptor gives, in memory from malloc; null with errno. */
char *batch_read_whole(int descriptor, size_t *size);

/* The words of one text that the other one does not have, each after a space. */
void batch_list_differences(const char *one, size_t one_size, const char *other, size_t other_size,
                            char out[CLI_MESSAGE_BYTES]);

/* ---- recalling an earlier run */

/* Reads all manifests and journals that begin with manifest->prefix, this run's own last, into manifest->records.
   *whole_bytes: how much of the own journal can be read. Prints messages. */
cli_exit batch_recall(batch_manifest *manifest, uint64_t *whole_bytes);

/* Takes the rows of one file's text, up to the first that is torn or damaged (a journal's rows each end in a checksum),
   and returns how many bytes those and the head are; 0: not even the head is whole. settings_differ: made with other
   settings; nothing was taken, and the result is the length of the line of settings with where it begins
   in *settings. */
size_t batch_recall_text(batch_manifest *manifest, const char *text, size_t size, bool is_journal,
                         bool *settings_differ, const char **settings);

/* Whether a file's name is `base`, perhaps "-I-of-N", and ".csv" or ".journal". */
bool batch_is_manifest_name(const char *name, const char *base);

#endif
