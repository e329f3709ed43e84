/* See device_frames.h. */
#include "tests/support/device_frames.h"

#include <stdlib.h>

#include "tests/support/test.h"

#include "tests/support/skip.h"

enum { SIDE = 200, FEATURES_LEAST = 20 };

hs_image device_frames_scene;

int device_frames_set_up(void **state) {
  (void)state;
  const char *wanted = getenv("HARTSIFT_TEST_SIDE");
  const int32_t side = wanted ? (int32_t)strtol(wanted, NULL, 10) : SIDE;
  device_frames_scene = extraction_scene(side, side, 7, NULL);
  return 0;
}

int device_frames_tear_down(void **state) {
  (void)state;
  hs_image_free(&device_frames_scene);
  return 0;
}

hs_options device_frames_options(hs_profile profile) {
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = extraction_options(profile);
  o.device = HS_DEVICE_CUDA;
  return o;
}

hs_features device_frames_on_cpu(const hs_options *options, const hs_image *image, const hs_image *mask) {
  hs_options o = *options;
  hs_features f = {0};
  o.device = HS_DEVICE_CPU;
  o.expert = NULL;
  o.max_memory_bytes = 0;
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_extract(c, image, mask, &f), HS_OK);
  hs_destroy(c);
  assert_true(f.count > FEATURES_LEAST);
  return f;
}

void device_frames_check_masked(const hs_options *o, const hs_image *image, const hs_image *mask, const char *what) {
  hs_features expected = device_frames_on_cpu(o, image, mask), got = {0};
  hs_context *c = extraction_context(o);
  for (int i = 0; i < DEVICE_FRAMES; i++) {
    const hs_status st = hs_extract(c, image, mask, &got);
    if (st != HS_OK) fail_msg("%s: %s", what, hs_last_error(c));
    extraction_check_equal(&expected, &got, what);
  }
  hs_destroy(c);
  hs_features_free(&expected);
  hs_features_free(&got);
}

void device_frames_check(const hs_options *o, const hs_image *image, const char *what) {
  device_frames_check_masked(o, image, NULL, what);
}
