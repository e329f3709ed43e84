/* Launch lists on a fake GPU whose conversion to graphs fails. */
#include "tests/support/test.h"

#include "tests/support/fake_device/fake_device.h"

/* How much narrower each picture is. The second width comes again, once after its frame failed and once after it
 * succeeded. */
static const int32_t narrower[] = {0, 1, 1, 2, 3, 2};
enum { FRAMES = sizeof narrower / sizeof *narrower, LISTED = 4 };

static hs_image scene;
static hs_features expected[FRAMES];

static hs_image window(int i) {
  hs_image part = scene;
  part.stride_bytes = (size_t)scene.width;
  part.width -= narrower[i];
  return part;
}

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(160, 121, 4, NULL);
  for (int i = 0; i < FRAMES; i++) {
    const hs_image part = window(i);
    expected[i] = extraction_once(&o, &part);
  }
  assert_true(expected[0].count > 20);
}

/* Extracts one frame after another with one worker; the at-th conversion of a list to a graph fails. Returns the number
 * of failed frames. */
static int run(hs_device device, uint64_t at) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_features f = {0};
  int failed = 0;
  fake_reset(1);
  o.device = device;
  o.in_flight = 1;
  hs_context *c = extraction_context(&o);
  fake.fail_at_list = at;
  for (int i = 0; i < FRAMES; i++) {
    const hs_image part = window(i);
    assert_int_equal(hs_submit(c, &part, NULL), HS_OK);
    const hs_status st = hs_wait(c, &f);
    assert_true(st == HS_OK || st == HS_ERR_MEMORY);
    if (st == HS_OK) extraction_check_equal(&expected[i], &f, "beside a graph that failed");
    if (st != HS_OK) assert_non_null(strstr(hs_last_error(c), "making the frame's graph"));
    failed += st != HS_OK;
  }
  assert_true(fake.listed >= LISTED);
  hs_features_free(&f);
  hs_destroy(c);
  assert_int_equal(fake.alive, 0);
  return failed;
}

/* The frame fails, or the CPU extracts it. The next frame makes its own graph. A size whose first frame failed counts
 * as new. */
TEST(test_graphs_that_fail) {
  assert_int_equal(run(HS_DEVICE_CUDA, 0), 0);
  for (uint64_t at = 1; at <= LISTED; at++) {
    assert_int_equal(run(HS_DEVICE_CUDA, at), 1);
    assert_int_equal(run(HS_DEVICE_AUTO, at), 0);
  }
}
