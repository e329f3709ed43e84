/*
 * Verification of many image pairs without an allocation for each pair: the functions of hartsift_geometry.h, with
 * working memory that the caller keeps, one per thread.
 */
#ifndef HARTSIFT_MATCHING_GEOMETRY_VERIFY_H
#define HARTSIFT_MATCHING_GEOMETRY_VERIFY_H

#include "pipeline/include/hartsift_geometry.h"

/* Working memory. Initialise as {allocator}. It grows to the largest number of matches, and is never cleared: no result
   depends on old content. */
typedef struct verify_scratch {
  /* allocator of the working memory; null: the C library's. The options' allocator is not used */
  const hs_allocator *allocator;
  void *memory;
  size_t match_capacity; /* number of matches that fit */
} verify_scratch;

void verify_scratch_release(verify_scratch *scratch);

/* Returns the bytes of a scratch for `count` matches, fewer than 2^32. */
uint64_t verify_scratch_bytes(size_t count);

/* As hs_verify_points and hs_verify, with a scratch. */
hs_status verify_points_with(verify_scratch *scratch, const double *points_a, const double *points_b, size_t count,
                             const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);
hs_status verify_features_with(verify_scratch *scratch, const hs_features *a, const hs_features *b, const void *pairs,
                               size_t pair_stride_bytes, size_t count, const hs_verify_options *options,
                               uint8_t *inliers, hs_geometry *geometry);

/* Ensures capacity for `count` matches, and returns their point arrays: 2 x count doubles of image a, then of image b.
   The functions above do not change them. HS_ERR_LIMIT: the scratch is unchanged; HS_ERR_MEMORY: it is empty. */
hs_status verify_scratch_reserve(verify_scratch *scratch, size_t count, double **points);

/* Returns a mask of match_capacity bytes in an allocated scratch; the functions above do not change it. */
uint8_t *verify_scratch_mask(const verify_scratch *scratch);

#endif
