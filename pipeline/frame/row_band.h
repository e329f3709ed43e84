/*
 * The rows of a picture that the tiles of its first octave want next, where the whole is not in memory: a band that
 * goes down the picture as its file is decoded.
 */
#ifndef HARTSIFT_FRAME_ROW_BAND_H
#define HARTSIFT_FRAME_ROW_BAND_H

#include "pipeline/context/frame_request.h"

typedef struct row_band {
  row_feed *feed;  /* null: the picture is in memory */
  uint8_t *memory; /* capacity rows of feed->row_bytes */
  int32_t capacity, height;
  int32_t first, end; /* the rows that are there */
} row_band;

/* Begins at the top of the picture. memory: `bytes` of it. False: feed->failure says why. */
bool row_band_begin(row_band *band, row_feed *feed, int32_t height, void *memory, size_t bytes);

/* Has rows [y0, y1), of which y0 was never smaller in a call before; those above it are forgotten. source->data becomes the
   place where row 0 would be. False: feed->failure says why. */
bool row_band_hold(row_band *band, int32_t y0, int32_t y1, source_view *source);

/* Reads what is left, for what is wrong there. False: feed->failure says what. */
bool row_band_finish(row_band *band);

#endif
