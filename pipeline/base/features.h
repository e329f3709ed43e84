/* Capacity of feature lists: the one place that grows the arrays of hs_features; and how descriptors were made. */
#ifndef HARTSIFT_BASE_FEATURES_H
#define HARTSIFT_BASE_FEATURES_H

#include <stdbool.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

/* Arrays of finished features, as many as whoever passes them says. */
typedef struct feature_records {
  hs_keypoint *keypoints;
  hs_frame *frames;  /* null: there are none */
  void *descriptors; /* of descriptor_bytes each; null with 0 */
  size_t descriptor_bytes;
} feature_records;

/* Feature `from` takes the place of feature `to`. */
static inline void feature_records_move(const feature_records *r, size_t from, size_t to) {
  unsigned char *bytes = (unsigned char *)r->descriptors;
  if (from == to) return;
  r->keypoints[to] = r->keypoints[from];
  if (r->frames) r->frames[to] = r->frames[from];
  if (r->descriptor_bytes > 0)
    memcpy(bytes + to * r->descriptor_bytes, bytes + from * r->descriptor_bytes, r->descriptor_bytes);
}

/* Bytes of one descriptor of a type: 128, 512, or 0 for HS_DESCRIPTOR_NONE. */
size_t features_descriptor_bytes(hs_descriptor_type type);

/* Gives *features room for `count` features with descriptors of `type` and sets descriptor_type (and,
   for HS_DESCRIPTOR_NONE, descriptors to null). If the room suffices, it keeps its content and its
   allocator; otherwise both arrays are allocated again from `allocator` (null: the C library's), without the old
   content and with count 0. Otherwise the caller sets count, and always the image size. The origin becomes unknown.
   On failure *features is unchanged. Statuses: HS_ERR_ARGUMENT (unknown type), HS_ERR_MEMORY. */
hs_status features_reserve(hs_features *features, size_t count, hs_descriptor_type type, const hs_allocator *allocator);

/* framed: the same with room for as many frames, whose content is the caller's to set; features_reserve takes them away.
   Where frames alone find no memory, the list is empty afterwards. */
hs_status features_reserve_framed(hs_features *features, size_t count, hs_descriptor_type type, bool framed,
                                  const hs_allocator *allocator);

/* Makes *features the owner of the arrays that *found views, in the place of its own; they are released through
   `allocator`, and have room for found->count features. */
void features_adopt(hs_features *features, const hs_features *found, const hs_allocator *allocator);

/* Makes *features a copy of what *found views, with its own room (features_reserve). Statuses as there. */
hs_status features_copy(hs_features *features, const hs_features *found, const hs_allocator *allocator);

/* ---- How descriptors were made: the names that files have for it, and whether descriptors can be compared. */

/* As the command's options have them; null for other values. */
const char *origin_profile_name(hs_profile profile);
/* The norm as files store it: "l2" or "root", with "-dsp" where descriptors are pooled over domain sizes; and its number,
   0..3. Versions that do not know pooling read 2 and 3 as an unknown origin. */
const char *origin_norm_name(const hs_origin *origin);
int32_t origin_norm_number(const hs_origin *origin);
/* The value of a name of `size` bytes; -1: none. */
int32_t origin_profile_of_name(const char *name, size_t size);
int32_t origin_norm_of_name(const char *name, size_t size);

/* What a file says of descriptors that were brought to UBC order; numbers that mean nothing to this version leave the
   origin unknown. */
hs_origin origin_of_file(int64_t method_version, int64_t profile, int64_t norm, int64_t exif_orientation);

/* Whether distances between the descriptors of two lists mean something, as far as is known. False: reason says what
   differs and what to do. */
bool origin_comparable(const hs_features *first, const hs_features *second, char *reason, size_t reason_bytes);

#endif
