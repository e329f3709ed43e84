/*
 * Growing and freeing feature lists.
 */
#include "pipeline/base/features.h"

#include <string.h>

#include "pipeline/base/memory.h"

size_t features_descriptor_bytes(hs_descriptor_type type) {
  switch (type) {
  case HS_DESCRIPTOR_U8:
    return HS_DESCRIPTOR_LENGTH;
  case HS_DESCRIPTOR_F32:
    return HS_DESCRIPTOR_LENGTH * sizeof(float);
  case HS_DESCRIPTOR_NONE:
    break;
  }
  return 0;
}

/* Keypoints last: an allocator that lends memory may end with the last array that it lent, and frames may be of the list's
   own. Keypoints are lent whenever descriptors are. */
static void features_release_arrays(hs_features *features) {
  hs_memory_release(features->allocator, features->frames);
  hs_memory_release(features->allocator, features->descriptors);
  hs_memory_release(features->allocator, features->keypoints);
  features->frames = NULL;
  features->frame_capacity = 0;
  features->keypoints = NULL;
  features->descriptors = NULL;
  features->capacity = 0;
  features->descriptor_capacity_bytes = 0;
}

/* Replaces both arrays by larger ones; *features is touched only after both allocations. */
static hs_status features_regrow(hs_features *features, size_t keypoint_bytes, size_t descriptor_bytes,
                                 const hs_allocator *allocator) {
  hs_keypoint *keypoints = hs_memory_alloc(allocator, keypoint_bytes);
  if (!keypoints) return HS_ERR_MEMORY;
  void *descriptors = NULL;
  if (descriptor_bytes > 0) {
    descriptors = hs_memory_alloc(allocator, descriptor_bytes);
    if (!descriptors) {
      hs_memory_release(allocator, keypoints);
      return HS_ERR_MEMORY;
    }
  }
  features_release_arrays(features);
  features->count = 0;
  features->keypoints = keypoints;
  features->descriptors = descriptors;
  features->capacity = keypoint_bytes / sizeof(hs_keypoint);
  features->descriptor_capacity_bytes = descriptor_bytes;
  features->allocator = allocator;
  return HS_OK;
}

/* Room for keypoints and descriptors; frames stay as they are. */
static hs_status reserve(hs_features *features, size_t count, hs_descriptor_type type, const hs_allocator *allocator) {
  if (!features) return HS_ERR_ARGUMENT;
  if (type != HS_DESCRIPTOR_U8 && type != HS_DESCRIPTOR_F32 && type != HS_DESCRIPTOR_NONE) return HS_ERR_ARGUMENT;
  size_t keypoint_bytes = 0;
  size_t descriptor_bytes = 0;
  if (!hs_size_mul(count, sizeof(hs_keypoint), &keypoint_bytes)) return HS_ERR_MEMORY;
  if (!hs_size_mul(count, features_descriptor_bytes(type), &descriptor_bytes)) return HS_ERR_MEMORY;
  if (count > features->capacity || descriptor_bytes > features->descriptor_capacity_bytes) {
    hs_status status = features_regrow(features, keypoint_bytes, descriptor_bytes, allocator);
    if (status != HS_OK) return status;
  }
  if (type == HS_DESCRIPTOR_NONE) {
    hs_memory_release(features->allocator, features->descriptors);
    features->descriptors = NULL;
    features->descriptor_capacity_bytes = 0;
  }
  features->descriptor_type = type;
  features->origin = (hs_origin){0};
  return HS_OK;
}

static void release_frames(hs_features *features) {
  hs_memory_release(features->allocator, features->frames);
  features->frames = NULL;
  features->frame_capacity = 0;
}

hs_status features_reserve(hs_features *features, size_t count, hs_descriptor_type type,
                           const hs_allocator *allocator) {
  return features_reserve_framed(features, count, type, false, allocator);
}

hs_status features_reserve_framed(hs_features *features, size_t count, hs_descriptor_type type, bool framed,
                                  const hs_allocator *allocator) {
  const hs_status status = reserve(features, count, type, allocator);
  if (status != HS_OK || (framed && features->frames && count <= features->frame_capacity)) return status;
  release_frames(features);
  if (!framed) return HS_OK;
  if (!features->keypoints && !features->descriptors) features->allocator = allocator; /* no arrays of another one */
  features->frame_capacity = features->capacity > 0 ? features->capacity : 1;
  features->frames = hs_memory_alloc(features->allocator, features->frame_capacity * sizeof *features->frames);
  if (features->frames) return HS_OK;
  features->frame_capacity = features->count = 0;
  return HS_ERR_MEMORY;
}

void hs_features_free(hs_features *features) {
  if (!features) return;
  features_release_arrays(features);
  memset(features, 0, sizeof *features);
}

void features_adopt(hs_features *features, const hs_features *found, const hs_allocator *allocator) {
  features_release_arrays(features);
  features->count = features->capacity = found->count;
  features->keypoints = found->keypoints;
  features->descriptors = found->descriptors;
  features->frames = found->frames;
  features->frame_capacity = found->frames ? found->count : 0;
  features->descriptor_type = found->descriptor_type;
  features->descriptor_capacity_bytes = found->count * features_descriptor_bytes(found->descriptor_type);
  features->image_width = found->image_width;
  features->image_height = found->image_height;
  features->origin = found->origin;
  features->allocator = allocator;
}

hs_status features_copy(hs_features *features, const hs_features *found, const hs_allocator *allocator) {
  const hs_status st =
      features_reserve_framed(features, found->count, found->descriptor_type, found->frames != NULL, allocator);
  if (st != HS_OK) return st;
  if (found->frames && found->count > 0) memcpy(features->frames, found->frames, found->count * sizeof *found->frames);
  const size_t bytes = features_descriptor_bytes(found->descriptor_type);
  if (found->count > 0) memcpy(features->keypoints, found->keypoints, found->count * sizeof *found->keypoints);
  if (found->count > 0 && bytes > 0) memcpy(features->descriptors, found->descriptors, found->count * bytes);
  features->count = found->count;
  features->image_width = found->image_width;
  features->image_height = found->image_height;
  features->origin = found->origin;
  return HS_OK;
}
