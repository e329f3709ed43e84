/*
 * Candidates and their refinement: local extrema of the difference of Gaussians over space and scale. Lowe, IJCV 2004,
 * section 3.1.
 */
#ifndef HARTSIFT_STAGES_REFINE_H
#define HARTSIFT_STAGES_REFINE_H

#include "stages/elementary.h"
#include "stages/image.h"
#include "stages/keypoint.h"
#include "stages/portable.h"

/* Sets the bit of each extremum of DoG levels 1..S. An extremum is at least params.border from every side, and its
 * |D| is greater than params.candidate_above. It is positive and strictly greater than its 26 neighbours, or
 * negative and strictly smaller; with extremum_ties it may equal some of them. Every word of `candidates` is
 * written. *count, if not null, receives the number of extrema. */
typedef struct extrema_args {
  octave_view octave;
  mask_view candidates;
  sift_params params;
  uint64_t *count;
} extrema_args;

/* Returns D at (level, x, y). D is computed on demand, so no backend has to store it. */
HS_INLINE float dog_at(const octave_view *o, int32_t level, int32_t x, int32_t y) {
  const float *lower = o->levels + (size_t)level * o->level_floats + (size_t)y * o->stride + (size_t)x;
  return lower[o->level_floats] - lower[0];
}

/* Refinement: the position of an extremum between the samples, and whether it is kept.
 * Brown & Lowe, BMVC 2002; Lowe, IJCV 2004, section 4.
 *
 * A keypoint depends only on the sample where the Newton steps end, never on their path. Refinement marks that
 * sample in a second bit mask, and the keypoint is computed from the sample alone. So candidates that settle on the
 * same sample are one keypoint, and reading the mask in order gives the defined order without a sort. */

/* Maximum number of Newton evaluations of a candidate. */
enum { REFINE_STEPS = 5 };
/* An extremum that has not settled after REFINE_STEPS evaluations is kept if every |offset| is below this
 * (METHOD.md, section 5). */
#define REFINE_OFFSET_MAX        1.0f
#define REFINE_OFFSET_MAX_VLFEAT 1.5f
/* A Newton step on the interpolant is taken if each of its components is below this. */
#define REFINE_AGAIN 0.5f

/* Input: candidates. Output: settled, the samples on which candidates settle as keypoints; every word of `settled` is
 * written. */
typedef struct refine_args {
  octave_view octave;
  mask_view candidates, settled;
  sift_params params;
} refine_args;

/* Filters of keypoints by their rounded position. mask: null, or one byte for each pixel of the source; 0 drops the
 * keypoint. region: the positions [x0, x1) x [y0, y1) are kept. */
typedef struct position_filter {
  const uint8_t *mask;
  size_t mask_stride;
  int32_t width, height; /* size of the source */
  int32_t x0, y0, x1, y1;
} position_filter;

/* Input: settled. Output: keypoints, appended in order. */
typedef struct locate_args {
  octave_view octave;
  mask_view settled;
  sift_params params;
  position_filter filter;
  keypoint_list keypoints;
} locate_args;

/* The 3-D quadratic at one sample. */
typedef struct quadratic {
  float value;
  float gx, gy, gs;
  float hxx, hyy, hss, hxy, hxs, hys;
  float dx, dy, ds; /* offset of its extremum from the sample */
} quadratic;

/* Outcome of a Newton step. */
typedef enum refine_step { REFINE_SETTLED, REFINE_MOVED, REFINE_LOST } refine_step;

HS_INLINE void quadratic_derivatives(const octave_view *o, int32_t level, int32_t x, int32_t y, quadratic *q) {
  const float c = dog_at(o, level, x, y);
  const float xm = dog_at(o, level, x - 1, y), xp = dog_at(o, level, x + 1, y);
  const float ym = dog_at(o, level, x, y - 1), yp = dog_at(o, level, x, y + 1);
  const float sm = dog_at(o, level - 1, x, y), sp = dog_at(o, level + 1, x, y);
  q->value = c;
  q->gx = 0.5f * (xp - xm);
  q->gy = 0.5f * (yp - ym);
  q->gs = 0.5f * (sp - sm);
  q->hxx = (xp + xm) - 2.0f * c;
  q->hyy = (yp + ym) - 2.0f * c;
  q->hss = (sp + sm) - 2.0f * c;
  q->hxy = 0.25f * ((dog_at(o, level, x + 1, y + 1) + dog_at(o, level, x - 1, y - 1)) -
                    (dog_at(o, level, x + 1, y - 1) + dog_at(o, level, x - 1, y + 1)));
  q->hxs = 0.25f * ((dog_at(o, level + 1, x + 1, y) + dog_at(o, level - 1, x - 1, y)) -
                    (dog_at(o, level + 1, x - 1, y) + dog_at(o, level - 1, x + 1, y)));
  q->hys = 0.25f * ((dog_at(o, level + 1, x, y + 1) + dog_at(o, level - 1, x, y - 1)) -
                    (dog_at(o, level + 1, x, y - 1) + dog_at(o, level - 1, x, y + 1)));
}

/* Swaps rows a and b of the augmented 3 x 4 system. */
HS_INLINE void solve_swap(float m[3][4], int32_t a, int32_t b) {
  for (int32_t j = 0; j < 4; j++) {
    float t = m[a][j];
    m[a][j] = m[b][j];
    m[b][j] = t;
  }
}

/* Solves H d = -g by elimination with partial pivoting. The pivot is the largest absolute value; among equal values
   that of the lowest row. False: a pivot's absolute value is not above pivot_above. */
HS_INLINE bool quadratic_solve(quadratic *q, float pivot_above) {
  float m[3][4] = {
      {q->hxx, q->hxy, q->hxs, -q->gx}, {q->hxy, q->hyy, q->hys, -q->gy}, {q->hxs, q->hys, q->hss, -q->gs}};
  float a0 = hs_fabsf(m[0][0]), a1 = hs_fabsf(m[1][0]), a2 = hs_fabsf(m[2][0]);
  if (a1 > a0 && !(a2 > a1))
    solve_swap(m, 0, 1);
  else if (a2 > a0 && a2 > a1)
    solve_swap(m, 0, 2);
  if (!(hs_fabsf(m[0][0]) > pivot_above)) return false;
  for (int32_t i = 1; i < 3; i++) {
    const float f = m[i][0] / m[0][0];
    for (int32_t j = 1; j < 4; j++) m[i][j] = m[i][j] - f * m[0][j];
  }
  if (hs_fabsf(m[2][1]) > hs_fabsf(m[1][1])) solve_swap(m, 1, 2);
  if (!(hs_fabsf(m[1][1]) > pivot_above)) return false;
  const float f = m[2][1] / m[1][1];
  m[2][2] = m[2][2] - f * m[1][2];
  m[2][3] = m[2][3] - f * m[1][3];
  if (!(hs_fabsf(m[2][2]) > pivot_above)) return false;
  q->ds = m[2][3] / m[2][2];
  q->dy = (m[1][3] - m[1][2] * q->ds) / m[1][1];
  q->dx = ((m[0][3] - m[0][1] * q->dy) - m[0][2] * q->ds) / m[0][0];
  return true;
}

/* Computes derivatives and offset at a sample. False: there is no usable offset. RULE_VLFEAT takes offset 0 for a
 * tiny pivot. */
HS_INLINE bool quadratic_fit(const octave_view *o, int32_t level, int32_t x, int32_t y, author_rule rule,
                             quadratic *q) {
  quadratic_derivatives(o, level, x, y, q);
  if (rule == RULE_VLFEAT) {
    if (!quadratic_solve(q, 0.99999994e-10f)) q->dx = q->dy = q->ds = 0.0f;
    return hs_is_finite(q->dx) && hs_is_finite(q->dy) && hs_is_finite(q->ds);
  }
  return quadratic_solve(q, 0.0f) && hs_is_finite(q->dx) && hs_is_finite(q->dy) && hs_is_finite(q->ds);
}

/* Returns the step of one sample towards an offset beyond the limit: +1 or -1; 0 if the offset is within the limit. */
HS_INLINE int32_t step_towards(float offset, float limit) { return (offset > limit) - (offset < -limit); }

/* Moves (level, x, y) by the author's rule. If an offset is too large for an int, the candidate is lost; this is
 * checked before the conversion. */
HS_INLINE refine_step refine_move(const octave_view *o, const sift_params *p, const quadratic *q, int32_t *level,
                                  int32_t *x, int32_t *y) {
  int32_t mx, my, ms = 0;
  if (p->refine_rule == RULE_OPENCV) {
    const float ax = hs_fabsf(q->dx), ay = hs_fabsf(q->dy), as = hs_fabsf(q->ds);
    if (ax < p->settle && ay < p->settle && as < p->settle) return REFINE_SETTLED;
    if (ax > 1048576.0f || ay > 1048576.0f || as > 1048576.0f) return REFINE_LOST;
    mx = hs_round_half_even(q->dx);
    my = hs_round_half_even(q->dy);
    ms = hs_round_half_even(q->ds);
  } else if (p->refine_rule == RULE_VLFEAT) {
    mx = step_towards(q->dx, p->settle);
    my = step_towards(q->dy, p->settle);
    /* VLFeat does not move to a sample that lacks a neighbour, and never changes the level. */
    if ((mx > 0 && *x >= o->width - 2) || (mx < 0 && *x <= 1)) mx = 0;
    if ((my > 0 && *y >= o->height - 2) || (my < 0 && *y <= 1)) my = 0;
    if (mx == 0 && my == 0) return REFINE_SETTLED;
    *x += mx;
    *y += my;
    return REFINE_MOVED;
  } else {
    mx = step_towards(q->dx, p->settle);
    my = step_towards(q->dy, p->settle);
    ms = step_towards(q->ds, p->settle);
    if (mx == 0 && my == 0 && ms == 0) return REFINE_SETTLED;
  }
  *x += mx;
  *y += my;
  *level += ms;
  if (*level < 1 || *level > p->scales || *x < p->border || *x >= o->width - p->border || *y < p->border ||
      *y >= o->height - p->border)
    return REFINE_LOST;
  return REFINE_MOVED;
}

/* Whether the quadratic fitted at the final sample is a keypoint: position, contrast, edge. */
HS_INLINE bool refine_accept(const octave_view *o, const sift_params *p, const quadratic *q, int32_t level, int32_t x,
                             int32_t y) {
  const float limit = p->refine_rule == RULE_VLFEAT ? REFINE_OFFSET_MAX_VLFEAT : REFINE_OFFSET_MAX;
  if (!(hs_fabsf(q->dx) < limit && hs_fabsf(q->dy) < limit && hs_fabsf(q->ds) < limit)) return false;
  if (p->refine_rule == RULE_VLFEAT) {
    const float fx = (float)x + q->dx, fy = (float)y + q->dy, fs = (float)level + q->ds;
    if (!(fx >= 0.0f && fx <= (float)(o->width - 1) && fy >= 0.0f && fy <= (float)(o->height - 1))) return false;
    if (!(fs >= 0.0f && fs <= (float)(p->scales + 2))) return false;
  }
  const float trace = q->hxx + q->hyy;
  const float det = q->hxx * q->hyy - q->hxy * q->hxy;
  const float r1 = p->edge + 1.0f;
  return det > 0.0f && (trace * trace) * p->edge < (r1 * r1) * det;
}

/* Returns |D| at the refined extremum. */
HS_INLINE float refine_response(const quadratic *q) {
  const float slope = hs_fmaf(q->gs, q->ds, hs_fmaf(q->gy, q->dy, q->gx * q->dx));
  return hs_fabsf(hs_fmaf(0.5f, slope, q->value));
}

/* Judges the fit at (level, x, y), which is evaluation number `step` of a candidate (0 to REFINE_STEPS - 1).
 * Settled: the sample is a keypoint's. Moved: (level, x, y) is the next sample to evaluate, even if no evaluations
 * are left. Lost: there is no keypoint. */
HS_INLINE refine_step refine_judge(const octave_view *o, const sift_params *p, const quadratic *q, int32_t step,
                                   int32_t *level, int32_t *x, int32_t *y) {
  int32_t l = *level, i = *x, j = *y;
  const refine_step outcome = refine_move(o, p, q, &l, &i, &j);
  if (outcome == REFINE_LOST) return REFINE_LOST;
  /* The sample of the last evaluation may be kept even if the rule would move on, since refine_accept bounds its
   * offset. */
  const bool last = p->refine_rule != RULE_OPENCV && step == REFINE_STEPS - 1;
  if (outcome == REFINE_SETTLED || last)
    return refine_accept(o, p, q, *level, *x, *y) && refine_response(q) > p->contrast_above ? REFINE_SETTLED
                                                                                            : REFINE_LOST;
  *level = l;
  *x = i;
  *y = j;
  return REFINE_MOVED;
}

/* Follows a candidate to the sample where it settles. True: (level, x, y) is a keypoint's sample. */
HS_INLINE bool refine_follow(const octave_view *o, const sift_params *p, int32_t *level, int32_t *x, int32_t *y) {
  quadratic q;
  for (int32_t step = 0; step < REFINE_STEPS; step++) {
    if (!quadratic_fit(o, *level, *x, *y, p->refine_rule, &q)) return false;
    const refine_step outcome = refine_judge(o, p, &q, step, level, x, y);
    if (outcome != REFINE_MOVED) return outcome == REFINE_SETTLED;
  }
  return false;
}

/* Works like refine_follow, but starts with evaluation *step, and continues only while the samples are in `follow`.
 * REFINE_MOVED: (level, x, y) is outside `follow`, and *step is the number of the evaluation to make there. */
HS_INLINE refine_step refine_follow_in(const octave_view *o, const sift_params *p, const plane_region *follow,
                                       int32_t *step, int32_t *level, int32_t *x, int32_t *y) {
  quadratic q;
  for (; *step < REFINE_STEPS; ++*step) {
    if (*x < follow->x0 || *x >= follow->x1 || *y < follow->y0 || *y >= follow->y1) return REFINE_MOVED;
    if (!quadratic_fit(o, *level, *x, *y, p->refine_rule, &q)) return REFINE_LOST;
    const refine_step outcome = refine_judge(o, p, &q, *step, level, x, y);
    if (outcome != REFINE_MOVED) return outcome;
  }
  return REFINE_LOST;
}

/* Values of one keypoint, computed from its settled sample. */
typedef struct located {
  float x, y, sigma, response; /* original pixels */
} located;

/* A parabola through three samples at -1, 0 and 1; it has value, slope and curvature at t. */
typedef struct parabola {
  float value, slope, curvature;
} parabola;

HS_INLINE parabola parabola_at(float before, float centre, float after, float t) {
  parabola p;
  const float slope = 0.5f * (after - before);
  p.curvature = (after + before) - 2.0f * centre;
  p.slope = hs_fmaf(t, p.curvature, slope);
  p.value = hs_fmaf(t, hs_fmaf(0.5f * t, p.curvature, slope), centre);
  return p;
}

/* Computes gradient and Hessian of the triquadratic polynomial through the 27 samples about a sample, at q's
 * offset. */
HS_INLINE void interpolant_derivatives(const octave_view *o, int32_t level, int32_t x, int32_t y, quadratic *q) {
  parabola even[3], odd[3]; /* parabolas along y in the three columns: of the values, and of the slopes along s */
  float bent[3];            /* curvatures along s at dy, in the three columns */
  for (int32_t i = 0; i < 3; i++) {
    parabola s[3];
    for (int32_t j = 0; j < 3; j++)
      s[j] = parabola_at(dog_at(o, level - 1, x + i - 1, y + j - 1), dog_at(o, level, x + i - 1, y + j - 1),
                         dog_at(o, level + 1, x + i - 1, y + j - 1), q->ds);
    even[i] = parabola_at(s[0].value, s[1].value, s[2].value, q->dy);
    odd[i] = parabola_at(s[0].slope, s[1].slope, s[2].slope, q->dy);
    bent[i] = parabola_at(s[0].curvature, s[1].curvature, s[2].curvature, q->dy).value;
  }
  const parabola along_x = parabola_at(even[0].value, even[1].value, even[2].value, q->dx);
  const parabola across_y = parabola_at(even[0].slope, even[1].slope, even[2].slope, q->dx);
  const parabola across_s = parabola_at(odd[0].value, odd[1].value, odd[2].value, q->dx);
  q->gx = along_x.slope;
  q->gy = across_y.value;
  q->gs = across_s.value;
  q->hxx = along_x.curvature;
  q->hyy = parabola_at(even[0].curvature, even[1].curvature, even[2].curvature, q->dx).value;
  q->hss = parabola_at(bent[0], bent[1], bent[2], q->dx).value;
  q->hxy = across_y.slope;
  q->hxs = across_s.slope;
  q->hys = parabola_at(odd[0].slope, odd[1].slope, odd[2].slope, q->dx).value;
}

/* Makes one more Newton step, on the interpolant, from the offset of the quadratic. The quadratic has the curvature
 * at the sample, but the curvature of a blob changes with scale. Half a sample and half a level away, the
 * quadratic's extremum is wrong by up to a tenth of a sample (METHOD.md, section 5). A step beyond REFINE_AGAIN is
 * not made. */
HS_INLINE void refine_again(const octave_view *o, int32_t level, int32_t x, int32_t y, quadratic *q) {
  quadratic n = *q;
  interpolant_derivatives(o, level, x, y, &n);
  if (!quadratic_solve(&n, 0.0f)) return;
  if (!(hs_fabsf(n.dx) < REFINE_AGAIN && hs_fabsf(n.dy) < REFINE_AGAIN && hs_fabsf(n.ds) < REFINE_AGAIN)) return;
  const float dx = q->dx + n.dx, dy = q->dy + n.dy, ds = q->ds + n.ds;
  if (!(hs_fabsf(dx) < REFINE_OFFSET_MAX && hs_fabsf(dy) < REFINE_OFFSET_MAX && hs_fabsf(ds) < REFINE_OFFSET_MAX))
    return;
  q->dx = dx;
  q->dy = dy;
  q->ds = ds;
}

/* Returns the keypoint whose offset from its settled sample (level, x, y) is q's. */
HS_INLINE located located_at(const sift_params *p, int32_t octave, const quadratic *q, float response, int32_t level,
                             int32_t x, int32_t y) {
  located k;
  k.response = response;
  k.x = position_of_sample((float)x + q->dx, octave, p->grid_shift);
  k.y = position_of_sample((float)y + q->dy, octave, p->grid_shift);
  k.sigma = (p->sigma0 * hs_exp2(((float)level + q->ds) / (float)p->scales)) * hs_power_of_two(octave);
  return k;
}

HS_INLINE located locate_sample(const octave_view *o, const sift_params *p, int32_t level, int32_t x, int32_t y) {
  quadratic q;
  q.dx = q.dy = q.ds = 0.0f;
  (void)quadratic_fit(o, level, x, y, p->refine_rule, &q); /* ignores the result: settled samples have an offset */
  const float response = refine_response(&q);
  if (p->refine_rule == RULE_LOWE) refine_again(o, level, x, y, &q);
  return located_at(p, o->octave, &q, response, level, x, y);
}

/* Whether mask and region keep a position. It is rounded to floor(v + 0.5). If that is outside the picture, the
 * nearest pixel of the mask is read. */
HS_INLINE bool position_kept(const position_filter *f, float x, float y) {
  const int32_t i = hs_floor_int(x + 0.5f), j = hs_floor_int(y + 0.5f);
  if (i < f->x0 || i >= f->x1 || j < f->y0 || j >= f->y1) return false;
  if (!f->mask) return true;
  const int32_t ci = i < 0 ? 0 : (i >= f->width ? f->width - 1 : i);
  const int32_t cj = j < 0 ? 0 : (j >= f->height ? f->height - 1 : j);
  return f->mask[(size_t)cj * f->mask_stride + (size_t)ci] != 0;
}

#endif
