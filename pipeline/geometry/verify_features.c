/*
 * Verification of matches between lists of features: their places gathered into arrays of points.
 */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/geometry/models.h"
#include "pipeline/geometry/verify.h"
#include "pipeline/base/message.h"

enum { PAIR_BYTES = 2 * sizeof(uint32_t) };

hs_status hs_gather_points(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                           size_t count, double *points_a, double *points_b) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (count == 0) return HS_OK;
  const size_t stride = pair_stride_bytes > 0 ? pair_stride_bytes : PAIR_BYTES;
  if (!a || !b || !pairs || !points_a || !points_b || stride < PAIR_BYTES) return HS_ERR_ARGUMENT;
  if (!a->keypoints || !b->keypoints) return HS_ERR_ARGUMENT;
  const unsigned char *record = pairs;
  for (size_t i = 0; i < count; i++, record += stride) {
    uint32_t index[2];
    memcpy(index, record, sizeof index);
    if (index[0] >= a->count || index[1] >= b->count) return HS_ERR_ARGUMENT;
    const hs_keypoint *const p = a->keypoints + index[0], *const q = b->keypoints + index[1];
    points_a[2 * i] = (double)p->x;
    points_a[2 * i + 1] = (double)p->y;
    points_b[2 * i] = (double)q->x;
    points_b[2 * i + 1] = (double)q->y;
  }
  return HS_OK;
}

hs_status verify_features_with(verify_scratch *scratch, const hs_features *a, const hs_features *b, const void *pairs,
                               size_t pair_stride_bytes, size_t count, const hs_verify_options *options,
                               uint8_t *inliers, hs_geometry *geometry) {
  if (!geometry) return HS_ERR_ARGUMENT;
  memset(geometry, 0, sizeof *geometry);
  hs_verify_options full;
  hs_status status = geometry_adopt_options(options, &full);
  if (status != HS_OK) return status;
  if (count > GEOMETRY_MATCHES_MAX) {
    hs_message_set(full.message, full.message_bytes, "more than 2^26 matches");
    return HS_ERR_LIMIT;
  }
  double *points = NULL;
  status = verify_scratch_reserve(scratch, count, &points);
  if (status != HS_OK) {
    hs_message_set(full.message, full.message_bytes, "no memory for %zu matches", count);
    return status;
  }
  status = hs_gather_points(a, b, pairs, pair_stride_bytes, count, points, points + 2 * count);
  if (status != HS_OK) return status;
  return verify_points_with(scratch, points, points + 2 * count, count, &full, inliers, geometry);
}

hs_status hs_verify(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                    size_t count, const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  verify_scratch scratch = {geometry_allocator(options), NULL, 0};
  const hs_status status =
      verify_features_with(&scratch, a, b, pairs, pair_stride_bytes, count, options, inliers, geometry);
  verify_scratch_release(&scratch);
  return status;
}
