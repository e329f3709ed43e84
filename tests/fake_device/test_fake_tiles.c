/*
 * Frames in tiles on fake GPUs: memory used by other programs makes tiles necessary. Each call of the device and each
 * allocation of the host fails once.
 */
#include "tests/support/test.h"

#include "tests/support/fake_device/fake_device.h"
#include "tests/support/rows_check.h"

enum { MIB = 1 << 20, CALLS_APART = 67 };

static hs_image scene;
static hs_features expected;

static hs_options options_on(hs_device device) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.first_octave = 0;
  o.device = device;
  return o;
}

BEFORE_TESTS() {
  const hs_options o = options_on(HS_DEVICE_CPU);
  scene = extraction_scene(611, 487, 4, NULL);
  expected = extraction_once(&o, &scene);
  assert_true(expected.count > 100);
}

/* Returns the device memory of a frame: untiled if `most` is 0. If it is 1, returns the memory of the smallest tiles,
 * on host or device, whichever is larger. */
static uint64_t device_bytes(hs_options o, uint64_t most) {
  uint64_t host, device;
  o.max_memory_bytes = most;
  assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
  return most == 1 && host > device ? host : device;
}

/* No limit is set, but the device cannot hold the whole frame. */
TEST(test_memory_that_others_hold) {
  for (int device = 0; device < 2; device++) {
    fake_reset(1);
    const hs_options o = options_on(device ? HS_DEVICE_AUTO : HS_DEVICE_CUDA);
    const uint64_t whole = device_bytes(o, 0), least = device_bytes(o, 1);
    assert_true(least < whole);
    hs_context *c = extraction_context(&o);
    hs_features f = {0};
    for (int i = 0; i < 3; i++) {
      const size_t held = statistics_of(c).device_bytes;
      fake.gpus[0].others_bytes = i == 1 ? 0 : fake.gpus[0].memory_bytes - held - (size_t)(whole - whole / 32);
      if (i == 2) fake.gpus[0].others_bytes = 0; /* the memory that the context holds suffices */
      assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
      extraction_check_equal(&expected, &f, "beside others");
      assert_true(i > 0 || statistics_of(c).device_bytes < whole);
    }
    assert_null(strstr(hs_backend_report(c), "fallback"));
    hs_features_free(&f);
    hs_destroy(c);
    assert_int_equal(fake.alive, 0);
  }
}

/* Extracts two frames in tiles, and one more frame after a failure, because the context must stay usable. */
static hs_status extract_two(uint64_t most, const hs_allocator *allocator) {
  hs_options o = options_on(HS_DEVICE_CUDA);
  scoped_context *c = NULL;
  scoped_features f = {0};
  o.allocator = allocator;
  o.max_memory_bytes = most;
  hs_status st = hs_create(&c, &o);
  for (int i = 0; i < 2 && st == HS_OK; i++) {
    st = hs_extract(c, &scene, NULL, &f);
    if (st == HS_OK) extraction_check_equal(&expected, &f, "before a failed call");
  }
  if (c && st == HS_ERR_MEMORY) {
    assert_true(hs_last_error(c)[0] != '\0');
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after a failed call");
  }
  return st;
}

/* Returns a limit between the memory of the smallest tiles and of the whole frame. */
static uint64_t limit(void) {
  const hs_options o = options_on(HS_DEVICE_CUDA);
  fake_reset(1);
  const uint64_t whole = device_bytes(o, 0), least = device_bytes(o, 1);
  assert_true(least < whole);
  return least + (whole - least) / 2;
}

TEST(test_calls_fail) {
  const uint64_t most = limit();
  for (int lost = 0; lost < 2; lost++) {
    hs_status st = HS_ERR_DEVICE;
    uint64_t at = 60; /* number of the first failing call, after the context's own allocations */
    for (; st != HS_OK; at += CALLS_APART) {
      counted_allocator counter = {.fill = 0xa5};
      const hs_allocator allocator = counted_allocator_make(&counter);
      fake_reset(1);
      fake.fail_at = at;
      fake.lost_at = lost;
      st = extract_two(most, &allocator);
      assert_true(st == HS_OK || st == HS_ERR_NO_DEVICE || st == HS_ERR_DEVICE || (st == HS_ERR_MEMORY && !lost));
      if (st == HS_OK && fake.calls >= fake.fail_at) st = HS_ERR_DEVICE; /* the failed call was not essential */
      assert_int_equal(fake.alive, 0);
      assert_int_equal(counter.alive, 0);
      assert_true(at < 20000);
    }
    assert_true(at > 300);
  }
}

TEST(test_allocations_fail) {
  const uint64_t most = limit();
  size_t failures = 0;
  for (hs_status st = HS_ERR_MEMORY; st != HS_OK; failures += st != HS_OK) {
    counted_allocator counter = {.fill = 0xa5, .fail_at = failures + 1};
    const hs_allocator allocator = counted_allocator_make(&counter);
    fake_reset(1);
    st = extract_two(most, &allocator);
    assert_true(st == HS_OK || st == HS_ERR_MEMORY || st == HS_ERR_NO_DEVICE);
    assert_int_equal(fake.alive, 0);
    assert_int_equal(counter.alive, 0);
    assert_true(failures < 100);
  }
  assert_true(failures >= 4);
}

/* A frame in tiles whose host allocation fails is extracted on the CPU, equalised as any other frame. */
TEST(test_equalised_allocations_fail) {
  hs_options o = options_on(HS_DEVICE_CPU);
  size_t fallen = 0;
  bool failed = true;
  o.equalize = 1;
  scoped_features equalised = extraction_once(&o, &scene);
  o.device = HS_DEVICE_AUTO;
  for (size_t ahead = 1; failed; ahead++) {
    counted_allocator counter = {0};
    const hs_allocator allocator = counted_allocator_make(&counter);
    fake_reset(1);
    const uint64_t whole = device_bytes(o, 0);
    o.allocator = &allocator;
    hs_context *c = extraction_context(&o);
    hs_features f = {0};
    fake.gpus[0].others_bytes =
        fake.gpus[0].memory_bytes - (size_t)statistics_of(c).device_bytes - (size_t)(whole - whole / 32);
    counter.fail_at = counter.made + ahead;
    if (hs_extract(c, &scene, NULL, &f) == HS_OK) extraction_check_equal(&equalised, &f, "an allocation failed");
    failed = counter.made >= counter.fail_at;
    fallen += strstr(hs_backend_report(c), "fallback") != NULL;
    hs_features_free(&f);
    hs_destroy(c);
    o.allocator = NULL;
    assert_int_equal(counter.alive, 0);
    assert_true(ahead < 100);
  }
  assert_true(fallen >= 2);
}

/* A file is decoded while a device extracts its tiles, within a limit. Each allocation fails once. With HS_DEVICE_AUTO
 * the picture is then decoded before the extraction, because memory is available again. */
TEST(test_allocations_of_a_file_fail) {
  const jpeg_spec spec = {JPEG_GRAY, JPEG_BASELINE, 90, 1, 0, 611, 487, NULL, 0};
  scoped_file file = rows_jpeg_of_scene(&spec);
  if (!file.bytes) skip();
  for (int device = 0; device < 2; device++) {
    hs_options o = options_on(device ? HS_DEVICE_AUTO : HS_DEVICE_CUDA);
    size_t failures = 0;
    bool failed = true;
    fake_reset(1);
    o.max_memory_bytes = rows_cap(o, spec.width, spec.height);
    scoped_features whole = {0};
    hs_context *c = extraction_context(&o);
    assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &whole), HS_OK);
    assert_true(whole.count > 100);
    hs_destroy(c);
    for (size_t ahead = 1; failed; ahead++) {
      counted_allocator counter = {.fill = 0xa5};
      const hs_allocator allocator = counted_allocator_make(&counter);
      hs_features f = {0};
      o.allocator = &allocator;
      fake_reset(1);
      c = extraction_context(&o);
      counter.fail_at = counter.made + ahead;
      const hs_status st = hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &f);
      failed = counter.made >= counter.fail_at;
      assert_true(st == HS_OK || (failed && st == HS_ERR_MEMORY && hs_last_error(c)[0] != '\0'));
      if (st == HS_OK) extraction_check_equal(&whole, &f, "a file, beside a failure");
      failures += st != HS_OK;
      hs_features_free(&f);
      hs_destroy(c);
      assert_int_equal(counter.alive, 0);
      assert_int_equal(fake.alive, 0);
      assert_true(ahead < 60);
    }
    assert_true((failures > 0) == (o.device == HS_DEVICE_CUDA));
  }
}
