/*
 * The elementary functions: the documented errors hold over their whole ranges, and the results are bit-identical on
 * every machine (a digest over a fixed set of arguments).
 */

#include "tests/support/test.h"

#include "stages/elementary.h"
#include "stages/table_math.h"

#define TWO_PI 6.283185307179586476925
enum { MANTISSAS = 1 << 23 };
#define ONE_BITS 0x3f800000u

/* Keeps the largest error and its argument. */
typedef struct worst {
  double error;
  float at, at2;
} worst;

static void note(worst *w, double error, float at, float at2) {
  if (error > w->error || !(error == error)) *w = (worst){error, at, at2};
}

static void expect_within(const worst *w, double bound, const char *what) {
  printf("             %s: largest error %.4g at (%a, %a)\n", what, w->error, (double)w->at, (double)w->at2);
  if (!(w->error <= bound))
    fail_msg("%s: error %.4g at (%a, %a), stated %.4g", what, w->error, (double)w->at, (double)w->at2, bound);
}

static uint32_t next_random(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* Every mantissa in five binades. The exponent affects the error through the first guess only, which is the same except
 * for the sign of the exponent, so the binades differ little. */
TEST(test_reciprocal) {
  worst w = {0};
  const int exponents[] = {-100, -30, 0, 1, 99};
  for (size_t e = 0; e < 5; e++)
    for (uint32_t m = 0; m < MANTISSAS; m++) {
      const float x = hs_bits_float((ONE_BITS + ((uint32_t)exponents[e] << 23)) + m);
      note(&w, fabs((double)hs_reciprocal(x) * (double)x - 1.0), x, 0.0f);
    }
  const float last = hs_power_of_two(100);
  note(&w, fabs((double)hs_reciprocal(last) * (double)last - 1.0), last, 0.0f);
  expect_within(&w, 1.2e-6, "reciprocal");
}

static void polar_errors(float gx, float gy, worst *length, worst *angle) {
  float magnitude, turn;
  hs_polar(gx, gy, 1.0f, &magnitude, &turn);
  const double exact = sqrt((double)gx * (double)gx + (double)gy * (double)gy);
  double d = fabs((double)turn - atan2((double)gy, (double)gx) / TWO_PI);
  if (d > 0.5) d = 1.0 - d; /* both ends of the range */
  if (!(turn >= -0.5f && turn <= 0.5f)) d = INFINITY;
  note(length, exact > 0.0 ? fabs((double)magnitude / exact - 1.0) : (double)magnitude, gx, gy);
  note(angle, d, gx, gy);
}

/* Covers one octant densely, and random arguments of every sign, octant and exponent. */
TEST(test_polar) {
  worst length = {0}, angle = {0};
  uint32_t seed = 2463534242u;
  for (uint32_t m = 0; m < MANTISSAS; m += 5) { /* ratios min/max in [1/2, 1), and smaller ones */
    const float t = hs_bits_float(ONE_BITS - (1u << 23) + m);
    polar_errors(1.0f, t, &length, &angle);
    polar_errors(t * 0.0625f, -0.7f, &length, &angle);
  }
  for (int i = 0; i < 3000000; i++) {
    const uint32_t a = next_random(&seed), b = next_random(&seed);
    /* one argument has exponents -40..59, the other up to 31 less */
    const int32_t ea = (int32_t)(a >> 24) % 100 - 40, eb = ea - (int32_t)(b >> 27);
    float gx = hs_bits_float(ONE_BITS | (a & 0x7fffffu)) * hs_power_of_two(ea);
    float gy = hs_bits_float(ONE_BITS | (b & 0x7fffffu)) * hs_power_of_two(eb);
    if (a & 1u << 23) gx = -gx;
    if (b & 1u << 23) gy = -gy;
    if (b & 1u << 24)
      polar_errors(gy, gx, &length, &angle);
    else
      polar_errors(gx, gy, &length, &angle);
  }
  expect_within(&length, 1.1e-5, "magnitude");
  expect_within(&angle, 2.3e-6, "angle in turns");
}

TEST(test_polar_axes) {
  const float g[][4] = {{0, 0, 0, 0},       {1, 0, 1, 0},     {0, 1, 1, 0.25f},    {-1, 0, 1, 0.5f},
                        {0, -1, 1, -0.25f}, {-0.0f, 0, 0, 0}, {0.0f, -0.0f, 0, 0}, {-2, -0.0f, 2, -0.5f}};
  for (size_t i = 0; i < sizeof g / sizeof g[0]; i++) {
    float magnitude, turn;
    hs_polar(g[i][0], g[i][1], 1.0f, &magnitude, &turn);
    assert_true(fabsf(magnitude - g[i][2]) <= 1.1e-5f * g[i][2]);
    assert_true(turn == g[i][3]);
  }
}

/* In eighths of a turn the result equals eight times the angle in turns. In 36ths the error is as small. */
TEST(test_polar_in_parts) {
  uint32_t seed = 88172645u;
  for (int i = 0; i < 2000000; i++) {
    const float gx = (float)(int32_t)next_random(&seed) * 2.3283064e-10f,
                y = (float)(int32_t)next_random(&seed) * 2.3283064e-10f, gy = i % 7 == 0 ? y * 1.0e-6f : y;
    float magnitude, turn, same, eighths, parts;
    hs_polar(gx, gy, 1.0f, &magnitude, &turn);
    hs_polar(gx, gy, 8.0f, &same, &eighths);
    assert_true(hs_float_bits(magnitude) == hs_float_bits(same));
    assert_true(hs_float_bits(8.0f * turn) == hs_float_bits(eighths));
    hs_polar(gx, gy, 36.0f, &same, &parts);
    assert_true(fabsf(parts - 36.0f * turn) < 1.0e-5f && fabsf(parts) <= 18.0f);
  }
}

TEST(test_exp2) {
  worst w = {0};
  for (int32_t i = -126 * 40000; i <= 127 * 40000; i++) {
    const float x = (float)i / 40000.0f;
    note(&w, fabs((double)hs_exp2(x) / exp2((double)x) - 1.0), x, 0.0f);
  }
  for (uint32_t m = 0; m < MANTISSAS; m += 3) { /* both sides of the end of the reduced range */
    const float x = hs_bits_float(ONE_BITS - (2u << 23) + m);
    note(&w, fabs((double)hs_exp2(x) / exp2((double)x) - 1.0), x, 0.0f);
    note(&w, fabs((double)hs_exp2(-x) / exp2((double)-x) - 1.0), -x, 0.0f);
  }
  expect_within(&w, 2.0e-7, "exp2");
  const float low = hs_exp2(-126.0f), high = hs_exp2(127.0f);
  assert_true(hs_exp2(-1000.0f) == low && hs_exp2(-INFINITY) == low && hs_exp2(1000.0f) == high);
}

TEST(test_log2) {
  worst w = {0};
  for (int32_t e = -126; e <= 127; e++) {
    const uint32_t step = e >= -2 && e <= 1 ? 1 : 1021;
    for (uint32_t m = 0; m < MANTISSAS; m += step) {
      const float x = hs_bits_float((ONE_BITS + ((uint32_t)e << 23)) + m);
      const double exact = log2((double)x), rounding = fabs(exact) * 5.97e-8;
      note(&w, fabs((double)hs_log2(x) - exact) - rounding, x, 0.0f);
    }
  }
  expect_within(&w, 5.0e-8, "log2 beyond its rounding");
  for (int32_t n = -126; n <= 127; n++) assert_true(hs_log2(hs_power_of_two(n)) == (float)n);
}

TEST(test_sincos) {
  worst w = {0};
  for (int32_t i = 0; i <= 1 << 23; i += 1) {
    const float turn = (float)i / 8388608.0f;
    float s, c;
    hs_sincos_turn(turn, &s, &c);
    const double a = TWO_PI * (double)turn;
    note(&w, fabs((double)s - sin(a)), turn, 0.0f);
    note(&w, fabs((double)c - cos(a)), turn, 1.0f);
  }
  expect_within(&w, 9.0e-8, "sine and cosine");
  const float exact[][3] = {{0, 0, 1}, {0.25f, 1, 0}, {0.5f, 0, -1}, {0.75f, -1, 0}, {1, 0, 1}};
  for (size_t i = 0; i < 5; i++) {
    float s, c;
    hs_sincos_turn(exact[i][0], &s, &c);
    assert_true(s == exact[i][1] && c == exact[i][2]);
  }
}

TEST(test_wrap) {
  const float below = nextafterf(1.0f, 0.0f);
  assert_true(hs_wrap_turn(1.0f) == 0.0f && hs_wrap_turn(below) == below && hs_wrap_turn(-1.0e-20f) == 0.0f);
  assert_true(hs_wrap_turn(-0.25f) == 0.75f && hs_wrap_turn(1.25f) == 0.25f && hs_wrap_turn(0.0f) == 0.0f);
  for (int32_t i = 1 - (1 << 20); i < 2 << 20; i++) {
    const float t = hs_wrap_turn((float)i * 0.9999999f / 1048576.0f);
    assert_true(t >= 0.0f && t < 1.0f);
  }
}

/* Compares with the C library: halves, signs, and values that round up to the next power of two. */
TEST(test_roundings) {
  for (int32_t i = -(1 << 21); i <= 1 << 21; i++) {
    const float v = (float)i / 8.0f;
    assert_int_equal(hs_round_half_even(v), lrintf(v));
    assert_int_equal(hs_floor_int(v), (int32_t)floorf(v));
  }
  uint32_t seed = 88172645u;
  for (int i = 0; i < 2000000; i++) {
    const float v =
        ((float)next_random(&seed) / 4294967296.0f - 0.5f) * hs_power_of_two((int32_t)(next_random(&seed) % 23u));
    assert_int_equal(hs_round_half_even(v), lrintf(v));
    assert_int_equal(hs_floor_int(v), (int32_t)floorf(v));
    /* a factor below 1; the product must be rounded once, as from a double */
    const float part = (float)(next_random(&seed) >> 8) / 16777216.0f;
    assert_int_equal(hs_rounded_product(v, part), lrint((double)v * (double)part));
  }
  assert_int_equal(hs_floor_int(-2147483520.0f), -2147483520);
  assert_int_equal(hs_floor_int(2147483520.0f), 2147483520);
  for (int32_t n = -126; n <= 127; n++) assert_true(hs_power_of_two(n) == ldexpf(1.0f, n));
}

/* Compares with the C library's long double functions. */
TEST(test_tables) {
  double exp2_worst = 0.0, exp_worst = 0.0, log2_worst = 0.0;
  for (int32_t i = -400000; i <= 400000; i++) {
    const double x = (double)i / 401.0, y = (double)i / 600.0;
    exp2_worst = fmax(exp2_worst, (double)fabsl((long double)table_exp2(x) / exp2l((long double)x) - 1.0L));
    exp_worst = fmax(exp_worst, (double)fabsl((long double)table_exp(y) / expl((long double)y) - 1.0L));
    const double z = exp2(x);
    const long double l = log2l((long double)z);
    if (fabsl(l) > 1e-3L) log2_worst = fmax(log2_worst, (double)fabsl((long double)table_log2(z) / l - 1.0L));
  }
  printf("             table_exp2 %.3g, table_exp %.3g, table_log2 %.3g\n", exp2_worst, exp_worst, log2_worst);
  assert_true(exp2_worst < 4e-16 && exp_worst < 4e-16 && log2_worst < 4e-16);
  for (int32_t n = -900; n <= 900; n += 7)
    assert_true(table_exp2((double)n) == ldexp(1.0, n) && table_log2(ldexp(1.0, n)) == (double)n);
}

TEST(test_table_angles) {
  double sine_worst = 0.0, angle_worst = 0.0;
  for (int32_t i = -1000000; i <= 1000000; i++) {
    const double x = (double)i / 99991.0; /* covers three half turns in both directions */
    double s, c;
    table_sincos(x, &s, &c);
    sine_worst = fmax(sine_worst, (double)fabsl((long double)s - sinl((long double)x)));
    sine_worst = fmax(sine_worst, (double)fabsl((long double)c - cosl((long double)x)));
    const double scale = ldexp(1.0, i % 64), y = s * scale, across = c * scale;
    angle_worst = fmax(
        angle_worst, (double)fabsl((long double)table_atan2(y, across) - atan2l((long double)y, (long double)across)));
  }
  printf("             table_sincos %.3g, table_atan2 %.3g\n", sine_worst, angle_worst);
  assert_true(sine_worst < 6e-16 && angle_worst < 6e-16);
  assert_true(table_atan2(0.0, 0.0) == 0.0 && table_atan2(0.0, 2.0) == 0.0 &&
              table_atan2(3.0, 0.0) == 1.5707963267948966);
  double s, c;
  table_sincos(0.0, &s, &c);
  assert_true(s == 0.0 && c == 1.0);
}

/* Adds the bits of a float to an FNV-1a digest. */
static void digest_float(uint64_t *digest, float v) {
  const uint32_t bits = hs_float_bits(v);
  for (int i = 0; i < 4; i++) *digest = (*digest ^ (bits >> (8 * i) & 255u)) * UINT64_C(1099511628211);
}

static uint64_t digest_of_functions(void) {
  uint64_t digest = UINT64_C(14695981039346656037);
  uint32_t seed = 123456789u;
  for (int i = 0; i < 200000; i++) {
    const float a = (float)(next_random(&seed) >> 8) / 16777216.0f,
                b = (float)(next_random(&seed) >> 8) / 16777216.0f - 0.5f;
    float r[2];
    digest_float(&digest, hs_reciprocal(a + 1.0e-6f));
    hs_polar(a - 0.5f, b, 1.0f, &r[0], &r[1]);
    digest_float(&digest, r[0]);
    digest_float(&digest, r[1]);
    digest_float(&digest, hs_exp2(b * 250.0f));
    digest_float(&digest, hs_log2(a * 1000.0f + 1.0e-3f));
    hs_sincos_turn(a, &r[0], &r[1]);
    digest_float(&digest, r[0]);
    digest_float(&digest, r[1]);
    digest_float(&digest, (float)table_exp((double)b * 30.0));
    digest_float(&digest, (float)table_log2((double)a + 0.01));
    double sine, cosine;
    table_sincos((double)a * 6.5, &sine, &cosine);
    digest_float(&digest, (float)sine);
    digest_float(&digest, (float)table_atan2((double)b, (double)a - 0.5));
  }
  return digest;
}

/* A change of any of these functions changes features, so HS_METHOD_VERSION must change together with this number. */
TEST(test_digest) {
  const uint64_t digest = digest_of_functions();
  if (digest != UINT64_C(0x2356b57cb169cec8)) fail_msg("digest is 0x%016llx", (unsigned long long)digest);
}
