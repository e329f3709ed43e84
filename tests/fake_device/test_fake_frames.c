/*
 * Frames on fake GPUs: results that stay on the device, several GPUs, memory used by other programs, a lost device,
 * every call of the device failing once, and leftovers of frames of other sizes.
 */
#include "tests/support/test.h"

#include "pipeline/include/hartsift_cuda.h"
#include "pipeline/include/hartsift_primitives.h"
#include "tests/support/fake_device/fake_device.h"

#define MIB ((size_t)1 << 20)

static hs_image scene, other;
static hs_features expected, other_expected;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(160, 121, 4, NULL);
  other = extraction_scene(97, 150, 7, NULL);
  expected = extraction_once(&o, &scene);
  other_expected = extraction_once(&o, &other);
  assert_true(expected.count > 20 && other_expected.count > 20);
}

static hs_options options_on(hs_device device, int32_t index) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = device;
  o.device_index = index;
  return o;
}

/* ------------------------------------------------------------------ results */

FAKE_TEST(test_resident_results) {
  fake_reset(2);
  const hs_options o = options_on(HS_DEVICE_CUDA, 1);
  scoped_context *c = extraction_context(&o);
  for (int i = 0; i < 3; i++) {
    hs_cuda_features on_gpu = {0};
    scoped_features copy = {0};
    const hs_image *image = i == 1 ? &other : &scene;
    assert_int_equal(hs_cuda_extract_resident(c, image, NULL, NULL, &on_gpu), HS_OK);
    hs_features view = {.count = on_gpu.count,
                        .keypoints = (hs_keypoint *)(uintptr_t)on_gpu.keypoints,
                        .descriptors = (void *)(uintptr_t)on_gpu.descriptors,
                        .descriptor_type = on_gpu.descriptor_type,
                        .image_width = on_gpu.image_width,
                        .image_height = on_gpu.image_height};
    extraction_check_equal(i == 1 ? &other_expected : &expected, &view, "resident");
    assert_int_equal(hs_cuda_extract(c, image, NULL, NULL, &copy), HS_OK);
    extraction_check_equal(i == 1 ? &other_expected : &expected, &copy, "from the device");
  }
  assert_true(!fake.gpus[0].entered && fake.gpus[1].launches > 0);
}

/* The first frame of a size makes no graph, and neither allocates nor frees. The second frame of that size makes the
 * graph. */
FAKE_TEST(test_first_of_a_size) {
  const hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = extraction_context(&o);
  scoped_features f = {0};
  /* the larger picture comes first, so that memory suffices for both */
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  const int64_t alive = fake.alive;
  const size_t used = fake.gpus[0].used_bytes;
  for (int i = 0; i < 4; i++) {
    assert_int_equal(hs_extract(c, &other, NULL, &f), HS_OK);
    extraction_check_equal(&other_expected, &f, "of a size met first");
    assert_int_equal(fake.alive, alive + (i > 0));
    assert_int_equal(fake.gpus[0].used_bytes, used);
  }
}

/* Workers use one spare graph for new sizes of one kind, and each new size updates that graph. When the last size comes
 * again, it keeps the graph. */
FAKE_TEST(test_sizes_of_a_lane) {
  hs_options o = options_on(HS_DEVICE_CUDA, 0);
  o.in_flight = 1;
  scoped_context *c = extraction_context(&o);
  scoped_features f = {0};
  int64_t alive = 0;
  for (int i = 0; i < 12; i++) {
    hs_image window = scene;
    window.stride_bytes = (size_t)scene.width;
    window.width -= i < 8 ? i : 7;
    hs_options plain = extraction_options(HS_PROFILE_LOWE);
    scoped_features alone = extraction_once(&plain, &window);
    assert_int_equal(hs_submit(c, &window, NULL), HS_OK);
    assert_int_equal(hs_wait(c, &f), HS_OK); /* a copy, because the worker's next results use the same memory */
    extraction_check_equal(&alone, &f, "of a size met first");
    if (i == 0) alive = fake.alive;
    assert_int_equal(fake.alive, alive);
  }
}

FAKE_TEST(test_every_profile) {
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (int kind = 0; kind < 3; kind++) {
      hs_options o = extraction_options((hs_profile)profile);
      if (kind == 1) o.max_features = 30;
      if (kind == 1) o.grid_columns = o.grid_rows = 3;
      if (kind == 2) o.max_features = 25;
      scoped_features on_cpu = extraction_once(&o, &scene);
      o.device = kind == 2 ? HS_DEVICE_HYBRID : HS_DEVICE_CUDA;
      o.split = kind == 2 ? 2 : 0;
      scoped_features on_gpu = extraction_once(&o, &scene);
      extraction_check_equal(&on_cpu, &on_gpu, "profile");
    }
}

/* The picture is large enough to be uploaded in bands. */
TEST(test_bands) {
  fake_reset(1);
  scoped_image large = extraction_scene(1300, 800, 3, NULL);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_features = 500;
  scoped_features on_cpu = extraction_once(&o, &large);
  o.device = HS_DEVICE_CUDA;
  scoped_features on_gpu = extraction_once(&o, &large);
  extraction_check_equal(&on_cpu, &on_gpu, "in bands");
}

/* The search does not write the words between two octaves' masks. Words that frames of other sizes left there must not
 * become candidates. */
TEST(test_candidates_after_other_sizes) {
  fake_reset(1);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  const int32_t sizes[][2] = {{160, 121}, {97, 150}, {33, 47}, {121, 77}, {65, 39}, {160, 121}, {51, 119}};
  enum { SIZES = sizeof sizes / sizeof sizes[0] };
  hs_image images[SIZES];
  uint64_t candidates[SIZES];
  hs_context *on_cpu = extraction_context(&o);
  for (int i = 0; i < SIZES; i++) {
    images[i] = extraction_scene(sizes[i][0], sizes[i][1], 20, NULL);
    scoped_features f = extraction_run(on_cpu, &images[i]);
    candidates[i] = statistics_of(on_cpu).candidates;
  }
  hs_destroy(on_cpu);
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < SIZES; i++) {
      hs_features f = extraction_run(c, &images[i]);
      hs_features_free(&f);
      if (statistics_of(c).candidates != candidates[i])
        fail_msg("%d x %d: %llu candidates, the CPU has %llu", (int)images[i].width, (int)images[i].height,
                 (unsigned long long)statistics_of(c).candidates, (unsigned long long)candidates[i]);
    }
  hs_destroy(c);
  for (int i = 0; i < SIZES; i++) hs_image_free(&images[i]);
}

/* ------------------------------------------------------------------ memory used by other programs */

FAKE_TEST(test_full_before_the_context) {
  fake.gpus[0].error = DEVICE_ERROR_MEMORY;
  fake.gpus[0].others_bytes = 1000 * MIB;
  char message[1024];
  hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = NULL;
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_ERR_NO_DEVICE);
  assert_non_null(strstr(message, "CUDA device 0 (fake GPU 0): the memory of the device is full: 24 of 1024 MiB"));
  o.device = HS_DEVICE_AUTO;
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_OK);
  assert_non_null(strstr(message, "the CPU does the work: "));
  assert_non_null(strstr(message, "24 of 1024 MiB are free"));
  assert_non_null(
      strstr(hs_backend_report(c), "device: CPU (CUDA device 0 (fake GPU 0): the memory of the device is full"));
  hs_features f = extraction_run(c, &scene);
  extraction_check_equal(&expected, &f, "on the CPU instead");
  hs_features_free(&f);
  hs_destroy(c);
  /* on a machine without any GPU there is no warning */
  fake_reset(0);
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_OK);
  assert_string_equal(message, "");
}

/* Memory suffices for the context, but not for a frame. */
FAKE_TEST(test_full_for_a_frame) {
  fake.gpus[0].others_bytes = 1023 * MIB;
  hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = extraction_context(&o);
  scoped_features f = {0};
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_MEMORY);
  assert_non_null(strstr(hs_last_error(c), "the memory of the device is full: 0 of 1024 MiB are free, needed are "));
  assert_non_null(strstr(hs_last_error(c), " MiB for the frame; end other programs on it"));
  fake.gpus[0].others_bytes = 0; /* the other program ends and frees its memory */
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "once there is room");
  hs_destroy(c);
  fake.gpus[0].others_bytes = 1023 * MIB;
  o.device = HS_DEVICE_AUTO;
  c = extraction_context(&o);
  assert_null(strstr(hs_backend_report(c), "fallback"));
  const hs_features *view = NULL;
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "by the CPU");
  assert_string_equal(hs_last_error(c), "");
  assert_int_equal(hs_extract_view(c, &other, NULL, &view), HS_OK);
  extraction_check_equal(&other_expected, view, "by the CPU, seen");
  const char *said = strstr(hs_backend_report(c), "\nfallback: ");
  assert_non_null(said);
  assert_non_null(strstr(said, "0 of 1024 MiB are free, needed are "));
  assert_null(strstr(said + 2, "fallback")); /* once */
}

FAKE_TEST(test_full_in_flight) {
  enum { IMAGES = 12 };
  fake_reset(1);
  hs_options o = options_on(HS_DEVICE_AUTO, 0);
  scoped_context *c = extraction_context(&o);
  for (int round = 0; round < 2; round++) {
    fake.gpus[0].others_bytes = round == 0 ? 1023 * MIB : 0;
    int submitted = 0, waited = 0;
    while (waited < IMAGES) {
      while (submitted < IMAGES && submitted - waited < 6) {
        assert_int_equal(hs_submit(c, submitted % 5 == 4 ? &other : &scene, NULL), HS_OK);
        submitted++;
      }
      const hs_features *view = NULL;
      assert_int_equal(hs_wait_view(c, &view), HS_OK);
      extraction_check_equal(waited % 5 == 4 ? &other_expected : &expected, view, "in flight");
      waited++;
    }
    assert_non_null(strstr(hs_backend_report(c), "\nfallback: "));
  }
}

/* ------------------------------------------------------------------ devices that fail */

FAKE_TEST(test_lost) {
  fake_reset(2);
  const hs_options o = options_on(HS_DEVICE_CUDA, 0), second = options_on(HS_DEVICE_CUDA, 1);
  hs_context *c = extraction_context(&o), *beside = extraction_context(&second);
  scoped_features f = extraction_run(c, &scene);
  fake.gpus[0].lost = true;
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_DEVICE);
  assert_non_null(strstr(hs_last_error(c), "CUDA device 0 (fake GPU 0), "));
  assert_non_null(strstr(hs_last_error(c), "unspecified launch failure"));
  hs_destroy(c);
  assert_int_equal(hs_extract(beside, &scene, NULL, &f), HS_OK); /* the other GPU continues */
  extraction_check_equal(&expected, &f, "on the other");
  char message[512];
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_ERR_NO_DEVICE);
  assert_non_null(strstr(message, "unspecified launch failure"));
  hs_destroy(beside);
}

/* Each call of the device fails once, for lack of memory or permanently, from the context's creation to its second
 * image. */
static hs_status extract_two(const hs_allocator *allocator) {
  hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = NULL;
  scoped_features f = {0};
  o.allocator = allocator;
  hs_status st = hs_create(&c, &o);
  if (st == HS_OK) st = hs_extract(c, &scene, NULL, &f);
  if (st == HS_OK) extraction_check_equal(&expected, &f, "before a failed call");
  if (st == HS_OK) st = hs_extract(c, &other, NULL, &f);
  if (st == HS_OK) extraction_check_equal(&other_expected, &f, "before a failed call");
  if (st == HS_ERR_MEMORY) {
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after a failed call");
  }
  return st;
}

TEST(test_every_call_fails) {
  for (int lost = 0; lost < 2; lost++) {
    hs_status st = HS_ERR_DEVICE;
    uint64_t at = 0;
    for (; st != HS_OK; at += at < 150 ? 1 : 7) {
      counted_allocator counter = {.fill = 0xa5};
      const hs_allocator allocator = counted_allocator_make(&counter);
      fake_reset(1);
      fake.fail_at = at + 1;
      fake.lost_at = lost;
      st = extract_two(&allocator);
      assert_true(st == HS_OK || st == HS_ERR_NO_DEVICE || st == HS_ERR_DEVICE || (st == HS_ERR_MEMORY && !lost));
      if (st == HS_OK && fake.calls >= fake.fail_at) st = HS_ERR_DEVICE; /* the failed call was not essential */
      assert_int_equal(fake.alive, 0);
      assert_int_equal(counter.alive, 0);
      assert_true(at < 5000);
    }
    assert_true(at > 150);
  }
}

/* ------------------------------------------------------------------ primitives */

/* A stream handle can denote a different stream in each thread. Every call therefore waits for the previous call, whose
 * scratch memory it uses. */
FAKE_TEST(test_primitives_follow_one_another) {
  const hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = extraction_context(&o);
  const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  const hs_array array = {values, 4, 1, 0, HS_ELEMENT_F32};
  cuda_stream stream = NULL;
  double sums[3] = {0};
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(hs_cuda_reduce_sum(c, &array, stream, &sums[0]), HS_OK);
  for (int i = 1; i < 3; i++) {
    const uint64_t before = fake.event_waits;
    assert_int_equal(hs_cuda_reduce_sum(c, &array, stream, &sums[i]), HS_OK);
    assert_int_equal(fake.event_waits, before + 1);
  }
  assert_true(sums[0] == 10.0 && sums[1] == 10.0 && sums[2] == 10.0);
  void *memory = NULL;
  assert_int_equal(hs_cuda_alloc_host(c, 0, &memory), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_alloc_host(c, 32, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_alloc_host(c, 32, &memory), HS_OK);
  assert_int_equal(hs_cuda_reduce_sum(c, &array, stream, memory), HS_OK);
  assert_int_equal(hs_cuda_finish(c), HS_OK);
  assert_true(*(const double *)memory == 10.0);
  hs_cuda_free_host(c, memory);
  device_stream_destroy(stream);
}

/* ------------------------------------------------------------------ streams of others */

/* The context stays usable. */
FAKE_TEST(test_stream_of_another_context) {
  fake_reset(2);
  const hs_options o = options_on(HS_DEVICE_CUDA, 0);
  scoped_context *c = extraction_context(&o);
  const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  const hs_array array = {values, 4, 1, 0, HS_ELEMENT_F32};
  hs_cuda_features on_gpu = {0};
  scoped_features f = {0};
  hs_matches pairs = {0};
  double sum = 0;
  int32_t previous = -1;
  cuda_stream stream = NULL;
  assert_int_equal(device_enter(1, &previous), STAGE_OK);
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  device_leave(previous);
  assert_int_equal(hs_cuda_extract(c, &scene, NULL, stream, &f), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(c), "the stream is not of the primary context of CUDA device 0"));
  assert_int_equal(hs_cuda_reduce_sum(c, &array, stream, &sum), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_extract_resident(c, &scene, NULL, NULL, &on_gpu), HS_OK);
  assert_int_equal(hs_cuda_match(c, &on_gpu, &on_gpu, NULL, stream, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_extract(c, &scene, NULL, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "after a refused stream");
  device_stream_destroy(stream);
}
