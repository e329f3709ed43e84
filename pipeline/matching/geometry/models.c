/* Minimal solvers, errors and refits of the models. */
#include "pipeline/matching/geometry/models.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/number_tools.h"
#include "pipeline/matching/geometry/linear.h"

int geometry_sample_size(hs_geometry_model model) {
  return model == HS_HOMOGRAPHY ? 4 : model == HS_FUNDAMENTAL ? 7 : 5;
}

bool epipolar_sample_oriented(const double matrix[9], const geometry_matches *matches, const uint32_t *sample,
                              int count) {
  double transposed[9], epipole[3];
  linear_transpose3(matrix, transposed);
  if (!linear_null3(transposed, epipole)) return false; /* epipole in image b */
  bool positive = false;
  for (int i = 0; i < count; i++) {
    const uint32_t k = sample[i];
    const double a[3] = {matches->ax[k], matches->ay[k], 1.0}, b[3] = {matches->bx[k], matches->by[k], 1.0};
    double line[3], through[3];
    linear_apply3(matrix, a, line);
    linear_cross3(epipole, b, through);
    const bool agrees = linear_dot3(line, through) > 0.0;
    if (i == 0) positive = agrees;
    if (agrees != positive) return false;
  }
  return true;
}

/* Computes M = Kb^-T E Ka^-1 for cameras in working coordinates. */
void essential_to_matrix(const geometry_problem *problem, geometry_candidate *candidate) {
  const hs_camera ka = problem->camera_a, kb = problem->camera_b;
  double half[9];
  for (int i = 0; i < 3; i++) { /* computes E Ka^-1 */
    const double *const e = candidate->essential + 3 * i;
    half[3 * i] = e[0] / ka.fx;
    half[3 * i + 1] = e[1] / ka.fy;
    half[3 * i + 2] = e[2] - half[3 * i] * ka.cx - half[3 * i + 1] * ka.cy;
  }
  for (int j = 0; j < 3; j++) {
    candidate->matrix[j] = half[j] / kb.fx;
    candidate->matrix[3 + j] = half[3 + j] / kb.fy;
    candidate->matrix[6 + j] = half[6 + j] - candidate->matrix[j] * kb.cx - candidate->matrix[3 + j] * kb.cy;
  }
}

bool geometry_camera_valid(const hs_camera *k) {
  return k->fx > 0.0 && k->fy > 0.0 && isfinite(k->fx) && isfinite(k->fy) && isfinite(k->cx) && isfinite(k->cy);
}

/* ---- Candidates from minimal samples of any model. */

static void homography_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  const int size = geometry_sample_size(HS_HOMOGRAPHY);
  for (int l = 0; l < GEOMETRY_BATCH; l++) {
    const uint32_t *const sample = samples + l * size;
    batch->found[batch->count].sample = l;
    batch->count += homography_solve(problem, sample, &batch->found[batch->count].candidate);
  }
}

void geometry_solve(const geometry_problem *problem, const uint32_t *samples, const bool *may_repeat,
                    geometry_batch *batch) {
  batch->count = 0;
  switch (problem->model) {
  case HS_HOMOGRAPHY:
    homography_solve_batch(problem, samples, batch);
    return;
  case HS_FUNDAMENTAL:
    fundamental_solve_batch(problem, samples, may_repeat, batch);
    return;
  default:
    essential_solve_batch(problem, samples, batch);
  }
}

/* Homographies: the solver for four matches, the errors, and the weighted least-squares fit. For a match X = (x, y, 1),
   (u, v) let C(h) = (h1 X - u h3 X, h2 X - v h3 X). The Sampson error is C^T (J J^T)^-1 C, where J is the derivative of
   C by (x, y, u, v): J J^T = w^2 (A A^T + I), w = h3 X, and A is the 2x2 derivative of the mapping. */

enum { INVERSE_STEPS = 3 };

/* Computes the double areas of the triangles of four points: areas[i] leaves out point i; the signs are such that sum_i
   (+-) areas[i] p_i = 0. False if a triangle's height is below `height`, because noise then decides its orientation. */
static bool triangles(const double *x, const double *y, double height, double areas[4]) {
  static const int corner[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  for (int i = 0; i < 4; i++) {
    const int a = corner[i][0], b = corner[i][1], c = corner[i][2];
    const double abx = x[b] - x[a], aby = y[b] - y[a], acx = x[c] - x[a], acy = y[c] - y[a];
    const double bcx = x[c] - x[b], bcy = y[c] - y[b];
    const double ab = abx * abx + aby * aby, ac = acx * acx + acy * acy, bc = bcx * bcx + bcy * bcy;
    const double longest = ab > ac ? (ab > bc ? ab : bc) : (ac > bc ? ac : bc);
    areas[i] = abx * acy - aby * acx;
    if (!(areas[i] * areas[i] > height * height * longest)) return false;
  }
  return true;
}

int homography_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidate) {
  double ax[4], ay[4], bx[4], by[4], area_a[4], area_b[4];
  for (int i = 0; i < 4; i++) {
    const uint32_t k = sample[i];
    ax[i] = problem->matches.ax[k];
    ay[i] = problem->matches.ay[k];
    bx[i] = problem->matches.bx[k];
    by[i] = problem->matches.by[k];
  }
  if (!triangles(ax, ay, problem->threshold, area_a) || !triangles(bx, by, problem->threshold, area_b)) return 0;
  /* if two cameras see a plane, the orientation of all triangles is equal, or that of all is opposite */
  double scale[4];
  for (int i = 0; i < 4; i++) {
    scale[i] = area_b[i] / area_a[i];
    if ((scale[i] > 0.0) != (scale[0] > 0.0)) return 0;
  }
  /* In the basis of the first three points, the coordinates of the fourth are proportional to the areas. H maps the
     basis of one image to that of the other, with axes scaled to fit the fourth point: H = sum_i scale_i b_i (row i of
     the inverse basis). */
  const double basis[9] = {ax[0], ax[1], ax[2], ay[0], ay[1], ay[2], 1.0, 1.0, 1.0};
  double inverse[9];
  matrix3_adjugate(basis, inverse);
  double *const h = candidate->matrix;
  for (int j = 0; j < 3; j++) {
    const double r0 = scale[0] * inverse[j], r1 = scale[1] * inverse[3 + j], r2 = scale[2] * inverse[6 + j];
    h[j] = bx[0] * r0 + bx[1] * r1 + bx[2] * r2;
    h[3 + j] = by[0] * r0 + by[1] * r1 + by[2] * r2;
    h[6 + j] = r0 + r1 + r2;
  }
  if (!linear_normalize(h, 9)) return 0;
  if (h[6] * ax[0] + h[7] * ay[0] + h[8] < 0.0)
    for (int i = 0; i < 9; i++) h[i] = -h[i];
  return 1;
}

/* Writes the form as a symmetric 9x9 matrix for vec(H), H row-major. */
static void form_matrix(const geometry_form *form, double matrix[81]) {
  static const int triangle[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
  for (int r = 0; r < 9; r++)
    for (int c = 0; c < 9; c++) matrix[9 * r + c] = form->sum[6 * triangle[r / 3][c / 3] + triangle[r % 3][c % 3]];
}

/* Finds the eigenvector of the smallest eigenvalue by inverse iteration from the current matrix, which is close to it
   in every useful case. */
bool homography_refit(const geometry_form *form, geometry_candidate *candidate) {
  double matrix[81], damped[81], h[9], trace = 0.0, sign = 0.0;
  form_matrix(form, matrix);
  for (int i = 0; i < 9; i++) trace += matrix[10 * i];
  if (!(trace > 0.0)) return false;
  /* damping, because exact matches make the form singular */
  for (int i = 0; i < 9; i++) matrix[10 * i] += 1.0e-13 * trace;
  memcpy(h, candidate->matrix, sizeof h);
  for (int step = 0; step < INVERSE_STEPS; step++) {
    memcpy(damped, matrix, sizeof damped);
    if (!linear_solve(damped, h, 9, 1) || !linear_normalize(h, 9)) return false;
  }
  for (int i = 0; i < 9; i++) sign += h[i] * candidate->matrix[i];
  for (int i = 0; i < 9; i++) candidate->matrix[i] = sign < 0.0 ? -h[i] : h[i];
  return true;
}

/* Fundamental matrices from seven matches: the rank-2 members of the pencil that satisfies seven epipolar constraints
   (Hartley and Zisserman, 11.1.2), by stages/two_view.h. */

enum { SAMPLE = TWO_VIEW_SEVEN };

/* Finds candidates from seven matches that one homography relates exactly, as in an image and its copy. Their null
   space has three dimensions, and all its matrices have rank 2: [v]x H for any v. H is computed from six of the
   matches. */
static void solve_dependent(const geometry_problem *problem, const uint32_t *sample, int index, geometry_batch *batch) {
  double rows[9 * SAMPLE], basis[27];
  for (int i = 0; i < SAMPLE - 1; i++) {
    const uint32_t k = sample[i];
    const double a[3] = {problem->matches.ax[k], problem->matches.ay[k], 1.0};
    const double b[3] = {problem->matches.bx[k], problem->matches.by[k], 1.0};
    epipolar_row(a, b, rows + 9 * i);
  }
  if (!linear_null_space9(rows, SAMPLE - 1, basis)) return;
  for (int i = 0; i < 3; i++) {
    double *const f = batch->found[batch->count].candidate.matrix;
    memcpy(f, basis + 9 * i, 9 * sizeof *f);
    batch->found[batch->count].sample = index;
    const bool singular = linear_normalize(f, 9) && fabs(linear_determinant3(f)) < 1.0e-9;
    if (singular && epipolar_sample_oriented(f, &problem->matches, sample, SAMPLE)) batch->count++;
  }
}

void fundamental_solve_batch(const geometry_problem *problem, const uint32_t *samples, const bool *may_repeat,
                             geometry_batch *batch) {
  two_view_seven solved;
  problem->ops->seven(&problem->matches, samples, may_repeat, &solved);
  for (int l = 0; l < GEOMETRY_BATCH; l++) {
    if (solved.dependent[l] && !solved.repeats[l]) solve_dependent(problem, samples + l * SAMPLE, l, batch);
    for (int r = 0; r < TWO_VIEW_CUBIC_ROOTS; r++) {
      if (!solved.usable[r][l]) continue;
      double *const f = batch->found[batch->count].candidate.matrix;
      for (int i = 0; i < 9; i++) f[i] = solved.matrix[r][i][l];
      batch->found[batch->count++].sample = l;
    }
  }
}

/* Essential matrices from five matches, by stages/two_view.h. */

void essential_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  const hs_camera a = problem->camera_a, b = problem->camera_b;
  const two_view_cameras cameras = {{a.fx, a.fy, b.fx, b.fy}, {a.cx, a.cy, b.cx, b.cy}};
  two_view_five solved;
  for (int first = 0; first < (int)GEOMETRY_BATCH; first += TWO_VIEW_LANES) {
    problem->ops->five(&problem->matches, &cameras, samples + first * TWO_VIEW_FIVE, &solved);
    for (int i = 0; i < solved.count; i++) {
      geometry_candidate *const candidate = &batch->found[batch->count].candidate;
      memcpy(candidate->essential, solved.found[i].essential, sizeof solved.found[i].essential);
      batch->found[batch->count++].sample = first + solved.found[i].sample;
      essential_to_matrix(problem, candidate);
    }
  }
}
