/*
 * User keypoints and forms of descriptors: describing the extracted keypoints gives the bytes of extraction, and one
 * form can be computed from another.
 */

#include "tests/support/test.h"

#include "tests/support/extent.h"

static hs_image scene;

BEFORE_TESTS() { scene = extraction_scene(107, 85, 11, NULL); }

static hs_keypoint *copy_keypoints(const hs_features *f) {
  hs_keypoint *k = malloc(sizeof *k * (f->count + 1));
  assert_non_null(k);
  memcpy(k, f->keypoints, sizeof *k * f->count);
  return k;
}

TEST(test_own_keypoints) {
  for (int p = 0; p < 2 * EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)(p / 2));
    o.dsp = p % 2;
    scoped_context *c = extraction_context(&o);
    scoped_features full = extraction_run(c, &scene), f = {0};
    SCOPED_MEMORY hs_status *statuses = malloc(sizeof *statuses * full.count);
    assert_non_null(statuses);
    assert_int_equal(hs_describe(c, &scene, full.keypoints, full.count, &f, statuses), HS_OK);
    for (size_t i = 0; i < full.count; i++) assert_int_equal(statuses[i], HS_OK);
    extraction_check_equal(&full, &f, "own keypoints");
  }
}

/* Returns descriptors for one domain size, from its own level, of unit norm. */
static hs_features describe_size(hs_context *c, const hs_features *of, float size, int32_t levels, int32_t scales) {
  SCOPED_MEMORY hs_keypoint *k = copy_keypoints(of);
  hs_features f = {0};
  for (size_t i = 0; i < of->count; i++) {
    k[i].sigma *= size;
    k[i].level = (int16_t)(k[i].level + levels);
    if (k[i].level < scales) continue;
    k[i].level = (int16_t)(k[i].level - scales);
    k[i].octave++;
  }
  assert_int_equal(hs_describe(c, &scene, k, of->count, &f, NULL), HS_OK);
  return f;
}

/* A pooled descriptor is the normalised sum of the descriptors of its sizes, each from its own level. */
TEST(test_pooled) {
  enum { SCALES = 8, SIZES = 2 };
  static const float sizes[SIZES] = {0.91f, 1.5f};
  static const int32_t levels[SIZES] = {-1, 5}; /* 8 log2 of the sizes: -1.09 and 4.68, rounded */
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.scales = SCALES;
  o.descriptor = HS_DESCRIPTOR_F32;
  o.contrast = 0.01f;
  scoped_context *plain = extraction_context(&o);
  o.dsp = 1;
  o.dsp_sizes = SIZES;
  o.dsp_smallest = sizes[0];
  o.dsp_largest = sizes[1];
  scoped_context *pooling = extraction_context(&o);
  scoped_features pooled = extraction_run(pooling, &scene);
  const hs_features of_size[SIZES] = {describe_size(plain, &pooled, sizes[0], levels[0], SCALES),
                                      describe_size(plain, &pooled, sizes[1], levels[1], SCALES)};
  size_t compared = 0;
  for (size_t i = 0; i < pooled.count; i++) {
    const hs_keypoint *k = &pooled.keypoints[i];
    if (k->level < 2 || k->level == 3 || k->level == SCALES || k->octave > 1)
      continue; /* user keypoints cannot request level 0 */
    double norm = 0.0, sum[HS_DESCRIPTOR_LENGTH];
    for (int b = 0; b < HS_DESCRIPTOR_LENGTH; b++) {
      sum[b] = (double)((const float *)extraction_descriptor(&of_size[0], i))[b] +
               (double)((const float *)extraction_descriptor(&of_size[1], i))[b];
      norm += sum[b] * sum[b];
    }
    for (int pass = 0, b; pass < 2; pass++) { /* clips at 0.2, then scales to unit norm */
      const double scale = 1.0 / sqrt(norm);
      for (norm = 0.0, b = 0; b < HS_DESCRIPTOR_LENGTH; b++) {
        sum[b] = pass == 0 ? fmin(sum[b] * scale, 0.2) : sum[b] * scale;
        norm += sum[b] * sum[b];
      }
    }
    for (int b = 0; b < HS_DESCRIPTOR_LENGTH; b++)
      assert_true(fabs(sum[b] - (double)((const float *)extraction_descriptor(&pooled, i))[b]) < 1e-5);
    compared++;
  }
  assert_true(compared > 20);
  for (int s = 0; s < SIZES; s++) hs_features_free((hs_features *)(uintptr_t)&of_size[s]);
}

/* Output order equals input order. */
TEST(test_reversed) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  scoped_features full = extraction_run(c, &scene), f = {0};
  SCOPED_MEMORY hs_keypoint *k = copy_keypoints(&full);
  for (size_t i = 0; i < full.count; i++) k[i] = full.keypoints[full.count - 1 - i];
  assert_int_equal(hs_describe(c, &scene, k, full.count, &f, NULL), HS_OK);
  assert_int_equal(f.count, full.count);
  for (size_t i = 0; i < full.count; i++) {
    const size_t j = full.count - 1 - i;
    assert_memory_equal(&f.keypoints[i], &full.keypoints[j], sizeof *k);
    assert_memory_equal(extraction_descriptor(&f, i), extraction_descriptor(&full, j), extraction_descriptor_bytes(&f));
  }
}

/* Level 0 means that sigma determines octave and level. */
TEST(test_levels_from_sigma) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = extraction_options((hs_profile)p);
    scoped_context *c = extraction_context(&o);
    scoped_features full = extraction_run(c, &scene), f = {0};
    SCOPED_MEMORY hs_keypoint *k = copy_keypoints(&full);
    SCOPED_MEMORY hs_status *statuses = malloc(sizeof *statuses * full.count);
    assert_non_null(statuses);
    for (size_t i = 0; i < full.count; i++) k[i].level = 0, k[i].octave = 99;
    assert_int_equal(hs_describe(c, &scene, k, full.count, &f, statuses), HS_OK);
    assert_int_equal(f.count, full.count);
    size_t same = 0;
    for (size_t i = 0; i < full.count; i++) {
      const double t = 3.0 * log2((double)k[i].sigma / (double)o.sigma), distance = t - floor(t + 0.5);
      if (fabs(fabs(distance) - 0.5) < 1e-4) continue; /* sigma is halfway between two levels, so rounding decides */
      const int step = (int)floor(t + 0.5) - 1, octave = (int)floor((double)step / 3.0), level = step - 3 * octave + 1;
      if (statuses[i] != HS_OK) continue; /* sigma is beyond the last octave's levels */
      if (octave < -1)
        assert_true(f.keypoints[i].octave == -1 && f.keypoints[i].level == 1);
      else
        assert_true(f.keypoints[i].octave == octave && f.keypoints[i].level == level);
      if (f.keypoints[i].octave != full.keypoints[i].octave || f.keypoints[i].level != full.keypoints[i].level)
        continue;
      same++;
      assert_memory_equal(&f.keypoints[i], &full.keypoints[i], sizeof *k);
      assert_memory_equal(extraction_descriptor(&f, i), extraction_descriptor(&full, i),
                          extraction_descriptor_bytes(&f));
    }
    printf("             profile %d: %zu of %zu keypoints get their own level from sigma\n", p, same, full.count);
    assert_true((double)same > 0.85 * (double)full.count);
  }
}

/* Requested orientations (NaN) equal those of extraction. The features of a keypoint are consecutive. */
TEST(test_computed_orientations) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = extraction_options((hs_profile)p);
    scoped_context *c = extraction_context(&o);
    scoped_features full = extraction_run(c, &scene), f = {0};
    SCOPED_MEMORY hs_keypoint *k = copy_keypoints(&full);
    size_t n = 0;
    for (size_t i = 0; i < full.count; i++) {
      k[n] = full.keypoints[i];
      k[n].orientation = NAN;
      if (n == 0 || memcmp(&k[n], &k[n - 1], 12) != 0 || k[n].response != k[n - 1].response) n++;
    }
    assert_true(n < full.count || o.max_orientations == 1);
    assert_int_equal(hs_describe(c, &scene, k, n, &f, NULL), HS_OK);
    extraction_check_equal(&full, &f, "computed orientations");
  }
}

/* An orientation plus whole turns is the same angle. Its bits may differ in the last place. */
TEST(test_orientations_wrap) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  hs_keypoint k[6];
  const float angles[6] = {1.0f, 1.0f + 6.2831853f, 1.0f - 6.2831853f, 1.0f + 10 * 6.2831853f, -1.0e30f, -0.0f};
  for (int i = 0; i < 6; i++) k[i] = (hs_keypoint){70.0f, 50.0f, 3.0f, angles[i], 0.0f, 0, 0};
  scoped_features f = {0};
  assert_int_equal(hs_describe(c, &scene, k, 6, &f, NULL), HS_OK);
  for (size_t i = 0; i < 6; i++)
    assert_true(f.keypoints[i].orientation >= 0.0f && f.keypoints[i].orientation < 6.2831855f);
  for (size_t i = 1; i < 4; i++) {
    assert_true(fabsf(f.keypoints[i].orientation - 1.0f) < 1e-5f);
    assert_true(extraction_distance(&f, 0, &f, i) < 0.01);
  }
}

/* ------------------------------------------------------------------ anywhere in the picture, at any size */

/* The sides are no multiples of a coarse sample, so coarse octaves end before the picture does. */
enum { ODD_WIDTH = 151, ODD_HEIGHT = 111, GRID_STEP = 10 };

/* Keypoints of every size on a grid that includes the picture's edges. sigma 1e9 is the maximum. */
typedef struct given_grid {
  hs_keypoint *keypoints;
  size_t count;
} given_grid;

static const float grid_sigmas[] = {1.0e-9f, 0.05f, 0.5f, 2.0f, 5.0f, 16.0f, 64.0f, 500.0f, 1.0e5f, 1.0e9f};

/* Returns coordinate i of the grid: -0.5, 0, then every GRID_STEP pixels, then the last pixel's centre and its edge. */
static float grid_place(int i, int side) {
  if (i < 2) return i == 0 ? -0.5f : 0.0f;
  const float place = (float)((i - 1) * GRID_STEP), last = (float)(side - 1);
  return place < last ? place : (place < last + GRID_STEP ? last : last + 0.5f);
}

static given_grid make_grid(int width, int height, float orientation) {
  enum { SIZES = sizeof grid_sigmas / sizeof grid_sigmas[0] };
  const int columns = (width - 1) / GRID_STEP + 4, rows = (height - 1) / GRID_STEP + 4;
  given_grid grid = {malloc(sizeof *grid.keypoints * (size_t)(columns * rows * SIZES)), 0};
  assert_non_null(grid.keypoints);
  for (int j = 0; j < rows; j++)
    for (int i = 0; i < columns; i++)
      for (int size = 0; size < SIZES; size++)
        grid.keypoints[grid.count++] = (hs_keypoint){.x = grid_place(i, width),
                                                     .y = grid_place(j, height),
                                                     .sigma = grid_sigmas[size],
                                                     .orientation = orientation};
  return grid;
}

/* Makes a picture of noise, which has gradients everywhere. */
static hs_image make_noise(int width, int height) {
  hs_image image = extraction_blank(width, height);
  uint32_t seed = 5;
  for (size_t i = 0; i < (size_t)width * (size_t)height; i++) {
    seed = seed * 1664525u + 1013904223u;
    extraction_floats(&image)[i] = (float)(seed >> 8) / 16777216.0f;
  }
  return image;
}

static bool is_empty(const hs_features *f, size_t i) {
  const unsigned char *bytes = extraction_descriptor(f, i);
  for (size_t b = 0; b < extraction_descriptor_bytes(f); b++)
    if (bytes[b] != 0) return false;
  return true;
}

/* Describes a grid. Every keypoint must get a descriptor and keep its position and size. */
static hs_features describe_grid(const hs_options *o, const hs_image *image, const given_grid *grid) {
  scoped_context *c = extraction_context(o);
  hs_features f = {0};
  SCOPED_MEMORY hs_status *statuses = malloc(sizeof *statuses * grid->count);
  assert_non_null(statuses);
  assert_int_equal(hs_describe(c, image, grid->keypoints, grid->count, &f, statuses), HS_OK);
  assert_int_equal(f.count, grid->count);
  for (size_t i = 0; i < f.count; i++) {
    const hs_keypoint *k = &grid->keypoints[i];
    if (statuses[i] != HS_OK || is_empty(&f, i))
      fail_msg("profile %d, dsp %d, affine %d, first octave %d: (%g, %g) sigma %g: status %d", (int)o->profile, o->dsp,
               o->affine, o->first_octave, (double)k->x, (double)k->y, (double)k->sigma, (int)statuses[i]);
    assert_memory_equal(&f.keypoints[i], k, 12);
    if (f.frames) { /* lengths of both axes: at least sigma and at most five times sigma */
      const double length = hypot((double)f.frames[i].a11, (double)f.frames[i].a21) / (double)k->sigma;
      assert_true(length > 0.99 && length < 5.01);
    }
  }
  return f;
}

TEST(test_every_place_and_size) {
  scoped_image noise = make_noise(ODD_WIDTH, ODD_HEIGHT);
  const given_grid grid = make_grid(ODD_WIDTH, ODD_HEIGHT, 0.7f);
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int first = -1; first <= 2; first++)
      for (int kind = 0; kind < 3; kind++) {
        if (!extent_pairs((size_t)(p + kind), (size_t)(first + 1), 4)) continue;
        hs_options o = extraction_options((hs_profile)p);
        o.first_octave = first;
        o.input_blur = first < 0 ? o.input_blur : 0.5f;
        o.dsp = kind == 1;
        o.affine = kind == 2;
        scoped_features f = describe_grid(&o, &noise, &grid);
      }
  free(grid.keypoints);
}

/* Every variant gives the same bytes. */
TEST(test_borders_on_variants) {
  static const char *const variants[] = {"orient=ref,describe=ref", "orient=sse2,describe=sse2",
                                         "orient=avx2,describe=avx2", "orient=avx512,describe=avx512"};
  scoped_image noise = make_noise(ODD_WIDTH, ODD_HEIGHT);
  const given_grid grid = make_grid(ODD_WIDTH, ODD_HEIGHT, 5.0f);
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int kind = 0; kind < 2; kind++) {
      if (!extent_pairs((size_t)p, (size_t)kind, 2)) continue;
      hs_options o = extraction_options((hs_profile)p);
      o.affine = kind == 1;
      o.threads = 1;
      scoped_features one = describe_grid(&o, &noise, &grid);
      o.threads = 3;
      for (size_t v = 0; v <= sizeof variants / sizeof variants[0]; v++) {
        hs_expert_options expert = extraction_expert((hs_profile)p, v > 0 ? variants[v - 1] : NULL);
        hs_context *c = NULL;
        o.expert = &expert;
        if (hs_create(&c, &o) != HS_OK) continue; /* this machine cannot run the variant */
        hs_destroy(c);
        scoped_features other = describe_grid(&o, &noise, &grid);
        extraction_check_equal(&one, &other, v > 0 ? variants[v - 1] : "three threads");
      }
    }
  free(grid.keypoints);
}

/* Every keypoint gets orientations: where the votes with the largest weights are, there is a peak. */
TEST(test_orientations_at_borders) {
  scoped_image noise = make_noise(ODD_WIDTH, ODD_HEIGHT);
  const given_grid grid = make_grid(ODD_WIDTH, ODD_HEIGHT, NAN);
  hs_status *statuses = malloc(sizeof *statuses * grid.count);
  assert_non_null(statuses);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    scoped_context *c = extraction_context_of((hs_profile)p);
    scoped_features f = {0}, again = {0};
    assert_int_equal(hs_describe(c, &noise, grid.keypoints, grid.count, &f, statuses), HS_OK);
    size_t at = 0;
    for (size_t i = 0; i < grid.count; i++) {
      const hs_keypoint *k = &grid.keypoints[i];
      assert_int_equal(statuses[i], HS_OK);
      if (at >= f.count || memcmp(&f.keypoints[at], k, 12) != 0)
        fail_msg("profile %d: (%g, %g) sigma %g has no orientation", p, (double)k->x, (double)k->y, (double)k->sigma);
      while (at < f.count && memcmp(&f.keypoints[at], k, 12) == 0) at++;
    }
    assert_int_equal(at, f.count);
    SCOPED_MEMORY hs_keypoint *found = copy_keypoints(&f);
    assert_int_equal(hs_describe(c, &noise, found, f.count, &again, NULL), HS_OK);
    extraction_check_equal(&f, &again, "orientations given back");
  }
  free(statuses);
  free(grid.keypoints);
}

/* A picture rotated by half a turn is mirrored in x and y. The mirrored keypoints are described too, with similar
 * descriptors. Coarse octaves of the two pictures sample other positions, so not every byte is equal. */
TEST(test_turned_picture) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_scene(ODD_WIDTH, ODD_HEIGHT, 3, NULL), turned = extraction_as_floats(&image);
  const size_t pixels = (size_t)ODD_WIDTH * ODD_HEIGHT;
  float *samples = extraction_floats(&turned);
  for (size_t i = 0; i < pixels / 2; i++) {
    const float sample = samples[i];
    samples[i] = samples[pixels - 1 - i];
    samples[pixels - 1 - i] = sample;
  }
  enum { COUNT = 64 };
  static const float sigmas[4] = {8.0f, 14.0f, 20.0f, 30.0f};
  hs_keypoint here[COUNT], there[COUNT];
  for (int i = 0; i < COUNT; i++) { /* along all four borders, two pixels from each */
    const float along = (float)(i / 8) / 7.0f;
    const float x = 2.0f + (float)(ODD_WIDTH - 5) * along, y = 2.0f + (float)(ODD_HEIGHT - 5) * along;
    here[i] = (hs_keypoint){.x = x, .y = i % 2 ? 2.0f : (float)(ODD_HEIGHT - 3), .sigma = sigmas[i / 2 % 4]};
    if (i % 4 > 1) here[i].x = i % 2 ? 2.0f : (float)(ODD_WIDTH - 3), here[i].y = y;
    there[i] = here[i];
    there[i].x = (float)(ODD_WIDTH - 1) - here[i].x;
    there[i].y = (float)(ODD_HEIGHT - 1) - here[i].y;
    there[i].orientation = 3.1415927f;
  }
  const given_grid first = {here, COUNT}, second = {there, COUNT};
  scoped_features f = describe_grid(&o, &image, &first), g = describe_grid(&o, &turned, &second);
  double sum = 0.0;
  for (size_t i = 0; i < COUNT; i++) sum += extraction_distance(&f, i, &g, i);
  printf("             mean distance of descriptors at borders: %.3f\n", sum / COUNT);
  assert_true(sum / COUNT < 0.3);
}

/* If octave or level is outside the pyramid, or the size has no window there, it counts as level 0. */
TEST(test_places_beyond_the_pyramid) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_keypoint k[8], by_size[8];
  for (int i = 0; i < 8; i++) k[i] = (hs_keypoint){.x = 70.0f, .y = 50.0f, .sigma = 4.0f, .octave = 0, .level = 2};
  k[1].level = 4;
  k[2].level = -1;
  k[3].octave = 20;
  k[4].octave = -2;
  k[5].sigma = 0.01f;  /* too small for a window in octave 0 */
  k[6].sigma = 300.0f; /* too large for a window in its octave */
  k[7].octave = INT16_MIN, k[7].level = INT16_MAX;
  memcpy(by_size, k, sizeof k);
  for (int i = 1; i < 8; i++) by_size[i].level = 0;
  const given_grid named = {k, 8}, sized = {by_size, 8};
  scoped_features f = describe_grid(&o, &scene, &named), g = describe_grid(&o, &scene, &sized);
  extraction_check_equal(&g, &f, "places beyond the pyramid");
  assert_true(f.keypoints[0].octave == 0 && f.keypoints[0].level == 2);
  assert_true(f.keypoints[5].octave == -1 && f.keypoints[5].level == 1);
  assert_true(f.keypoints[6].octave > 1 && f.keypoints[6].level == 3);
}

/* ------------------------------------------------------------------ forms of one descriptor */

static hs_features with_form(hs_profile profile, hs_norm norm, hs_descriptor_type type, hs_bin_layout layout) {
  hs_options o = extraction_options(profile);
  o.norm = norm;
  o.descriptor = type;
  o.layout = layout;
  return extraction_once(&o, &scene);
}

static void check_same_keypoints(const hs_features *a, const hs_features *b) {
  assert_int_equal(a->count, b->count);
  assert_memory_equal(a->keypoints, b->keypoints, a->count * sizeof *a->keypoints);
}

/* Byte descriptors are the floats of unit norm times 512, rounded and clipped at 255. OpenCV's floats equal its
 * bytes. */
TEST(test_bytes_are_rounded_floats) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int norm = HS_NORM_L2; norm <= HS_NORM_ROOT; norm++) {
      scoped_features bytes = with_form((hs_profile)p, (hs_norm)norm, HS_DESCRIPTOR_U8, HS_LAYOUT_UBC);
      scoped_features floats = with_form((hs_profile)p, (hs_norm)norm, HS_DESCRIPTOR_F32, HS_LAYOUT_UBC);
      check_same_keypoints(&bytes, &floats);
      for (size_t i = 0; i < bytes.count * HS_DESCRIPTOR_LENGTH; i++) {
        const float v = ((const float *)floats.descriptors)[i];
        const float scaled = p == HS_PROFILE_OPENCV ? v : floorf(512.0f * v + 0.5f);
        assert_int_equal(((const uint8_t *)bytes.descriptors)[i], (int)fminf(scaled, 255.0f));
      }
    }
}

/* RootSIFT is the square root of the clipped vector divided by its sum. */
TEST(test_root) {
  scoped_features plain = with_form(HS_PROFILE_LOWE, HS_NORM_L2, HS_DESCRIPTOR_F32, HS_LAYOUT_UBC);
  scoped_features root = with_form(HS_PROFILE_LOWE, HS_NORM_ROOT, HS_DESCRIPTOR_F32, HS_LAYOUT_UBC);
  check_same_keypoints(&plain, &root);
  for (size_t n = 0; n < plain.count; n++) {
    const float *d = extraction_descriptor(&plain, n), *r = extraction_descriptor(&root, n);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) {
      sum += (double)d[i];
      squares += (double)r[i] * (double)r[i];
    }
    assert_true(fabs(squares - 1.0) < 1e-5);
    for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) assert_true(fabs((double)r[i] - sqrt((double)d[i] / sum)) < 1e-6);
  }
}

TEST(test_layouts) {
  static const int order[8] = {0, 7, 6, 5, 4, 3, 2, 1};
  scoped_features ubc = with_form(HS_PROFILE_LOWE, HS_NORM_L2, HS_DESCRIPTOR_U8, HS_LAYOUT_UBC);
  scoped_features vlfeat = with_form(HS_PROFILE_LOWE, HS_NORM_L2, HS_DESCRIPTOR_U8, HS_LAYOUT_VLFEAT);
  check_same_keypoints(&ubc, &vlfeat);
  for (size_t i = 0; i < ubc.count * HS_DESCRIPTOR_LENGTH; i++)
    assert_int_equal(((const uint8_t *)vlfeat.descriptors)[i],
                     ((const uint8_t *)ubc.descriptors)[i / 8 * 8 + (size_t)order[i % 8]]);
}

TEST(test_detection_alone) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    scoped_context *c = extraction_context_of((hs_profile)p);
    scoped_features full = extraction_run(c, &scene), f = {0};
    assert_int_equal(hs_detect(c, &scene, NULL, &f), HS_OK);
    assert_null(f.descriptors);
    assert_int_equal(f.descriptor_type, HS_DESCRIPTOR_NONE);
    check_same_keypoints(&full, &f);
    scoped_features none = with_form((hs_profile)p, HS_NORM_L2, HS_DESCRIPTOR_NONE, HS_LAYOUT_UBC);
    assert_null(none.descriptors);
    check_same_keypoints(&full, &none);
  }
}

/* With upright there is one feature of angle 0 per keypoint, equal to one described with angle 0. */
TEST(test_upright) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    scoped_context *turned = extraction_context(&o);
    o.upright = 1;
    scoped_context *c = extraction_context(&o);
    scoped_features f = extraction_run(c, &scene), g = {0};
    hs_statistics s = statistics_of(c);
    assert_int_equal(s.keypoints, f.count);
    for (size_t i = 0; i < f.count; i++) assert_true(f.keypoints[i].orientation == 0.0f);
    assert_int_equal(hs_describe(turned, &scene, f.keypoints, f.count, &g, NULL), HS_OK);
    extraction_check_equal(&f, &g, "upright");
  }
}
