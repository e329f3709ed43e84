/*
 * The Gaussian pyramid: octave geometry, and the contracts of the steps that fill it.
 *
 * Base: the picture as float gray, doubled or decimated to the first octave's grid, blurred to sigma0. Level step:
 * makes level s+1 from level s, for each level in order.
 * Halving: the next octave's level 0 has every second sample of level S.
 */
#ifndef HARTSIFT_STAGES_PYRAMID_H
#define HARTSIFT_STAGES_PYRAMID_H

#include "stages/base.h"
#include "stages/image.h"
#include "stages/portable.h"

/* The scale space: the blur that each level step adds, and its filter.
 * Lowe, IJCV 2004, section 3; Rey-Otero & Delbracio, IPOL 2014, section 2. */

/* Maximum filter radius for all options. The largest sigma is that of level S+2 with sigma0 = 4 and S = 1: 4 * 2^2 *
 * sqrt(3) = 27.7 samples. */
enum { FILTER_RADIUS_MAX = 128 };

/* A symmetric filter: taps[0] weighs the centre, taps[j] the two samples at distance j. taps[0] + 2 * (sum of
 * taps[1..]) = 1 in double. */
typedef struct gaussian_filter {
  int32_t radius;
  float taps[FILTER_RADIUS_MAX + 1];
} gaussian_filter;

/* Returns the blur of level s in samples of its octave: sigma0 * k^s, k = 2^(1/S). */
double scalespace_level_sigma(double sigma0, int32_t scales, int32_t level);

/* Returns the sigma that turns level s-1 into level s (s >= 1): sigma0 * k^(s-1) * sqrt(k^2 - 1). */
double scalespace_step_sigma(double sigma0, int32_t scales, int32_t level);

/* Returns the sigma that makes the first octave's base: sqrt(sigma0^2 - blur^2), blur = input_blur * 2^-first_octave.
 * It is at least 0.1, as in OpenCV, so an image that already has the blur of level 0 is filtered too. */
double scalespace_base_sigma(double sigma0, double input_blur, int32_t first_octave);

/* Samples exp(-j^2 / (2 sigma^2)) out to the rule's radius, scaled to sum 1, rounded to float once. */
void scalespace_filter(double sigma, author_rule radius_rule, gaussian_filter *filter);

/* Value of samples outside the plane: reflected (without repeating the edge sample, as often as needed), or equal to
 * the edge sample. */
typedef enum border_mode { BORDER_REFLECT_101 = 0, BORDER_REPLICATE = 1 } border_mode;

/* Number and sizes of the octaves of one picture. */
typedef struct pyramid_geometry {
  int32_t first_octave;
  int32_t octave_count; /* 0: the picture is too small for any octave */
  int32_t width[OCTAVES_MAX], height[OCTAVES_MAX];
} pyramid_geometry;

/* Rules that derive the geometry from a picture's size. */
typedef struct pyramid_rules {
  int32_t first_octave, scales, border;
  int32_t octaves; /* maximum number of octaves; 0: the number of the author's rule */
  author_rule octave_rule;
} pyramid_rules;

/* Maximum side of the first octave, in samples. Coordinates are float32 samples: below 2^22 they keep a quarter of a
   sample, x + 1 and x + 0.5 are exact, hs_round_half_even holds, and 128 rows of a window stay below 2^31 floats apart.
   (From 2^24 on, x + 1 would equal x.) */
enum { PYRAMID_SIDE_MAX = 1 << 22 };

/* Returns the first octave's length for a side of the picture. */
static inline int64_t pyramid_first_side(int32_t side, int32_t first_octave) {
  return first_octave < 0 ? 2 * (int64_t)side : side >> first_octave;
}

/* Computes the geometry. STAGE_OVERFLOW if a side of the first octave exceeds PYRAMID_SIDE_MAX. */
stage_status pyramid_geometry_of(int32_t width, int32_t height, const pyramid_rules *rules, pyramid_geometry *geometry);

/* Drops the first `count` octaves (at most all). The remaining octaves are the pyramid above level 0 of octave
 * `count`. */
void pyramid_geometry_skip(pyramid_geometry *geometry, int32_t count);

typedef enum upsample_grid { GRID_ALIGNED = 0, GRID_HALF_PIXEL = 1 } upsample_grid;

/* Base: makes level 0 of the first octave from the source. gray: memory for the source as floats. work, doubled: for
 * backends that do not fuse the steps. work.data holds a plane, or what the backend requests
 * (stage_ops.pyramid_work_floats). If only a region is made, gray and work are plain memory that begins at their data
 * and is large enough for the region and the filter's radius around it, and doubled holds that same area of `out`. */
typedef struct base_args {
  source_view source;
  int32_t first_octave;
  upsample_grid grid;
  border_mode border;
  const gaussian_filter *filter; /* host memory, read during the call only */
  plane_view gray;               /* plane of the source's size */
  plane_view work;               /* plane of the first octave's size */
  plane_view doubled;            /* plane of the first octave's size; used if first_octave is -1 */
  plane_view out;
  plane_region region; /* region of `out` to make */
} base_args;

/* Level step: blurs `in` to `out`, rows first, then columns. in and out differ. work is plain memory: work.data holds
 * a plane of their size, or what the backend requests. The step reads the region of `in` and the filter's radius
 * around it. */
typedef struct blur_args {
  plane_view in, out, work;
  border_mode border;
  const gaussian_filter *filter; /* host memory, read during the call only */
  plane_region region;           /* region of `out` to make */
} blur_args;

/* Halving: out(i, j) = in(2i, 2j); out has floor(w/2) x floor(h/2) samples. */
typedef struct halve_args {
  plane_view in, out;
  plane_region region; /* region of `out` to make */
} halve_args;

static inline plane_view octave_level(const octave_view *o, int32_t level) {
  plane_view p = {o->levels + (size_t)level * o->level_floats, o->width, o->height, o->stride};
  return p;
}

/* ------------------------------------------------- per-sample arithmetic, one source for every backend */

/* Returns the gray of a colour sample: weights 0.299, 0.587, 0.114 in 15 bits, as OpenCV's for u8. */
HS_INLINE uint32_t gray_of_rgb_int(uint32_t r, uint32_t g, uint32_t b) {
  return (uint32_t)((9798u * (uint64_t)r + 19235u * (uint64_t)g + 3735u * (uint64_t)b + 16384u) >> 15);
}

HS_INLINE float gray_of_rgb_float(float r, float g, float b) {
  return hs_fmaf(3735.0f / 32768.0f, b, hs_fmaf(19235.0f / 32768.0f, g, (9798.0f / 32768.0f) * r));
}

/* Scales a float sample from [low, high] to [0, 1]. Comparisons clamp values outside; NaN becomes 0. */
HS_INLINE float unit_of_float(float v, float low, float high) {
  float c = v > low ? v : low; /* false for NaN */
  c = c < high ? c : high;
  return (c - low) / (high - low);
}

/* Return the doubled sample between two neighbours: their mean, or the weighted mean of OpenCV's half-pixel positions
 * (near sample first). */
HS_INLINE float double_mean(float a, float b) { return 0.5f * (a + b); }
HS_INLINE float double_half_pixel(float near_sample, float far_sample) {
  return hs_fmaf(0.75f, near_sample, 0.25f * far_sample);
}

/* Returns the index to read for sample i of n (n >= 1). Reflection repeats as often as needed, since a radius may
 * exceed a side. */
HS_INLINE int32_t border_index(int32_t i, int32_t n, border_mode mode) {
  if (mode == BORDER_REPLICATE || n == 1) return i < 0 ? 0 : (i >= n ? n - 1 : i);
  int32_t period = 2 * (n - 1);
  i = i % period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}

#endif
