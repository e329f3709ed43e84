/*
 * One frame by the reference with every stage's output kept, for comparison with backends.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_REFERENCE_FRAME_H
#define HARTSIFT_TESTS_SUPPORT_REFERENCE_FRAME_H

#include "pipeline/include/hartsift.h"
#include "stages/ops.h"
#include "stages/pyramid.h"

/* Memory from calloc. Masks of all octaves are consecutive, each aligned to four words. */
typedef struct reference_frame {
  hs_options options;
  sift_params params;
  pyramid_geometry geometry;
  position_filter filter;
  float *levels;      /* levels of all octaves */
  size_t level_count; /* floats */
  octave_view octaves[OCTAVES_MAX];
  uint32_t mask_offset[OCTAVES_MAX], mask_words;
  uint32_t *candidates, *settled;
  uint64_t candidate_count;
  vote_scales *scales;
  uint32_t counts[3];
  keypoint_list keypoints;
  feature_list oriented; /* features before selection */
  feature_list features; /* features after selection, which are described */
  void *descriptors;
  size_t descriptor_bytes; /* bytes of one descriptor */
} reference_frame;

/* Runs all stages. filter null: keeps everything. stride_padding: floats between rows. The lists are empty if the
 * geometry has no octave. Returns false when out of memory. */
bool reference_frame_make(reference_frame *frame, const hs_image *image, const hs_options *options,
                          const position_filter *filter, int32_t stride_padding);
void reference_frame_free(reference_frame *frame);

/* Returns an 8-bit picture of reproducible noise, slightly blurred, from malloc. smooth 0: not blurred. */
uint8_t *reference_noise(int32_t width, int32_t height, uint32_t seed, int32_t smooth);

#endif
