/*
 * Patches: values on an analytic plane, samples from the reference's pyramid, equal bytes for every instruction set,
 * number of threads and device, and errors.
 */

#include "tests/support/test.h"

#include "tests/support/reference_frame.h"

enum { SIZE = 9 };

static hs_image scene;
static hs_features found;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(167, 125, 11, NULL);
  found = extraction_once(&o, &scene);
  assert_true(found.count > 60);
}

static hs_patch_options patch_options(int32_t size, hs_patch_type type) {
  hs_patch_options o;
  assert_int_equal(hs_patch_options_init(&o), HS_OK);
  o.size = size;
  o.type = type;
  return o;
}

static size_t sample_bytes(const hs_patch_options *o) { return o->type == HS_PATCH_F32 ? sizeof(float) : 1; }

/* Returns all patches of the scene's features, from malloc. */
static void *take(hs_context *c, const hs_patch_options *o, const hs_frame *frames) {
  const size_t bytes = found.count * (size_t)o->size * (size_t)o->size * sample_bytes(o);
  void *patches = malloc(bytes);
  assert_non_null(patches);
  memset(patches, 0xa5, bytes);
  assert_int_equal(hs_extract_patches(c, &scene, found.keypoints, frames, found.count, o, patches, NULL), HS_OK);
  return patches;
}

static void *take_once(const hs_options *options, const hs_patch_options *o) {
  scoped_context *c = extraction_context(options);
  void *patches = take(c, o, NULL);
  return patches;
}

/* ------------------------------------------------------------------ values */

/* The plane 0.2 + 0.003 x + 0.002 y is changed neither by blur nor by interpolation away from the edges, so sample (i,
 * j) is the plane's value at its position. */
TEST(test_plane) {
  static const float blurs[] = {0.0f, 0.5f, 4.0f};
  static const hs_upsample grids[] = {HS_UPSAMPLE_HALF_PIXEL, HS_UPSAMPLE_ALIGNED};
  const hs_keypoint k = {.x = 100.3f, .y = 80.7f, .sigma = 2.5f, .orientation = 0.7f};
  const hs_frame frame = {3.0f, -0.5f, 1.25f, 2.0f};
  scoped_image plane = extraction_blank(200, 160);
  for (int y = 0; y < 160; y++)
    for (int x = 0; x < 200; x++) extraction_floats(&plane)[y * 200 + x] = 0.2f + 0.003f * (float)x + 0.002f * (float)y;
  for (int n = 0; n < 12; n++) {
    hs_options options = extraction_options(HS_PROFILE_LOWE);
    options.upsample = grids[n / 6];
    scoped_context *c = extraction_context(&options);
    hs_patch_options o = patch_options(SIZE, HS_PATCH_F32);
    float patch[SIZE * SIZE];
    o.blur = blurs[n % 3];
    o.scale = 9.0f;
    const bool framed = n / 3 % 2 == 1;
    assert_int_equal(hs_extract_patches(c, &plane, &k, framed ? &frame : NULL, 1, &o, patch, NULL), HS_OK);
    const double a = 2.5 * cos((double)k.orientation), b = 2.5 * sin((double)k.orientation);
    for (int j = 0; j < SIZE; j++)
      for (int i = 0; i < SIZE; i++) {
        const double u = ((i + 0.5) / SIZE - 0.5) * 9.0, v = ((j + 0.5) / SIZE - 0.5) * 9.0;
        const double x = 100.3 + (framed ? 3.0 * u - 0.5 * v : a * u - b * v);
        const double y = 80.7 + (framed ? 1.25 * u + 2.0 * v : b * u + a * v);
        assert_true(fabs(0.2 + 0.003 * x + 0.002 * y - (double)patch[j * SIZE + i]) < 5e-6);
      }
  }
}

static float bilinear(const float *data, size_t stride, int width, int height, float x, float y) {
  if (!(x > 0.0f)) x = 0.0f;
  if (!(y > 0.0f)) y = 0.0f;
  if (x > (float)(width - 1)) x = (float)(width - 1);
  if (y > (float)(height - 1)) y = (float)(height - 1);
  const int left = (int)floorf(x), top = (int)floorf(y);
  const int right = left + 1 < width ? left + 1 : left, bottom = top + 1 < height ? top + 1 : top;
  const float fx = x - (float)left, fy = y - (float)top;
  const float *upper = data + (size_t)top * stride, *lower = data + (size_t)bottom * stride;
  const float a = upper[left] + fx * (upper[right] - upper[left]);
  const float b = lower[left] + fx * (lower[right] - lower[left]);
  return a + fy * (b - a);
}

/* Patches are upright, and their level is computed here from the reference's pyramid. */
TEST(test_levels) {
  hs_options options = extraction_options(HS_PROFILE_LOWE);
  SCOPED_BY(reference_frame_free) reference_frame f;
  assert_true(reference_frame_make(&f, &scene, &options, NULL, 5));
  hs_patch_options o = patch_options(SIZE, HS_PATCH_F32);
  o.upright = 1;
  scoped_context *c = extraction_context(&options);
  static const struct {
    float blur;
    int32_t octave, level; /* octave -9: the picture itself */
  } cases[] = {{0.1f, -9, 0}, {0.61f, -1, 0}, {0.8f, -1, 1}, {1.3f, 0, 0}, {1.6f, 0, 1}, {14.0f, 3, 1}, {16.0f, 3, 2}};
  assert_true(f.geometry.first_octave == -1 && f.geometry.octave_count >= 4);
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    /* Samples are 1.35 pixels apart: the levels' blurs are .8, 1.008, 1.27, 1.6, 2.016 pixels, ... */
    const hs_keypoint k = {.x = 60.2f, .y = 57.6f, .sigma = 1.35f * SIZE / 12.0f, .orientation = NAN};
    float patch[SIZE * SIZE];
    o.blur = cases[n].blur;
    assert_int_equal(hs_extract_patches(c, &scene, &k, NULL, 1, &o, patch, NULL), HS_OK);
    const int32_t octave = cases[n].octave == -9 ? 0 : cases[n].octave;
    const octave_view *v = &f.octaves[octave + 1];
    const float scale = ldexpf(1.0f, -octave), step = k.sigma * (12.0f / (float)SIZE) * scale;
    const float shift = cases[n].octave == -9 ? 0.0f : 0.25f;
    for (int j = 0; j < SIZE; j++)
      for (int i = 0; i < SIZE; i++) {
        const float x = (k.x + shift) * scale + step * (float)(i - SIZE / 2);
        const float y = (k.y + shift) * scale + step * (float)(j - SIZE / 2);
        float gray[167 * 125];
        const float *data = v->levels + (size_t)cases[n].level * v->level_floats;
        if (cases[n].octave == -9)
          for (int p = 0; p < 167 * 125; p++) gray[p] = (float)((const uint8_t *)scene.data)[p] / 255.0f;
        const float expected = cases[n].octave == -9 ? bilinear(gray, 167, 167, 125, x, y)
                                                     : bilinear(data, v->stride, v->width, v->height, x, y);
        assert_memory_equal(&expected, &patch[j * SIZE + i], sizeof expected);
      }
  }
}

TEST(test_bytes_and_edges) {
  const hs_options options = extraction_options(HS_PROFILE_LOWE);
  hs_patch_options o = patch_options(SIZE, HS_PATCH_F32);
  float *floats = take_once(&options, &o);
  o.type = HS_PATCH_U8;
  uint8_t *bytes = take_once(&options, &o);
  for (size_t i = 0; i < found.count * SIZE * SIZE; i++)
    assert_int_equal(bytes[i], (int)floorf(255.0f * floats[i] + 0.5f));
  free(floats);
  free(bytes);
  /* Positions far outside the picture read the nearest corner. In a picture of one pixel there is no neighbour. */
  scoped_context *c = extraction_context(&options);
  const hs_keypoint far_off[] = {{.x = -4000.0f, .y = 9000.0f, .sigma = 2.0f},
                                 {.x = 4e6f, .y = -4e6f, .sigma = 900.0f}};
  uint8_t corner[2 * SIZE * SIZE];
  o.blur = 0.0f;
  assert_int_equal(hs_extract_patches(c, &scene, far_off, NULL, 2, &o, corner, NULL), HS_OK);
  const uint8_t *pixels = scene.data;
  for (int i = 0; i < SIZE * SIZE; i++) {
    assert_int_equal(corner[i], pixels[124 * 167]);
    assert_int_equal(corner[SIZE * SIZE + i], pixels[166]);
  }
  const uint8_t one = 201;
  const hs_image pixel = {.data = &one, .width = 1, .height = 1};
  o.blur = 16.0f; /* a picture of one pixel has no octave to choose */
  assert_int_equal(hs_extract_patches(c, &pixel, far_off, NULL, 1, &o, corner, NULL), HS_OK);
  for (int i = 0; i < SIZE * SIZE; i++) assert_int_equal(corner[i], 201);
}

/* A circular frame equals the keypoint's own patch, up to the rounding of sine and cosine. */
TEST(test_frames) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  const hs_patch_options o = patch_options(SIZE, HS_PATCH_F32);
  SCOPED_MEMORY hs_frame *frames = malloc(sizeof *frames * found.count);
  assert_non_null(frames);
  for (size_t i = 0; i < found.count; i++) {
    const hs_keypoint *k = &found.keypoints[i];
    const float a = k->sigma * cosf(k->orientation), b = k->sigma * sinf(k->orientation);
    frames[i] = (hs_frame){a, -b, b, a};
  }
  SCOPED_MEMORY float *plain = take(c, &o, NULL), *framed = take(c, &o, frames);
  size_t other_layer = 0;
  for (size_t i = 0; i < found.count; i++) {
    float most = 0.0f;
    for (size_t s = i * SIZE * SIZE; s < (i + 1) * SIZE * SIZE; s++) most = fmaxf(most, fabsf(plain[s] - framed[s]));
    if (most > 1e-3f) other_layer++;
  }
  assert_true(other_layer < found.count / 50 + 1);
}

/* ------------------------------------------------------------------ the same bytes */

static void check_same(const hs_options *options, const void *expected, const hs_patch_options *o, const char *what) {
  SCOPED_MEMORY void *got = take_once(options, o);
  if (memcmp(expected, got, found.count * (size_t)o->size * (size_t)o->size * sample_bytes(o)) != 0)
    fail_msg("other patches: %s", what);
}

TEST(test_same_bytes) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options options = extraction_options((hs_profile)p);
    options.threads = 1;
    options.equalize = p == HS_PROFILE_VLFEAT;
    hs_patch_options o = patch_options(p == HS_PROFILE_COLMAP ? 64 : 32, p % 2 ? HS_PATCH_F32 : HS_PATCH_U8);
    SCOPED_MEMORY void *expected = take_once(&options, &o);
    options.threads = 5;
    check_same(&options, expected, &o, "threads");
    hs_expert_options expert = extraction_expert((hs_profile)p, "base=ref,blur=ref,halve=ref");
    options.expert = &expert;
    check_same(&options, expected, &o, "reference");
  }
}

/* Patches are taken between other calls on the context of a GPU, with the picture's features in flight. */
TEST_WHERE(extraction_has_gpu(), NEEDS_GPU, test_device) {
  static const hs_device devices[] = {HS_DEVICE_CUDA, HS_DEVICE_HYBRID};
  const hs_patch_options o = patch_options(32, HS_PATCH_U8);
  hs_options options = extraction_options(HS_PROFILE_LOWE);
  SCOPED_MEMORY void *expected = take_once(&options, &o);
  for (int d = 0; d < 2; d++) {
    options.device = devices[d];
    options.split = d;
    scoped_context *c = extraction_context(&options);
    scoped_features f = {0};
    for (int round = 0; round < 2; round++) {
      assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
      void *got = take(c, &o, NULL);
      assert_memory_equal(expected, got, found.count * 32 * 32);
      free(got);
      assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
      extraction_check_equal(&found, &f, "after patches");
      assert_int_equal(hs_wait(c, &f), HS_OK);
      extraction_check_equal(&found, &f, "in flight during patches");
    }
  }
}

/* ------------------------------------------------------------------ refusals */

TEST(test_refused_keypoints) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  const hs_patch_options o = patch_options(SIZE, HS_PATCH_U8);
  const hs_keypoint good = {.x = 50.0f, .y = 50.0f, .sigma = 2.0f};
  hs_keypoint k[8] = {good, good, good, good, good, good, good, good};
  hs_status statuses[8];
  uint8_t patches[8 * SIZE * SIZE];
  k[1].x = NAN;
  k[2].y = INFINITY;
  k[3].sigma = 0.0f;
  k[4].sigma = -1.0f;
  k[5].orientation = NAN;
  k[6].sigma = 1e30f;
  k[7].orientation = -25.0f; /* a valid angle */
  memset(patches, 77, sizeof patches);
  assert_int_equal(hs_extract_patches(c, &scene, k, NULL, 8, &o, patches, statuses), HS_OK);
  for (int i = 0; i < 8; i++) {
    const bool refused = i > 0 && i < 7;
    uint8_t any = 0;
    for (int s = 0; s < SIZE * SIZE; s++) any |= patches[i * SIZE * SIZE + s];
    assert_int_equal(statuses[i], refused ? HS_ERR_KEYPOINT : HS_OK);
    assert_int_equal(any != 0, !refused);
  }
  const hs_frame frames[] = {{2.0f, 0.0f, 0.0f, 2.0f}, {2.0f, 4.0f, 1.0f, 2.0f}, {NAN, 0.0f, 0.0f, 1.0f}};
  k[1].x = 20.0f;
  k[2].y = 20.0f;
  assert_int_equal(hs_extract_patches(c, &scene, k, frames, 3, &o, patches, statuses), HS_OK);
  assert_int_equal(statuses[0], HS_OK);
  assert_int_equal(statuses[1], HS_ERR_KEYPOINT); /* singular */
  assert_int_equal(statuses[2], HS_ERR_KEYPOINT);
  assert_int_equal(hs_extract_patches(c, &scene, NULL, NULL, 0, NULL, NULL, NULL), HS_OK);
}

static void refuse(hs_context *c, const hs_patch_options *o, const hs_frame *frames, const char *word) {
  uint8_t patch[SIZE * SIZE];
  const hs_keypoint k = {.x = 50.0f, .y = 50.0f, .sigma = 2.0f};
  assert_int_equal(hs_extract_patches(c, &scene, &k, frames, 1, o, patch, NULL), HS_ERR_OPTION);
  if (!strstr(hs_last_error(c), word)) fail_msg("%s is not in: %s", word, hs_last_error(c));
}

TEST(test_refused_options) {
  hs_options options = extraction_options(HS_PROFILE_LOWE);
  scoped_context *c = extraction_context(&options);
  const hs_patch_options good = patch_options(SIZE, HS_PATCH_U8);
  const hs_frame frame = {1.0f, 0.0f, 0.0f, 1.0f};
  hs_patch_options o = good;
  o.size = 0, refuse(c, &o, NULL, "size is 0, expected 1..1024");
  o.size = 1025, refuse(c, &o, NULL, "size is 1025");
  o = good, o.scale = 0.0f, refuse(c, &o, NULL, "scale");
  o.scale = NAN, refuse(c, &o, NULL, "scale");
  o.scale = 1001.0f, refuse(c, &o, NULL, "scale");
  o = good, o.blur = -0.1f, refuse(c, &o, NULL, "blur");
  o.blur = 17.0f, refuse(c, &o, NULL, "blur");
  o = good, o.upright = 2, refuse(c, &o, NULL, "upright");
  o.upright = 1, refuse(c, &o, &frame, "upright");
  o = good, o.type = (hs_patch_type)2, refuse(c, &o, NULL, "type");
  o = good, o.unused = 1, refuse(c, &o, NULL, "unused");
  o = good, o.struct_size = 0, refuse(c, &o, NULL, "struct_size");
  float room[2 * SIZE * SIZE];
  const hs_keypoint k = {.x = 50.0f, .y = 50.0f, .sigma = 2.0f};
  o = patch_options(SIZE, HS_PATCH_F32);
  assert_int_equal(hs_extract_patches(c, &scene, &k, NULL, 1, &o, (char *)room + 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_patches(c, &scene, NULL, NULL, 1, &o, room, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_patches(c, NULL, &k, NULL, 1, &o, room, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_patches(NULL, &scene, &k, NULL, 1, &o, room, NULL), HS_ERR_ARGUMENT);
  hs_destroy(c);
  options.max_memory_bytes = 50000; /* less memory than three planes of the picture and than a pyramid */
  c = extraction_context(&options);
  o.blur = 0.0f;
  assert_int_equal(hs_extract_patches(c, &scene, &k, NULL, 1, &o, room, NULL), HS_ERR_LIMIT);
  o.blur = 16.0f;
  assert_int_equal(hs_extract_patches(c, &scene, &k, NULL, 1, &o, room, NULL), HS_ERR_LIMIT);
}
