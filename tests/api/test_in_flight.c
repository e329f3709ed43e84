/*
 * Images in flight: order, bytes and bounds of hs_submit and hs_wait, on every available device.
 */
#include "tests/support/test.h"

#include "pipeline/context/context.h"
#include "tests/support/extent.h"
#include "tests/support/reference_frame.h"

enum { IMAGES = 13 };

/* Pictures of mixed sizes with runs of one size, and the features of each extracted alone. */
typedef struct stock {
  hs_image images[IMAGES];
  hs_image mask; /* mask of the first picture's size */
  hs_features alone[IMAGES];
} stock;

static void stock_make(stock *s, const hs_options *options) {
  hs_options plain = *options;
  plain.device = HS_DEVICE_CPU;
  plain.allocator = NULL;
  scoped_context *c = extraction_context(&plain);
  s->mask = extraction_scene(120, 90, 99, NULL);
  for (int i = 0; i < 120 * 90; i++) ((uint8_t *)(uintptr_t)s->mask.data)[i] = i % 120 < 60 ? 0 : 255;
  for (int i = 0; i < IMAGES; i++) {
    const int32_t width = i < 5 ? 120 : 64 + 37 * (i % 4), height = i < 5 ? 90 : 60 + 11 * (i % 3);
    s->images[i] = extraction_scene(width, height, (uint32_t)i + 1, NULL);
    s->alone[i] = (hs_features){0};
    assert_int_equal(hs_extract(c, &s->images[i], i == 1 ? &s->mask : NULL, &s->alone[i]), HS_OK);
  }
  assert_true(s->alone[0].count > 20);
}

static void stock_free(stock *s) {
  for (int i = 0; i < IMAGES; i++) {
    hs_image_free(&s->images[i]);
    hs_features_free(&s->alone[i]);
  }
  hs_image_free(&s->mask);
}

static hs_status submit(hs_context *c, const stock *s, int i) {
  return hs_submit(c, &s->images[i % IMAGES], i % IMAGES == 1 ? &s->mask : NULL);
}

/* Waits for image i, by hs_wait or by hs_wait_view, and compares its features. */
static void wait_for(hs_context *c, const stock *s, int i, hs_features *copy) {
  const hs_features *view = NULL;
  char what[64];
  snprintf(what, sizeof what, "image %d", i);
  if (i % 3 == 2) {
    assert_int_equal(hs_wait(c, copy), HS_OK);
    view = copy;
  } else {
    assert_int_equal(hs_wait_view(c, &view), HS_OK);
  }
  extraction_check_equal(&s->alone[i % IMAGES], view, what);
  assert_int_equal(view->image_width, s->images[i % IMAGES].width);
  assert_int_equal(view->image_height, s->images[i % IMAGES].height);
}

/* Keeps the maximum number in flight, three times around the default ring. The short form has five images more than the
 * ring holds. */
static void check_stream(const hs_options *o, const stock *s) {
  scoped_context *c = extraction_context(o);
  scoped_features copy = {0};
  const int room = o->in_flight > 0 ? o->in_flight : 8, total = extent_is_short() ? room + 5 : 3 * IMAGES;
  int submitted = 0;
  for (int waited = 0; waited < total; waited++) {
    while (submitted < total && submitted - waited < room) assert_int_equal(submit(c, s, submitted++), HS_OK);
    if (submitted - waited == room) {
      assert_int_equal(submit(c, s, 0), HS_ERR_CAPACITY);
      assert_non_null(strstr(hs_last_error(c), "in flight"));
    }
    assert_int_equal(hs_count_in_flight(c), submitted - waited);
    wait_for(c, s, waited, &copy);
  }
  assert_int_equal(hs_count_in_flight(c), 0);
  hs_statistics statistics = statistics_of(c);
  assert_int_equal(statistics.frames, total);
}

/* Sets options for a device. Returns false if the device is missing. */
static bool options_of(hs_device device, hs_profile profile, hs_options *o) {
  *o = extraction_options(profile);
  o->device = device;
  o->threads = 3;
  hs_context *c = NULL;
  const hs_status st = hs_create(&c, o);
  hs_destroy(c);
  if (st == HS_OK) return true;
  assert_int_equal(st, HS_ERR_NO_DEVICE);
  return false;
}

static void check_device(hs_device device) {
  static const int32_t rooms[] = {1, 2, 5, 0, 20};
  stock s;
  hs_options o;
  if (!options_of(device, HS_PROFILE_LOWE, &o)) skip_because(NEEDS_GPU);
  stock_make(&s, &o);
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    o.in_flight = rooms[i];
    o.threads = 1 + (int32_t)i;
    check_stream(&o, &s);
  }
  stock_free(&s);
  assert_true(options_of(device, HS_PROFILE_OPENCV, &o));
  o.max_features = 25;
  for (int by = HS_SELECT_RESPONSE; by <= HS_SELECT_LEVELS; by++) {
    o.selection = (hs_selection)by;
    stock_make(&s, &o);
    check_stream(&o, &s);
    stock_free(&s);
  }
}

/* Runs of one size share launches on a GPU. Covers every profile, and a list that overflows in one image of a group. */
static void check_groups(hs_device device) {
  enum { VARIATIONS = 4 };
  stock s;
  hs_options o;
  if (!options_of(device, HS_PROFILE_LOWE, &o)) skip_because(NEEDS_GPU);
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int variation = 0; variation < VARIATIONS; variation++) {
      if (!extent_pairs((size_t)p, (size_t)variation, VARIATIONS)) continue;
      assert_true(options_of(device, (hs_profile)p, &o));
      o.in_flight = 64;
      o.images_per_launch = variation == 3 ? 64 : 4;
      o.first_octave = variation == 1 ? 0 : -1;
      if (variation == 2) o.max_features = 30;
      if (variation == 3) o.descriptor = HS_DESCRIPTOR_F32;
      stock_make(&s, &o);
      check_stream(&o, &s);
      stock_free(&s);
    }
}

TEST(test_batches_cuda) { check_groups(HS_DEVICE_CUDA); }

/* Lists are too short for some images of a group, so the group is repeated with longer lists. */
TEST(test_overflow_in_group) {
  enum { PICTURES = 24, SIDE = 200 };
  hs_options o;
  if (!options_of(HS_DEVICE_CUDA, HS_PROFILE_LOWE, &o)) skip_because(NEEDS_GPU);
  o.in_flight = PICTURES;
  o.images_per_launch = 8;
  scoped_image dense = extraction_scene(SIDE, SIDE, 4, NULL);
  SCOPED_MEMORY uint8_t *flat = malloc(SIDE * SIDE); /* the picture is flat except for one square */
  assert_non_null(flat);
  memset(flat, 100, SIDE * SIDE);
  for (int y = 80; y < 110; y++) memset(flat + y * SIDE + 80, 200, 30);
  const hs_image sparse = {.data = flat, .width = SIDE, .height = SIDE, .type = HS_U8};
  hs_options plain = o;
  plain.device = HS_DEVICE_CPU;
  scoped_features of_dense = extraction_once(&plain, &dense), of_sparse = extraction_once(&plain, &sparse), f = {0};
  assert_true(of_sparse.count > 0 && of_dense.count > of_sparse.count + 64);
  scoped_context *c = extraction_context(&o);
  /* the workers start with these capacities */
  c->keypoint_capacity = c->feature_capacity = (uint32_t)of_sparse.count + 32;
  for (int i = 0; i < PICTURES; i++) assert_int_equal(hs_submit(c, i % 5 == 3 ? &dense : &sparse, NULL), HS_OK);
  for (int i = 0; i < PICTURES; i++) {
    assert_int_equal(hs_wait(c, &f), HS_OK);
    extraction_check_equal(i % 5 == 3 ? &of_dense : &of_sparse, &f, "of a group with an overflow");
  }
  hs_statistics s = statistics_of(c);
  assert_true(s.regrown_frames >= 1);
}

TEST(test_stream_cpu) { check_device(HS_DEVICE_CPU); }

TEST(test_stream_cuda) { check_device(HS_DEVICE_CUDA); }

TEST(test_stream_hybrid) { check_device(HS_DEVICE_HYBRID); }

/* A view stays valid until the next wait, whatever is submitted and finished meanwhile. */
static void check_view_stays(hs_device device) {
  stock s;
  hs_options o;
  if (!options_of(device, HS_PROFILE_LOWE, &o)) skip_because(NEEDS_GPU);
  o.in_flight = 4;
  stock_make(&s, &o);
  hs_context *c = extraction_context(&o);
  const hs_features *view = NULL;
  hs_features between = {0};
  assert_int_equal(submit(c, &s, 0), HS_OK);
  assert_int_equal(hs_wait_view(c, &view), HS_OK);
  for (int i = 2; i < 6; i++) assert_int_equal(submit(c, &s, i), HS_OK);
  /* a call outside the queue works while images are in flight */
  assert_int_equal(hs_extract(c, &s.images[7], NULL, &between), HS_OK);
  extraction_check_equal(&s.alone[7], &between, "beside what is in flight");
  extraction_check_equal(&s.alone[0], view, "a view while others are worked on");
  for (int i = 2; i < 6; i++) wait_for(c, &s, i, &between);
  hs_features_free(&between);
  hs_destroy(c);
  stock_free(&s);
}

TEST(test_view_stays_cpu) { check_view_stays(HS_DEVICE_CPU); }

TEST(test_view_stays_cuda) { check_view_stays(HS_DEVICE_CUDA); }

TEST(test_arguments) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_pixels = 50 * 50;
  hs_context *c = extraction_context(&o);
  hs_image image = extraction_scene(50, 50, 1, NULL), large = extraction_scene(51, 50, 1, NULL), broken = image;
  scoped_features f = {0};
  const hs_features *view = &f;
  assert_int_equal(hs_submit(NULL, &image, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit(c, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait(NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait(c, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait_view(c, &view), HS_ERR_ARGUMENT);
  assert_null(view);
  assert_int_equal(hs_count_in_flight(NULL), 0);
  assert_int_equal(hs_count_in_flight(c), 0);
  broken.stride_bytes = 7;
  assert_int_equal(hs_submit(c, &broken, NULL), HS_ERR_IMAGE);
  assert_int_equal(hs_submit(c, &large, NULL), HS_ERR_LIMIT);
  assert_int_equal(hs_submit(c, &image, &large), HS_ERR_ARGUMENT);
  assert_int_equal(hs_count_in_flight(c), 0);
  assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
  assert_int_equal(hs_wait(c, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait_view(c, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_count_in_flight(c), 1);
  assert_int_equal(hs_wait(c, &f), HS_OK);
  assert_int_equal(hs_wait(c, &f), HS_ERR_ARGUMENT);
  hs_destroy(c);
  hs_image_free(&image);
  hs_image_free(&large);
}

/* Lists that grew for a larger picture are not allocated for each image of a group. */
TEST(test_grown_lists_in_groups) {
  enum { PICTURES = 128, SIDE = 64, LANES_MAX = 8 };
  hs_options o;
  if (!options_of(HS_DEVICE_CUDA, HS_PROFILE_LOWE, &o)) skip_because(NEEDS_GPU);
  o.in_flight = PICTURES;
  o.images_per_launch = 16;
  scoped_image image = extraction_scene(SIDE, SIDE, 4, NULL);
  hs_options plain = o;
  plain.device = HS_DEVICE_CPU;
  scoped_features expected = extraction_once(&plain, &image), f = {0};
  scoped_context *c = extraction_context(&o);
  /* 80 MB for a picture; the workers start with these capacities */
  c->keypoint_capacity = c->feature_capacity = 1 << 18;
  for (int i = 0; i < PICTURES; i++) assert_int_equal(hs_submit(c, &image, NULL), HS_OK);
  for (int i = 0; i < PICTURES; i++) {
    assert_int_equal(hs_wait(c, &f), HS_OK);
    extraction_check_equal(&expected, &f, "of a group after a larger picture");
  }
  hs_statistics s = statistics_of(c);
  assert_true(s.device_bytes < (uint64_t)LANES_MAX * 160000000);
}
