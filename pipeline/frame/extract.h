/*
 * What the calls that extract features share, whatever their pictures come from.
 */
#ifndef HARTSIFT_FRAME_EXTRACT_H
#define HARTSIFT_FRAME_EXTRACT_H

#include "pipeline/context/engine.h"
#include "pipeline/source/source.h"

/* ---- extract.c */

/* The features of a frame, and the memory for its lists where they are listed. */
typedef struct frame_output {
  frame_result result;
  workspace lists;
} frame_output;

/* Runs a frame whose source and filter are set, on the context's engine, as a whole or in tiles, else on the CPU. With
   source_on_device it runs as a whole or fails. Statuses: as hs_extract. */
hs_status extract_request(hs_context *context, frame_request *request, frame_output *out);

/* Copies its features to the caller's list. image: their picture's size and orientation. */
hs_status extract_copy(hs_context *context, const hs_image *image, const frame_result *out, hs_descriptor_type type,
                       hs_features *features);

/* The same as a list of the context's. */
hs_status extract_view(hs_context *context, const hs_image *image, const frame_result *out,
                       const hs_features **features);

/* Whether pictures that come in rows are taken at all with the context's options: in tiles, where candidates move by one
   sample a step and pixels need not be seen twice. */
bool extract_rows_may(const hs_context *context);

/* Extracts the features of the picture that the feed gives the rows of; image: what it is, data not null and never
   read. False: the picture must be in memory as a whole, because that, or the workspace that it takes, is how it fits;
   then nothing was done. *status: as hs_extract, and the feed's. */
bool extract_rows(hs_context *context, const hs_image *image, row_feed *feed, const hs_image *mask,
                  hs_features *features, hs_status *status);

/* ---- extract_source.c */

/* Extracts the features of a picture that was read. on_cpu: whatever the context's device. Statuses: as hs_extract, and
   HS_ERR_FORMAT for a JPEG. */
hs_status extract_picture(hs_context *context, const source_picture *picture, bool on_cpu, hs_features *features);

/* The same as a list of the context's, as hs_extract_view. */
hs_status extract_picture_view(hs_context *context, const source_picture *picture, const hs_features **features);

#endif
