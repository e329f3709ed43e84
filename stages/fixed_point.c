/*
 * Proof and computation of the bound in fixed_point.h.
 *
 * Magnitudes. Half the central difference of samples in [0, 1] is at most 1/2 in size, so m <= sqrt(1/2) < 0.70711.
 * VLFeat's one-sided differences on the image's edge are at most 1, so m <= sqrt(2) there: this concerns at most two
 * rows and two columns of a window. The weights of one row or column sum to at most the sum of g over one coordinate,
 * because the other factor is at most 1.
 *
 * Orientation weights. w = g(dx) g(dy), g(d) = exp(-d^2 / (2 a^2)), a = 1.5 sigma. Over any grid of unit spacing a
 * unimodal function's sum is at most its integral plus its maximum: sum g <= a sqrt(2 pi) + 1. R >= 4.5 sigma - 1/2
 * (VLFeat: 4.5 sigma - 1), hence a <= (R + 1) / 3, and the sum of weights is at most side^2,
 * side = (R + 1) / 3 * sqrt(2 pi) + 1; with the edge's excess counted as weight, side^2 + 4 side.
 *
 * Descriptor weights. In the rotated frame, in bins of b = 3 sigma samples, a sample at (u, v) gives the 4 x 4 cells
 * together its magnitude times w(u) t(u) w(v) t(v), where w(u) = exp(-u^2 / 8), t(u) = 1 for |u| <= 1.5, falling
 * linearly to 0 at 2.5 (votes outside the cells are cropped). f = w t is unimodal in each coordinate. The unit square
 * about a sample extends at most 1/sqrt(2) samples from it in either coordinate, so the sum over the grid is at most
 * the product of two integrals of f widened by 1/sqrt(2) samples each way: (C b + sqrt(2))^2 with C the integral of
 * f, below 3.398. R >= sqrt(2) * 2.5 * b - 1/2, hence b <= (R + 0.5) / 3.5355. Backends that also sum the padding of
 * the 6 x 6 x 10 histogram keep it separate; a padding cell receives at most the votes of a corner of the window, far
 * below the same bound.
 *
 * Rounding. A sample's votes are differences of rounded products. They add up to one rounded magnitude (orientation)
 * or two (descriptor, one per row), and what a descriptor cell receives from a row is off by at most 1. So the error
 * is at most 2 per sample, and a window has at most (2R + 1)^2 samples.
 *
 * Several windows. Each size of a pooled descriptor has its own histogram and 2^q. The pooled sum adds values of unit
 * norm in units of 2^-21 (domain_share). For 16 sizes a value is below 2^25 + 16, the sum of the squares below 2^58
 * and, because 128 values of unit norm sum to sqrt(128) at most, the sum of the values below 2^29.
 */
#include "stages/fixed_point.h"

#include "stages/orient.h"

static const double SQRT_TWO_PI = 2.5066282746310007;
static const double DESCRIBE_INTEGRAL = 3.398; /* integral of exp(-u^2/8) t(u), rounded up from 3.39738 */
static const double MAGNITUDE_MAX = 0.70711;
/* Radius of the orientation window in standard deviations of its Gaussian: 3 */
static const double DEVIATIONS = (double)ORIENT_WINDOW_RADIUS / (double)ORIENT_WINDOW_SIGMA;

double orient_weight_bound(int32_t radius) {
  const double side = ((double)radius + 1.0) / DEVIATIONS * SQRT_TWO_PI + 1.0;
  return side * side + 4.0 * side;
}

double describe_weight_bound(int32_t radius) {
  const double bin = ((double)radius + 0.5) / 3.5355339059327378;
  const double side = DESCRIBE_INTEGRAL * bin + 1.4142135623730951;
  return side * side;
}

/* Returns the largest q <= `most` such that weights * m * 2^q, plus the rounding, stays below 2^31. */
static int32_t bits_for(double weights, int32_t radius, int32_t most) {
  const double side = 2.0 * (double)radius + 1.0;
  const double rounding = 2.0 * side * side;
  int32_t q = most;
  double scale = (double)(1 << most);
  while (q > 0 && weights * MAGNITUDE_MAX * scale + rounding >= 2147483648.0) {
    scale *= 0.5;
    q--;
  }
  return q;
}

int32_t orient_vote_bits(int32_t radius) { return bits_for(orient_weight_bound(radius), radius, ORIENT_VOTE_BITS_MAX); }

int32_t describe_vote_bits(int32_t radius) {
  return bits_for(describe_weight_bound(radius), radius, DESCRIBE_VOTE_BITS_MAX);
}

void vote_scales_init(vote_scales *scales) {
  for (int32_t r = 0; r <= WINDOW_RADIUS_MAX; r++) {
    scales->orient[r] = (float)(1 << orient_vote_bits(r));
    scales->describe[r] = (float)(1 << describe_vote_bits(r));
  }
}
