/*
 * The CUDA keypoint stages equal the reference byte for byte: masks of settled candidates, keypoints, features,
 * selection, descriptors and records, for every variant. Octave levels and candidates come from the reference.
 */
#include "tests/support/test.h"

#include "cpu/ref/stages_ref.h"
#include "tests/support/reference_frame.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "cuda/keypoints/keypoints_cuda.h"
#  include "cuda/keypoints/keypoints_cuda.h"
#  include "cuda/keypoints/keypoints_cuda.h"
#  include "cuda/keypoints/keypoints_cuda.h"
#  include "cuda/keypoints/keypoints_cuda.h"

/* Variants and capacities with which a case runs on the device. */
typedef struct device_run {
  cuda_refine_variant refine;
  cuda_orient_variant orient;
  cuda_describe_variant describe;
  uint32_t keypoints, features; /* capacities of the lists; 0: ample */
} device_run;

/* Device memory of one case. */
typedef struct device_frame {
  cuda_frame_view view;
  cuda_stream stream;
  void *blocks[40];
  size_t block_count;
  void *descriptors;
  cuda_feature_record *records;
  cuda_outputs *outputs; /* outputs of keypoints and features */
  cuda_frame_counts *counts;
} device_frame;

static void *take(device_frame *d, size_t bytes, const void *content) {
  void *block = NULL;
  assert_true(d->block_count < sizeof d->blocks / sizeof d->blocks[0]);
  assert_int_equal(device_alloc(&block, bytes ? bytes : 16), STAGE_OK);
  d->blocks[d->block_count++] = block;
  if (content)
    assert_int_equal(device_copy_to(block, content, bytes, d->stream), STAGE_OK);
  else
    assert_int_equal(device_clear(block, bytes, d->stream), STAGE_OK);
  return block;
}

static void *fetch(device_frame *d, const void *device, size_t bytes) {
  void *host = malloc(bytes ? bytes : 1);
  assert_non_null(host);
  assert_int_equal(device_copy_from(host, device, bytes, d->stream), STAGE_OK);
  assert_int_equal(device_stream_wait(d->stream), STAGE_OK);
  return host;
}

static keypoint_list device_keypoints(device_frame *d, uint32_t capacity) {
  const size_t n = capacity;
  keypoint_list k = {.count = take(d, sizeof(uint32_t), NULL), .capacity = capacity};
  k.x = take(d, n * 4, NULL);
  k.y = take(d, n * 4, NULL);
  k.sigma = take(d, n * 4, NULL);
  k.response = take(d, n * 4, NULL);
  k.column = take(d, n * 4, NULL);
  k.row = take(d, n * 4, NULL);
  k.octave = take(d, n * 2, NULL);
  k.level = take(d, n * 2, NULL);
  return k;
}

static feature_list device_features(device_frame *d, uint32_t capacity) {
  feature_list f = {.count = take(d, sizeof(uint32_t), NULL), .capacity = capacity};
  f.keypoint = take(d, (size_t)capacity * 4, NULL);
  f.orientation = take(d, (size_t)capacity * 4, NULL);
  return f;
}

/* Makes the view of a reference frame; uploads its levels and candidates. */
static void device_frame_make(device_frame *d, const reference_frame *r, const device_run *run) {
  memset(d, 0, sizeof *d);
  assert_int_equal(device_stream_create(&d->stream), STAGE_OK);
  cuda_frame_view *v = &d->view;
  const uint32_t keypoints = run->keypoints ? run->keypoints : r->counts[0] + 7,
                 features = run->features ? run->features : r->counts[1] + 5;
  const cuda_keypoint_capacity capacity = {r->mask_words, keypoints, features, 0};
  float *levels = take(d, r->level_count * sizeof(float), r->levels);
  v->octave_count = r->geometry.octave_count;
  v->first_octave = r->geometry.first_octave;
  for (int32_t o = 0; o < v->octave_count; o++) {
    v->octaves[o] = r->octaves[o];
    v->octaves[o].levels = levels + (r->octaves[o].levels - r->levels);
    v->mask_offset[o] = r->mask_offset[o];
  }
  v->mask_words = r->mask_words;
  v->candidate_words = take(d, (size_t)r->mask_words * 4, r->candidates);
  /* the initial values are arbitrary, because the reset clears them */
  v->settled_words = take(d, (size_t)r->mask_words * 4, r->candidates);
  v->params = r->params;
  v->filter = r->filter;
  v->filtered = r->filter.mask || r->filter.x0 != INT32_MIN;
  if (r->filter.mask) v->filter.mask = take(d, (size_t)r->filter.height * r->filter.mask_stride, r->filter.mask);
  v->keypoints = device_keypoints(d, keypoints);
  v->oriented = device_features(d, features);
  v->max_features = (uint32_t)r->options.max_features;
  v->selection = (select_rule)r->options.selection;
  v->features = v->max_features ? device_features(d, features) : v->oriented;
  v->scales = take(d, sizeof *r->scales, r->scales);
  const size_t scratch = cuda_keypoint_scratch_layout(&capacity, NULL, &v->scratch);
  void *base = take(d, scratch, NULL);
  assert_int_equal(cuda_keypoint_scratch_layout(&capacity, base, &v->scratch), scratch);
  d->descriptors = take(d, (size_t)features * r->descriptor_bytes, NULL);
  d->records = take(d, (size_t)features * sizeof *d->records, NULL);
  d->counts = take(d, sizeof *d->counts, NULL);
  const cuda_outputs outputs = {.records = d->records, .descriptors = d->descriptors};
  d->outputs = take(d, sizeof outputs, &outputs);
}

static void device_frame_free(device_frame *d) {
  for (size_t i = 0; i < d->block_count; i++) device_free(d->blocks[i]);
  device_stream_destroy(d->stream);
}

static void launch_stages(device_frame *d, const device_run *run) {
  const cuda_frame_view *v = &d->view;
  assert_int_equal(cuda_keypoint_reset_launch(v, d->stream), STAGE_OK);
  assert_int_equal(cuda_refine_launch(v, run->refine, d->stream), STAGE_OK);
  assert_int_equal(cuda_locate_launch(v, d->stream), STAGE_OK);
  assert_int_equal(cuda_orient_launch(v, run->orient, d->stream), STAGE_OK);
  if (v->max_features) assert_int_equal(cuda_select_launch(v, d->stream), STAGE_OK);
  assert_int_equal(cuda_describe_launch(v, run->describe, d->outputs, d->stream), STAGE_OK);
  assert_int_equal(cuda_results_launch(v, d->outputs, d->counts, d->stream), STAGE_OK);
}

/* Runs one frame. captured: records the frame into a graph and launches the graph. */
static void launch(device_frame *d, const device_run *run, bool captured) {
  cuda_graph graph = NULL;
  if (captured) assert_int_equal(device_capture_begin(d->stream), STAGE_OK);
  launch_stages(d, run);
  if (captured) {
    assert_int_equal(device_capture_end(d->stream, &graph), STAGE_OK);
    assert_int_equal(device_graph_launch(graph, d->stream), STAGE_OK);
  }
  const stage_status st = device_stream_wait(d->stream);
  if (st != STAGE_OK) print_error("%s\n", device_error_text());
  assert_int_equal(st, STAGE_OK);
  if (captured) device_graph_destroy(graph);
}

static void check_bytes(device_frame *d, const void *device, const void *expected, size_t bytes, const char *what) {
  SCOPED_MEMORY void *got = fetch(d, device, bytes);
  const size_t n = bytes;
  size_t first = 0;
  while (first < n && ((const uint8_t *)got)[first] == ((const uint8_t *)expected)[first]) first++;
  if (first < n) print_error("%s differs from byte %zu of %zu on\n", what, first, n);
  assert_true(first == n);
}

static void check_records(device_frame *d, const reference_frame *r, uint32_t n) {
  SCOPED_MEMORY cuda_feature_record *records = fetch(d, d->records, n * sizeof *records);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t k = r->features.keypoint[i];
    const cuda_feature_record expected = {r->keypoints.x[k],          r->keypoints.y[k],        r->keypoints.sigma[k],
                                          r->features.orientation[i], r->keypoints.response[k], r->keypoints.octave[k],
                                          r->keypoints.level[k]};
    assert_memory_equal(&records[i], &expected, sizeof expected);
  }
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void check_lists(device_frame *d, const reference_frame *r) {
  const cuda_frame_view *v = &d->view;
  if (!v->filtered) check_bytes(d, v->settled_words, r->settled, (size_t)r->mask_words * 4, "settled mask");
  SCOPED_MEMORY cuda_frame_counts *counts = fetch(d, d->counts, sizeof *counts);
  assert_int_equal(counts->candidates, r->candidate_count);
  assert_int_equal(counts->keypoints, r->counts[0]);
  const size_t n = least(r->counts[0], v->keypoints.capacity);
  check_bytes(d, v->keypoints.column, r->keypoints.column, n * 4, "column");
  check_bytes(d, v->keypoints.row, r->keypoints.row, n * 4, "row");
  check_bytes(d, v->keypoints.octave, r->keypoints.octave, n * 2, "octave");
  check_bytes(d, v->keypoints.level, r->keypoints.level, n * 2, "level");
  check_bytes(d, v->keypoints.x, r->keypoints.x, n * 4, "x");
  check_bytes(d, v->keypoints.y, r->keypoints.y, n * 4, "y");
  check_bytes(d, v->keypoints.sigma, r->keypoints.sigma, n * 4, "sigma");
  check_bytes(d, v->keypoints.response, r->keypoints.response, n * 4, "response");
  if (n == r->counts[0]) { /* otherwise a full list of keypoints limited the input of orientation */
    assert_int_equal(counts->oriented, r->counts[1]);
    const size_t m = least(r->counts[1], v->oriented.capacity);
    check_bytes(d, v->oriented.keypoint, r->oriented.keypoint, m * 4, "oriented keypoint");
    check_bytes(d, v->oriented.orientation, r->oriented.orientation, m * 4, "orientation");
  }
  if (n == r->counts[0] && r->counts[1] <= v->oriented.capacity) assert_int_equal(counts->features, r->counts[2]);
}

static void compare(const reference_frame *r, const device_run *run) {
  device_frame d;
  device_frame_make(&d, r, run);
  for (int32_t repeat = 0; repeat < 2; repeat++) { /* the second frame starts with the memory that the first one left */
    launch(&d, run, repeat == 1);
    check_lists(&d, r);
    const bool whole =
        r->counts[0] <= d.view.keypoints.capacity && (r->counts[1] <= d.view.oriented.capacity || !d.view.max_features);
    const uint32_t n = whole ? least(r->counts[2], d.view.features.capacity) : 0;
    if (whole) check_bytes(&d, d.view.features.keypoint, r->features.keypoint, (size_t)n * 4, "feature");
    check_records(&d, r, n);
    check_bytes(&d, d.descriptors, r->descriptors, n * r->descriptor_bytes, "descriptor");
    assert_int_equal(device_clear(d.descriptors, n * r->descriptor_bytes, d.stream), STAGE_OK);
  }
  device_frame_free(&d);
}

static void compare_variants(const reference_frame *r) {
  for (int32_t i = 0; i < CUDA_DESCRIBE_VARIANTS; i++) {
    const device_run run = {.refine = i % 2 ? CUDA_REFINE_PLAIN : CUDA_REFINE_REBALANCED,
                            .orient = i == CUDA_DESCRIBE_MULTI_KEY ? CUDA_ORIENT_WARP_HISTOGRAM : CUDA_ORIENT_ATOMIC,
                            .describe = (cuda_describe_variant)i};
    compare(r, &run);
  }
  for (int i = CUDA_ORIENT_THREAD; i <= CUDA_ORIENT_BLOCK; i++) {
    const device_run run = {.orient = (cuda_orient_variant)i, .describe = CUDA_DESCRIBE_ATOMIC4};
    compare(r, &run);
  }
}

/* Compares all variants on one picture with one set of options. */
static void compare_image(const uint8_t *pixels, int32_t width, int32_t height, const hs_options *options,
                          const position_filter *filter, bool expect_features) {
  const hs_image image = {.data = pixels, .width = width, .height = height};
  reference_frame r;
  assert_true(reference_frame_make(&r, &image, options, filter, width % 3 * 4));
  if (expect_features) assert_true(r.counts[2] > 0);
  if (r.geometry.octave_count > 0) compare_variants(&r);
  reference_frame_free(&r);
}

#  define GPU_TEST(NAME) TEST_WHERE(device_count(NULL, 0) > 0, NEEDS_GPU, NAME)

static hs_options options_of(hs_profile profile) {
  hs_options options;
  assert_int_equal(hs_options_init(&options, profile), HS_OK);
  options.max_features = 0;
  return options;
}

GPU_TEST(profiles_agree) {
  scoped_image image = extraction_scene(203, 167, 5, NULL);
  for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++) {
    hs_options options = options_of((hs_profile)p);
    compare_image(image.data, image.width, image.height, &options, NULL, true);
    options.descriptor = HS_DESCRIPTOR_F32;
    options.max_orientations = 1;
    options.first_octave = 0;
    compare_image(image.data, image.width, image.height, &options, NULL, true);
    options.upright = 1;
    compare_image(image.data, image.width, image.height, &options, NULL, true);
    options.upright = 0;
    options.dsp = 1;
    compare_image(image.data, image.width, image.height, &options, NULL, true);
  }
}

GPU_TEST(sizes_agree) {
  static const int32_t sizes[][2] = {{1, 1}, {1, 70}, {90, 1}, {2, 3}, {7, 7}, {6, 31}, {33, 17}, {64, 64}, {127, 65}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    SCOPED_MEMORY uint8_t *noise = reference_noise(sizes[i][0], sizes[i][1], (uint32_t)i, 2);
    assert_non_null(noise);
    for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_VLFEAT; p += 2) {
      hs_options options = options_of((hs_profile)p);
      options.contrast = 0.005f;
      compare_image(noise, sizes[i][0], sizes[i][1], &options, NULL, false);
    }
  }
}

GPU_TEST(dense_and_constant_agree) {
  SCOPED_MEMORY uint8_t *noise = reference_noise(150, 140, 3, 0);
  assert_non_null(noise);
  hs_options options = options_of(HS_PROFILE_LOWE);
  options.contrast = 0.0f;
  options.edge = 1000.0f;
  compare_image(noise, 150, 140, &options, NULL, true);
  memset(noise, 77, 150 * 140);
  compare_image(noise, 150, 140, &options, NULL, false);
}

GPU_TEST(wide_windows_agree) {
  scoped_image image = extraction_scene(420, 330, 9, NULL);
  hs_options options = options_of(HS_PROFILE_LOWE);
  options.sigma = 4.0f;
  options.scales = 1;
  options.contrast = 0.005f;
  compare_image(image.data, image.width, image.height, &options, NULL, true);
}

GPU_TEST(filters_agree) {
  enum { W = 160, H = 120 };
  SCOPED_MEMORY uint8_t *noise = reference_noise(W, H, 12, 3), *mask = calloc(W + 5, H);
  assert_true(noise && mask);
  for (int32_t y = 0; y < H; y++)
    for (int32_t x = 0; x < W; x++) mask[y * (W + 5) + x] = (x / 16 + y / 16) % 2 == 0;
  hs_options options = options_of(HS_PROFILE_LOWE);
  options.contrast = 0.01f;
  position_filter filter = {
      .mask = mask, .mask_stride = W + 5, .width = W, .height = H, .x0 = 0, .y0 = 0, .x1 = W, .y1 = H};
  compare_image(noise, W, H, &options, &filter, true);
  filter.mask = NULL;
  filter.x0 = 31, filter.x1 = 97, filter.y1 = 50;
  compare_image(noise, W, H, &options, &filter, true);
}

GPU_TEST(selection_agrees) {
  scoped_image image = extraction_scene(240, 200, 4, NULL);
  static const int32_t most[] = {1, 2, 31, 100, 256, 257, 100000};
  hs_options options = options_of(HS_PROFILE_LOWE);
  options.contrast = 0.01f;
  for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
    options.max_features = most[i];
    for (int by = HS_SELECT_RESPONSE; by <= HS_SELECT_LEVELS; by++) {
      options.selection = (hs_selection)by;
      options.upright = i % 3 == 0;
      compare_image(image.data, image.width, image.height, &options, NULL, true);
    }
  }
}

/* Every sample is a candidate, so there are more candidates than a block's list holds. */
GPU_TEST(crowded_masks_agree) {
  SCOPED_MEMORY uint8_t *noise = reference_noise(90, 70, 8, 1);
  assert_non_null(noise);
  const hs_image image = {.data = noise, .width = 90, .height = 70};
  const hs_options options = options_of(HS_PROFILE_LOWE);
  SCOPED_BY(reference_frame_free) reference_frame r;
  assert_true(reference_frame_make(&r, &image, &options, NULL, 0));
  r.candidate_count = 0;
  for (int32_t o = 0; o < r.geometry.octave_count; o++) {
    const octave_view *v = &r.octaves[o];
    const int32_t words = mask_words_per_row(v->width), border = r.params.border;
    for (int32_t row = 0; row < r.params.scales * v->height; row++)
      for (int32_t x = border; x < v->width - border; x++) {
        const int32_t y = row % v->height;
        if (y < border || y >= v->height - border) continue;
        r.candidates[r.mask_offset[o] + (uint32_t)(row * words + x / 32)] |= 1u << (x % 32);
        r.candidate_count++;
      }
    const refine_args args = {
        *v, {r.candidates + r.mask_offset[o], words}, {r.settled + r.mask_offset[o], words}, r.params};
    assert_int_equal(refine_ref(NULL, &args), STAGE_OK);
  }
  device_frame d;
  const device_run run = {.keypoints = 1};
  device_frame_make(&d, &r, &run);
  launch(&d, &run, false);
  check_bytes(&d, d.view.settled_words, r.settled, (size_t)r.mask_words * 4, "settled mask");
  cuda_frame_counts *counts = fetch(&d, d.counts, sizeof *counts);
  assert_int_equal(counts->candidates, r.candidate_count);
  free(counts);
  device_frame_free(&d);
}

/* A list that is too short has the right entries up to its end, and counting continues. */
GPU_TEST(capacities_agree) {
  SCOPED_MEMORY uint8_t *noise = reference_noise(200, 180, 21, 2);
  assert_non_null(noise);
  const hs_image image = {.data = noise, .width = 200, .height = 180};
  hs_options options = options_of(HS_PROFILE_LOWE);
  options.contrast = 0.005f;
  SCOPED_BY(reference_frame_free) reference_frame r;
  assert_true(reference_frame_make(&r, &image, &options, NULL, 0));
  assert_true(r.counts[0] > 300 && r.counts[1] > r.counts[0]);
  const device_run runs[] = {{.keypoints = 1}, {.keypoints = 257}, {.features = 1}, {.features = 300}};
  for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) compare(&r, &runs[i]);
  const device_run exact = {.keypoints = r.counts[0], .features = r.counts[1]};
  compare(&r, &exact);
}
#else
TEST(not_built) { skip_because(NEEDS_GPU); }
#endif
