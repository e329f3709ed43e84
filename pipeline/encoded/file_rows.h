/*
 * A picture that a call is given as a file, whose rows are decoded while a frame in tiles works on those before: it is never
 * in memory whole.
 */
#ifndef HARTSIFT_ENCODED_FILE_ROWS_H
#define HARTSIFT_ENCODED_FILE_ROWS_H

#include "pipeline/encoded/file_source.h"
#include "pipeline/image_io/image_rows.h"

typedef struct file_rows {
  image_rows rows;
  hs_image image; /* its size and type; data is not null, and is not pixels */
  row_feed feed;  /* for a frame's request */
  char reason[FILE_SOURCE_REASON_BYTES];
} file_rows;

/* Reads the header of a file that can be decoded row by row, as it is to be seen. False: it is to be read as a whole, for
   whatever reason, and nothing is left. *rows must stay where it is until it is closed. */
bool file_rows_open(const file_source *source, file_rows *rows);

void file_rows_close(file_rows *rows);

#endif
