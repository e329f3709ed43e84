/*
 * Small linear algebra and the root finder of geometric verification: results satisfy their equations, for degenerate
 * inputs too.
 */

#include "tests/support/test.h"

#include "pipeline/base/number_tools.h"
#include "pipeline/matching/geometry/linear.h"
#include "pipeline/matching/geometry/search.h"

static double noise(random_state *random) { return (double)(random_next(random) >> 11) / 4503599627370496.0 - 1.0; }

static void fill(random_state *random, double *out, int count) {
  for (int i = 0; i < count; i++) out[i] = noise(random);
}

static void expect_near(double value, double expected, double bound) {
  if (!(fabs(value - expected) <= bound)) fail_msg("%.17g, expected %.17g within %g", value, expected, bound);
}

static void expect_orthogonal(const double m[9]) {
  double transposed[9], product[9];
  linear_transpose3(m, transposed);
  linear_multiply3(transposed, m, product);
  for (int i = 0; i < 9; i++) expect_near(product[i], i % 4 == 0 ? 1.0 : 0.0, 1.0e-14);
}

static void expect_decomposition(const double m[9]) {
  double u[9], s[3], v[9], size = 0.0;
  linear_svd3(m, u, s, v);
  expect_orthogonal(u);
  expect_orthogonal(v);
  assert_true(s[0] >= s[1] && s[1] >= s[2] && s[2] >= 0.0);
  for (int i = 0; i < 9; i++) size += fabs(m[i]);
  for (int i = 0; i < 9; i++) {
    double sum = 0.0;
    for (int k = 0; k < 3; k++) sum += u[3 * (i / 3) + k] * s[k] * v[3 * (i % 3) + k];
    expect_near(sum, m[i], 1.0e-14 * size);
  }
}

TEST(test_svd) {
  random_state random = {1};
  for (int trial = 0; trial < 300; trial++) {
    double m[9], p[9], q[9];
    fill(&random, m, 9);
    expect_decomposition(m);
    /* a matrix of rank 2, then one of rank 1 */
    fill(&random, p, 9);
    memcpy(q, p, sizeof q);
    for (int i = 0; i < 3; i++) q[6 + i] = 2.0 * p[i] - 3.0 * p[3 + i];
    expect_decomposition(q);
    for (int i = 0; i < 9; i++) q[i] = p[i % 3] * m[i / 3];
    expect_decomposition(q);
  }
  const double zero[9] = {0.0}, diagonal[9] = {0.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 1.0};
  expect_decomposition(zero);
  expect_decomposition(diagonal);
}

TEST(test_adjugate_and_null) {
  random_state random = {2};
  for (int trial = 0; trial < 300; trial++) {
    double m[9], adjugate[9], product[9], null[3], image[3];
    fill(&random, m, 9);
    matrix3_adjugate(m, adjugate);
    linear_multiply3(m, adjugate, product);
    const double determinant = linear_determinant3(m);
    for (int i = 0; i < 9; i++) expect_near(product[i], i % 4 == 0 ? determinant : 0.0, 1.0e-14);
    for (int i = 0; i < 3; i++) m[6 + i] = 0.5 * m[i] + m[3 + i];
    assert_true(linear_null3(m, null));
    linear_apply3(m, null, image);
    for (int i = 0; i < 3; i++) expect_near(image[i], 0.0, 1.0e-13);
    expect_near(linear_dot3(null, null), 1.0, 1.0e-14);
  }
  const double rank_one[9] = {1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 0.0, 0.0};
  double null[3];
  assert_false(linear_null3(rank_one, null));
}

TEST(test_null_space) {
  random_state random = {3};
  for (int count = 1; count <= 8; count++) {
    for (int trial = 0; trial < 50; trial++) {
      double rows[72], kept[72], basis[72];
      fill(&random, rows, 9 * count);
      memcpy(kept, rows, sizeof kept);
      assert_true(linear_null_space9(rows, count, basis));
      for (int i = 0; i < 9 - count; i++) {
        for (int k = 0; k < count; k++) {
          double sum = 0.0;
          for (int c = 0; c < 9; c++) sum += basis[9 * i + c] * kept[9 * k + c];
          expect_near(sum, 0.0, 1.0e-13);
        }
        for (int k = 0; k <= i; k++) {
          double sum = 0.0;
          for (int c = 0; c < 9; c++) sum += basis[9 * i + c] * basis[9 * k + c];
          expect_near(sum, i == k ? 1.0 : 0.0, 1.0e-14);
        }
      }
      if (count < 2) continue;
      for (int c = 0; c < 9; c++) kept[9 * (count - 1) + c] = 3.0 * kept[c]; /* dependent */
      assert_false(linear_null_space9(kept, count, basis));
    }
  }
}

TEST(test_solve) {
  random_state random = {5};
  for (int n = 1; n <= LINEAR_SYSTEM_MAX; n++) {
    double a[100], b[20], kept[100], x[20];
    fill(&random, a, n * n);
    fill(&random, x, 2 * n);
    memcpy(kept, a, sizeof kept);
    for (int i = 0; i < 2 * n; i++) {
      b[i] = 0.0;
      for (int k = 0; k < n; k++) b[i] += a[n * (i / 2) + k] * x[2 * k + i % 2];
    }
    assert_true(linear_solve(a, b, n, 2));
    for (int i = 0; i < 2 * n; i++) expect_near(b[i], x[i], 1.0e-11);
    if (n == 1) continue;
    for (int i = 0; i < n; i++) kept[n * (n - 1) + i] = kept[i];
    assert_false(linear_solve(kept, b, n, 2));
  }
}

TEST(test_samples) {
  random_state random = {6};
  size_t seen[9] = {0};
  for (int trial = 0; trial < 9000; trial++) {
    uint32_t sample[7];
    random_sample(&random, 9, 7, sample);
    for (int i = 0; i < 7; i++) {
      assert_true(sample[i] < 9);
      seen[sample[i]]++;
      for (int k = 0; k < i; k++) assert_true(sample[k] != sample[i]);
    }
  }
  /* the expected number is 7000, with a standard deviation of 39 */
  for (int i = 0; i < 9; i++) assert_in_range(seen[i], 6800, 7200);
}
