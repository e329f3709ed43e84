/*
 * Limits, statistics, and pictures of extreme sizes.
 */
#include "tests/support/test.h"

#include "tests/support/reference_frame.h"

TEST(test_max_pixels) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_pixels = 60 * 50;
  scoped_context *c = extraction_context(&o);
  scoped_image i = extraction_scene(60, 51, 1, NULL);
  scoped_features f = {0};
  assert_int_equal(hs_extract(c, &i, NULL, &f), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(c), "max_pixels is 3000"));
  i.height = 50;
  assert_int_equal(hs_extract(c, &i, NULL, &f), HS_OK);
}

/* Sides whose samples exceed the precision of float coordinates are refused in each call that takes an image, before
 * memory is requested. */
TEST(test_longest_side) {
  enum { LONG = (1 << 21) + 1, THIN = 12 };
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 1;
  o.max_pixels = 0;
  o.allocator = &allocator;
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(&o, LONG, THIN, &host, &device), HS_ERR_LIMIT);
  assert_int_equal(hs_workspace_query(&o, THIN, LONG, &host, &device), HS_ERR_LIMIT);
  assert_int_equal(hs_workspace_query(&o, LONG - 1, THIN, &host, &device), HS_OK);
  SCOPED_MEMORY uint8_t *pixels = calloc(LONG, THIN);
  scoped_context *c = extraction_context(&o);
  counter.peak_bytes = 0;
  const hs_keypoint given = {.x = 5.0f, .y = 5.0f, .sigma = 2.0f};
  for (int tall = 0; tall < 2; tall++) {
    const hs_image image = {.data = pixels, .width = tall ? THIN : LONG, .height = tall ? LONG : THIN};
    const hs_features *view = NULL;
    hs_features f = {0};
    size_t count = 0;
    assert_int_equal(hs_extract(c, &image, NULL, &f), HS_ERR_LIMIT);
    assert_non_null(strstr(hs_last_error(c), tall ? "height of 2097153" : "width of 2097153"));
    assert_non_null(strstr(hs_last_error(c), "4194306 samples, the most is 4194304"));
    assert_int_equal(hs_extract_view(c, &image, NULL, &view), HS_ERR_LIMIT);
    assert_int_equal(hs_extract_into(c, &image, NULL, NULL, NULL, 0, &count), HS_ERR_LIMIT);
    assert_int_equal(hs_describe(c, &image, &given, 1, &f, NULL), HS_ERR_LIMIT);
    assert_int_equal(f.count, 0);
  }
  assert_true(counter.peak_bytes < 1000);
}

TEST(test_max_memory) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  uint64_t small, large, device;
  assert_int_equal(hs_workspace_query(&o, 60, 50, &small, &device), HS_OK);
  assert_int_equal(hs_workspace_query(&o, 300, 200, &large, &device), HS_OK);
  assert_true(small < large);
  o.max_memory_bytes = small;
  scoped_context *c = extraction_context(&o);
  scoped_image i = extraction_scene(300, 200, 1, NULL);
  scoped_features f = {0};
  assert_int_equal(hs_extract(c, &i, NULL, &f), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(c), "max_memory_bytes"));
  i.width = 60;
  i.height = 50;
  assert_int_equal(hs_extract(c, &i, NULL, &f), HS_OK);
  hs_statistics s = statistics_of(c);
  assert_true(s.workspace_bytes <= small);
}

/* If the system has no memory for the whole frame, the message says which limit to set. */
TEST(test_advice_without_memory) {
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image i = extraction_scene(300, 200, 1, NULL);
  scoped_features f = {0};
  o.allocator = &allocator;
  o.threads = 1;
  scoped_context *c = extraction_context(&o);
  bool is_told = false;
  for (size_t fail_at = 1;; fail_at++) {
    counter.made = 0;
    counter.fail_at = fail_at;
    if (hs_extract(c, &i, NULL, &f) == HS_OK) break;
    is_told = is_told || strstr(hs_last_error(c), "with a smaller max_memory_bytes the image is worked off in tiles");
  }
  assert_true(is_told);
}

/* Lists would have to exceed the limit: the frame is refused, and the next frame does not keep the lists' size. */
TEST(test_lists_beyond_the_limit) {
  hs_options o = extraction_options(HS_PROFILE_VLFEAT);
  /* noise without thresholds, finely sampled: far more features than the lists' initial capacity */
  o.edge = 1000.0f;
  o.first_octave = 0;
  o.sigma = 0.8f;
  o.scales = 6;
  uint64_t room, device;
  assert_int_equal(hs_workspace_query(&o, 150, 120, &room, &device), HS_OK);
  SCOPED_MEMORY uint8_t *noise = reference_noise(150, 120, 9u, 0);
  assert_non_null(noise);
  const hs_image image = {.data = noise, .width = 150, .height = 120};
  /* the frame needs all memory that the limit leaves, so its lists cannot be longer */
  scoped_image plain = extraction_blank(150, 120);
  o.max_memory_bytes = room;
  scoped_context *c = extraction_context(&o);
  scoped_features f = {0};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hs_extract(c, &image, NULL, &f), HS_ERR_LIMIT);
    assert_int_equal(hs_extract(c, &plain, NULL, &f), HS_OK);
    assert_int_equal(f.count, 0);
  }
  hs_destroy(c);
  o.max_memory_bytes = 0;
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK);
  hs_statistics s = statistics_of(c);
  /* lists grow once for the keypoints, and possibly once more for the features of these keypoints */
  assert_true((s.regrown_frames == 1 || s.regrown_frames == 2) && s.frames == 1 && s.features == f.count);
  const uint64_t regrown = s.regrown_frames;
  assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK); /* the lists have grown once and keep their size */
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  assert_true(s.regrown_frames == regrown && s.frames == 2);
}

TEST(test_statistics) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  hs_statistics s = statistics_of(c);
  assert_true(s.frames == 0 && s.features == 0 && s.workspace_bytes > 0 && s.device_bytes == 0);
  scoped_image i = extraction_scene(120, 90, 4, NULL);
  scoped_features f = extraction_run(c, &i);
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  assert_true(s.frames == 1 && s.features == f.count && s.regrown_frames == 0);
  assert_true(s.candidates >= s.keypoints && s.features >= s.keypoints && s.keypoints > 10);
  /* an older header's struct is shorter, and nothing after it is written */
  hs_statistics shorter;
  memset(&shorter, 0xee, sizeof shorter);
  shorter.struct_size = offsetof(hs_statistics, regrown_frames);
  assert_int_equal(hs_get_statistics(c, &shorter), HS_OK);
  assert_true(shorter.frames == 1 && shorter.regrown_frames == UINT64_C(0xeeeeeeeeeeeeeeee));
  s.struct_size = 0;
  assert_int_equal(hs_get_statistics(c, &s), HS_ERR_ARGUMENT);
  assert_int_equal(hs_get_statistics(NULL, &s), HS_ERR_ARGUMENT);
  assert_int_equal(hs_get_statistics(c, NULL), HS_ERR_ARGUMENT);
}

TEST(test_backend_report) {
  static const char *const stages[] = {"base", "blur", "halve", "detect", "orient", "select", "describe"};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, "blur=ref,detect=ref");
  o.expert = &expert;
  scoped_context *c = extraction_context(&o);
  const char *report = hs_backend_report(c);
  for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
    char start[32] = "\n";
    strcat(strcat(start, stages[i]), ": ");
    assert_non_null(strstr(report, start));
  }
  assert_non_null(strstr(report, "\nblur: ref\n"));
  assert_non_null(strstr(report, "\ndetect: ref\n"));
}

/* Pictures too small for a keypoint give none; thin and tiny ones do no harm in any profile. */
TEST(test_extreme_sizes) {
  static const int32_t sizes[][2] = {{1, 1}, {1, 100000}, {100000, 1}, {3, 3}, {2, 5}, {5, 2}, {1, 2}, {100000, 2}};
  SCOPED_MEMORY uint8_t *noise = reference_noise(100000, 2, 3u, 0);
  assert_non_null(noise);
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    scoped_context *c = extraction_context_of((hs_profile)profile);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      const hs_image image = {.data = noise, .width = sizes[i][0], .height = sizes[i][1]};
      scoped_features f = {.count = 9};
      assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK);
      /* profiles from vlfeat on have a border of 1: with sides of 2 pixels, some sample has neighbours on all sides */
      if (profile < HS_PROFILE_VLFEAT || image.width == 1 || image.height == 1) assert_int_equal(f.count, 0);
      assert_true(f.image_width == image.width && f.image_height == image.height);
    }
  }
}

/* One context extracts small pictures of all sizes, at every first octave. */
TEST(test_all_small_sizes) {
  SCOPED_MEMORY uint8_t *noise = reference_noise(40, 40, 3u, 1);
  assert_non_null(noise);
  for (int32_t first = -1; first <= 3; first++) {
    hs_options o = extraction_options((hs_profile)((first + 1) % 4));
    o.first_octave = first;
    o.border = 1;
    o.scales = 1 + (first + 1) % 3;
    scoped_context *c = extraction_context(&o);
    scoped_features f = {0};
    for (int32_t h = 1; h < 40; h += 3)
      for (int32_t w = 1; w < 40; w += 2) {
        const hs_image image = {.data = noise, .width = w, .height = h, .stride_bytes = 40};
        assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK);
        for (size_t i = 0; i < f.count; i++) assert_true(f.keypoints[i].x >= 0.0f && f.keypoints[i].y >= 0.0f);
      }
  }
}
