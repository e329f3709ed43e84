/* Names and comparison of origins; see origin.h. */
#include "pipeline/base/origin.h"

#include <string.h>

#include "pipeline/base/message.h"

static const char *const profiles[] = {[HS_PROFILE_LOWE] = "lowe",
                                       [HS_PROFILE_OPENCV] = "opencv",
                                       [HS_PROFILE_VLFEAT] = "vlfeat",
                                       [HS_PROFILE_COLMAP] = "colmap"};
/* Norms, and behind them the same of descriptors that are pooled over domain sizes. */
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

/* Float descriptors of OpenCV's kind have values to 255, all others a norm of 1. */
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
