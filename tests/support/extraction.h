/*
 * Whole frames in tests: contexts, pictures, and comparisons of results. Every function fails the running test on
 * errors.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_EXTRACTION_H
#define HARTSIFT_TESTS_SUPPORT_EXTRACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"

enum { EXTRACTION_PROFILES = HS_PROFILE_COLMAP + 1 };

/* Returns a profile's options on the CPU. */
hs_options extraction_options(hs_profile profile);
/* Returns a profile's rules with these variants of stages; variant may be null. */
hs_expert_options extraction_expert(hs_profile profile, const char *variant);
hs_context *extraction_context(const hs_options *options);
/* With the options of a profile. */
hs_context *extraction_context_of(hs_profile profile);

hs_statistics statistics_of(const hs_context *context);

/* Returns whether contexts can be made on a GPU. Fails if there is a GPU that cannot be opened. */
bool extraction_has_gpu(void);
/* Whether GPUs are fake ones (tests/support/fake_device), whose plain loops need smaller work. */
bool extraction_is_fake(void);

/* Returns the picture of hs_render_scene. The caller frees it with hs_image_free, as all pictures of this header. */
hs_image extraction_scene(int32_t width, int32_t height, uint32_t seed, const double *homography);
/* Returns a picture of bright and dark spots, as dense as possible and each slightly different. Up to an eighth of all
 * samples are keypoints. */
hs_image extraction_spots(int32_t period, int32_t width, int32_t height);
/* Returns a float picture of zeros, range 0..1. Its samples may be written through extraction_floats. */
hs_image extraction_blank(int32_t width, int32_t height);
float *extraction_floats(const hs_image *image);
/* Returns an 8-bit gray picture as floats with the range 0..255. Divided by the range they equal the 8-bit samples. */
hs_image extraction_as_floats(const hs_image *bytes);

/* Extracts the features of one picture. The caller frees them with hs_features_free. */
hs_features extraction_run(hs_context *context, const hs_image *image);
/* Like extraction_run, with a temporary context. */
hs_features extraction_once(const hs_options *options, const hs_image *image);

/* Returns the bytes of one descriptor in a list. The next function returns a pointer to the descriptor of feature i. */
size_t extraction_descriptor_bytes(const hs_features *features);
const void *extraction_descriptor(const hs_features *features, size_t i);
/* Returns the Euclidean distance of two descriptors of the same type, in units of their norm (512 for bytes and
 * opencv's floats). */
double extraction_distance(const hs_features *a, size_t i, const hs_features *b, size_t j);

/* Fails unless two lists hold the same bytes. */
void extraction_check_equal(const hs_features *expected, const hs_features *got, const char *what);
/* Fails unless `got` has exactly the features of `full` with `keep` set, in the same order. */
void extraction_check_filtered(const hs_features *full, const bool *keep, const hs_features *got, const char *what);

/* Maps a feature of one picture to another: replaces x, y, sigma and orientation of *k. Returns false if the feature
 * need not be found, for example because it is too near a border. */
typedef bool (*extraction_map)(hs_keypoint *k, const void *data);

typedef struct extraction_tolerance {
  double place;       /* tolerance in pixels for a feature of sigma 1; grows with sigma */
  double sigma_ratio; /* maximum |log2| of the ratio */
  double angle_rad;
} extraction_tolerance;

/* Numbers of features that were expected in the other picture and that were found there. */
typedef struct extraction_share {
  size_t asked, found;
  double share;           /* found / expected */
  double median_distance; /* mean distance of the descriptors found; 0 without descriptors */
} extraction_share;
extraction_share extraction_match(const hs_features *from, extraction_map map, const void *data, const hs_features *to,
                                  const extraction_tolerance *tolerance);

/* Returns |a - b| of two angles, at most pi. */
double extraction_angle_between(double a, double b);

#endif
