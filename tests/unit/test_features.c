/*
 * Capacity of feature lists: growth, reuse, and failure without a change.
 */
#include "tests/support/test.h"

#include "pipeline/base/features.h"

TEST(test_room_is_kept) {
  counted_allocator counter = {0};
  hs_allocator allocator = counted_allocator_make(&counter);
  hs_features features = {0};
  assert_int_equal(features_reserve(&features, 10, HS_DESCRIPTOR_F32, &allocator), HS_OK);
  assert_int_equal(counter.made, 2);
  features.count = 10;
  memset(features.descriptors, 0, 10 * 512);
  features.keypoints[9].x = 5.0f;
  assert_int_equal(features_reserve(&features, 10, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_int_equal(features_reserve(&features, 3, HS_DESCRIPTOR_F32, NULL), HS_OK);
  assert_int_equal(counter.made, 2);
  assert_int_equal(features.count, 10);
  assert_true(features.keypoints[9].x == 5.0f);
  assert_int_equal(features_reserve(&features, 11, HS_DESCRIPTOR_U8, &allocator), HS_OK);
  assert_int_equal(counter.made, 4);
  assert_int_equal(counter.alive, 2);
  assert_int_equal(features.count, 0);
  hs_features_free(&features);
  assert_int_equal(counter.alive, 0);
  assert_null(features.keypoints);
  assert_int_equal(features.capacity, 0);
}

TEST(test_none_has_no_descriptors) {
  scoped_counter counter = {0};
  hs_allocator allocator = counted_allocator_make(&counter);
  scoped_features features = {0};
  assert_int_equal(features_reserve(&features, 4, HS_DESCRIPTOR_U8, &allocator), HS_OK);
  assert_non_null(features.descriptors);
  assert_int_equal(features_reserve(&features, 4, HS_DESCRIPTOR_NONE, &allocator), HS_OK);
  assert_null(features.descriptors);
  assert_int_equal(features.descriptor_capacity_bytes, 0);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_int_equal(counter.alive, 1);
}

TEST(test_failure_changes_nothing) {
  for (size_t n = 1; n <= 2; n++) {
    scoped_counter counter = {0};
    hs_allocator allocator = counted_allocator_make(&counter);
    scoped_features features = {0};
    assert_int_equal(features_reserve(&features, 2, HS_DESCRIPTOR_U8, &allocator), HS_OK);
    features.count = 2;
    hs_features before = features;
    counter.fail_at = counter.made + n;
    assert_int_equal(features_reserve(&features, 20, HS_DESCRIPTOR_F32, &allocator), HS_ERR_MEMORY);
    assert_memory_equal(&features, &before, sizeof features);
    assert_int_equal(counter.alive, 2);
  }
}

TEST(test_limits) {
  scoped_features features = {0};
  assert_int_equal(features_reserve(&features, SIZE_MAX / 2, HS_DESCRIPTOR_NONE, NULL), HS_ERR_MEMORY);
  assert_int_equal(features_reserve(&features, SIZE_MAX / 30, HS_DESCRIPTOR_F32, NULL), HS_ERR_MEMORY);
  assert_int_equal(features_reserve(&features, 1, (hs_descriptor_type)9, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(features_reserve(NULL, 1, HS_DESCRIPTOR_U8, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(features_reserve(&features, 0, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_null(features.keypoints);
  hs_features_free(NULL);
}
