/*
 * hs_extract of a picture that comes in rows.
 */
#ifndef HARTSIFT_FRAME_EXTRACT_ROWS_H
#define HARTSIFT_FRAME_EXTRACT_ROWS_H

#include "pipeline/context/context.h"

/* Whether such pictures are taken at all with the context's options: in tiles, where candidates move by one sample a
   step and pixels need not be seen twice. */
bool extract_rows_may(const hs_context *context);

/* Extracts the features of the picture that the feed gives the rows of; image: what it is, data not null and never
   read. False: the picture must be in memory as a whole, because that, or the workspace that it takes, is how it fits;
   then nothing was done. *status: as hs_extract, and the feed's. */
bool extract_rows(hs_context *context, const hs_image *image, row_feed *feed, const hs_image *mask,
                  hs_features *features, hs_status *status);

#endif
