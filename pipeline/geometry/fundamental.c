/*
 * Fundamental matrices from seven matches: the rank-2 members of the pencil that satisfies seven epipolar constraints
 * (Hartley and Zisserman, 11.1.2), by stages/two_view.h.
 */
#include <math.h>
#include <string.h>

#include "pipeline/geometry/epipolar.h"
#include "pipeline/geometry/linear.h"
#include "pipeline/geometry/models.h"

enum { SAMPLE = TWO_VIEW_SEVEN };

/* Matches that one homography maps without any error, as those of an image and its copy, leave three dimensions, all of
   rank 2: [v]x H for any v. Six of them give it. */
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

void fundamental_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  two_view_seven solved;
  problem->ops->seven(&problem->matches, samples, &solved);
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
