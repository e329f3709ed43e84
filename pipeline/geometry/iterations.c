/* How many random samples are enough; see iterations.h. */
#include "pipeline/geometry/iterations.h"

/* base^exponent by squaring: sums and products only, so that every machine stops at the same iteration. */
static double power(double base, int32_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

int32_t iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most) {
  double good = 1.0; /* probability of a sample without outliers */
  for (int i = 0; i < sample; i++) {
    if (inliers <= (size_t)i) return most;
    good *= (double)(inliers - (size_t)i) / (double)(count - (size_t)i);
  }
  int32_t low = 0, high = most; /* the least n in (low, high] with (1 - good)^n <= 1 - confidence, or most */
  while (high - low > 1) {
    const int32_t middle = low + (high - low) / 2;
    if (power(1.0 - good, middle) <= 1.0 - confidence)
      high = middle;
    else
      low = middle;
  }
  return high;
}
