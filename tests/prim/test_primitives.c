/* The public reductions, tiles, histogram and equalisation against oracles that share no code with them: every type,
   every length up to 1100 and primes beyond, strides, one-pixel rows, special values; with any number of threads. */

#include "tests/support/test.h"

#include "tests/support/array_maker.h"
#include "tests/support/primitive_oracle.h"

enum { CONTEXTS = 4 };

/* Contexts of 1, 2 and 5 threads, and null for calls without a context. */
typedef struct fixture {
  hs_context *contexts[CONTEXTS];
  counted_allocator counter;
  hs_allocator allocator;
} fixture;

static int setup(void **state) {
  static const int32_t threads[CONTEXTS] = {0, 1, 2, 5};
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->allocator = counted_allocator_make(&f->counter);
  for (int i = 1; i < CONTEXTS; i++) {
    hs_options options;
    assert_int_equal(hs_options_init(&options, HS_PROFILE_LOWE), HS_OK);
    options.device = HS_DEVICE_CPU;
    options.threads = threads[i];
    options.allocator = &f->allocator;
    assert_int_equal(hs_create(&f->contexts[i], &options), HS_OK);
  }
  *state = f;
  return 0;
}

static int teardown(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  for (int i = 0; i < CONTEXTS; i++) hs_destroy(f->contexts[i]);
  assert_int_equal(f->counter.alive, 0);
  return 0;
}

static bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Returns the canonical NaN of results for any NaN of the oracle. */
static double plain(double v) { return isnan(v) ? (double)NAN : v; }

static void check_equal(double got, double expected, const char *what, const hs_array *a) {
  if (!same_bits(got, plain(expected)))
    fail_msg("%s of %zu x %zu of type %d, stride %zu: %a, expected %a", what, a->width, a->height, (int)a->type,
             a->stride_bytes, got, expected);
}

static int floors(size_t n) { return n <= 1024 ? 1 : (n <= (size_t)1 << 20 ? 2 : 3); }

static void check_reductions(const fixture *f, const hs_array *a) {
  const oracle_figures o = oracle_reduce(a, 0.0);
  if (a->type >= HS_ELEMENT_F32 && o.magnitude < 1e300L) {
    const long double bound = 36.0L * floors(a->width * a->height) * 0x1p-53L * o.magnitude;
    assert_true(fabsl((long double)o.figures.sum - o.sum) <= bound);
  }
  for (int i = 0; i < CONTEXTS; i++) {
    hs_context *c = f->contexts[i];
    double sum, mean, min, max, low, high;
    assert_int_equal(hs_reduce_sum(c, a, &sum), HS_OK);
    assert_int_equal(hs_reduce_mean(c, a, &mean), HS_OK);
    assert_int_equal(hs_reduce_min(c, a, &min), HS_OK);
    assert_int_equal(hs_reduce_max(c, a, &max), HS_OK);
    assert_int_equal(hs_reduce_range(c, a, &low, &high), HS_OK);
    check_equal(sum, o.figures.sum, "sum", a);
    check_equal(mean, o.figures.mean, "mean", a);
    check_equal(min, o.figures.min, "minimum", a);
    check_equal(max, o.figures.max, "maximum", a);
    assert_true(same_bits(min, low) && same_bits(max, high));
  }
}

static void *new_elements(size_t n, hs_element type, array_content content) {
  void *data = malloc(n * prim_element_bytes((prim_element)type));
  assert_non_null(data);
  array_fill(data, (prim_element)type, n, content, (uint64_t)content + 31);
  return data;
}

TEST(test_lengths) {
  static const size_t beyond[] = {1279, 4093, 32768, 32769, 65537, 104729};
  for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64; type++)
    for (int content = 0; content < CONTENT_COUNT; content++) {
      SCOPED_MEMORY void *data = new_elements(104729, (hs_element)type, (array_content)content);
      for (size_t n = 1; n <= 1100; n += content == CONTENT_RANDOM ? 1 : 13) {
        const hs_array a = {.data = data, .width = n, .height = 1, .type = (hs_element)type};
        check_reductions(*state, &a);
      }
      for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        const hs_array a = {.data = data, .width = beyond[i], .height = 1, .type = (hs_element)type};
        check_reductions(*state, &a);
      }
    }
}

/* Rows are shorter and longer than a chunk of the tree, or one pixel; padded or not. */
TEST(test_views) {
  static const size_t sizes[][2] = {{1, 1}, {1, 3000}, {3, 701}, {1000, 9}, {1024, 5}, {2500, 7}, {641, 479}};
  for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64; type++)
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
      for (size_t padding = 0; padding < 8; padding += 7) {
        const size_t w = sizes[s][0], h = sizes[s][1], bytes = prim_element_bytes((prim_element)type);
        SCOPED_MEMORY void *data =
            new_elements((w + padding) * h, (hs_element)type, s % 2 ? CONTENT_SOME_NAN : CONTENT_RANDOM);
        const hs_array a = {data, w, h, (w + padding) * bytes, (hs_element)type};
        check_reductions(*state, &a);
      }
}

/* There are more chunks than one batch and one tree level hold, in whole rows and in rows across which chunks
   extend. */
TEST(test_large) {
  const size_t n = ((size_t)5 << 20) + 12345;
  for (int type = HS_ELEMENT_F32; type <= HS_ELEMENT_F64; type++) {
    SCOPED_MEMORY void *data = new_elements(n, (hs_element)type, CONTENT_RANDOM);
    const size_t bytes = prim_element_bytes((prim_element)type);
    const hs_array line = {data, n, 1, 0, (hs_element)type};
    const hs_array rows = {data, 1500, n / 1501, 1501 * bytes, (hs_element)type};
    check_reductions(*state, &line);
    check_reductions(*state, &rows);
  }
}

static void check_tiles(const fixture *f, const hs_array *a, const hs_tiling *t) {
  const size_t columns = (a->width + t->width - 1) / t->width, rows = (a->height + t->height - 1) / t->height;
  SCOPED_MEMORY hs_tile *tiles = calloc(columns * rows + 1, sizeof *tiles);
  assert_non_null(tiles);
  for (int i = 0; i < CONTEXTS; i++) {
    size_t count = 0;
    assert_int_equal(hs_tile_stats(f->contexts[i], a, t, tiles, columns * rows + 1, &count), HS_OK);
    assert_int_equal(count, columns * rows);
    assert_true(tiles[count].sum == 0.0 && tiles[count].above == 0);
    for (size_t k = 0; k < count; k++) {
      const size_t x = k % columns * t->width, y = k / columns * t->height;
      const hs_array part = oracle_part(a, x, y, a->width - x < t->width ? a->width - x : t->width,
                                        a->height - y < t->height ? a->height - y : t->height);
      const oracle_figures o = oracle_reduce(&part, t->threshold);
      check_equal(tiles[k].sum, o.figures.sum, "tile's sum", &part);
      check_equal(tiles[k].mean, o.figures.mean, "tile's mean", &part);
      check_equal(tiles[k].min, o.figures.min, "tile's minimum", &part);
      check_equal(tiles[k].max, o.figures.max, "tile's maximum", &part);
      if (tiles[k].above != o.figures.above)
        fail_msg("tile of %zu x %zu, type %d: %llu above %g, expected %llu", part.width, part.height, (int)a->type,
                 (unsigned long long)tiles[k].above, t->threshold, (unsigned long long)o.figures.above);
    }
  }
}

TEST(test_tiles) {
  static const hs_tiling tilings[] = {{40, 40, 100.0}, {1, 1, 0.0},      {7, 3, -1.0},
                                      {64, 64, 254.0}, {65, 1, 255.0},   {1, 100, 1e9},
                                      {33, 37, 0.05},  {9999, 13, 36.5}, {9999, 9999, 0.5}};
  const size_t w = 203, h = 101, padding = 5;
  for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64; type++)
    for (int content = CONTENT_RANDOM; content <= CONTENT_ALL_NAN; content += 3) {
      SCOPED_MEMORY void *data = new_elements((w + padding) * h, (hs_element)type, (array_content)content);
      const hs_array a = {data, w, h, (w + padding) * prim_element_bytes((prim_element)type), (hs_element)type};
      for (size_t t = 0; t < sizeof tilings / sizeof tilings[0]; t++) check_tiles(*state, &a, &tilings[t]);
    }
}

/* There are enough tiles and pixels for several threads. */
TEST(test_many_tiles) {
  const hs_tiling tiling = {40, 40, 127.0}, none = {31, 29, (double)NAN};
  SCOPED_MEMORY void *data = new_elements(2000 * 500, HS_ELEMENT_U8, CONTENT_RANDOM);
  const hs_array a = {data, 2000, 500, 0, HS_ELEMENT_U8};
  check_tiles(*state, &a, &tiling);
  check_tiles(*state, &a, &none);
}

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, fixture, f, NULL, NULL)

SHARED_TEST(test_tile_capacity) {
  uint8_t data[100];
  hs_tile tiles[10], all[100];
  size_t count = 0;
  array_fill(data, PRIM_U8, sizeof data, CONTENT_RANDOM, 3);
  memset(tiles, 0, sizeof tiles);
  const hs_array a = {data, 10, 10, 0, HS_ELEMENT_U8};
  const hs_tiling tiling = {3, 3, 10.0};
  assert_int_equal(hs_tile_stats(f->contexts[1], &a, &tiling, NULL, 0, &count), HS_ERR_CAPACITY);
  assert_int_equal(count, 16);
  assert_int_equal(hs_tile_stats(f->contexts[1], &a, &tiling, all, 100, &count), HS_OK);
  assert_int_equal(hs_tile_stats(f->contexts[1], &a, &tiling, tiles, 9, &count), HS_ERR_CAPACITY);
  assert_int_equal(count, 16);
  assert_non_null(strstr(hs_last_error(f->contexts[1]), "16 tiles"));
  assert_memory_equal(tiles, all, 9 * sizeof *tiles);
  assert_true(tiles[9].sum == 0.0);
}

SHARED_TEST(test_histogram) {
  static const size_t sizes[][3] = {{1, 1, 1},       {1, 700, 3},       {7, 5, 7},
                                    {641, 479, 650}, {1200, 900, 1200}, {2048, 2047, 2048}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int content = CONTENT_RANDOM; content <= CONTENT_CONSTANT; content++) {
      const size_t w = sizes[s][0], h = sizes[s][1], stride = sizes[s][2];
      const size_t kept_stride = stride + (s % 2) * 3; /* every other mask has padded rows */
      SCOPED_MEMORY uint8_t *data = new_elements(stride * h, HS_ELEMENT_U8, (array_content)content);
      SCOPED_MEMORY uint8_t *kept = new_elements(kept_stride * h, HS_ELEMENT_U8, CONTENT_RANDOM);
      for (size_t i = 0; i < kept_stride * h; i++) kept[i] &= 0x83;
      const hs_array a = {data, w, h, stride, HS_ELEMENT_U8}, mask = {kept, w, h, kept_stride, HS_ELEMENT_U8};
      uint64_t expected[2][256] = {{0}}, counts[256];
      for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++) {
          expected[0][data[y * stride + x]]++;
          if (kept[y * kept_stride + x] != 0) expected[1][data[y * stride + x]]++;
        }
      for (int i = 0; i < CONTEXTS; i++)
        for (int masked = 0; masked < 2; masked++) {
          memset(counts, 0x77, sizeof counts);
          assert_int_equal(hs_histogram256(f->contexts[i], &a, masked ? &mask : NULL, counts), HS_OK);
          assert_memory_equal(counts, expected[masked], sizeof counts);
        }
    }
}

/* Equalises by the documented formula; rintf rounds halves to even. */
static void equalize_oracle(const uint8_t *in, size_t w, size_t h, size_t stride, uint8_t *out, size_t out_stride) {
  uint64_t counts[256] = {0}, sum = 0;
  uint8_t level[256] = {0};
  int first = 0;
  for (size_t y = 0; y < h; y++)
    for (size_t x = 0; x < w; x++) counts[in[y * stride + x]]++;
  while (counts[first] == 0) first++;
  for (int k = first + 1; k < 256 && counts[first] < w * h; k++) {
    sum += counts[k];
    const float rounded = rintf((float)sum * (255.0f / (float)(w * h - counts[first])));
    level[k] = rounded > 255.0f ? 255 : (uint8_t)rounded;
  }
  if (counts[first] == w * h) level[first] = (uint8_t)first;
  for (size_t y = 0; y < h; y++)
    for (size_t x = 0; x < w; x++) out[y * out_stride + x] = level[in[y * stride + x]];
}

SHARED_TEST(test_equalize) {
  static const size_t sizes[][2] = {{1, 1}, {2, 1}, {13, 11}, {640, 480}, {1300, 700}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (size_t padding = 0; padding < 4; padding += 3)
      for (int content = CONTENT_RANDOM; content <= CONTENT_CONSTANT; content++) {
        const size_t w = sizes[s][0], h = sizes[s][1], stride = w + padding, bytes = stride * h;
        SCOPED_MEMORY uint8_t *data = new_elements(bytes, HS_ELEMENT_U8, (array_content)content);
        SCOPED_MEMORY uint8_t *out = malloc(bytes), *expected = malloc(bytes);
        assert_true(out && expected);
        for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)(data[i] / 3 + 20);
        const hs_array a = {data, w, h, stride, HS_ELEMENT_U8};
        for (int i = 0; i < CONTEXTS; i++) {
          memset(out, 9, bytes);
          memset(expected, 9, bytes);
          equalize_oracle(data, w, h, stride, expected, w);
          assert_int_equal(hs_equalize(f->contexts[i], &a, out, 0), HS_OK);
          assert_memory_equal(out, expected, bytes);
        }
        memcpy(expected, data, bytes);
        equalize_oracle(data, w, h, stride, expected, stride);
        assert_int_equal(hs_equalize(f->contexts[2], &a, data, stride), HS_OK); /* works in place */
        assert_memory_equal(data, expected, bytes);
      }
}

/* Calls allocate nothing. */
SHARED_TEST(test_no_allocation) {
  const size_t made = f->counter.made, n = (size_t)1 << 20;
  double *data = new_elements(n, HS_ELEMENT_F64, CONTENT_RANDOM), sum;
  const hs_array a = {data, n, 1, 0, HS_ELEMENT_F64}, bytes = {data, 1024, 1024, 0, HS_ELEMENT_U8};
  const hs_tiling tiling = {1 << 19, 1, 0.0};
  const double taps[5] = {0.2, 0.2, 0.2, 0.2, 0.2};
  uint64_t counts[256];
  hs_tile tiles[2];
  size_t count;
  SCOPED_MEMORY double *out = malloc(n * sizeof *out);
  assert_non_null(out);
  f->counter.fail_at = made + 1;
  assert_int_equal(hs_reduce_sum(f->contexts[3], &a, &sum), HS_OK);
  assert_int_equal(hs_reduce_min(f->contexts[3], &a, &sum), HS_OK);
  assert_int_equal(hs_tile_stats(f->contexts[3], &a, &tiling, tiles, 2, &count), HS_OK);
  assert_int_equal(hs_histogram256(f->contexts[3], &bytes, NULL, counts), HS_OK);
  assert_int_equal(hs_equalize(f->contexts[3], &bytes, (uint8_t *)out, 0), HS_OK);
  assert_int_equal(hs_convolve1d(f->contexts[3], &a, taps, 5, HS_ENDS_ZERO, out, 0), HS_OK);
  f->counter.fail_at = 0;
  assert_int_equal(f->counter.made, made);
  free(data);
}

TESTS_BETWEEN(setup, teardown)
