/*
 * Views of images: the caller's picture and the float levels of an octave. Views do not own memory.
 */
#ifndef HARTSIFT_STAGES_IMAGE_H
#define HARTSIFT_STAGES_IMAGE_H

#include "stages/base.h"

/* Values as in hs_sample_type and hs_pixel_layout; asserted in pipeline. */
typedef enum source_type { SOURCE_U8 = 0, SOURCE_U16 = 1, SOURCE_F32 = 2 } source_type;
typedef enum source_layout {
  SOURCE_GRAY = 0,
  SOURCE_GRAY_ALPHA = 1,
  SOURCE_RGB = 2,
  SOURCE_BGR = 3,
  SOURCE_RGBA = 4,
  SOURCE_BGRA = 5
} source_layout;

/* Return the bytes of one sample, the channels of one pixel, and the bytes of one pixel. */
static inline size_t source_sample_bytes(source_type type) {
  return type == SOURCE_U8 ? 1 : (type == SOURCE_U16 ? 2 : 4);
}

static inline size_t source_channels(source_layout layout) {
  static const uint8_t channels[] = {1, 2, 3, 3, 4, 4};
  return channels[layout];
}

static inline size_t source_pixel_bytes(source_type type, source_layout layout) {
  return source_sample_bytes(type) * source_channels(layout);
}

/* The caller's picture: interleaved channels, rows stride_bytes apart. */
typedef struct source_view {
  const void *data;
  int32_t width, height;
  size_t stride_bytes;
  source_type type;
  source_layout layout;
  float range_low, range_high; /* SOURCE_F32: the values of black and white, low < high */
} source_view;

/* Samples [x0, x1) x [y0, y1) of a plane. As the output region of a stage, all fields 0 mean the complete plane. */
typedef struct plane_region {
  int32_t x0, y0, x1, y1;
} plane_region;

/* One float plane: intensities in [0, 1], row-major, `stride` floats between rows. If the picture is processed in
 * tiles, memory may hold only a region of the plane. Even then width and height are those of the complete plane, and
 * `data` is the address that sample (0, 0) would have (pipeline/frame/TILES.md). */
typedef struct plane_view {
  float *data;
  int32_t width, height;
  size_t stride;
} plane_view;

static inline plane_region region_or_all(plane_region r, const plane_view *plane) {
  const plane_region all = {0, 0, plane->width, plane->height};
  return r.x0 == 0 && r.y0 == 0 && r.x1 == 0 && r.y1 == 0 ? all : r;
}

/* Returns the region extended by `margin` samples, clipped to the plane. */
static inline plane_region region_about(plane_region r, int32_t margin, const plane_view *plane) {
  r.x0 = r.x0 > margin ? r.x0 - margin : 0;
  r.y0 = r.y0 > margin ? r.y0 - margin : 0;
  r.x1 = plane->width - r.x1 > margin ? r.x1 + margin : plane->width;
  r.y1 = plane->height - r.y1 > margin ? r.y1 + margin : plane->height;
  return r;
}

static inline bool region_has(const plane_region *r, int32_t x, int32_t y) {
  return x >= r->x0 && x < r->x1 && y >= r->y0 && y < r->y1;
}

/* The Gaussian levels of one octave, 0..S+2, level_floats apart; level S+2 only if detection reads it from memory.
 * Sample (i, j) is at original position (i * 2^octave - shift, j * 2^octave - shift) with shift =
 * sift_params.grid_shift. DoG level s is level s+1 minus level s. */
typedef struct octave_view {
  float *levels;
  size_t level_floats;
  size_t stride;
  int32_t width, height;
  int32_t octave;
} octave_view;

/* One bit for each sample of the DoG levels 1..S of one octave. Sample x of a row is bit x % 32 of word x / 32. Rows
 * are consecutive in memory, then levels. Ascending words and bits give keypoints in the defined order. */
typedef struct mask_view {
  uint32_t *words;
  int32_t words_per_row;
} mask_view;

static inline int32_t mask_words_per_row(int32_t width) { return width / 32 + (width % 32 != 0); }

#endif
