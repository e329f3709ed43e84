/*
 * What orientation reads of a keypoint, and the window that it makes of it.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_ORIENT_ITEM_CUH
#define HARTSIFT_CUDA_KEYPOINTS_ORIENT_ITEM_CUH

#include "cuda/keypoints/frame_view.h"
#include "stages/orient.h"

/* What orientation reads of a keypoint. */
typedef struct orient_item {
  float x, y, sigma;
  int32_t column, row, octave, level;
} orient_item;

/* Keypoint n of `count`; of no meaning from there on. */
static __device__ __forceinline__ orient_item orient_item_at(const keypoint_list *k, uint32_t n, uint32_t count) {
  orient_item item = {0.0f, 0.0f, 0.0f, 0, 0, 0, 0};
  if (n >= count) return item;
  item.x = k->x[n], item.y = k->y[n], item.sigma = k->sigma[n];
  item.column = k->column[n], item.row = k->row[n], item.octave = k->octave[n], item.level = k->level[n];
  return item;
}

/* The Gaussian level whose gradients vote. */
static __device__ __forceinline__ plane_view orient_level_of(const cuda_frame_view &v, const orient_item &item) {
  const octave_view &o = v.octaves[item.octave - v.first_octave];
  const plane_view level = {o.levels + (size_t)item.level * o.level_floats, o.width, o.height, o.stride};
  return level;
}

/* The window, in samples of that level. shift: of the level's grid. */
static __device__ __forceinline__ orient_window orient_window_at(const cuda_frame_view &v, const orient_item &item,
                                                                 float shift) {
  return orient_window_of(sample_of_place(item.x, item.octave, shift), sample_of_place(item.y, item.octave, shift),
                          item.sigma * hs_power_of_two(-item.octave), item.column, item.row, v.params.orientation_rule);
}

#endif
