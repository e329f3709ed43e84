/*
 * Every bad argument has its status and message, changes nothing, and leaves the context usable.
 */

#include "tests/support/test.h"

static hs_image scene;
static hs_context *context;
static hs_features expected;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(120, 90, 4, NULL);
  context = extraction_context(&o);
  expected = extraction_run(context, &scene);
  assert_true(expected.count > 20);
}

AFTER_TESTS() { hs_destroy(context); }

/* Checks that the context works as before. */
static void check_usable(void) {
  scoped_features f = extraction_run(context, &scene);
  assert_string_equal(hs_last_error(context), "");
  extraction_check_equal(&expected, &f, "after an error");
}

/* Makes one refused call of each kind; the features passed must not change. */
static void expect_image_refused(const hs_image *image, hs_status status, const char *word) {
  hs_features f = {.count = 77, .image_width = 5};
  const hs_features *view = &f;
  size_t count = 99;
  assert_int_equal(hs_extract(context, image, NULL, &f), status);
  if (!strstr(hs_last_error(context), word)) fail_msg("\"%s\" does not say %s", hs_last_error(context), word);
  assert_non_null(strstr(hs_last_error_location(context), hs_status_name(status)));
  assert_int_equal(hs_detect(context, image, NULL, &f), status);
  assert_int_equal(hs_describe(context, image, expected.keypoints, 1, &f, NULL), status);
  assert_int_equal(hs_extract_into(context, image, NULL, NULL, NULL, 0, &count), status);
  assert_int_equal(hs_extract_view(context, image, NULL, &view), status);
  assert_true(f.count == 77 && f.image_width == 5 && !f.keypoints && count == 99 && !view);
}

TEST(test_bad_images) {
  hs_image i = scene;
  i.data = NULL;
  expect_image_refused(&i, HS_ERR_IMAGE, "image.data is null");
  const int32_t sizes[] = {0, -1, INT32_MIN};
  for (size_t k = 0; k < 3; k++) {
    i = scene;
    i.width = sizes[k];
    expect_image_refused(&i, HS_ERR_IMAGE, "expected at least 1 x 1");
    i = scene;
    i.height = sizes[k];
    expect_image_refused(&i, HS_ERR_IMAGE, "expected at least 1 x 1");
  }
  i = scene;
  i.type = (hs_sample_type)3;
  expect_image_refused(&i, HS_ERR_IMAGE, "image.type is 3");
  i.type = (hs_sample_type)-1;
  expect_image_refused(&i, HS_ERR_IMAGE, "image.type");
  i = scene;
  i.layout = (hs_pixel_layout)7;
  expect_image_refused(&i, HS_ERR_IMAGE, "image.layout is 7");
  i = scene;
  i.stride_bytes = 119;
  expect_image_refused(&i, HS_ERR_IMAGE, "stride_bytes is 119, expected at least 120");
  i.layout = HS_RGB;
  i.stride_bytes = 359;
  expect_image_refused(&i, HS_ERR_IMAGE, "expected at least 360");
  check_usable();
}

TEST(test_bad_float_and_wide_images) {
  hs_image floats = extraction_as_floats(&scene), i = floats;
  i.stride_bytes = 4 * 120 + 2;
  expect_image_refused(&i, HS_ERR_IMAGE, "multiple of 4");
  i = floats;
  i.data = (const unsigned char *)floats.data + 1;
  i.height = 10;
  expect_image_refused(&i, HS_ERR_IMAGE, "aligned");
  const float ranges[][2] = {{1, 1}, {2, 1}, {NAN, 1}, {0, NAN}, {-INFINITY, 0}, {0, INFINITY}, {-3e38f, 3e38f}};
  for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++) {
    i = floats;
    i.range_low = ranges[k][0];
    i.range_high = ranges[k][1];
    expect_image_refused(&i, HS_ERR_IMAGE, "image.range");
  }
  hs_image_free(&floats);
  i = scene; /* more pixels than max_pixels; checked before anything is read */
  i.width = 1 << 20;
  i.height = 1 << 20;
  i.stride_bytes = 0;
  expect_image_refused(&i, HS_ERR_LIMIT, "max_pixels is 2147483648");
  i = scene;
  i.stride_bytes = SIZE_MAX / 2;
  expect_image_refused(&i, HS_ERR_LIMIT, "address space");
  check_usable();
}

TEST(test_null_arguments) {
  hs_features f = {0};
  const hs_features *view;
  hs_keypoint k = expected.keypoints[0];
  size_t count;
  assert_int_equal(hs_extract(NULL, &scene, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_detect(NULL, &scene, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_describe(NULL, &scene, &k, 1, &f, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_into(NULL, &scene, NULL, &k, NULL, 1, &count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_view(NULL, &scene, NULL, &view), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract(context, NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(context), "null"));
  assert_int_equal(hs_extract(context, &scene, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_detect(context, NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_describe(context, &scene, NULL, 1, &f, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_describe(context, &scene, &k, 1, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_into(context, &scene, NULL, NULL, NULL, 1, &count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_into(context, &scene, NULL, &k, NULL, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_view(context, NULL, NULL, &view), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_view(context, &scene, NULL, NULL), HS_ERR_ARGUMENT);
  check_usable();
  hs_destroy(NULL);
  hs_features_free(NULL);
  hs_features_free(&f);
  assert_string_equal(hs_last_error(NULL), "");
  assert_string_equal(hs_backend_report(NULL), "");
}

TEST(test_bad_creation) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  char message[64];
  scoped_context *c = context;
  assert_int_equal(hs_create(NULL, &o), HS_ERR_ARGUMENT);
  assert_int_equal(hs_create_explained(&c, NULL, message, sizeof message), HS_ERR_ARGUMENT);
  assert_null(c);
  assert_non_null(strstr(message, "null"));
  hs_options bad = o;
  bad.scales = 0;
  char small[8] = "xxxxxxx"; /* a short buffer is filled, terminated and not overrun */
  assert_int_equal(hs_create_explained(&c, &bad, small, 5), HS_ERR_OPTION);
  assert_memory_equal(small, "opti\0xx", 8);
  assert_int_equal(hs_create_explained(&c, &bad, NULL, 100), HS_ERR_OPTION);
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_OK);
  assert_string_equal(message, ""); /* an empty text: there is nothing to explain */
}

TEST(test_bad_masks) {
  hs_features f = {0};
  hs_image bad[7];
  static const char *const reasons[7] = {"mask is ", "mask is ",  "of type 1",      "layout 2",
                                         "stride",   "data is n", "reserved is set"};
  for (int i = 0; i < 7; i++) bad[i] = scene;
  bad[0].width--;
  bad[1].height++;
  bad[2].type = HS_U16;
  bad[3].layout = HS_RGB;
  bad[4].stride_bytes = 100;
  bad[5].data = NULL;
  bad[6].reserved[0] = 1;
  for (int i = 0; i < 7; i++) {
    assert_int_equal(hs_extract(context, &scene, &bad[i], &f), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(context), "mask"));
    assert_non_null(strstr(hs_last_error(context), reasons[i]));
    assert_int_equal(hs_detect(context, &scene, &bad[i], &f), HS_ERR_ARGUMENT);
  }
  hs_image huge = scene; /* rows of this stride would lie beyond the address space */
  huge.stride_bytes = SIZE_MAX / 2;
  assert_int_equal(hs_extract(context, &scene, &huge, &f), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(context), "mask of 90 rows"));
  assert_int_equal(f.count, 0);
  check_usable();
}

/* ------------------------------------------------------------------ extraction into the caller's arrays */

static void check_prefix(const hs_keypoint *keypoints, const uint8_t *descriptors, size_t n) {
  assert_memory_equal(keypoints, expected.keypoints, n * sizeof *keypoints);
  assert_memory_equal(descriptors, expected.descriptors, n * HS_DESCRIPTOR_LENGTH);
}

TEST(test_extract_into) {
  const size_t full = expected.count, capacities[] = {0, 1, 7, full - 1, full, full + 1, full + 100};
  SCOPED_MEMORY hs_keypoint *keypoints = malloc(sizeof *keypoints * (full + 100));
  SCOPED_MEMORY uint8_t *descriptors = malloc(HS_DESCRIPTOR_LENGTH * (full + 100));
  assert_true(keypoints && descriptors);
  for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
    const size_t capacity = capacities[i], fits = capacity < full ? capacity : full;
    size_t count = 0;
    memset(keypoints, 0xee, sizeof *keypoints * (full + 100));
    memset(descriptors, 0xee, HS_DESCRIPTOR_LENGTH * (full + 100));
    const hs_status st = hs_extract_into(context, &scene, NULL, keypoints, descriptors, capacity, &count);
    assert_int_equal(st, capacity < full ? HS_ERR_CAPACITY : HS_OK);
    assert_int_equal(count, full);
    if (fits > 0) check_prefix(keypoints, descriptors, fits);
    /* nothing is written beyond the keypoints that fit */
    assert_int_equal(*(const unsigned char *)(keypoints + fits), 0xee);
    assert_int_equal(descriptors[fits * HS_DESCRIPTOR_LENGTH], 0xee);
  }
  size_t count = 0;
  assert_int_equal(hs_extract_into(context, &scene, NULL, keypoints, NULL, full, &count), HS_OK);
  assert_memory_equal(keypoints, expected.keypoints, full * sizeof *keypoints);
  assert_int_equal(hs_extract_into(context, &scene, NULL, NULL, NULL, 0, &count), HS_ERR_CAPACITY);
  assert_int_equal(count, full);
}

/* ------------------------------------------------------------------ user keypoints */

/* None of the chosen keypoints can be described; the others in the list can. */
TEST(test_undescribable_keypoints) {
  const hs_keypoint good = expected.keypoints[5];
  enum { BAD = 14 };
  hs_keypoint bad[BAD];
  for (int i = 0; i < BAD; i++) bad[i] = good;
  bad[0].x = NAN;
  bad[1].y = INFINITY;
  bad[2].sigma = 0.0f;
  bad[3].sigma = -1.0f;
  bad[4].sigma = NAN;
  bad[5].orientation = INFINITY;
  bad[6].x = 1.0e6f;
  bad[7].sigma = INFINITY;
  bad[8].sigma = 2.0e9f;
  bad[9].x = -0.51f;
  bad[10].y = -0.51f;
  bad[11].x = (float)scene.width - 0.49f;
  bad[12].y = (float)scene.height - 0.49f;
  bad[13].y = NAN;
  for (int i = 0; i < BAD; i++) {
    const hs_keypoint all[3] = {good, bad[i], good};
    static const uint8_t zeros[HS_DESCRIPTOR_LENGTH];
    hs_status statuses[3];
    scoped_features f = {0};
    assert_int_equal(hs_describe(context, &scene, all, 3, &f, statuses), HS_OK);
    assert_int_equal(f.count, 3);
    if (statuses[0] != HS_OK || statuses[1] != HS_ERR_KEYPOINT || statuses[2] != HS_OK) fail_msg("keypoint %d", i);
    assert_memory_equal(extraction_descriptor(&f, 1), zeros, sizeof zeros);
    assert_memory_equal(extraction_descriptor(&f, 0), extraction_descriptor(&expected, 5), HS_DESCRIPTOR_LENGTH);
    assert_memory_equal(extraction_descriptor(&f, 2), extraction_descriptor(&expected, 5), HS_DESCRIPTOR_LENGTH);
  }
  check_usable();
}

TEST(test_describe_edge_cases) {
  hs_features f = {0};
  assert_int_equal(hs_describe(context, &scene, NULL, 0, &f, NULL), HS_OK);
  assert_int_equal(f.count, 0);
  assert_int_equal(hs_extract(context, &scene, NULL, &f), HS_OK);
  assert_int_equal(hs_describe(context, &scene, f.keypoints, f.count, &f, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_describe(context, &scene, f.keypoints + 1, f.count - 1, &f, NULL), HS_ERR_ARGUMENT);
  extraction_check_equal(&expected, &f, "after describing in place was refused");
  assert_int_equal(hs_describe(context, &scene, f.keypoints, ((size_t)1 << 28) + 1, &f, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_describe(context, &scene, expected.keypoints, ((size_t)1 << 28) + 1, &f, NULL), HS_ERR_LIMIT);
  hs_features_free(&f);
  check_usable();
}

/* The struct of a later header is longer: known fields are filled, the others are zero, and nothing after the struct is
 * written. */
TEST(test_statistics_of_a_later_header) {
  struct {
    hs_statistics known;
    uint64_t later[2], behind;
  } s;
  hs_statistics own = {.struct_size = sizeof own};
  memset(&s, 0xee, sizeof s);
  s.known.struct_size = sizeof s.known + sizeof s.later;
  assert_int_equal(hs_get_statistics(context, &own), HS_OK);
  assert_int_equal(hs_get_statistics(context, &s.known), HS_OK);
  assert_int_equal(s.known.struct_size, sizeof s.known + sizeof s.later);
  assert_true(s.known.frames > 0 && s.known.frames == own.frames && s.known.features == own.features);
  assert_true(s.known.workspace_bytes == own.workspace_bytes && s.known.device_bytes == own.device_bytes);
  assert_true(s.later[0] == 0 && s.later[1] == 0);
  assert_int_equal(s.behind, UINT64_C(0xeeeeeeeeeeeeeeee));
  check_usable();
}
