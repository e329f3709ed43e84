/*
 * Features as rows of COLMAP's database; see colmap_rows.h.
 */
#include "pipeline/formats/colmap/colmap_rows.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_keypoints.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/common/feature_codec.h"

enum { ROWS_AT_ONCE = 256 };

hs_status colmap_rows_make(const feature_target *target, colmap_rows *rows) {
  const hs_features *features = target->features;
  const size_t count = features->count;
  const bool described = features->descriptor_type != HS_DESCRIPTOR_NONE;
  *rows = (colmap_rows){.count = count,
                        .width = features->image_width,
                        .height = features->image_height,
                        .origin = features->origin,
                        .allocator = target->allocator};
  hs_status status = features_check_unturned(target, "COLMAP");
  if (status == HS_OK) status = features_check(target);
  if (status != HS_OK) return status;
  rows->keypoints = hs_memory_alloc(rows->allocator, count * COLMAP_KEYPOINT_BYTES);
  rows->descriptors = described ? hs_memory_alloc(rows->allocator, count * HS_DESCRIPTOR_LENGTH) : NULL;
  if (!rows->keypoints || (described && !rows->descriptors)) {
    colmap_rows_free(rows);
    return target_fail(target, HS_ERR_MEMORY, "no memory for %zu features", count);
  }
  const descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  for (size_t i = 0; i < count; i++) {
    uint8_t *row = rows->keypoints + i * COLMAP_KEYPOINT_BYTES;
    if (features->frames)
      colmap_frame_put(&features->keypoints[i], &features->frames[i], row);
    else
      colmap_keypoint_put(&features->keypoints[i], row);
    if (described) descriptor_to_u8(&codec, i, rows->descriptors + i * HS_DESCRIPTOR_LENGTH);
  }
  return HS_OK;
}

void colmap_rows_free(colmap_rows *rows) {
  hs_memory_release(rows->allocator, rows->keypoints);
  hs_memory_release(rows->allocator, rows->descriptors);
  memset(rows, 0, sizeof *rows);
}

hs_status colmap_rows_digest(const colmap_rows *rows, uint64_t *digest) {
  hs_keypoint keypoints[ROWS_AT_ONCE];
  digest_state state;
  digest_start_features(&state, rows->count);
  for (size_t first = 0; first < rows->count; first += ROWS_AT_ONCE) {
    const size_t here = rows->count - first < ROWS_AT_ONCE ? rows->count - first : ROWS_AT_ONCE;
    for (size_t i = 0; i < here; i++) {
      const uint8_t *bytes = rows->keypoints + (first + i) * COLMAP_KEYPOINT_BYTES;
      if (colmap_keypoint_get(bytes, COLMAP_COLUMNS, &keypoints[i])) return HS_ERR_FORMAT;
    }
    digest_add_keypoints(&state, keypoints, here);
  }
  if (rows->descriptors) digest_add(&state, rows->descriptors, rows->count * HS_DESCRIPTOR_LENGTH);
  const size_t framed = colmap_rows_are_framed(rows->keypoints, rows->count) ? rows->count : 0;
  for (size_t i = 0; i < framed; i++) {
    hs_frame frame;
    colmap_frame_get(rows->keypoints + i * COLMAP_KEYPOINT_BYTES, &frame);
    digest_add_frames(&state, &frame, 1);
  }
  *digest = digest_end(&state);
  return HS_OK;
}
