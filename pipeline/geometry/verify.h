/*
 * Verification of many pairs of images without an allocation for each: the functions of hartsift_geometry.h with working
 * memory that the caller keeps, one for each thread.
 */
#ifndef HARTSIFT_GEOMETRY_VERIFY_H
#define HARTSIFT_GEOMETRY_VERIFY_H

#include "pipeline/include/hartsift_geometry.h"

/* Begins as {allocator}; grows to the most matches met; not cleared between calls, and no result depends on it. */
typedef struct verify_scratch {
  const hs_allocator *allocator; /* null: the C library's; that of the options is not used */
  void *memory;
  size_t match_room; /* matches that fit */
} verify_scratch;

void verify_scratch_release(verify_scratch *scratch);

/* Bytes of a scratch for `count` matches, fewer than 2^32. */
uint64_t verify_scratch_bytes(size_t count);

/* hs_verify_points and hs_verify. */
hs_status verify_points_with(verify_scratch *scratch, const double *points_a, const double *points_b, size_t count,
                             const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);
hs_status verify_features_with(verify_scratch *scratch, const hs_features *a, const hs_features *b, const void *pairs,
                               size_t pair_stride_bytes, size_t count, const hs_verify_options *options,
                               uint8_t *inliers, hs_geometry *geometry);

/* Room for `count` matches, and where in it their points lie: 2 x count doubles of image a, then of b, which the
   functions above leave alone. HS_ERR_LIMIT: the scratch is as it was; HS_ERR_MEMORY: it is
   empty. */
hs_status verify_scratch_reserve(verify_scratch *scratch, size_t count, double **points);

/* A byte for each of match_room matches of a scratch that has memory, which the functions above leave alone too. */
uint8_t *verify_scratch_mask(const verify_scratch *scratch);

#endif
