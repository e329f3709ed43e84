/*
 * How descriptors were made: the names that files have for it, and whether descriptors can be compared.
 */
#ifndef HARTSIFT_BASE_ORIGIN_H
#define HARTSIFT_BASE_ORIGIN_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* As the command's options have them; null for other values. */
const char *origin_profile_name(hs_profile profile);
/* What files have for the norm: "l2", "root", or "l2-dsp", "root-dsp" for descriptors that are pooled over domain sizes; and
   its number, 0..3. Earlier versions take the latter two for an origin that they do not know. */
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
