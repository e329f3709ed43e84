/* Capacity of feature lists (nothing else grows the arrays of hs_features) and provenance of descriptors. */
#ifndef HARTSIFT_BASE_FEATURES_H
#define HARTSIFT_BASE_FEATURES_H

#include <stdbool.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

/* Arrays of finished features; their length is passed separately. */
typedef struct feature_records {
  hs_keypoint *keypoints;
  hs_frame *frames;  /* affine frames; null: none */
  void *descriptors; /* descriptor_bytes for each feature; null if that is 0 */
  size_t descriptor_bytes;
} feature_records;

/* Copies feature `from` over feature `to`. */
static inline void feature_records_move(const feature_records *r, size_t from, size_t to) {
  unsigned char *bytes = (unsigned char *)r->descriptors;
  if (from == to) return;
  r->keypoints[to] = r->keypoints[from];
  if (r->frames) r->frames[to] = r->frames[from];
  if (r->descriptor_bytes > 0)
    memcpy(bytes + to * r->descriptor_bytes, bytes + from * r->descriptor_bytes, r->descriptor_bytes);
}

/* Returns the bytes of one descriptor of a type: 128, 512, or 0 for HS_DESCRIPTOR_NONE. */
size_t features_descriptor_bytes(hs_descriptor_type type);

/* Ensures capacity for `count` features with descriptors of `type`, and sets descriptor_type (HS_DESCRIPTOR_NONE:
   descriptors become null). If the capacity suffices, content and allocator stay. Otherwise both arrays are allocated
   from `allocator` (null: the C library), the content is lost and count is 0. The origin becomes unknown. The caller
   sets count and image size. On failure *features is unchanged. Statuses: HS_ERR_ARGUMENT (unknown type),
   HS_ERR_MEMORY. */
hs_status features_reserve(hs_features *features, size_t count, hs_descriptor_type type, const hs_allocator *allocator);

/* As features_reserve; framed: also ensures capacity for frames, whose content the caller sets. (features_reserve
   removes frames.) If only the frames cannot be allocated, the list becomes empty. */
hs_status features_reserve_framed(hs_features *features, size_t count, hs_descriptor_type type, bool framed,
                                  const hs_allocator *allocator);

/* Frees the arrays of *features and takes ownership of those in *found, which `allocator` releases; the capacity is
   found->count. */
void features_adopt(hs_features *features, const hs_features *found, const hs_allocator *allocator);

/* Copies *found to *features, growing its capacity as features_reserve does. Statuses as there. */
hs_status features_copy(hs_features *features, const hs_features *found, const hs_allocator *allocator);

/* ---- Provenance of descriptors: its names in files, and whether descriptors can be compared. */

/* Returns the profile's name in the command's options; null for other values. */
const char *origin_profile_name(hs_profile profile);
/* Norm in files as a text and as a number (0..3): "l2" or "root", with "-dsp" for descriptors pooled over domain sizes.
   Versions without pooling read 2 and 3 as unknown. */
const char *origin_norm_name(const hs_origin *origin);
int32_t origin_norm_number(const hs_origin *origin);
/* Returns the profile with a name of `size` bytes; -1: none. */
int32_t origin_profile_of_name(const char *name, size_t size);
int32_t origin_norm_of_name(const char *name, size_t size);

/* Returns the method version of features of these options. */
int32_t origin_method_version(const hs_options *options);
/* Returns the origin of descriptors in UBC order from a file's numbers. Unknown numbers give an unknown origin. */
hs_origin origin_of_file(int64_t method_version, int64_t profile, int64_t norm, int64_t exif_orientation);

/* True if distances between the descriptors of two lists are meaningful, as far as the origins are known. False: reason
   says what differs and what to do. */
bool origin_comparable(const hs_features *first, const hs_features *second, char *reason, size_t reason_bytes);

#endif
