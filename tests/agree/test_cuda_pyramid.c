/*
 * The launchers of the CUDA pyramid and extremum search give the reference's bytes.
 *
 * Covers level steps of every kernel, bases of every kind of picture, chains, and candidate masks. Skipped without a
 * device.
 */
#include <float.h>

#include "tests/support/test.h"

#include "cpu/ref/stages_ref.h"
#include "tests/support/stage_planes.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "cuda/keypoints/keypoints_cuda.h"
#  include "cuda/pyramid/pyramid_cuda.h"
#  include "cuda/pyramid/pyramid_cuda.h"
#  include "cuda/pyramid/pyramid_cuda.h"

static const int32_t sizes[][2] = {{1, 1},   {1, 9},   {9, 1},    {2, 2},    {3, 5},     {11, 11}, {15, 8},
                                   {31, 33}, {64, 64}, {65, 130}, {130, 97}, {333, 117}, {641, 3}, {3, 300}};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

/* Opens the device and makes the test's stream. */
static int open_device(void **state) {
  cuda_stream stream = NULL;
  *state = NULL;
  if (device_count(NULL, 0) <= 0) return 0;
  if (device_stream_create(&stream) != STAGE_OK) return -1;
  *state = stream;
  return 0;
}

static int close_device(void **state) {
  if (*state) device_stream_destroy(*state);
  return 0;
}

static size_t device_stride(int32_t width) {
  const size_t columns = width > 0 ? (size_t)width : 1; /* an empty plane has a stride too */
  return (columns + PLANE_STRIDE_FLOATS - 1) / PLANE_STRIDE_FLOATS * PLANE_STRIDE_FLOATS;
}

/* Makes a plane on the device. Every float starts as a guard value, in the padding too. */
static plane_view device_plane(cuda_stream stream, int32_t width, int32_t height) {
  plane_view p = {NULL, width, height, device_stride(width)};
  const size_t bytes = (p.stride * (size_t)height + PLANE_SLACK_FLOATS) * sizeof(float);
  assert_int_equal(device_alloc((void **)&p.data, bytes), STAGE_OK);
  assert_int_equal(device_clear(p.data, bytes, stream), STAGE_OK);
  return p;
}

static void to_device(cuda_stream stream, plane_view device, const guarded_plane *host) {
  assert_int_equal(device_copy_rows_to(device.data, device.stride * sizeof(float), host->view.data,
                                       host->view.stride * sizeof(float), (size_t)device.width * sizeof(float),
                                       (size_t)device.height, stream),
                   STAGE_OK);
}

/* Fails unless the device's plane has the samples of `expected`, and zeros in the padding of rows and plane. */
static void check_plane(cuda_stream stream, plane_view device, const guarded_plane *expected, const char *what) {
  const size_t floats = device.stride * (size_t)device.height + PLANE_SLACK_FLOATS;
  SCOPED_MEMORY float *got = malloc(floats * sizeof(float));
  assert_non_null(got);
  assert_int_equal(device_copy_from(got, device.data, floats * sizeof(float), stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  for (size_t i = 0; i < floats; i++) {
    const size_t x = i % device.stride, y = i / device.stride;
    const bool sample = x < (size_t)device.width && y < (size_t)device.height;
    const float want = sample ? expected->view.data[y * expected->view.stride + x] : 0.0f;
    if (memcmp(&got[i], &want, sizeof want) != 0)
      fail_msg("%s, %dx%d: %.9g instead of %.9g at (%zu, %zu)", what, device.width, device.height, (double)got[i],
               (double)want, x, y);
  }
}

static guarded_plane host_plane(int32_t width, int32_t height) { return plane_make(width, height, (size_t)width); }

/* Returns arbitrary asymmetric taps instead of a Gaussian, so that a swapped or dropped tap changes the result. */
static gaussian_filter filter_of(int32_t radius) {
  gaussian_filter f = {.radius = radius};
  for (int32_t j = 0; j <= radius; j++) f.taps[j] = (1.0f + 0.37f * (float)((j * 5) % 7)) / (float)(4 * radius + 3);
  return f;
}

/* ------------------------------------------------- level step */

static void check_dog(cuda_stream stream, plane_view device, const guarded_plane *in, const guarded_plane *out) {
  SCOPED_BY(plane_free) guarded_plane dog = host_plane(device.width, device.height);
  for (size_t i = 0; i < (size_t)device.width * (size_t)device.height; i++)
    dog.view.data[i] = out->view.data[i] - in->view.data[i];
  check_plane(stream, device, &dog, "DoG");
}

static void check_blur(cuda_stream stream, int32_t width, int32_t height, int32_t radius, border_mode border,
                       plane_pattern pattern) {
  const gaussian_filter filter = filter_of(radius);
  guarded_plane in = host_plane(width, height), out = host_plane(width, height), work = host_plane(width, height);
  guarded_plane half = host_plane(width / 2, height / 2);
  plane_fill(&in, pattern, 5);
  const blur_args blur = {in.view, out.view, work.view, border, &filter, {0}};
  const halve_args halve = {out.view, half.view, {0}};
  assert_int_equal(blur_ref(NULL, &blur), STAGE_OK);
  assert_int_equal(halve_ref(NULL, &halve), STAGE_OK);
  blur_launch_args args = {.in = device_plane(stream, width, height),
                           .out = device_plane(stream, width, height),
                           .work = device_plane(stream, width, height),
                           .halved = device_plane(stream, width / 2, height / 2),
                           .border = border,
                           .filter = &filter};
  char what[64];
  snprintf(what, sizeof what, "radius %d, border %d", radius, (int)border);
  to_device(stream, args.in, &in);
  assert_int_equal(blur_launch(&args, stream), STAGE_OK);
  check_plane(stream, args.out, &out, what);
  check_plane(stream, args.halved, &half, "halved");
  if (!blur_needs_work(radius)) {
    args.dog = device_plane(stream, width, height);
    assert_int_equal(device_clear(args.out.data, args.out.stride * (size_t)height * sizeof(float), stream), STAGE_OK);
    assert_int_equal(uber_level_launch(&args, stream), STAGE_OK);
    check_plane(stream, args.out, &out, "uber");
    check_dog(stream, args.dog, &in, &out);
    device_free(args.dog.data);
  }
  plane_view dog = device_plane(stream, width, height);
  assert_int_equal(dog_launch(&args.in, &args.out, &dog, stream), STAGE_OK);
  check_dog(stream, dog, &in, &out);
  device_free(dog.data);
  plane_view *const planes[] = {&args.in, &args.out, &args.work, &args.halved};
  for (size_t i = 0; i < 4; i++) device_free(planes[i]->data);
  plane_free(&in);
  plane_free(&out);
  plane_free(&work);
  plane_free(&half);
}

TEST(test_level_steps) {
  static const int32_t radii[] = {0, 1, 4, 5, 6, 7, 8, 10, 13, 20, 128};
  if (!*state) skip_because(NEEDS_GPU);
  for (size_t i = 0; i < SIZE_COUNT; i++)
    for (size_t r = 0; r < sizeof radii / sizeof radii[0]; r++)
      for (int b = BORDER_REFLECT_101; b <= BORDER_REPLICATE; b++)
        check_blur(*state, sizes[i][0], sizes[i][1], radii[r], (border_mode)b, r % 2 ? PATTERN_NOISE : PATTERN_RAMP);
  check_blur(*state, 200, 900, 8, BORDER_REFLECT_101, PATTERN_CONSTANT);
  /* large enough that a block marches several steps */
  check_blur(*state, 1500, 1100, 13, BORDER_REFLECT_101, PATTERN_NOISE);
}

/* A launch does not report an error that another call left in the runtime. */
TEST(test_launch_after_an_error) {
  if (!*state) skip_because(NEEDS_GPU);
  cuda_event never = NULL;
  float ms = 0.0f;
  assert_int_equal(device_event_create(&never, true), STAGE_OK);
  assert_int_equal(device_event_elapsed_ms(never, never, &ms), STAGE_DEVICE);
  check_blur(*state, 65, 130, 5, BORDER_REFLECT_101, PATTERN_RAMP);
  check_blur(*state, 65, 130, 4, BORDER_REFLECT_101, PATTERN_RAMP);
  (void)device_error_text(); /* clears the error */
  device_event_destroy(never);
}

/* ------------------------------------------------- chains */

static void check_chain(cuda_stream stream, int32_t width, int32_t height, const int32_t *radii, int32_t count,
                        border_mode border) {
  gaussian_filter filters[LEVELS_MAX];
  guarded_plane levels[4], work = host_plane(width, height), half = host_plane(width / 2, height / 2);
  octave_view o = {NULL, 0, device_stride(width), width, height, 0};
  o.level_floats = (o.stride * (size_t)height + 2 * PLANE_SLACK_FLOATS - 1) / PLANE_SLACK_FLOATS * PLANE_SLACK_FLOATS;
  const size_t bytes = o.level_floats * (size_t)(count + 2) * sizeof(float);
  assert_int_equal(device_alloc((void **)&o.levels, bytes), STAGE_OK);
  assert_int_equal(device_clear(o.levels, bytes, stream), STAGE_OK);
  levels[0] = host_plane(width, height);
  plane_fill(&levels[0], PATTERN_NOISE, 9);
  for (int32_t i = 0; i < count; i++) {
    filters[i + 2] = filter_of(radii[i]);
    levels[i + 1] = host_plane(width, height);
    const blur_args blur = {levels[i].view, levels[i + 1].view, work.view, border, &filters[i + 2], {0}};
    assert_int_equal(blur_ref(NULL, &blur), STAGE_OK);
  }
  const halve_args halve = {levels[count].view, half.view, {0}};
  assert_int_equal(halve_ref(NULL, &halve), STAGE_OK);
  chain_launch_args args = {o, 2, count, device_plane(stream, width / 2, height / 2), border, filters, {1, 0}};
  to_device(stream, octave_level(&o, 1), &levels[0]);
  assert_true(chain_fits(&args));
  assert_int_equal(chain_launch(&args, stream), STAGE_OK);
  for (int32_t i = 0; i <= count; i++) check_plane(stream, octave_level(&o, i + 1), &levels[i], "chain");
  check_plane(stream, args.halved, &half, "chain, halved");
  device_free(args.halved.data);
  device_free(o.levels);
  for (int32_t i = 0; i <= count; i++) plane_free(&levels[i]);
  plane_free(&work);
  plane_free(&half);
}

TEST(test_chains) {
  static const int32_t lowe[] = {5, 7, 8}, opencv[] = {5, 6, 8}, upper[] = {10, 13};
  if (!*state) skip_because(NEEDS_GPU);
  for (int b = BORDER_REFLECT_101; b <= BORDER_REPLICATE; b++) {
    for (size_t i = 0; i < SIZE_COUNT; i++) {
      check_chain(*state, sizes[i][0], sizes[i][1], lowe, 3, (border_mode)b);
      check_chain(*state, sizes[i][0], sizes[i][1], opencv, 3, (border_mode)b);
      check_chain(*state, sizes[i][0], sizes[i][1], upper, 2, (border_mode)b);
    }
    check_chain(*state, 401, 300, lowe, 3, (border_mode)b); /* large enough for large tiles */
    check_chain(*state, 401, 300, opencv, 3, (border_mode)b);
    check_chain(*state, 301, 250, upper, 2, (border_mode)b);
  }
}

/* ------------------------------------------------- base */

/* Makes a picture of random samples in a separate block. Rows are `padding` bytes apart. */
static source_view source_make(int32_t width, int32_t height, source_type type, source_layout layout, size_t padding) {
  static const size_t sample_bytes[] = {1, 2, 4}, channels[] = {1, 2, 3, 3, 4, 4};
  source_view s = {
      NULL, width,  height, (size_t)width * channels[layout] * sample_bytes[type] + padding * sample_bytes[type],
      type, layout, -0.25f, 1.5f};
  const size_t bytes = s.stride_bytes * (size_t)height;
  uint32_t seed = 77;
  uint8_t *data = malloc(bytes);
  assert_non_null(data);
  for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)stage_random(&seed);
  for (size_t i = 0; type == SOURCE_F32 && i + 4 <= bytes; i += 4) {
    /* some values are outside the range */
    const float v = i == 0 ? -3.0f : (float)(stage_random(&seed) % 2001) / 1000.0f - 0.5f;
    memcpy(data + i, &v, sizeof v);
  }
  s.data = data;
  return s;
}

typedef struct base_case {
  int32_t width, height, first_octave, radius;
  source_type type;
  source_layout layout;
  upsample_grid grid;
  border_mode border;
  size_t padding;
} base_case;

static void describe_case(const base_case *c, const char *how, char *text, size_t bytes) {
  snprintf(text, bytes, "%s of %dx%d, octave %d, radius %d, type %d, layout %d, grid %d, border %d", how, c->width,
           c->height, c->first_octave, c->radius, (int)c->type, (int)c->layout, (int)c->grid, (int)c->border);
}

static void clear_plane(cuda_stream stream, plane_view p) {
  assert_int_equal(device_clear(p.data, p.stride * (size_t)p.height * sizeof(float), stream), STAGE_OK);
}

/* Makes a fused base in bands. Before each band only the rows that the bands up to it may read are uploaded; the others
 * hold noise. */
static void check_bands(cuda_stream stream, const base_case *c, base_args args, const source_view *source,
                        const guarded_plane *out, int32_t bands) {
  char what[160];
  describe_case(c, "bands", what, sizeof what);
  const size_t bytes = source->stride_bytes * (size_t)c->height;
  uint8_t *noise = malloc(bytes);
  uint32_t seed = 5;
  assert_non_null(noise);
  for (size_t i = 0; i < bytes; i++) noise[i] = (uint8_t)stage_random(&seed);
  void *picture = (void *)(uintptr_t)args.source.data;
  assert_int_equal(device_copy_to(picture, noise, bytes, stream), STAGE_OK);
  clear_plane(stream, args.out);
  for (int32_t band = 0, before = 0; band < bands; band++) {
    const int32_t rows = base_band_rows(&args, band, bands);
    assert_true(rows >= before && rows <= c->height);
    if (band + 1 == bands) assert_int_equal(rows, c->height);
    before = rows;
    assert_int_equal(device_copy_to(picture, source->data, source->stride_bytes * (size_t)rows, stream), STAGE_OK);
    assert_int_equal(base_band_launch(&args, band, bands, stream), STAGE_OK);
  }
  check_plane(stream, args.out, out, what);
  free(noise);
}

/* Makes the base of the picture twice in one launch. The planes of both copies are in one block. */
static void check_group(cuda_stream stream, const base_case *c, const base_args *one, const guarded_plane *out) {
  char what[160];
  describe_case(c, "group", what, sizeof what);
  const size_t plane = (one->out.stride * (size_t)one->out.height + PLANE_SLACK_FLOATS + 63) / 64 * 64 * sizeof(float),
               picture = (one->source.stride_bytes * (size_t)c->height + 255) / 256 * 256;
  const picture_group group = {2, picture + 4 * plane};
  unsigned char *memory = NULL;
  assert_int_equal(device_alloc((void **)&memory, 2 * group.stride_bytes), STAGE_OK);
  assert_int_equal(device_clear(memory, 2 * group.stride_bytes, stream), STAGE_OK);
  base_args args = *one;
  args.source.data = memory;
  plane_view *const planes[] = {&args.gray, &args.work, &args.doubled, &args.out};
  for (size_t i = 0; i < 4; i++) planes[i]->data = (float *)(void *)(memory + picture + i * plane);
  for (size_t i = 0; i < 2; i++)
    assert_int_equal(device_copy_rows_to(memory + i * group.stride_bytes, one->source.stride_bytes, one->source.data,
                                         one->source.stride_bytes, one->source.stride_bytes, (size_t)c->height, stream),
                     STAGE_OK);
  assert_int_equal(base_group_launch(&args, group, stream), STAGE_OK);
  for (size_t i = 0; i < 2; i++) {
    plane_view got = args.out;
    got.data = (float *)(void *)((unsigned char *)got.data + i * group.stride_bytes);
    check_plane(stream, got, out, what);
  }
  device_free(memory);
}

/* Makes the base on a device: in one launch, twice in a group if the radius has a kernel, and in bands if the base is
 * fused. */
static void check_base_on_device(cuda_stream stream, const base_case *c, const base_args *host,
                                 const guarded_plane *out) {
  const source_view *source = &host->source;
  const size_t bytes = source->stride_bytes * (size_t)c->height;
  base_args args = *host;
  void *pixels = NULL;
  char what[160];
  assert_int_equal(device_alloc(&pixels, bytes), STAGE_OK);
  assert_int_equal(device_copy_to(pixels, source->data, bytes, stream), STAGE_OK);
  args.source.data = pixels;
  plane_view *const planes[] = {&args.gray, &args.work, &args.doubled, &args.out};
  for (size_t i = 0; i < 4; i++) *planes[i] = device_plane(stream, planes[i]->width, planes[i]->height);
  assert_int_equal(base_is_fused(&args), c->first_octave < 0 && c->type == SOURCE_U8 && c->layout == SOURCE_GRAY &&
                                             source->stride_bytes % 4 == 0 && !blur_needs_work(c->radius));
  assert_int_equal(base_launch(&args, stream), STAGE_OK);
  describe_case(c, base_is_fused(&args) ? "fused base" : "base", what, sizeof what);
  check_plane(stream, args.out, out, what);
  if (!blur_needs_work(c->radius)) check_group(stream, c, &args, out);
  if (base_is_fused(&args)) {
    check_bands(stream, c, args, source, out, 1);
    check_bands(stream, c, args, source, out, 3);
  }
  for (size_t i = 0; i < 4; i++) device_free(planes[i]->data);
  device_free(pixels);
}

static void check_base(cuda_stream stream, const base_case *c) {
  const bool doubled = c->first_octave < 0;
  const int32_t w = doubled ? 2 * c->width : c->width >> c->first_octave,
                h = doubled ? 2 * c->height : c->height >> c->first_octave;
  if (w < 1 || h < 1) return;
  const gaussian_filter filter = filter_of(c->radius);
  const source_view source = source_make(c->width, c->height, c->type, c->layout, c->padding);
  SCOPED_BY(plane_free)
  guarded_plane gray = host_plane(c->width, c->height), work = host_plane(w, h), wide = host_plane(w, h),
                out = host_plane(w, h);
  const base_args host = {.source = source,
                          .first_octave = c->first_octave,
                          .grid = c->grid,
                          .border = c->border,
                          .filter = &filter,
                          .gray = gray.view,
                          .work = work.view,
                          .doubled = wide.view,
                          .out = out.view};
  assert_int_equal(base_ref(NULL, &host), STAGE_OK);
  check_base_on_device(stream, c, &host, &out);
  free((void *)(uintptr_t)source.data);
}

/* Returns the bytes of row padding that make rows of a u8 gray picture start at words, plus `words` words. */
static size_t word_padding(int32_t width, size_t words) { return (size_t)(-width & 3) + 4 * words; }

/* One kernel makes the base of u8 gray pictures, on both grids. Covers every radius, pictures that begin and end at any
 * byte of a word, pictures of one sample, rows shorter than a word, and several strips and blocks. */
TEST(test_fused_bases) {
  static const int32_t radii[] = {5, 6, 7, 8, 10, 13};
  if (!*state) skip_because(NEEDS_GPU);
  for (size_t r = 0; r < sizeof radii / sizeof radii[0]; r++)
    for (int k = 0; k < 4; k++) {
      const upsample_grid grid = k & 1 ? GRID_HALF_PIXEL : GRID_ALIGNED;
      const border_mode border = k & 2 ? BORDER_REPLICATE : BORDER_REFLECT_101;
      base_case c = {0, 0, -1, radii[r], SOURCE_U8, SOURCE_GRAY, grid, border, 0};
      for (size_t i = 0; i < SIZE_COUNT; i++) {
        c.width = sizes[i][0], c.height = sizes[i][1], c.padding = word_padding(c.width, i % 3);
        check_base(*state, &c);
      }
      for (c.width = 1; c.width <= 9; c.width++)
        for (c.height = 1; c.height <= 3; c.height++) {
          c.padding = word_padding(c.width, 0);
          check_base(*state, &c);
        }
      c.width = 300 + (int32_t)r, c.height = 1200 + k, c.padding = word_padding(c.width, 0);
      check_base(*state, &c);
    }
}

/* Covers pictures of every kind. Most need several kernels, for example u8 gray with rows that start between words. */
TEST(test_bases) {
  if (!*state) skip_because(NEEDS_GPU);
  for (size_t i = 0; i < SIZE_COUNT; i++) {
    const int32_t w = sizes[i][0], h = sizes[i][1];
    for (int t = SOURCE_U8; t <= SOURCE_F32; t++)
      for (int l = SOURCE_GRAY; l <= SOURCE_BGRA; l++)
        for (int32_t first = -1; first <= 2; first++)
          for (int g = GRID_ALIGNED; g <= GRID_HALF_PIXEL; g++)
            check_base(*state, &(base_case){w, h, first, l % 2 ? 4 : 7, (source_type)t, (source_layout)l,
                                            (upsample_grid)g, BORDER_REFLECT_101, (size_t)l + 1});
  }
}

/* ------------------------------------------------- extremum search */

typedef struct extrema_case {
  int32_t width, height, scales, border;
  float above;
  bool ties, stored;
  /* number of different sample values; a small number gives ties. 0: zeros of both signs and denormal numbers */
  uint32_t shades;
} extrema_case;

static float shade_of(uint32_t random, uint32_t shades) {
  static const float tiny[] = {0.0f,     -0.0f,   FLT_TRUE_MIN,   -FLT_TRUE_MIN, 3.0f * FLT_TRUE_MIN,
                               -FLT_MIN, FLT_MIN, 0.75f * FLT_MIN};
  return shades ? (float)(random % shades) / (float)shades : tiny[random % (sizeof tiny / sizeof tiny[0])];
}

/* Searches one octave of random levels; returns the number of candidates. */
static uint64_t check_extrema(cuda_stream stream, const extrema_case *c) {
  const int32_t levels = c->scales + 3, words_per_row = mask_words_per_row(c->width);
  octave_view o = {NULL, 0, device_stride(c->width), c->width, c->height, 0}, device;
  o.level_floats =
      (o.stride * (size_t)c->height + 2 * PLANE_SLACK_FLOATS - 1) / PLANE_SLACK_FLOATS * PLANE_SLACK_FLOATS;
  const size_t floats = o.level_floats * (size_t)levels,
               words = (size_t)words_per_row * (size_t)c->height * (size_t)c->scales;
  float *dog = calloc(floats, sizeof(float)), *d_dog = NULL;
  uint32_t *want = malloc(words * sizeof *want), *got = malloc(words * sizeof *got), *d_words = NULL, seed = 3;
  o.levels = malloc(floats * sizeof(float));
  assert_true(o.levels && dog && want && got);
  for (size_t i = 0; i < floats; i++) o.levels[i] = shade_of(stage_random(&seed), c->shades);
  for (size_t i = 0; i + o.level_floats < floats; i++) dog[i] = o.levels[i + o.level_floats] - o.levels[i];
  uint64_t count = 0;
  extrema_args host = {.octave = o, .candidates = {want, words_per_row}, .count = &count};
  host.params.scales = c->scales;
  host.params.border = c->border;
  host.params.candidate_above = c->above;
  host.params.extremum_ties = c->ties;
  assert_int_equal(extrema_ref(NULL, &host), STAGE_OK);
  device = o;
  assert_int_equal(device_alloc((void **)&device.levels, floats * sizeof(float)), STAGE_OK);
  assert_int_equal(device_alloc((void **)&d_dog, floats * sizeof(float)), STAGE_OK);
  assert_int_equal(device_alloc((void **)&d_words, words * sizeof *want), STAGE_OK);
  assert_int_equal(device_copy_to(device.levels, o.levels, floats * sizeof(float), stream), STAGE_OK);
  assert_int_equal(device_copy_to(d_dog, dog, floats * sizeof(float), stream), STAGE_OK);
  memset(got, 0xa5, words * sizeof *got); /* every word must be written */
  assert_int_equal(device_copy_to(d_words, got, words * sizeof *got, stream), STAGE_OK);
  const extrema_octave octave = {device, c->stored ? d_dog : NULL, {d_words, words_per_row}};
  const extrema_launch_args args = {&octave, 1, host.params, 1, 0};
  assert_int_equal(extrema_launch(&args, stream), STAGE_OK);
  assert_int_equal(device_copy_from(got, d_words, words * sizeof *got, stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  if (memcmp(got, want, words * sizeof *got) != 0)
    fail_msg("%dx%d, %d scales, border %d, above %g, ties %d, stored %d, %u shades", c->width, c->height, c->scales,
             c->border, (double)c->above, c->ties, c->stored, (unsigned)c->shades);
  device_free(device.levels);
  device_free(d_dog);
  device_free(d_words);
  free(o.levels);
  free(dog);
  free(want);
  free(got);
  return count;
}

TEST(test_candidates) {
  static const uint32_t shades[] = {2, 5, 65536}; /* two values: nearly every sample equals a neighbour */
  if (!*state) skip_because(NEEDS_GPU);
  uint64_t found = 0;
  for (size_t i = 0; i < SIZE_COUNT; i++)
    for (int32_t scales = 1; scales <= 5; scales++)
      for (int k = 0; k < 48; k++) { /* all combinations of the two bits and the number of shades */
        const extrema_case c = {sizes[i][0],  sizes[i][1],  scales,       k & 1 ? 5 : 1, k & 2 ? 0.3f : -1e-38f,
                                (k & 4) != 0, (k & 8) != 0, shades[k % 3]};
        found += check_extrema(*state, &c);
      }
  assert_true(found > 10000);
  /* blocks march many steps, and more samples wait than a warp's list holds */
  assert_true(check_extrema(*state, &(extrema_case){1000, 2000, 3, 1, 0.1f, false, false, 65536}) > 100000);
}

/* Samples and thresholds are near zero, where the marching kernel's comparison of bits has special cases. The largest
 * threshold is tried too. */
TEST(test_candidates_near_zero) {
  static const float thresholds[] = {-0.0f, 0.0f, FLT_TRUE_MIN, 0.75f * FLT_MIN, FLT_MIN, FLT_MAX};
  if (!*state) skip_because(NEEDS_GPU);
  uint64_t found = 0;
  for (size_t t = 0; t < sizeof thresholds / sizeof thresholds[0]; t++)
    for (int k = 0; k < 16; k++) {
      const extrema_case c = {333, 117, k & 1 ? 3 : 2, k & 2 ? 5 : 1, thresholds[t], (k & 4) != 0, (k & 8) != 0, 0};
      found += check_extrema(*state, &c);
    }
  assert_true(found > 10000);
}

/* Octaves searched in one launch give the result of separate launches. */
TEST(test_octaves_together) {
  if (!*state) skip_because(NEEDS_GPU);
  enum { COUNT = 3, STRIDE = 160, LEVEL_FLOATS = STRIDE * 100 + 64, LEVELS = 6, WORDS = 5 * 100 * 3 };
  cuda_stream stream = *state;
  float *levels = NULL, *host = malloc(sizeof(float) * LEVEL_FLOATS * LEVELS);
  uint32_t *words = NULL, got[2][COUNT * WORDS], seed = 8;
  assert_non_null(host);
  for (size_t i = 0; i < (size_t)LEVEL_FLOATS * LEVELS; i++) host[i] = (float)(stage_random(&seed) % 4096) / 4096.0f;
  assert_int_equal(device_alloc((void **)&levels, sizeof(float) * LEVEL_FLOATS * LEVELS), STAGE_OK);
  assert_int_equal(device_alloc((void **)&words, sizeof got[0]), STAGE_OK);
  assert_int_equal(device_copy_to(levels, host, sizeof(float) * LEVEL_FLOATS * LEVELS, stream), STAGE_OK);
  extrema_octave octaves[COUNT];
  for (int32_t i = 0; i < COUNT; i++) {
    octaves[i].octave = (octave_view){levels, LEVEL_FLOATS, STRIDE, 150 - 50 * i, 100 - 31 * i, i};
    octaves[i].dog = NULL;
    octaves[i].candidates = (mask_view){words + i * WORDS, mask_words_per_row(150 - 50 * i)};
  }
  const sift_params params = {.scales = 3, .border = 5, .candidate_above = 0.2f};
  for (int together = 0; together < 2; together++) {
    assert_int_equal(device_clear(words, sizeof got[0], stream), STAGE_OK);
    for (int32_t i = 0; i < (together ? 1 : COUNT); i++) {
      const extrema_launch_args args = {&octaves[i], together ? COUNT : 1, params, 1, 0};
      assert_int_equal(extrema_launch(&args, stream), STAGE_OK);
    }
    assert_int_equal(device_copy_from(got[together], words, sizeof got[0], stream), STAGE_OK);
    assert_int_equal(device_stream_wait(stream), STAGE_OK);
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
  uint32_t any = 0;
  for (size_t i = 0; i < COUNT * WORDS; i++) any |= got[0][i];
  assert_true(any != 0);
  device_free(levels);
  device_free(words);
  free(host);
}

TESTS_BETWEEN(open_device, close_device)

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
