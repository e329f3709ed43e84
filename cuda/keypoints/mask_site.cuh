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

/* False: the word lies between two octaves' masks. */
static __device__ __forceinline__ bool mask_site_of(const cuda_frame_view &v, uint32_t word, uint32_t bit,
                                                    mask_site *s) {
  int32_t o = 0;
  while (o + 1 < v.octave_count && word >= v.mask_offset[o + 1]) o++;
  const uint32_t words = (uint32_t)(v.octaves[o].width + 31) / 32u, height = (uint32_t)v.octaves[o].height;
  const uint32_t local = word - v.mask_offset[o], row = local / words, level = row / height;
  s->octave = o;
  s->level = (int32_t)level + 1;
  s->y = (int32_t)(row - level * height);
  s->x = (int32_t)((local - row * words) * 32u + bit);
  return s->level <= v.params.scales;
}

static __device__ __forceinline__ uint32_t mask_word_of(const cuda_frame_view &v, const mask_site *s) {
  const octave_view &o = v.octaves[s->octave];
  return v.mask_offset[s->octave] +
         ((uint32_t)(s->level - 1) * (uint32_t)o.height + (uint32_t)s->y) * ((uint32_t)(o.width + 31) / 32u) +
         (uint32_t)(s->x >> 5);
}

#endif
