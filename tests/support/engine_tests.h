/*
 * Tests that run on every engine: the CPU, and a GPU if available.
 *
 * HARTSIFT_TEST_ENGINES=cpu or gpu: runs only on that engine. HARTSIFT_TEST_SKIP: skips the tests of that name, which
 * may contain a *. Also compares frames on a GPU, alone or split with the CPU, with frames on the CPU.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_ENGINE_TESTS_H
#define HARTSIFT_TESTS_SUPPORT_ENGINE_TESTS_H

#include "tests/support/test.h"

#include "tests/support/extraction.h"

typedef enum engine_set { ON_CPU = 1, ON_GPU = 2, ON_ALL = 3 } engine_set;

/* A test that runs on each of these engines; without a GPU one skipped test replaces those on a GPU. */
#define ENGINE_TEST(ENGINES, NAME)                                                                                     \
  static void NAME(void **state);                                                                                      \
  TEST_ENTRY(NAME, NAME, NULL, NULL, ENGINES)                                                                          \
  static void NAME(__attribute__((unused)) void **state)

/* HS_DEVICE_CPU or HS_DEVICE_CUDA while tests run. */
extern hs_device engine_device;
static inline bool engine_is_gpu(void) { return engine_device != HS_DEVICE_CPU; }
/* Returns a profile's options for the current engine. */
hs_options engine_options(hs_profile profile);

/* A square scene of 200 pixels a side; HARTSIFT_TEST_SIDE sets another side, for runs under a sanitizer. Exists from
 * set_up to tear_down. */
extern hs_image engine_scene;
int engine_scene_set_up(void **state);
int engine_scene_tear_down(void **state);

/* Returns the CPU's features for these options, ignoring variants and memory limit. hs_features_free frees them. mask:
 * null, or as for hs_extract. */
hs_features engine_expected(const hs_options *options, const hs_image *image, const hs_image *mask);
/* Fails unless frames give the CPU's bytes: launched kernel by kernel, recorded as a graph and, without
 * HARTSIFT_TEST_SIDE, replayed (in the short form of extent.h only in the first call). Returns the number of
 * features. */
size_t engine_check(const hs_options *options, const hs_image *image, const hs_image *mask, const char *what);
/* Like engine_check; also fails with 20 features or fewer. */
void engine_check_some(const hs_options *options, const hs_image *image, const hs_image *mask, const char *what);
/* Like engine_check, in flight and, on a GPU, from device memory, with results on host and device. The image's memory
 * includes the padding of the last row. */
void engine_check_ways(const hs_options *options, const hs_image *image, const char *what);

#endif
