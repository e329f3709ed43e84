/*
 * Affine shape in tiles gives the bytes of the untiled frame, affine frames included, on the CPU and on a GPU, within
 * the predicted memory. Affine windows have the largest halo of all windows.
 */
#include "tests/support/test.h"

enum { MIB = 1 << 20 };

static hs_image wide, wider, large, mask;

/* Returns a scene stretched by five, whose shapes reach their maximum length along the halos of tiles. */
static hs_image stretched(int32_t width, int32_t height, uint32_t seed) {
  hs_image from = extraction_scene(width / 5 + 1, height, seed, NULL), to = extraction_scene(width, height, seed, NULL);
  for (int32_t y = 0; y < height; y++)
    for (int32_t x = 0; x < width; x++) {
      const uint8_t *p = (const uint8_t *)from.data + y * from.width + x / 5;
      ((uint8_t *)(uintptr_t)to.data)[y * width + x] = (uint8_t)((p[0] * (5 - x % 5) + p[1] * (x % 5)) / 5);
    }
  hs_image_free(&from);
  return to;
}

BEFORE_TESTS() {
  wide = stretched(1700, 64, 11);
  wider = stretched(3000, 48, 3);
  large = extraction_scene(900, 800, 5, NULL);
  mask = extraction_scene(1700, 64, 8, NULL);
  for (int i = 0; i < 1700 * 64; i++) ((uint8_t *)(uintptr_t)mask.data)[i] &= 64;
}

/* A single octave, not doubled, keeps halos small compared with the picture. */
static hs_options affine_options(hs_device device) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.affine = 1;
  o.first_octave = 0;
  o.sigma = 1.2f;
  o.contrast = 0.01f;
  o.edge = 1000.0f;
  o.device = device;
  o.threads = 2;
  return o;
}

/* Returns the memory of an untiled frame on the options' device. */
static uint64_t untiled_bytes(const hs_options *o, const hs_image *image) {
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, image->width, image->height, &host, &device), HS_OK);
  return o->device == HS_DEVICE_CPU ? host : device;
}

/* Returns the memory of the smallest tiles, on device or host, whichever is larger. */
static uint64_t least_bytes(hs_options o, const hs_image *image) {
  uint64_t host, device;
  o.max_memory_bytes = 1;
  assert_int_equal(hs_workspace_query(&o, image->width, image->height, &host, &device), HS_OK);
  return device > host ? device : host;
}

/* Compares a frame within `most` bytes with the CPU's untiled frame. Returns the number of features. */
static size_t check_within(const hs_options *o, const hs_image *image, const hs_image *masked, uint64_t most,
                           const char *what) {
  hs_options untiled = *o, tiled = *o;
  hs_features f = {0}, g = {0};
  hs_statistics s = {.struct_size = sizeof s};
  untiled.device = HS_DEVICE_CPU;
  tiled.max_memory_bytes = most;
  if (untiled_bytes(&tiled, image) >= untiled_bytes(o, image)) fail_msg("%s: needs no tiles", what);
  hs_context *a = extraction_context(&untiled), *b = extraction_context(&tiled);
  assert_int_equal(hs_extract(a, image, masked, &f), HS_OK);
  assert_non_null(f.frames);
  for (int i = 0; i < 2; i++) { /* again, with lists that have grown */
    const hs_status st = hs_extract(b, image, masked, &g);
    if (st != HS_OK) fail_msg("%s: %s", what, hs_last_error(b));
    extraction_check_equal(&f, &g, what);
  }
  assert_int_equal(hs_get_statistics(b, &s), HS_OK);
  assert_true(s.device_bytes <= most + MIB && s.workspace_bytes <= most + MIB);
  const size_t count = f.count;
  hs_features_free(&f);
  hs_features_free(&g);
  hs_destroy(a);
  hs_destroy(b);
  return count;
}

/* Checks small tiles and larger ones. */
static size_t check(const hs_options *o, const hs_image *image, const hs_image *masked, const char *what) {
  const uint64_t least = least_bytes(*o, image), whole = untiled_bytes(o, image);
  if (least >= whole) fail_msg("%s: the smallest tiles take as much as the whole", what);
  (void)check_within(o, image, masked, least + (whole - least) / 4, what);
  return check_within(o, image, masked, least + (whole - least) / 4 * 3, what);
}

static void take_strongest(hs_options *o) { o->max_features = 40; }
static void take_levels(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_LEVELS;
}
static void take_grid(hs_options *o) {
  o->max_features = 30;
  o->grid_columns = 5;
  o->grid_rows = 2;
}
static void root_upright(hs_options *o) {
  o->upright = 1;
  o->norm = HS_NORM_ROOT;
}
static void no_descriptors(hs_options *o) { o->descriptor = HS_DESCRIPTOR_NONE; }

/* The test is shorter on a device, because a fake device uses plain loops. */
static void check_changes(hs_device device) {
  static const struct {
    const char *name;
    void (*change)(hs_options *o);
  } changes[] = {{"the strongest", take_strongest},
                 {"whole levels", take_levels},
                 {"over a grid", take_grid},
                 {"upright, RootSIFT", root_upright},
                 {"undescribed", no_descriptors}};
  const bool on_cpu = device == HS_DEVICE_CPU;
  for (size_t i = on_cpu ? 0 : 2; i < (on_cpu ? sizeof changes / sizeof changes[0] : 4); i++) {
    hs_options o = affine_options(device);
    changes[i].change(&o);
    assert_true(check(&o, &wide, NULL, changes[i].name) > 20);
  }
  hs_options o = affine_options(device);
  assert_true(check(&o, &wide, &mask, "masked") > 20);
  if (on_cpu) assert_true(check(&o, &large, NULL, "of every side") > 100);
  o.dsp = 1;
  o.dsp_largest = 1.3f; /* descriptors read the coarser octave */
  assert_true(check(&o, &wider, NULL, "pooled") > 100);
}

TEST(test_cpu) { check_changes(HS_DEVICE_CPU); }

TEST_WHERE(extraction_has_gpu(), NEEDS_GPU, test_device) { check_changes(HS_DEVICE_CUDA); }
