/*
 * The request for a frame, the same for CPU and GPU.
 */
#ifndef HARTSIFT_CONTEXT_FRAME_REQUEST_H
#define HARTSIFT_CONTEXT_FRAME_REQUEST_H

#include "pipeline/include/hartsift.h"
#include "stages/image.h"
#include "stages/refine.h"

/* A picture whose rows come one after another from a file that is decoded meanwhile. */
typedef struct row_feed {
  void *reader;
  hs_status (*rewind)(void *reader);             /* the next row is the first */
  hs_status (*read)(void *reader, uint8_t *row); /* the next row, `row_bytes` of it */
  size_t row_bytes;
  const char *reason; /* why the last call failed */
  hs_status failure;  /* of a call while the frame ran; the frame then ends with it */
} row_feed;

typedef struct frame_request {
  source_view source;
  row_feed *feed; /* null, or in tiles alone: where the rows of the source come from; source.data is not pixels then */
  place_filter filter;
  size_t descriptor_bytes;  /* of one; 0: keypoints and orientations only */
  const hs_keypoint *given; /* describe these instead of detecting; null: detect */
  uint32_t given_count;
  hs_status *given_statuses; /* [given_count]; with given only */
  int32_t skipped_octaves;   /* the first ones are computed by the GPU, which provides the level */
  plane_view handed_over;    /* level 0 of the next; unused when none is skipped */
  bool may_tile;             /* where the whole is too large for max_memory_bytes: features alone are wanted */
  hs_status untiled_status;  /* HS_OK, or why the device cannot do the whole: its tiles are wanted */
  bool on_cpu;               /* whatever the context's device */
  bool equalize;             /* on a device: the source is to be equalised there */
  bool is_repeated;          /* the frame has failed once, and its progress has begun */
  bool source_on_device;     /* source.data is the device's memory, written on the context's stream */
} frame_request;

#endif
