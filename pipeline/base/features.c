/* Lists of features: memory, growth, and provenance of descriptors (hs_origin). See features.h. */
#include "pipeline/base/features.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

/* ---- provenance of descriptors in files */

static const char *const profiles[] = {[HS_PROFILE_LOWE] = "lowe",
                                       [HS_PROFILE_OPENCV] = "opencv",
                                       [HS_PROFILE_VLFEAT] = "vlfeat",
                                       [HS_PROFILE_COLMAP] = "colmap"};
/* Number of norms without domain-size pooling; the same norms with pooling follow them. */
enum { PLAIN_NORMS = 2 };
static const char *const norms[] = {[HS_NORM_L2] = "l2",
                                    [HS_NORM_ROOT] = "root",
                                    [PLAIN_NORMS + HS_NORM_L2] = "l2-dsp",
                                    [PLAIN_NORMS + HS_NORM_ROOT] = "root-dsp"};
static const char *const layouts[] = {[HS_LAYOUT_UBC] = "UBC", [HS_LAYOUT_VLFEAT] = "VLFeat"};
enum {
  PROFILES = sizeof profiles / sizeof profiles[0],
  NORMS = sizeof norms / sizeof norms[0],
  LAYOUTS = sizeof layouts / sizeof layouts[0]
};

const char *origin_profile_name(hs_profile profile) { return (unsigned)profile < PROFILES ? profiles[profile] : NULL; }

int32_t origin_norm_number(const hs_origin *origin) { return (int32_t)origin->norm + (origin->dsp ? PLAIN_NORMS : 0); }

const char *origin_norm_name(const hs_origin *origin) {
  return (unsigned)origin->norm < PLAIN_NORMS ? norms[origin_norm_number(origin)] : NULL;
}

static int32_t value_of_name(const char *const *names, int32_t count, const char *name, size_t size) {
  for (int32_t i = 0; i < count; i++)
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
  return -1;
}

int32_t origin_profile_of_name(const char *name, size_t size) { return value_of_name(profiles, PROFILES, name, size); }

int32_t origin_norm_of_name(const char *name, size_t size) { return value_of_name(norms, NORMS, name, size); }

int32_t origin_method_version(const hs_options *options) {
  return options->affine ? HS_METHOD_VERSION_AFFINE : HS_METHOD_VERSION;
}

hs_origin origin_of_file(int64_t method_version, int64_t profile, int64_t norm, int64_t exif_orientation) {
  hs_origin origin = {0};
  if (method_version > 0 && method_version <= INT32_MAX && profile >= 0 && profile < PROFILES && norm >= 0 &&
      norm < NORMS) {
    origin.method_version = (int32_t)method_version;
    origin.profile = (hs_profile)profile;
    origin.norm = (hs_norm)(norm % PLAIN_NORMS);
    origin.dsp = norm >= PLAIN_NORMS;
  }
  if (exif_orientation >= 2 && exif_orientation <= 8) origin.exif_orientation = (int32_t)exif_orientation;
  return origin;
}

static bool is_known(const hs_origin *origin) {
  return origin->method_version > 0 && origin_profile_name(origin->profile) != NULL && origin_norm_name(origin) &&
         (unsigned)origin->layout < LAYOUTS;
}

/* Returns a name of the descriptors' scale: OpenCV's float descriptors have values up to 255, all others have norm
   1. */
static const char *scale_of(const hs_features *features) {
  const bool is_opencv =
      features->descriptor_type == HS_DESCRIPTOR_F32 && features->origin.profile == HS_PROFILE_OPENCV;
  return is_opencv ? "values of 0 to 255" : "a norm of 1";
}

static bool differ(const hs_features *first, const hs_features *second, const char *what, const char *of_first,
                   const char *of_second, const char *remedy, char *reason, size_t reason_bytes) {
  hs_message_set(
      reason, reason_bytes,
      "these descriptors cannot be compared: %s %s in the first list (profile %s), %s in the second (profile "
      "%s): extract both with the same %s",
      what, of_first, origin_profile_name(first->origin.profile), of_second,
      origin_profile_name(second->origin.profile), remedy);
  return false;
}

bool origin_comparable(const hs_features *first, const hs_features *second, char *reason, size_t reason_bytes) {
  const hs_origin *a = &first->origin, *b = &second->origin;
  hs_message_set(reason, reason_bytes, "%s", "");
  if (first->count == 0 || second->count == 0 || !is_known(a) || !is_known(b)) return true;
  if (a->norm != b->norm || !a->dsp != !b->dsp)
    return differ(first, second, "norm", origin_norm_name(a), origin_norm_name(b),
                  a->norm != b->norm ? "norm (l2, root)" : "option dsp (pooling over domain sizes)", reason,
                  reason_bytes);
  if (a->layout != b->layout)
    return differ(first, second, "bin order", layouts[a->layout], layouts[b->layout], "layout", reason, reason_bytes);
  if (first->descriptor_type == HS_DESCRIPTOR_F32 && scale_of(first) != scale_of(second))
    return differ(first, second, "floats of", scale_of(first), scale_of(second), "profile, or as u8", reason,
                  reason_bytes);
  return true;
}

/* ---- lists */

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

/* Releases keypoints last: an allocator of borrowed memory may end when its last array is released. Frames may be owned
   by the list; keypoints are borrowed whenever descriptors are. */
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

/* Replaces both arrays by larger ones; *features changes only after both allocations succeeded. */
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

/* Ensures capacity for keypoints and descriptors; frames are unchanged. */
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
  if (!features->keypoints && !features->descriptors)
    features->allocator = allocator; /* the allocator may change, because no array of the previous one is left */
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
