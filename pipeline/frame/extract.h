/*
 * Functions shared by all calls that extract features, for every kind of source.
 */
#ifndef HARTSIFT_FRAME_EXTRACT_H
#define HARTSIFT_FRAME_EXTRACT_H

#include "pipeline/context/engine.h"
#include "pipeline/source/source.h"

/* ---- extract.c */

/* Features of a frame, and the host's lists if it has any. */
typedef struct frame_output {
  frame_result result;
  workspace lists;
} frame_output;

/* Runs a frame whose source and filter are set: on the context's engine, untiled or in tiles, else on the CPU. With
   source_on_device it runs untiled or fails. Statuses: as hs_extract. */
hs_status extract_request(hs_context *context, frame_request *request, frame_output *out);

/* Copies a frame's features to the caller's list. image: gives size and orientation of the picture. */
hs_status extract_copy(hs_context *context, const hs_image *image, const frame_result *out, hs_descriptor_type type,
                       hs_features *features);

/* Like extract_copy, but *features refers to a list of the context. */
hs_status extract_view(hs_context *context, const hs_image *image, const frame_result *out,
                       const hs_features **features);

/* Returns whether the context's options allow pictures that are read row by row. They need tiles, candidates that move
   by one sample per step, and pixels that are read only once. */
bool extract_rows_may(const hs_context *context);

/* Extracts the features of a picture whose rows the feed gives. image: its description; data is not null and never
   read. False, with nothing done: the complete picture must be in memory, because the frame needs no tiles or fits only
   without rows. *status: as hs_extract, and the feed's. */
bool extract_rows(hs_context *context, const hs_image *image, row_feed *feed, const hs_image *mask,
                  hs_features *features, hs_status *status);

/* ---- extract_source.c */

/* Extracts the features of a picture that was read. on_cpu: use the CPU even if the context has a device. Statuses: as
   hs_extract, and HS_ERR_FORMAT for a JPEG. */
hs_status extract_picture(hs_context *context, const source_picture *picture, bool on_cpu, hs_features *features);

/* Like extract_picture, but *features refers to a list of the context, as in hs_extract_view. */
hs_status extract_picture_view(hs_context *context, const source_picture *picture, const hs_features **features);

#endif
