/*
 * Between a bit of the masks and its sample. Device functions, called by any thread.
 * Drawing: cuda/KERNELS.md, "Mask words, tiles and ranks".
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_MASK_SITE_CUH
#define HARTSIFT_CUDA_KEYPOINTS_MASK_SITE_CUH

#include "cuda/keypoints/frame_view.h"

/* A sample of DoG level 1..S; octave: index into the view's octaves. */
typedef struct mask_site {
  int32_t octave, level, x, y;
} mask_site;

/* The masks of one octave: their size, and the sample of their first bit. */
typedef struct mask_place {
  uint32_t words_per_row, height;
  int32_t x, y;
} mask_place;

static __device__ __forceinline__ mask_place mask_place_of(const cuda_frame_view &v, int32_t octave) {
  const octave_view &o = v.octaves[octave];
  const plane_region &part = v.part.masked;
  if (v.part.tiled) return {(uint32_t)(part.x1 - part.x0 + 31) / 32u, (uint32_t)(part.y1 - part.y0), part.x0, part.y0};
  return {(uint32_t)(o.width + 31) / 32u, (uint32_t)o.height, 0, 0};
}

/* False: the word lies between two octaves' masks. */
static __device__ __forceinline__ bool mask_site_of(const cuda_frame_view &v, uint32_t word, uint32_t bit,
                                                    mask_site *s) {
  int32_t o = 0;
  while (o + 1 < v.octave_count && word >= v.mask_offset[o + 1]) o++;
  const mask_place place = mask_place_of(v, o);
  const uint32_t words = place.words_per_row, height = place.height;
  const uint32_t local = word - v.mask_offset[o], row = local / words, level = row / height;
  s->octave = o;
  s->level = (int32_t)level + 1;
  s->y = place.y + (int32_t)(row - level * height);
  s->x = place.x + (int32_t)((local - row * words) * 32u + bit);
  return s->level <= v.params.scales;
}

static __device__ __forceinline__ uint32_t mask_word_of(const cuda_frame_view &v, const mask_site *s) {
  const mask_place place = mask_place_of(v, s->octave);
  const uint32_t row = (uint32_t)(s->level - 1) * place.height + (uint32_t)(s->y - place.y);
  return v.mask_offset[s->octave] + row * place.words_per_row + (uint32_t)((s->x - place.x) >> 5);
}

#endif
