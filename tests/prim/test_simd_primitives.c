/* Every variant of the primitives on contiguous runs equals the plain C reference.
 *
 * Lengths up to 1100 and larger primes, all contents, unaligned starts, up to more taps than outputs. Floats are
 * compared by their bits, except that intermediate NaNs of a sum may differ. */
#include "tests/support/test.h"

#include "cpu/primitives/primitive_variants.h"
#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_threads.h"
#include "tests/support/array_maker.h"
#include "tests/support/extent.h"

enum { LONGEST = 4099, MOST_SUMS = LONGEST / PRIM_CHUNK + 1 };

static const char *const names[] = {"ref", "sse2", "avx2", "avx512", "neon"};
static const size_t lengths_beyond[] = {1279, 2047, 2048, 2049, 3079, 4093, LONGEST};

/* Returns the length to test after n: 1..1100, then primes. */
static size_t length_after(size_t n) {
  if (n < 1100) return n + 1;
  for (size_t i = 0; i < sizeof lengths_beyond / sizeof lengths_beyond[0]; i++)
    if (lengths_beyond[i] > n) return lengths_beyond[i];
  return 0;
}

static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

/* Has one more element than the longest run, so that runs may begin one element late. */
typedef union test_room {
  uint8_t u8[LONGEST + 1];
  uint16_t u16[LONGEST + 1];
  float f32[LONGEST + 1];
  double f64[LONGEST + 1];
} test_room;

static test_room *new_room(void) {
  test_room *room = malloc(sizeof *room);
  assert_non_null(room);
  return room;
}

static void check_run(const prim_ops *ops, prim_element type, const void *x, size_t n) {
  const double thresholds[] = {-1.0, 0.0, 36.9, 37.0, 0.1, 254.5, 65535.0, (double)NAN, -(double)INFINITY};
  prim_range got = {INFINITY, -INFINITY}, expected = got;
  ops->range[type](x, n, &got);
  prim_ops_ref.range[type](x, n, &expected);
  if (got.low != expected.low || got.high != expected.high)
    fail_msg("%s: range of %zu elements of type %d is %g..%g, not %g..%g", ops->name, n, (int)type, got.low, got.high,
             expected.low, expected.high);
  for (size_t t = 0; t < sizeof thresholds / sizeof thresholds[0]; t++)
    if (ops->count_above[type](x, n, thresholds[t]) != prim_ops_ref.count_above[type](x, n, thresholds[t]))
      fail_msg("%s: count of %zu elements of type %d above %g", ops->name, n, (int)type, thresholds[t]);
  if (type < PRIM_F32) {
    assert_true(ops->sum[type](x, n) == prim_ops_ref.sum[type](x, n));
    return;
  }
  double sums[MOST_SUMS], expected_sums[MOST_SUMS];
  ops->sum_chunks[type & 1](x, n, sums);
  prim_ops_ref.sum_chunks[type & 1](x, n, expected_sums);
  for (size_t k = 0; k < (n + PRIM_CHUNK - 1) / PRIM_CHUNK; k++)
    if (!same(sums[k], expected_sums[k]))
      fail_msg("%s: sum of chunk %zu of %zu elements is %a, not %a", ops->name, k, n, sums[k], expected_sums[k]);
}

static void check_runs(const prim_ops *ops) {
  SCOPED_MEMORY test_room *room = new_room();
  for (int type = PRIM_U8; type <= PRIM_F64; type++)
    for (int content = 0; content < CONTENT_COUNT; content++) {
      array_fill(room, (prim_element)type, LONGEST + 1, (array_content)content, (uint64_t)(content + 10 * type));
      for (size_t n = 1; n > 0; n = length_after(n)) {
        if (!extent_pairs(n, (size_t)content, CONTENT_COUNT)) continue;
        const unsigned char *late = (const unsigned char *)room + (n & 1) * prim_element_bytes((prim_element)type);
        check_run(ops, (prim_element)type, late, n);
      }
    }
}

/* Sums of words are moved out of their 32-bit lanes before these overflow. */
static void check_long_words(const prim_ops *ops) {
  const size_t n = (size_t)6 << 20;
  SCOPED_MEMORY uint16_t *x = malloc(n * sizeof *x);
  assert_non_null(x);
  memset(x, 0xff, n * sizeof *x);
  assert_true(ops->sum[PRIM_U16](x, n) == (uint64_t)n * 65535u);
}

static void check_bytes(const prim_ops *ops) {
  enum { WIDTH = 150, HEIGHT = 9, STRIDE = 160 };
  static uint8_t picture[HEIGHT * STRIDE], mask[HEIGHT * STRIDE], out[HEIGHT * STRIDE], expected[HEIGHT * STRIDE];
  uint8_t table[PRIM_LEVELS];
  array_fill(picture, PRIM_U8, sizeof picture, CONTENT_RANDOM, 1);
  array_fill(mask, PRIM_U8, sizeof mask, CONTENT_RANDOM, 2);
  array_fill(table, PRIM_U8, sizeof table, CONTENT_RANDOM, 3);
  for (size_t i = 0; i < sizeof mask; i++) mask[i] &= 1;
  for (size_t w = 1; w <= WIDTH; w++) {
    const prim_view tile = {picture + w % 3, w, HEIGHT, STRIDE, PRIM_U8}, kept = {mask, w, HEIGHT, STRIDE, PRIM_U8};
    const prim_view none = {0};
    for (double t = -1.5; t < 258.0; t += 28.5) {
      prim_tile a = {0}, b = {0};
      ops->tile_u8(&tile, t, &a);
      prim_ops_ref.tile_u8(&tile, t, &b);
      if (memcmp(&a, &b, sizeof a) != 0) fail_msg("%s: tile of width %zu, threshold %g", ops->name, w, t);
    }
    for (int masked = 0; masked < 2; masked++) {
      uint64_t a[PRIM_LEVELS] = {0}, b[PRIM_LEVELS] = {0};
      ops->histogram(&tile, masked ? &kept : &none, a);
      prim_ops_ref.histogram(&tile, masked ? &kept : &none, b);
      assert_true(memcmp(a, b, sizeof a) == 0);
    }
    memset(out, 7, sizeof out);
    memset(expected, 7, sizeof expected);
    ops->map(picture + w % 3, out, w * 6, table);
    prim_ops_ref.map(picture + w % 3, expected, w * 6, table);
    assert_true(memcmp(out, expected, sizeof out) == 0);
  }
}

static void check_filter(const prim_ops *ops, prim_element type, const void *x, const double *taps, size_t m,
                         size_t n) {
  static double out[1100], expected[1100];
  memset(out, 0x55, sizeof out);
  memset(expected, 0x55, sizeof expected);
  ops->convolve[type & 1](x, out, n, taps, m);
  prim_ops_ref.convolve[type & 1](x, expected, n, taps, m);
  if (memcmp(out, expected, sizeof out) != 0)
    fail_msg("%s: type %d, %zu outputs, %zu taps", ops->name, (int)type, n, m);
}

static void check_convolution(const prim_ops *ops) {
  const size_t tap_counts[] = {1, 3, 5, 7, 9, 11, 31, 257};
  double taps[257];
  SCOPED_MEMORY test_room *x = new_room();
  array_fill(taps, PRIM_F64, 257, CONTENT_RANDOM, 5);
  for (int type = PRIM_F32; type <= PRIM_F64; type++)
    for (int content = CONTENT_RANDOM; content <= CONTENT_ZEROS; content++) {
      array_fill(x, (prim_element)type, LONGEST + 1, (array_content)content, (uint64_t)content);
      for (size_t k = 0; k < sizeof tap_counts / sizeof tap_counts[0]; k++)
        for (size_t n = 1; n <= 1100; n = n < 70 ? n + 1 : n * 2 - n / 3) {
          if (!extent_pairs(n + k, (size_t)(content - CONTENT_RANDOM), CONTENT_ZEROS - CONTENT_RANDOM + 1)) continue;
          check_filter(ops, (prim_element)type, (unsigned char *)x + prim_element_bytes((prim_element)type), taps,
                       tap_counts[k], n);
        }
    }
}

static void check_variants(void (*check)(const prim_ops *)) {
  int checked = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const prim_ops *ops = cpu_prims_of(names[i]);
    if (ops) check(ops);
    checked += ops != NULL;
  }
  assert_true(checked >= 1);
}

TEST(test_runs) { check_variants(check_runs); }
TEST(test_long_words) { check_variants(check_long_words); }
TEST(test_bytes) { check_variants(check_bytes); }
TEST(test_convolution) { check_variants(check_convolution); }

TEST(test_names) {
  assert_true(!cpu_prims_of("mmx"));
  assert_true(cpu_prims_of("ref") == &prim_ops_ref);
  assert_non_null(cpu_choose_prims());
}
