/*
 * Relative pose of an essential matrix. Of its four decompositions, selects the one with the most matches in front of
 * both cameras (Hartley and Zisserman, 9.6).
 */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/matching/geometry/linear.h"
#include "pipeline/matching/geometry/models.h"
#include "pipeline/include/hartsift_geometry.h"

/* Computes the rotation U W V^T of E = U diag(1, 1, 0) V^T, where W rotates by `quarter` (1 or -1) times 90 degrees
   about the third axis. */
static void rotation_of(const double u[9], const double v[9], double quarter, double out[9]) {
  const double w[9] = {0.0, -quarter, 0.0, quarter, 0.0, 0.0, 0.0, 0.0, 1.0};
  double vt[9], uw[9];
  linear_transpose3(v, vt);
  linear_multiply3(u, w, uw);
  linear_multiply3(uw, vt, out);
  if (linear_determinant3(out) < 0.0)
    for (int i = 0; i < 9; i++) out[i] = -out[i];
}

static void ray(const hs_camera *camera, const double point[2], double out[3]) {
  out[0] = (point[0] - camera->cx) / camera->fx;
  out[1] = (point[1] - camera->cy) / camera->fy;
  out[2] = 1.0;
}

/* Returns the side of a match for X_b = R X_a + t, at the closest point of its two rays: 1 if it is in front of both
   cameras, -1 if behind both (so in front of both for -t), else 0. */
static int side_of(const double rotation[9], const double t[3], const double a[3], const double b[3]) {
  double turned[3], normal[3], from_b[3], from_a[3];
  linear_apply3(rotation, a, turned);
  linear_cross3(turned, b, normal);
  linear_cross3(t, b, from_b);
  linear_cross3(turned, t, from_a);
  /* from depth_b b = depth_a R a + t, the cross product with b or with R a leaves only one of the depths */
  const double depth_a = -linear_dot3(normal, from_b), depth_b = linear_dot3(normal, from_a);
  if (depth_a > 0.0 && depth_b > 0.0) return 1;
  return depth_a < 0.0 && depth_b < 0.0 ? -1 : 0;
}

hs_status hs_relative_pose(const double *essential, const hs_camera *camera_a, const hs_camera *camera_b,
                           const double *points_a, const double *points_b, size_t count, const uint8_t *inliers,
                           hs_pose *pose) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!pose) return HS_ERR_ARGUMENT;
  memset(pose, 0, sizeof *pose);
  if (!essential || !camera_a || !geometry_camera_valid(camera_a) || !camera_b || !geometry_camera_valid(camera_b))
    return HS_ERR_ARGUMENT;
  if (count > 0 && (!points_a || !points_b)) return HS_ERR_ARGUMENT;
  double u[9], s[3], v[9], rotations[2][9];
  for (int i = 0; i < 9; i++)
    if (!isfinite(essential[i])) return HS_ERR_ARGUMENT;
  linear_svd3(essential, u, s, v);
  if (!(s[1] > 1.0e-6 * s[0]) || !isfinite(s[0])) return HS_ERR_ARGUMENT;
  const double t[3] = {u[2], u[5], u[8]};
  rotation_of(u, v, 1.0, rotations[0]);
  rotation_of(u, v, -1.0, rotations[1]);
  size_t in_front[4] = {0, 0, 0, 0};
  for (size_t i = 0; i < count; i++) {
    if (inliers && !inliers[i]) continue;
    double a[3], b[3];
    ray(camera_a, points_a + 2 * i, a);
    ray(camera_b, points_b + 2 * i, b);
    pose->used++;
    for (int r = 0; r < 2; r++) {
      const int side = side_of(rotations[r], t, a, b);
      in_front[2 * r] += side > 0;
      in_front[2 * r + 1] += side < 0;
    }
  }
  int best = 0;
  for (int i = 1; i < 4; i++) best = in_front[i] > in_front[best] ? i : best;
  memcpy(pose->rotation, rotations[best / 2], sizeof pose->rotation);
  for (int i = 0; i < 3; i++) pose->translation[i] = best % 2 == 0 ? t[i] : -t[i];
  pose->in_front = in_front[best];
  return HS_OK;
}
