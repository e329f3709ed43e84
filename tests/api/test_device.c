/*
 * Contexts on a CUDA device, as a caller uses them: failing allocations, limits, several at once, statistics, and
 * missing devices. Skipped without a device.
 */
#include <pthread.h>

#include "tests/support/test.h"

#include "tests/support/extent.h"
#include "tests/support/reference_frame.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#endif

static int32_t devices(void) {
#if HARTSIFT_HAVE_CUDA
  return device_count(NULL, 0);
#else
  return 0;
#endif
}

#define GPU_TEST(NAME) TEST_WHERE(devices() > 0, NEEDS_GPU, NAME)

/* Returns a profile's options for the first device. */
static hs_options device_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.device = HS_DEVICE_CUDA;
  return o;
}

/* Returns the CPU's features for the options of a device context. */
static hs_features cpu_features(const hs_options *options, const hs_image *image) {
  hs_options o = *options;
  o.device = HS_DEVICE_CPU;
  o.max_memory_bytes = 0;
  return extraction_once(&o, image);
}

/* The picture and the CPU's features, computed once. */
static hs_image scene;
static hs_features expected;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(160, 121, 4, NULL);
  expected = extraction_once(&o, &scene);
  assert_true(expected.count > 20);
}

/* ------------------------------------------------------------------ host allocations that fail */

/* Creates a context with this allocator and extracts a frame. A failed frame is repeated, and every result must be
 * right. */
static hs_status extract_and_end(const hs_allocator *allocator) {
  hs_options o = device_options(HS_PROFILE_LOWE);
  hs_context *c = NULL;
  hs_features f = {0};
  char message[256];
  o.allocator = allocator;
  hs_status st = hs_create_explained(&c, &o, message, sizeof message);
  if (st != HS_OK) {
    assert_null(c);
    assert_non_null(strstr(message, "memory"));
    return st;
  }
  st = hs_extract(c, &scene, NULL, &f);
  if (st != HS_OK) {
    assert_true(f.count == 0 && !f.keypoints && !f.descriptors);
    assert_non_null(strstr(hs_last_error_location(c), "HS_ERR_MEMORY at "));
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  }
  assert_string_equal(hs_last_error(c), "");
  extraction_check_equal(&expected, &f, "after a failed allocation");
  hs_destroy(c);
  hs_features_free(&f); /* features outlive the context */
  return st;
}

GPU_TEST(test_failing_allocations) {
  const hs_options o = device_options(HS_PROFILE_LOWE);
  size_t failures = 0;
  for (hs_status st = HS_ERR_MEMORY; st != HS_OK; failures += st != HS_OK) {
    counted_allocator counter = {.fail_at = failures + 1, .fill = 0xa5};
    const hs_allocator allocator = counted_allocator_make(&counter);
    st = extract_and_end(&allocator);
    assert_int_equal(counter.alive, 0);
    assert_int_equal(st, counter.made > failures ? HS_ERR_MEMORY : HS_OK);
    assert_true(failures < 200);
    scoped_features f = extraction_once(&o, &scene); /* the library stays usable after the failure */
    extraction_check_equal(&expected, &f, "beside a failed allocation");
  }
  assert_true(failures >= 4); /* allocations: the context, its device part, and two arrays of features */
}

GPU_TEST(test_known_size_allocates_nothing) {
  scoped_counter counter = {.fill = 0xa5};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options o = device_options(HS_PROFILE_LOWE);
  o.allocator = &allocator;
  scoped_context *c = extraction_context(&o);
  scoped_features f = extraction_run(c, &scene);
  const size_t made = counter.made;
  const uint64_t held = statistics_of(c).device_bytes;
  for (int i = 0; i < 3; i++) {
    const hs_features *view = NULL;
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    extraction_check_equal(&expected, &f, "again");
    assert_int_equal(hs_extract_view(c, &scene, NULL, &view), HS_OK);
    extraction_check_equal(&expected, view, "view");
  }
  assert_int_equal(counter.made, made);
  assert_int_equal(statistics_of(c).device_bytes, held);
}

/* ------------------------------------------------------------------ limits */

/* A frame that exceeds the limit is extracted in tiles, or refused if these exceed it too. */
GPU_TEST(test_max_memory) {
  hs_options o = device_options(HS_PROFILE_LOWE);
  scoped_image large = extent_is_short() ? extraction_scene(1000, 750, 2, NULL) : extraction_scene(1200, 900, 2, NULL);
  uint64_t host, least, most;
  assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &least), HS_OK);
  assert_int_equal(hs_workspace_query(&o, large.width, large.height, &host, &most), HS_OK);
  assert_true(least < most / 4);
  scoped_features all = cpu_features(&o, &large);
  o.max_memory_bytes = most / 2;
  hs_context *tiling = extraction_context(&o);
  o.max_memory_bytes = least + (2 << 20);
  scoped_context *c = extraction_context(&o);
  scoped_features f = {.image_width = 5};
  const int rounds = extent_is_short() ? 2 : 3;
  for (int i = 0; i < rounds; i++) {
    const hs_features before = f;
    assert_int_equal(hs_extract(c, &large, NULL, &f), HS_ERR_LIMIT);
    assert_non_null(strstr(hs_last_error(c), "max_memory_bytes"));
    assert_true(f.count == before.count && f.keypoints == before.keypoints && f.image_width == before.image_width);
    assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after a refused picture");
    assert_int_equal(hs_extract(tiling, &large, NULL, &f), HS_OK);
    extraction_check_equal(&all, &f, "in tiles");
    assert_int_equal(hs_extract(tiling, &scene, NULL, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after tiles");
    assert_true(statistics_of(tiling).device_bytes <= most / 2 + (1 << 20));
    assert_true(statistics_of(c).device_bytes <= o.max_memory_bytes);
  }
  assert_int_equal(statistics_of(c).frames, rounds);
  assert_int_equal(statistics_of(tiling).frames, 2 * rounds);
  hs_destroy(c);
  hs_destroy(tiling);
  o.max_memory_bytes = 0; /* without the limit the frame succeeds */
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
  extraction_check_equal(&all, &f, "without the limit");
}

/* Lists would have to exceed the limit: the frame is refused, and the next frame does not keep the lists' size. */
GPU_TEST(test_lists_beyond_the_limit) {
  enum { WIDTH = 150, HEIGHT = 120 };
  static const uint8_t black[WIDTH * HEIGHT];
  hs_options o = device_options(HS_PROFILE_VLFEAT);
  /* noise without thresholds, finely sampled: far more features than the lists' initial capacity */
  o.edge = 1000.0f;
  o.first_octave = 0;
  o.sigma = 0.8f;
  o.scales = 6;
  uint64_t host, room;
  assert_int_equal(hs_workspace_query(&o, WIDTH, HEIGHT, &host, &room), HS_OK);
  SCOPED_MEMORY uint8_t *noise = reference_noise(WIDTH, HEIGHT, 9u, 0);
  assert_non_null(noise);
  const hs_image image = {.data = noise, .width = WIDTH, .height = HEIGHT};
  /* the frame needs all memory that the limit leaves, so its lists cannot be longer */
  const hs_image plain = {.data = black, .width = WIDTH, .height = HEIGHT};
  scoped_image few = extraction_scene(60, 50, 1, NULL);
  scoped_features few_expected = cpu_features(&o, &few), all = cpu_features(&o, &image), f = {0};
  o.max_memory_bytes = room;
  scoped_context *c = extraction_context(&o);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hs_extract(c, &image, NULL, &f), HS_ERR_LIMIT);
    assert_non_null(strstr(hs_last_error(c), "max_memory_bytes"));
    assert_int_equal(hs_extract(c, &plain, NULL, &f), HS_OK);
    assert_int_equal(f.count, 0);
    assert_int_equal(hs_extract(c, &few, NULL, &f), HS_OK);
    extraction_check_equal(&few_expected, &f, "after lists that were refused");
    assert_true(statistics_of(c).device_bytes <= room);
  }
  hs_destroy(c);
  o.max_memory_bytes = 0;
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &image, NULL, &f), HS_OK);
  extraction_check_equal(&all, &f, "with lists that grew");
  assert_true(statistics_of(c).regrown_frames >= 1 && statistics_of(c).frames == 1);
}

/* ------------------------------------------------------------------ contexts at once */

enum { CALLERS = 2, PICTURES = 2, FRAMES = 20 };

/* Context, profile and pictures of a thread. Its checks are reported to the main thread, where cmocka's assertions must
 * run. */
typedef struct caller {
  hs_options options;
  hs_image images[PICTURES];
  hs_features expected[PICTURES];
  hs_status status;
  int32_t frames, different;
} caller;

static bool same_bytes(const hs_features *a, const hs_features *b) {
  if (a->count != b->count || a->descriptor_type != b->descriptor_type) return false;
  if (a->count == 0) return true;
  return memcmp(a->keypoints, b->keypoints, a->count * sizeof *a->keypoints) == 0 &&
         memcmp(a->descriptors, b->descriptors, a->count * extraction_descriptor_bytes(a)) == 0;
}

static void *caller_main(void *argument) {
  caller *me = argument;
  scoped_context *c = NULL;
  scoped_features f = {0};
  me->status = hs_create(&c, &me->options);
  for (int i = 0; i < FRAMES && me->status == HS_OK; i++) {
    me->status = hs_extract(c, &me->images[i % PICTURES], NULL, &f);
    if (me->status != HS_OK) break;
    me->frames++;
    me->different += !same_bytes(&me->expected[i % PICTURES], &f);
  }
  return NULL;
}

GPU_TEST(test_contexts_at_once) {
  static const hs_profile profiles[CALLERS] = {HS_PROFILE_LOWE, HS_PROFILE_OPENCV};
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  memset(callers, 0, sizeof callers);
  for (int i = 0; i < CALLERS; i++) {
    callers[i].options = device_options(profiles[i]);
    for (int k = 0; k < PICTURES; k++) {
      callers[i].images[k] = extraction_scene(320 - 90 * k, 240 - 31 * i, (uint32_t)(3 + 2 * i + k), NULL);
      callers[i].expected[k] = cpu_features(&callers[i].options, &callers[i].images[k]);
      assert_true(callers[i].expected[k].count > 100);
    }
  }
  for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
  for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(callers[i].status, HS_OK);
    assert_int_equal(callers[i].frames, FRAMES);
    assert_int_equal(callers[i].different, 0);
    for (int k = 0; k < PICTURES; k++) {
      hs_features_free(&callers[i].expected[k]);
      hs_image_free(&callers[i].images[k]);
    }
  }
}

/* ------------------------------------------------------------------ reports of a context */

GPU_TEST(test_statistics) {
  hs_options o = device_options(HS_PROFILE_LOWE);
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
  assert_true(host > 0 && device > 0);
  scoped_context *c = extraction_context(&o);
  assert_non_null(strstr(hs_backend_report(c), "device: CUDA 0, "));
  const hs_statistics before = statistics_of(c);
  assert_true(before.frames == 0 && before.features == 0 && before.workspace_bytes > 0);
  scoped_features f = extraction_run(c, &scene);
  const hs_statistics s = statistics_of(c);
  assert_true(s.frames == 1 && s.features == f.count && s.regrown_frames == 0);
  assert_true(s.candidates >= s.keypoints && s.features >= s.keypoints && s.keypoints > 10);
  assert_true(s.device_bytes > before.device_bytes && s.device_bytes <= device);
  assert_true(s.workspace_bytes <= host);
  /* device memory holds at least one level for each step of the doubled picture */
  const uint64_t samples = (uint64_t)(2 * scene.width - 1) * (uint64_t)(2 * scene.height - 1);
  assert_true(s.device_bytes > samples * sizeof(float) * (uint64_t)o.scales);
}

GPU_TEST(test_no_such_device) {
  const int32_t indices[] = {devices(), 1023}; /* the first missing device, and the highest allowed number */
  for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
    scoped_counter counter = {.fill = 0xa5};
    const hs_allocator allocator = counted_allocator_make(&counter);
    hs_options o = device_options(HS_PROFILE_LOWE);
    hs_context *c = (hs_context *)(void *)&o;
    char message[256], index[32];
    o.allocator = &allocator;
    o.device_index = indices[i];
    assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_ERR_NO_DEVICE);
    assert_null(c);
    snprintf(index, sizeof index, "device_index is %d,", (int)indices[i]);
    if (!strstr(message, index)) fail_msg("\"%s\" does not say \"%s\"", message, index);
  }
  const hs_options o = device_options(HS_PROFILE_LOWE);
  scoped_features f = extraction_once(&o, &scene); /* the existing device works as before */
  extraction_check_equal(&expected, &f, "after a device that is not there");
}
