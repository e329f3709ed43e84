/*
 * Fundamental matrices from seven matches: the rank-2 members of the pencil that satisfies seven epipolar constraints
 * (Hartley and Zisserman, 11.1.2).
 */
#include <math.h>
#include <string.h>

#include "pipeline/geometry/epipolar.h"
#include "pipeline/geometry/linear.h"
#include "pipeline/geometry/models.h"
#include "pipeline/geometry/polynomial.h"

enum { SAMPLE = 7 };

/* det(f + z g) as a cubic in z: the determinant is linear in each row. */
static void pencil_determinant(const double f[9], const double g[9], double cubic[4]) {
  memset(cubic, 0, 4 * sizeof *cubic);
  for (int choice = 0; choice < 8; choice++) {
    double rows[9];
    int degree = 0;
    for (int r = 0; r < 3; r++) {
      const bool from_g = ((choice >> r) & 1) != 0;
      memcpy(rows + 3 * r, (from_g ? g : f) + 3 * r, 3 * sizeof *rows);
      degree += from_g;
    }
    cubic[degree] += linear_determinant3(rows);
  }
}

/* The constraints of the first `count` sampled matches. */
static void constraint_rows(const geometry_problem *problem, const uint32_t *sample, int count, double *rows) {
  for (int i = 0; i < count; i++) {
    const uint32_t k = sample[i];
    const double a[3] = {problem->matches.ax[k], problem->matches.ay[k], 1.0};
    const double b[3] = {problem->matches.bx[k], problem->matches.by[k], 1.0};
    epipolar_row(a, b, rows + 9 * i);
  }
}

/* Matches that one homography maps without any error, as those of an image and its copy, leave three dimensions, all of
   rank 2: [v]x H for any v. */
static int solve_dependent(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
  double rows[9 * SAMPLE], basis[27];
  int count = 0;
  constraint_rows(problem, sample, SAMPLE - 1, rows);
  if (!linear_null_space9(rows, SAMPLE - 1, basis)) return 0;
  for (int i = 0; i < 3; i++) {
    double *const f = candidates[count].matrix;
    memcpy(f, basis + 9 * i, 9 * sizeof *f);
    const bool singular = linear_normalize(f, 9) && fabs(linear_determinant3(f)) < 1.0e-9;
    if (singular && epipolar_sample_oriented(f, &problem->matches, sample, SAMPLE)) count++;
  }
  return count;
}

int fundamental_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
  double rows[9 * SAMPLE], basis[18];
  constraint_rows(problem, sample, SAMPLE, rows);
  if (!linear_null_space9(rows, SAMPLE, basis)) return solve_dependent(problem, sample, candidates);
  double cubic[4], roots[3];
  pencil_determinant(basis, basis + 9, cubic);
  const int root_count = polynomial_real_roots(cubic, 3, roots);
  int count = 0;
  for (int r = 0; r < root_count; r++) {
    double *const f = candidates[count].matrix;
    for (int i = 0; i < 9; i++) f[i] = basis[i] + roots[r] * basis[9 + i];
    if (linear_normalize(f, 9) && epipolar_sample_oriented(f, &problem->matches, sample, SAMPLE)) count++;
  }
  return count;
}
