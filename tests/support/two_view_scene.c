/*
 * Makes matches of two views of a synthetic scene; see two_view_scene.h.
 */
#include "tests/support/two_view_scene.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double uniform(uint64_t *state, double low, double high) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * ((double)(*state >> 11) / 9007199254740992.0);
}

static double gaussian(uint64_t *state) {
  double sum = -6.0;
  for (int i = 0; i < 12; i++) sum += uniform(state, 0.0, 1.0);
  return sum;
}

static void multiply(const double a[9], const double b[9], double out[9]) {
  for (int i = 0; i < 9; i++) {
    out[i] = 0.0;
    for (int k = 0; k < 3; k++) out[i] += a[3 * (i / 3) + k] * b[3 * k + i % 3];
  }
}

static void apply(const double m[9], const double v[3], double out[3]) {
  for (int i = 0; i < 3; i++) out[i] = m[3 * i] * v[0] + m[3 * i + 1] * v[1] + m[3 * i + 2] * v[2];
}

/* Computes the rotation with Cayley parameters (x, y, z). Its angle is twice the arctangent of their length. */
static void cayley(double x, double y, double z, double out[9]) {
  const double s = x * x + y * y + z * z, d = 1.0 + s;
  const double m[9] = {1.0 - s + 2.0 * x * x, 2.0 * (x * y - z),     2.0 * (x * z + y),
                       2.0 * (x * y + z),     1.0 - s + 2.0 * y * y, 2.0 * (y * z - x),
                       2.0 * (x * z - y),     2.0 * (y * z + x),     1.0 - s + 2.0 * z * z};
  for (int i = 0; i < 9; i++) out[i] = m[i] / d;
}

void two_view_fundamental(const double e[9], const hs_camera *a, const hs_camera *b, double f[9]) {
  const double inverse_a[9] = {1.0 / a->fx, 0.0, -a->cx / a->fx, 0.0, 1.0 / a->fy, -a->cy / a->fy, 0.0, 0.0, 1.0};
  const double inverse_b_transposed[9] = {1.0 / b->fx,    0.0, 0.0, 0.0, 1.0 / b->fy, 0.0, -b->cx / b->fx,
                                          -b->cy / b->fy, 1.0};
  double half[9];
  multiply(e, inverse_a, half);
  multiply(inverse_b_transposed, half, f);
}

/* Computes H = Kb (R + t n^T) Ka^-1 for the plane n . X = 1 in camera a's frame. */
static void plane_homography(const two_view_scene *s, const double normal[3], double out[9]) {
  const hs_camera *const a = &s->camera_a, *const b = &s->camera_b;
  const double inverse_a[9] = {1.0 / a->fx, 0.0, -a->cx / a->fx, 0.0, 1.0 / a->fy, -a->cy / a->fy, 0.0, 0.0, 1.0};
  const double forward_b[9] = {b->fx, 0.0, b->cx, 0.0, b->fy, b->cy, 0.0, 0.0, 1.0};
  double motion[9], half[9];
  for (int i = 0; i < 9; i++) motion[i] = s->rotation[i] + s->translation[i / 3] * normal[i % 3];
  multiply(motion, inverse_a, half);
  multiply(forward_b, half, out);
}

/* Returns the depth of the scene along the ray (x, y, 1) of camera a. */
static double depth_of(two_view_kind kind, size_t i, const double normal[3], double x, double y, uint64_t *random) {
  const double free_depth = uniform(random, 3.0, 9.0);
  const bool planar = kind == TWO_VIEW_PLANE || (kind == TWO_VIEW_MIXED && i % 4 != 0);
  return planar ? 1.0 / (normal[0] * x + normal[1] * y + normal[2]) : free_depth;
}

void two_view_make(two_view_kind kind, size_t count, size_t outliers, double noise, uint64_t seed, two_view_scene *s) {
  static const double plane[3] = {0.03, -0.02, 0.18}, none[3] = {0.0, 0.0, 0.0};
  uint64_t random = seed * 2654435761u + 88172645463325252u;
  memset(s, 0, sizeof *s);
  s->count = count;
  s->outliers = outliers;
  s->camera_a = (hs_camera){520.0, 515.0, 318.0, 242.5};
  s->camera_b = (hs_camera){610.0, 605.0, 322.0, 236.0};
  cayley(0.03, -0.07, 0.02, s->rotation);
  const double t[3] = {0.96, 0.2, 0.196}, moved = kind == TWO_VIEW_ROTATION ? 0.0 : 1.0;
  const double length = sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
  for (int i = 0; i < 3; i++) s->translation[i] = moved * t[i] / length;
  const double *const v = s->translation;
  const double cross[9] = {0.0, -v[2], v[1], v[2], 0.0, -v[0], -v[1], v[0], 0.0};
  multiply(cross, s->rotation, s->essential);
  two_view_fundamental(s->essential, &s->camera_a, &s->camera_b, s->fundamental);
  plane_homography(s, kind == TWO_VIEW_ROTATION ? none : plane, s->homography);
  for (size_t i = 0; i < count; i++) {
    const double px = uniform(&random, 0.0, 640.0), py = uniform(&random, 0.0, 480.0);
    const double x = (px - s->camera_a.cx) / s->camera_a.fx, y = (py - s->camera_a.cy) / s->camera_a.fy;
    const double z = depth_of(kind, i, plane, x, y, &random);
    double point[3] = {x * z, y * z, z}, seen[3];
    if (kind == TWO_VIEW_LINE) {
      point[0] = -1.0 + 2.0 * (double)i / (double)count;
      point[1] = 0.3 * point[0];
      point[2] = 5.0 + point[0];
    }
    apply(s->rotation, point, seen);
    for (int k = 0; k < 3; k++) seen[k] += s->translation[k];
    s->exact_a[2 * i] = s->camera_a.fx * point[0] / point[2] + s->camera_a.cx;
    s->exact_a[2 * i + 1] = s->camera_a.fy * point[1] / point[2] + s->camera_a.cy;
    s->exact_b[2 * i] = s->camera_b.fx * seen[0] / seen[2] + s->camera_b.cx;
    s->exact_b[2 * i + 1] = s->camera_b.fy * seen[1] / seen[2] + s->camera_b.cy;
    for (int k = 0; k < 2; k++) {
      s->a[2 * i + (size_t)k] = s->exact_a[2 * i + (size_t)k] + noise * gaussian(&random);
      s->b[2 * i + (size_t)k] = s->exact_b[2 * i + (size_t)k] + noise * gaussian(&random);
    }
    if (i < outliers) {
      s->b[2 * i] = uniform(&random, 0.0, 640.0);
      s->b[2 * i + 1] = uniform(&random, 0.0, 480.0);
    }
  }
}

double two_view_rotation_angle(const double p[9], const double q[9]) {
  double trace = 0.0;
  for (int i = 0; i < 9; i++) trace += p[i] * q[i];
  const double cosine = 0.5 * (trace - 1.0);
  return acos(cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine);
}

double two_view_direction_angle(const double p[3], const double q[3]) {
  const double pq = p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
  const double pp = p[0] * p[0] + p[1] * p[1] + p[2] * p[2], qq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
  const double cosine = pq / sqrt(pp * qq);
  return acos(cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine);
}

double two_view_homography_difference(const double h[9], const double truth[9]) {
  double largest = 0.0;
  for (int i = 0; i < 4; i++) {
    const double corner[3] = {(i & 1) != 0 ? 640.0 : 0.0, (i & 2) != 0 ? 480.0 : 0.0, 1.0};
    double p[3], q[3];
    apply(h, corner, p);
    apply(truth, corner, q);
    const double dx = p[0] / p[2] - q[0] / q[2], dy = p[1] / p[2] - q[1] / q[2], d = sqrt(dx * dx + dy * dy);
    if (!(d <= largest)) largest = d;
  }
  return largest;
}

double two_view_epipolar_error(const double f[9], const two_view_scene *scene) {
  double sum = 0.0;
  for (size_t i = 0; i < scene->count; i++) {
    const double a[3] = {scene->exact_a[2 * i], scene->exact_a[2 * i + 1], 1.0};
    const double b[3] = {scene->exact_b[2 * i], scene->exact_b[2 * i + 1], 1.0};
    double line[3];
    apply(f, a, line);
    const double k0 = f[0] * b[0] + f[3] * b[1] + f[6], k1 = f[1] * b[0] + f[4] * b[1] + f[7];
    const double value = b[0] * line[0] + b[1] * line[1] + line[2];
    sum += value * value / (line[0] * line[0] + line[1] * line[1] + k0 * k0 + k1 * k1);
  }
  return sqrt(sum / (double)scene->count);
}
