/* The vector layer of the processor's baseline: operations that are several instructions in SSE2, compared with the C
 * library lane by lane. */

#include "tests/support/test.h"
#include "stages/portable.h"

#if defined(__x86_64__)
#  define HARTSIFT_ISA sse2
#elif defined(__aarch64__)
#  define HARTSIFT_ISA neon
#endif

#ifdef HARTSIFT_ISA
#  include "cpu/simd/simd.h"

enum { ROUNDS = 400000 };

static uint64_t random_bits(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

static float from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* Returns a finite float. kind 0: any exponent; 1: near 1; 2: near the denormals; 3: few or many significand bits
 * set. */
static float random_float(uint64_t *seed, int kind) {
  const uint64_t r = random_bits(seed);
  uint32_t significand = (uint32_t)r & 0x7FFFFFu, exponent = (uint32_t)(r >> 32) % 255u;
  if (kind == 1) exponent = 120u + exponent % 12u;
  if (kind == 2) exponent = exponent % 24u;
  if (kind == 3) {
    const uint32_t shift = (uint32_t)(r >> 40) % 24u;
    significand = (r >> 46 & 1u ? 0x7FFFFFu << shift : 1u << shift) & 0x7FFFFFu;
  }
  return from_bits((uint32_t)(r >> 63) << 31 | exponent << 23 | significand);
}

static void check_fma(const float *a, const float *b, const float *c) {
  float got[SIMD_WIDTH];
  simd_store(got, simd_fma(simd_load(a), simd_load(b), simd_load(c)));
  for (int i = 0; i < SIMD_WIDTH; i++) {
    const float expected = hs_fmaf(a[i], b[i], c[i]);
    if (memcmp(&expected, &got[i], sizeof expected) != 0 && !(isnan(expected) && isnan(got[i])))
      fail_msg("fma(%a, %a, %a) is %a, not %a", (double)a[i], (double)b[i], (double)c[i], (double)got[i],
               (double)expected);
  }
}

TEST(test_fma_random) {
  uint64_t seed = 88172645463325252u;
  for (int n = 0; n < ROUNDS; n++) {
    float a[SIMD_WIDTH], b[SIMD_WIDTH], c[SIMD_WIDTH];
    const int kind = n & 3;
    for (int i = 0; i < SIMD_WIDTH; i++) {
      a[i] = random_float(&seed, kind);
      b[i] = random_float(&seed, kind == 2 ? 1 : kind);
      c[i] = random_float(&seed, kind);
    }
    check_fma(a, b, c);
  }
}

/* c cancels the product, or is about half a unit of the product's last bit, or far below it. There two roundings differ
 * from one. */
TEST(test_fma_ties) {
  uint64_t seed = 1181783497276652981u;
  for (int n = 0; n < ROUNDS; n++) {
    float a[SIMD_WIDTH], b[SIMD_WIDTH], c[SIMD_WIDTH];
    for (int i = 0; i < SIMD_WIDTH; i++) {
      a[i] = random_float(&seed, n & 1 ? 1 : 3);
      b[i] = random_float(&seed, 1);
      const uint64_t r = random_bits(&seed);
      int exponent;
      const float product = a[i] * b[i];
      (void)frexpf(product, &exponent);
      c[i] = r & 1 ? -product : (float)ldexp(r & 2 ? 1.0 : -1.0, exponent + (int)((r >> 8) % 60u) - 40);
    }
    check_fma(a, b, c);
  }
}

TEST(test_rounding) {
  uint64_t seed = 2685821657736338717u;
  for (int n = 0; n < ROUNDS; n++) {
    float v[SIMD_WIDTH], low[SIMD_WIDTH];
    int32_t nearest[SIMD_WIDTH];
    for (int i = 0; i < SIMD_WIDTH; i++) {
      v[i] = (float)(int32_t)(random_bits(&seed) >> 44) / 16.0f - 30000.0f;
      if (n % 5 == 0) v[i] = (float)(n / 5 + i) - 0.5f;
    }
    simd_store(low, simd_floor(simd_load(v)));
    simd_i32_store(nearest, simd_round_i32(simd_load(v)));
    for (int i = 0; i < SIMD_WIDTH; i++) {
      assert_true(low[i] == floorf(v[i]));
      assert_int_equal(nearest[i], lrintf(v[i]));
    }
  }
}

TEST(test_partial) {
  for (int n = 0; n <= SIMD_WIDTH; n++) {
    float from[SIMD_WIDTH], to[SIMD_WIDTH], all[SIMD_WIDTH];
    for (int i = 0; i < SIMD_WIDTH; i++) {
      from[i] = (float)(i + 1);
      to[i] = -1.0f;
    }
    simd_store(all, simd_load_first(from, n));
    simd_store_first(to, simd_load(from), n);
    for (int i = 0; i < SIMD_WIDTH; i++) {
      assert_true(all[i] == (i < n ? from[i] : 0.0f));
      assert_true(to[i] == (i < n ? from[i] : -1.0f));
    }
    assert_int_equal(simd_bits(simd_gt(simd_load(all), simd_zero())), (1u << n) - 1u);
  }
}

TEST(test_interleave) {
  float a[SIMD_WIDTH], b[SIMD_WIDTH], both[2 * SIMD_WIDTH], even[SIMD_WIDTH];
  for (int i = 0; i < SIMD_WIDTH; i++) {
    a[i] = (float)i;
    b[i] = (float)(100 + i);
  }
  simd_store_interleaved(both, simd_load(a), simd_load(b));
  simd_store(even, simd_load_even(both));
  for (int i = 0; i < SIMD_WIDTH; i++) {
    assert_true(both[2 * i] == a[i] && both[2 * i + 1] == b[i]);
    assert_true(even[i] == a[i]);
  }
}
#else
TEST(test_none) { skip_because("this processor has another baseline"); }
#endif
