/*
 * Patches: square pictures of the surroundings of keypoints, in their frames.
 *
 * A patch is sampled from one layer: the gray picture, or a level of the pyramid. The layers are ordered by blur. A
 * patch uses the most blurred layer within the limit for its sampling distance, so that coarse sampling reads smooth
 * data. Interpolation is bilinear; all arithmetic is float32, with products and sums unfused.
 */
#ifndef HARTSIFT_STAGES_PATCH_H
#define HARTSIFT_STAGES_PATCH_H

#include "stages/orient.h"

enum { PATCH_SIZE_MAX = 1024, PATCH_LAYERS_MAX = OCTAVES_MAX * SCALES_MAX + 2 };

/* Layer 0 is the picture. Then come levels s = 0..S-1 of each octave, and finally level S of the last octave. */
typedef struct patch_layers {
  plane_view picture;
  const octave_view *octaves;
  int32_t octave_count, first_octave, scales;
  float picture_shift, grid_shift; /* sift_params.grid_shift, for the picture and for the octaves */
  int32_t count;
  float blur[PATCH_LAYERS_MAX]; /* blur of a layer, in pixels; the picture's is 0 */
} patch_layers;

/* Maps the patch unit (u, v), in sampling distances from the centre, to the position x + a11 u + a12 v, y + a21 u + a22
 * v. */
typedef struct patch_map {
  float x, y, a11, a12, a21, a22;
} patch_map;

/* Samples `count` patches of size x size samples, u8 or float, to out. maps: in pixels. A patch with an invalid map
 * is all 0. */
typedef struct patch_args {
  const patch_layers *layers;
  const patch_map *maps;
  const bool *valid;
  uint32_t count;
  int32_t size;
  float blur; /* maximum blur of a patch's layer, in sampling distances */
  bool as_float;
  void *out;
} patch_args;

/* Returns the map of a circular keypoint. distance: between samples, in units of sigma. */
HS_INLINE patch_map patch_map_circular(float x, float y, float sigma, float orientation, float distance) {
  patch_map m;
  float s, c;
  const float step = sigma * distance;
  hs_sincos_turn(hs_wrap_turn(orientation * TURNS_A_RADIAN), &s, &c);
  m.x = x;
  m.y = y;
  m.a11 = step * c;
  m.a21 = step * s;
  m.a12 = -m.a21;
  m.a22 = m.a11;
  return m;
}

/* Returns the area of a patch unit; 0 if the frame has no inverse. */
HS_INLINE float patch_area(const patch_map *m) { return hs_fabsf(m->a11 * m->a22 - m->a12 * m->a21); }

/* Returns the sampling distance: the side of the square that has the area of a patch unit. */
HS_INLINE float patch_distance(const patch_map *m) { return hs_sqrtf(patch_area(m)); }

HS_INLINE int32_t patch_layer_of(const patch_layers *l, float wanted) {
  int32_t layer = 0;
  for (int32_t i = 1; i < l->count; i++)
    if (l->blur[i] <= wanted) layer = i;
  return layer;
}

/* Returns the plane of a layer, and converts the map to samples of that plane. */
HS_INLINE plane_view patch_plane(const patch_layers *l, int32_t layer, patch_map *m) {
  if (layer == 0) {
    m->x += l->picture_shift;
    m->y += l->picture_shift;
    return l->picture;
  }
  int32_t o = (layer - 1) / l->scales, s = (layer - 1) % l->scales;
  if (o == l->octave_count) {
    o--;
    s = l->scales;
  }
  const int32_t octave = l->first_octave + o;
  const float scale = hs_power_of_two(-octave);
  m->x = sample_of_position(m->x, octave, l->grid_shift);
  m->y = sample_of_position(m->y, octave, l->grid_shift);
  m->a11 *= scale;
  m->a12 *= scale;
  m->a21 *= scale;
  m->a22 *= scale;
  const octave_view *v = &l->octaves[o];
  const plane_view plane = {v->levels + (size_t)s * v->level_floats, v->width, v->height, v->stride};
  return plane;
}

/* Returns the value at (x, y), bilinear along x, then y. Positions outside take the value of the nearest position
 * inside. */
HS_INLINE float patch_sample(const plane_view *p, float x, float y) {
  const float right = (float)(p->width - 1), bottom = (float)(p->height - 1);
  x = x > 0.0f ? x : 0.0f;
  x = x < right ? x : right;
  y = y > 0.0f ? y : 0.0f;
  y = y < bottom ? y : bottom;
  const int32_t i = (int32_t)x, j = (int32_t)y;
  const float fx = x - (float)i, fy = y - (float)j;
  const size_t next = i + 1 < p->width ? 1 : 0, below = j + 1 < p->height ? p->stride : 0;
  const float *at = p->data + (size_t)j * p->stride + (size_t)i;
  const float upper = at[0] + fx * (at[next] - at[0]);
  const float lower = at[below] + fx * (at[below + next] - at[below]);
  return upper + fy * (lower - upper);
}

/* Returns the 8-bit form of a value. */
HS_INLINE uint8_t patch_byte(float value) {
  const int32_t b = (int32_t)(255.0f * value + 0.5f);
  return (uint8_t)(b < 255 ? b : 255);
}

#endif
