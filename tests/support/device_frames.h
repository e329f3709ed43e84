/*
 * Frames on a GPU beside the CPU's, of one scene, whose side HARTSIFT_TEST_SIDE sets for runs under a sanitizer.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_DEVICE_FRAMES_H
#define HARTSIFT_TESTS_SUPPORT_DEVICE_FRAMES_H

#include "tests/support/extraction.h"

/* Each is run so often: launched kernel by kernel, and as a graph. */
enum { DEVICE_FRAMES = 2 };

/* The scene: a square of 200 pixels a side, or of as many as HARTSIFT_TEST_SIDE says. From set_up to tear_down. */
extern hs_image device_frames_scene;
int device_frames_set_up(void **state);
int device_frames_tear_down(void **state);

/* A profile's options on a GPU; skips the test where there is none. */
hs_options device_frames_options(hs_profile profile);
/* What the CPU finds with these options, without their variants and their limit of memory; more than a few features.
   Freed by hs_features_free. mask: null, or as for hs_extract. */
hs_features device_frames_on_cpu(const hs_options *options, const hs_image *image, const hs_image *mask);
/* Fails unless frames with these options give the CPU's bytes. */
void device_frames_check(const hs_options *options, const hs_image *image, const char *what);
void device_frames_check_masked(const hs_options *options, const hs_image *image, const hs_image *mask,
                                const char *what);

#endif
