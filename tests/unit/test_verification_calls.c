/*
 * Arguments of hs_verify_points, hs_verify and hs_relative_pose: invalid options and arguments are refused, structs of
 * other headers are accepted, and failing memory is reported.
 */

#include "tests/support/test.h"

#include "tests/support/verified.h"

static void expect_option_refused(verified *v, const hs_verify_options *good, size_t offset, const void *value,
                                  size_t size, const char *name) {
  char message[200] = "";
  hs_verify_options bad = *good;
  memcpy((unsigned char *)&bad + offset, value, size);
  bad.message = message;
  bad.message_bytes = sizeof message;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 50, &bad, v->inliers, &v->geometry), HS_ERR_OPTION);
  if (!strstr(message, name)) fail_msg("\"%s\" does not name %s", message, name);
  assert_int_equal(v->geometry.found, 0);
}

#define REFUSE(field, type, v_value)                                                                                   \
  do {                                                                                                                 \
    const type value = (v_value);                                                                                      \
    expect_option_refused(v, &good, offsetof(hs_verify_options, field), &value, sizeof value, #field);                 \
  } while (0)

TEST(test_options_refused) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_VOLUME, 50, 0, 0.0, 1, &v->scene);
  const hs_verify_options good = verified_options(HS_ESSENTIAL, &v->scene);
  REFUSE(model, int, 0);
  REFUSE(model, int, 4);
  REFUSE(tolerance, double, 0.0);
  REFUSE(tolerance, double, -1.0);
  REFUSE(tolerance, double, NAN);
  REFUSE(tolerance, double, INFINITY);
  REFUSE(confidence, double, 0.0);
  REFUSE(confidence, double, 1.0);
  REFUSE(confidence, double, NAN);
  REFUSE(max_iterations, int32_t, 0);
  REFUSE(max_iterations, int32_t, 100000001);
  REFUSE(min_iterations, int32_t, -1);
  REFUSE(min_iterations, int32_t, 10001);
  REFUSE(min_inliers, int32_t, -1);
  REFUSE(check_plane, int32_t, 2);
  REFUSE(refine, int32_t, 2);
  REFUSE(refine, int32_t, -1);
  REFUSE(refine_matches, int32_t, -1);
  REFUSE(camera_a, double, 0.0);
  REFUSE(camera_a, double, NAN);
  REFUSE(camera_b, double, -500.0);
}

TEST(test_arguments_refused) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_VOLUME, 50, 0, 0.0, 1, &v->scene);
  hs_verify_options o = verified_options(HS_ESSENTIAL, &v->scene);
  hs_pose pose;
  assert_int_equal(hs_verify_options_init(NULL, HS_HOMOGRAPHY), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_options_init(&o, (hs_geometry_model)0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 50, &o, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_points(NULL, v->scene.b, 50, &o, NULL, &v->geometry), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_points(v->scene.a, NULL, 50, &o, NULL, &v->geometry), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 50, NULL, NULL, &v->geometry), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify_points(NULL, NULL, 0, &o, NULL, &v->geometry), HS_OK);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, ((size_t)1 << 26) + 1, &o, NULL, &v->geometry),
                   HS_ERR_LIMIT);
  o.struct_size = 0;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 50, &o, NULL, &v->geometry), HS_ERR_OPTION);
  const hs_camera *const a = &v->scene.camera_a, *const b = &v->scene.camera_b, none = {0.0, 0.0, 0.0, 0.0};
  const double zero[9] = {0.0}, broken[9] = {NAN, 1.0};
  assert_int_equal(hs_relative_pose(v->scene.essential, a, b, v->scene.a, v->scene.b, 50, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(NULL, a, b, v->scene.a, v->scene.b, 50, NULL, &pose), HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(zero, a, b, v->scene.a, v->scene.b, 50, NULL, &pose), HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(broken, a, b, v->scene.a, v->scene.b, 50, NULL, &pose), HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(v->scene.essential, &none, b, v->scene.a, v->scene.b, 50, NULL, &pose),
                   HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(v->scene.essential, a, b, NULL, v->scene.b, 50, NULL, &pose), HS_ERR_ARGUMENT);
  assert_int_equal(hs_relative_pose(v->scene.essential, a, b, NULL, NULL, 0, NULL, &pose), HS_OK);
  assert_int_equal(pose.used, 0);
  assert_int_equal(hs_relative_pose(v->scene.essential, a, b, v->scene.a, v->scene.b, 50, NULL, &pose), HS_OK);
  assert_int_equal(pose.in_front, 50);
  assert_true(two_view_direction_angle(pose.translation, v->scene.translation) < 1.0e-6);
}

/* Both calls take the structs of earlier and later headers. */
TEST(test_options_of_other_headers) {
  SCOPED_MEMORY verified *const v = verified_new();
  hs_geometry expected;
  const hs_features none = {0};
  struct {
    hs_verify_options options;
    unsigned char later[16];
  } callers;
  char message[128] = "";
  memset(&callers, 0, sizeof callers);
  two_view_make(TWO_VIEW_VOLUME, 100, 30, 0.5, 1, &v->scene);
  assert_int_equal(hs_verify_options_init(&callers.options, HS_FUNDAMENTAL), HS_OK);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 100, &callers.options, NULL, &expected), HS_OK);
  assert_int_equal(expected.found, 1);
  /* The struct has only the first fields. The other fields get the model's defaults, whatever follows in memory. */
  memset(&callers.options.tolerance, 0xff, sizeof callers.options - offsetof(hs_verify_options, tolerance));
  callers.options.struct_size = offsetof(hs_verify_options, model) + sizeof callers.options.model;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 100, &callers.options, NULL, &v->geometry), HS_OK);
  assert_memory_equal(&v->geometry, &expected, sizeof expected);
  assert_int_equal(hs_verify(&none, &none, NULL, 0, 0, &callers.options, NULL, &v->geometry), HS_OK);
  callers.options.struct_size--;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 100, &callers.options, NULL, &v->geometry), HS_ERR_OPTION);
  assert_int_equal(hs_verify(&none, &none, NULL, 0, 0, &callers.options, NULL, &v->geometry), HS_ERR_OPTION);
  /* A later header's fields may exist if they are not set. */
  assert_int_equal(hs_verify_options_init(&callers.options, HS_FUNDAMENTAL), HS_OK);
  callers.options.struct_size = sizeof callers;
  callers.options.message = message;
  callers.options.message_bytes = sizeof message;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 100, &callers.options, NULL, &v->geometry), HS_OK);
  assert_memory_equal(&v->geometry, &expected, sizeof expected);
  callers.later[15] = 1;
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 100, &callers.options, NULL, &v->geometry), HS_ERR_OPTION);
  assert_non_null(strstr(message, "does not know"));
  assert_int_equal(hs_verify(&none, &none, NULL, 0, 0, &callers.options, NULL, &v->geometry), HS_ERR_OPTION);
}

TEST(test_failing_memory) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_PLANE, 100, 0, 0.3, 1, &v->scene);
  hs_keypoint keypoints[20] = {{0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 0, 0}};
  const hs_features features = {.count = 20, .keypoints = keypoints};
  const uint32_t pairs[20] = {0};
  hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
  for (size_t fail_at = 0; fail_at <= 2; fail_at++) {
    scoped_counter counter = {.fail_at = fail_at, .fill = 0xa5};
    const hs_allocator allocator = counted_allocator_make(&counter);
    o.allocator = &allocator;
    const hs_status status = hs_verify_points(v->scene.a, v->scene.b, 100, &o, v->inliers, &v->geometry);
    assert_int_equal(status, fail_at == 1 ? HS_ERR_MEMORY : HS_OK);
    assert_int_equal(v->geometry.found, fail_at != 1);
    assert_int_equal(counter.alive, 0);
    counter = (counted_allocator){.fail_at = fail_at, .fill = 0xa5};
    const hs_status by_features = hs_verify(&features, &features, pairs, 0, 10, &o, v->inliers, &v->geometry);
    assert_int_equal(by_features, fail_at == 1 ? HS_ERR_MEMORY : HS_OK);
  }
}
