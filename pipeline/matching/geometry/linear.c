/*
 * Small dense linear algebra of the geometric models; see linear.h.
 */
#include "pipeline/matching/geometry/linear.h"

#include <math.h>
#include <string.h>

double linear_dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void linear_cross3(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

void linear_apply3(const double m[9], const double v[3], double out[3]) {
  for (int i = 0; i < 3; i++) out[i] = linear_dot3(m + 3 * i, v);
}

void linear_apply3_transposed(const double m[9], const double v[3], double out[3]) {
  for (int i = 0; i < 3; i++) out[i] = m[i] * v[0] + m[3 + i] * v[1] + m[6 + i] * v[2];
}

void linear_multiply3(const double a[9], const double b[9], double out[9]) {
  for (int i = 0; i < 3; i++) linear_apply3_transposed(b, a + 3 * i, out + 3 * i);
}

void linear_transpose3(const double m[9], double out[9]) {
  for (int i = 0; i < 9; i++) out[i] = m[3 * (i % 3) + i / 3];
}

double linear_determinant3(const double m[9]) {
  double across[3];
  linear_cross3(m + 3, m + 6, across);
  return linear_dot3(m, across);
}

bool linear_normalize(double *vector, int length) {
  double squares = 0.0;
  for (int i = 0; i < length; i++) squares += vector[i] * vector[i];
  if (!(squares > 0.0) || !isfinite(squares)) return false;
  const double norm = sqrt(squares);
  for (int i = 0; i < length; i++) vector[i] /= norm;
  return true;
}

bool linear_null3(const double m[9], double out[3]) {
  double best = 0.0;
  for (int i = 0; i < 3; i++) {
    double across[3];
    linear_cross3(m + 3 * i, m + 3 * ((i + 1) % 3), across);
    const double squares = linear_dot3(across, across);
    if (squares > best) {
      best = squares;
      memcpy(out, across, sizeof across);
    }
  }
  return best > 0.0 && linear_normalize(out, 3);
}

/* Computes cosine and sine of the rotation that diagonalises (a b; b c); the smaller one of two angles is used. */
static void jacobi_rotation(double a, double b, double c, double *cosine, double *sine) {
  const double zeta = (c - a) / (2.0 * b);
  const double t = (zeta >= 0.0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
  *cosine = 1.0 / sqrt(1.0 + t * t);
  *sine = t * *cosine;
}

/* Rotates columns i and j of a 3x3 matrix. */
static void rotate_columns(double m[9], int i, int j, double cosine, double sine) {
  for (int row = 0; row < 3; row++) {
    double *const p = m + 3 * row;
    const double pi = p[i], pj = p[j];
    p[i] = cosine * pi - sine * pj;
    p[j] = sine * pi + cosine * pj;
  }
}

/* Makes the columns of b orthonormal; their lengths s are in descending order. Columns of length 0 are replaced by
   orthogonal unit vectors. */
static void complete_columns(double b[9], const double s[3]) {
  const double tiny = 1.0e-14 * s[0];
  double columns[3][3];
  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++) columns[j][i] = s[j] > tiny ? b[3 * i + j] / s[j] : 0.0;
  if (!(s[0] > 0.0)) columns[0][0] = 1.0;
  if (!(s[1] > tiny) || !(s[0] > 0.0)) {
    int axis = 0;
    for (int i = 1; i < 3; i++) axis = fabs(columns[0][i]) < fabs(columns[0][axis]) ? i : axis;
    double unit[3] = {0.0, 0.0, 0.0};
    unit[axis] = 1.0;
    linear_cross3(columns[0], unit, columns[1]);
    (void)linear_normalize(columns[1], 3);
  }
  if (!(s[2] > tiny) || !(s[0] > 0.0)) linear_cross3(columns[0], columns[1], columns[2]);
  for (int i = 0; i < 9; i++) b[i] = columns[i % 3][i / 3];
}

void linear_svd3(const double m[9], double u[9], double s[3], double v[9]) {
  static const double identity[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  memcpy(u, m, 9 * sizeof *u);
  memcpy(v, identity, sizeof identity);
  for (int sweep = 0; sweep < 30; sweep++) {
    bool turned = false;
    for (int pair = 0; pair < 3; pair++) {
      const int i = pair == 2 ? 1 : 0, j = pair == 0 ? 1 : 2;
      const double aa = u[i] * u[i] + u[3 + i] * u[3 + i] + u[6 + i] * u[6 + i];
      const double bb = u[j] * u[j] + u[3 + j] * u[3 + j] + u[6 + j] * u[6 + j];
      const double ab = u[i] * u[j] + u[3 + i] * u[3 + j] + u[6 + i] * u[6 + j];
      if (!(fabs(ab) > 1.0e-16 * sqrt(aa * bb))) continue;
      double cosine, sine;
      jacobi_rotation(aa, ab, bb, &cosine, &sine);
      rotate_columns(u, i, j, cosine, sine);
      rotate_columns(v, i, j, cosine, sine);
      turned = true;
    }
    if (!turned) break;
  }
  for (int j = 0; j < 3; j++) s[j] = sqrt(u[j] * u[j] + u[3 + j] * u[3 + j] + u[6 + j] * u[6 + j]);
  for (int pass = 0; pass < 3; pass++) { /* three passes of neighbour exchanges sort three columns */
    const int i = pass & 1;
    if (!(s[i] < s[i + 1])) continue;
    const double swapped = s[i];
    s[i] = s[i + 1];
    s[i + 1] = swapped;
    rotate_columns(u, i, i + 1, 0.0, 1.0);
    rotate_columns(v, i, i + 1, 0.0, 1.0);
  }
  complete_columns(u, s);
}

/* Reflects `vector` at the plane with normal `normal`. Only entries from `first` on are used. normal_squares: squared
   length of the normal. */
static void reflect9(const double *normal, double normal_squares, int first, double *vector) {
  double along = 0.0;
  for (int i = first; i < 9; i++) along += normal[i] * vector[i];
  along = 2.0 * along / normal_squares;
  for (int i = first; i < 9; i++) vector[i] -= along * normal[i];
}

bool linear_null_space9(double *rows, int count, double *basis) {
  double squares[9];
  for (int k = 0; k < count; k++) {
    double *const row = rows + 9 * k;
    double before = 0.0;
    for (int i = 0; i < 9; i++) before += row[i] * row[i];
    for (int j = 0; j < k; j++) reflect9(rows + 9 * j, squares[j], j, row);
    double rest = 0.0;
    for (int i = k; i < 9; i++) rest += row[i] * row[i];
    if (!(rest > 1.0e-20 * before) || !isfinite(rest)) return false;
    const double length = sqrt(rest);
    /* the reflection maps the remaining part of the row to axis k; the sign avoids cancellation */
    row[k] += row[k] >= 0.0 ? length : -length;
    squares[k] = 0.0;
    for (int i = k; i < 9; i++) squares[k] += row[i] * row[i];
  }
  for (int k = count; k < 9; k++) {
    double *const vector = basis + 9 * (k - count);
    memset(vector, 0, 9 * sizeof *vector);
    vector[k] = 1.0;
    for (int j = count - 1; j >= 0; j--) reflect9(rows + 9 * j, squares[j], j, vector);
  }
  return true;
}

static void exchange_rows(double *rows, int width, int i, int j) {
  for (int k = 0; k < width; k++) {
    const double kept = rows[i * width + k];
    rows[i * width + k] = rows[j * width + k];
    rows[j * width + k] = kept;
  }
}

bool linear_solve(double *a, double *b, int n, int width) {
  double largest = 0.0;
  for (int i = 0; i < n * n; i++) largest = fabs(a[i]) > largest ? fabs(a[i]) : largest;
  for (int k = 0; k < n; k++) {
    int pivot = k;
    for (int i = k + 1; i < n; i++) pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
    if (!(fabs(a[pivot * n + k]) > 1.0e-14 * largest)) return false;
    if (pivot != k) {
      exchange_rows(a, n, k, pivot);
      exchange_rows(b, width, k, pivot);
    }
    const double inverse = 1.0 / a[k * n + k];
    for (int j = k; j < n; j++) a[k * n + j] *= inverse;
    for (int j = 0; j < width; j++) b[k * width + j] *= inverse;
    for (int i = 0; i < n; i++) {
      const double factor = a[i * n + k];
      if (i == k || factor == 0.0) continue;
      for (int j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
      for (int j = 0; j < width; j++) b[i * width + j] -= factor * b[k * width + j];
    }
  }
  return true;
}
