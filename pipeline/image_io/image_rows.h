/*
 * A picture read row by row, for a frame that does not hold it: PNG that is not interlaced, and JPEG of one scan that
 * need not be turned. Of any other the whole must be there.
 */
#ifndef HARTSIFT_IMAGE_IO_IMAGE_ROWS_H
#define HARTSIFT_IMAGE_IO_IMAGE_ROWS_H

#include "pipeline/image_io/image_io.h"

typedef struct image_rows image_rows;

/* Who reads the rows of a kind of file. */
typedef struct image_rows_kind {
  /* Makes the decoder and reads the header: width, height, type, working_bytes. whole is set where rows are no use. On
     failure too it has to be ended. */
  hs_status (*begin)(image_rows *rows);
  /* The next row, as gray; after the last, whether anything was missing. */
  hs_status (*read)(image_rows *rows, uint8_t *row);
  void (*end)(image_rows *rows);
} image_rows_kind;

struct image_rows {
  image_request request;       /* with the file's size; bytes null where they are read as they are wanted */
  const image_rows_kind *kind; /* null: not open */
  void *decoder;               /* the kind's; null: none */
  byte_source bytes;           /* for the decoder to take over as it begins */
  FILE *stream;
  uint8_t *buffer;
  int32_t width, height;
  hs_sample_type type;    /* that rows are given in */
  uint64_t working_bytes; /* that decoding holds in addition to the row */
  bool whole;             /* the picture must be decoded as a whole */
  hs_sample_type stored;  /* as the kind reads them; type is HS_F32 with a value range that was given */
  image_findings found;
  sample_extremes extremes; /* of the rows read */
  uint8_t *samples;         /* a row of `stored`, where type is another; else null */
  int32_t next;             /* row */
};

/* Opens a file by its name, or (path null) its bytes, with the options of loading. Of HS_OK without rows->kind, and of any
   failure, nothing is left, and hs_load_image says what there is to say. */
hs_status image_rows_open(image_rows *rows, const char *path, const void *bytes, size_t size,
                          const hs_load_options *load);

/* The next row, of width gray samples of rows->type; fewer than height have been read. Statuses: as hs_load_image. */
hs_status image_rows_read(image_rows *rows, uint8_t *row);

/* The next row is the first again. Statuses: as hs_load_image. */
hs_status image_rows_rewind(image_rows *rows);

/* Closes what is open; {0} is allowed. */
void image_rows_close(image_rows *rows);

/* Null: built without the library that it needs. */
const image_rows_kind *image_rows_of_png(void);
const image_rows_kind *image_rows_of_jpeg(void);

#endif
