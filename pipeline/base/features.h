/*
 * Room of a feature list: the one place that grows the arrays behind hs_features.
 */
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

#endif
