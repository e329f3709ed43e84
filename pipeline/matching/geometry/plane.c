/*
 * Fundamental matrices whose support is mostly in one plane (Chum, Werner, Matas, CVPR 2005). For any epipole e', the
 * matrix [e']x H fits the plane of H. So if five matches of a sample are in the plane, its matrix has many inliers, but
 * only the other two matches, which may be wrong, determine the epipole. Plane and parallax correct the matrix: each
 * match off the plane gives a line through H x and x' that contains the epipole.
 */
#include "pipeline/matching/geometry/search.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/number_tools.h"
#include "pipeline/matching/geometry/scoring.h"
#include "pipeline/matching/geometry/linear.h"

#define PARALLAX_CONFIDENCE 0.999
enum { SAMPLE = 7, PLANE_MATCHES = 5, PARALLAX_MATCHES = 2, PARALLAX_TRIALS = 200 };

static void cross_matrix(const double v[3], double out[9]) {
  const double m[9] = {0.0, -v[2], v[1], v[2], 0.0, -v[0], -v[1], v[0], 0.0};
  memcpy(out, m, sizeof m);
}

/* Computes the homography that F and three matches determine, H = [e']x F - e' (M^-1 b)^T (Hartley and Zisserman,
   result 13.6). */
static bool homography_of_three(const geometry_matches *matches, const double f[9], const double epipole[3],
                                const uint32_t triple[3], double h[9]) {
  double cross[9], a_matrix[9], points[9], inverse[9], b[3], v[3];
  cross_matrix(epipole, cross);
  linear_multiply3(cross, f, a_matrix);
  for (int i = 0; i < 3; i++) {
    const uint32_t k = triple[i];
    const double x[3] = {matches->ax[k], matches->ay[k], 1.0}, y[3] = {matches->bx[k], matches->by[k], 1.0};
    double mapped[3], left[3], right[3];
    linear_apply3(a_matrix, x, mapped);
    linear_cross3(y, mapped, left);
    linear_cross3(y, epipole, right);
    const double squares = linear_dot3(right, right);
    if (!(squares > 1.0e-18)) return false;
    b[i] = linear_dot3(left, right) / squares;
    memcpy(points + 3 * i, x, sizeof x);
  }
  const double determinant = linear_determinant3(points);
  if (!(fabs(determinant) > 1.0e-9)) return false;
  matrix3_adjugate(points, inverse);
  linear_apply3(inverse, b, v);
  for (int i = 0; i < 9; i++) h[i] = a_matrix[i] - epipole[i / 3] * v[i % 3] / determinant;
  const uint32_t first = triple[0];
  if (!linear_normalize(h, 9)) return false;
  if (h[6] * matches->ax[first] + h[7] * matches->ay[first] + h[8] < 0.0)
    for (int i = 0; i < 9; i++) h[i] = -h[i];
  return true;
}

/* True if one of five triples of matches spans a plane that contains at least two more matches of the sample. Any five
   of the seven matches contain one of these triples. */
static bool sample_plane(const geometry_problem *planar, const uint32_t *sample, const double f[9], double h[9]) {
  static const int triples[5][3] = {{0, 1, 2}, {3, 4, 5}, {0, 1, 6}, {3, 4, 6}, {2, 5, 6}};
  double transposed[9], epipole[3];
  linear_transpose3(f, transposed);
  if (!linear_null3(transposed, epipole)) return false;
  const double limit = planar->threshold * planar->threshold;
  for (int t = 0; t < 5; t++) {
    const uint32_t triple[3] = {sample[triples[t][0]], sample[triples[t][1]], sample[triples[t][2]]};
    if (!homography_of_three(&planar->matches, f, epipole, triple, h)) continue;
    int members = 0;
    for (int i = 0; i < SAMPLE; i++) {
      double square;
      geometry_errors(planar, h, sample[i], 1, &square);
      members += square <= limit;
    }
    if (members >= PLANE_MATCHES) return true;
  }
  return false;
}

/* Computes F = [e']x H, where e' is the intersection of the parallax lines of two matches. */
static bool matrix_from_parallax(const geometry_matches *matches, const double h[9], const uint32_t pair[2],
                                 double f[9]) {
  double lines[2][3], epipole[3], cross[9];
  for (int i = 0; i < 2; i++) {
    const uint32_t k = pair[i];
    const double x[3] = {matches->ax[k], matches->ay[k], 1.0}, y[3] = {matches->bx[k], matches->by[k], 1.0};
    double mapped[3];
    linear_apply3(h, x, mapped);
    linear_cross3(mapped, y, lines[i]);
  }
  linear_cross3(lines[0], lines[1], epipole);
  if (!linear_normalize(epipole, 3)) return false;
  cross_matrix(epipole, cross);
  linear_multiply3(cross, h, f);
  return linear_normalize(f, 9);
}

bool plane_epipolar(const double homography[9], double matrix[9]) {
  double transposed[9], epipole[3], cross[9], moved[9];
  linear_transpose3(matrix, transposed);
  if (!linear_null3(transposed, epipole)) return false;
  cross_matrix(epipole, cross);
  linear_multiply3(cross, homography, moved);
  if (!linear_normalize(moved, 9)) return false;
  memcpy(matrix, moved, sizeof moved);
  return true;
}

/* Collects the matches that are clearly off the plane in the scratch columns: their parallax exceeds its
   uncertainty. */
static geometry_matches matches_off(const geometry_problem *planar, const double h[9], const search_scratch *scratch) {
  const geometry_matches *const all = &planar->matches;
  const double limit = 4.0 * planar->threshold * planar->threshold;
  size_t count = 0;
  geometry_errors(planar, h, 0, all->count, scratch->squares);
  for (size_t i = 0; i < all->count; i++) {
    if (!(scratch->squares[i] > limit)) continue;
    scratch->columns[0][count] = all->ax[i];
    scratch->columns[1][count] = all->ay[i];
    scratch->columns[2][count] = all->bx[i];
    scratch->columns[3][count] = all->by[i];
    count++;
  }
  return (geometry_matches){count, scratch->columns[0], scratch->columns[1], scratch->columns[2], scratch->columns[3]};
}

void plane_complete(const geometry_problem *problem, const uint32_t *sample, random_state *random,
                    const search_scratch *scratch, geometry_candidate *candidate) {
  geometry_problem planar = *problem, off = *problem;
  planar.model = HS_HOMOGRAPHY;
  geometry_candidate plane = {{0.0}, {0.0}, 0.0}, best = plane;
  if (!sample_plane(&planar, sample, candidate->matrix, plane.matrix)) return;
  plane.score = geometry_score(&planar, plane.matrix, 0.0);
  (void)geometry_improve(&planar, &plane);
  off.matches = matches_off(&planar, plane.matrix, scratch);
  if (off.matches.count < PARALLAX_MATCHES) return;
  /* matches in the plane fit any epipole, so only the matches off the plane decide */
  int32_t needed = PARALLAX_TRIALS;
  for (int32_t trial = 0; trial < needed; trial++) {
    uint32_t pair[PARALLAX_MATCHES];
    random_sample(random, (uint32_t)off.matches.count, PARALLAX_MATCHES, pair);
    geometry_candidate tried = {{0.0}, {0.0}, 0.0};
    if (!matrix_from_parallax(&off.matches, plane.matrix, pair, tried.matrix)) continue;
    tried.score = geometry_score(&off, tried.matrix, best.score);
    if (!(tried.score > best.score)) continue;
    best = tried;
    /* the score is at most the number of inliers */
    needed = iterations_needed((size_t)best.score, off.matches.count, PARALLAX_MATCHES, PARALLAX_CONFIDENCE,
                               PARALLAX_TRIALS);
  }
  best.score = best.score > 0.0 ? geometry_score(problem, best.matrix, candidate->score) : 0.0;
  if (best.score > candidate->score) *candidate = best;
}
