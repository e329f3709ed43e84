/* Two-view geometry in plain C, one lane at a time. */
#include "cpu/ref/stages_ref.h"

typedef double real;
#define REAL_LANES 1
static inline real real_of(double v) { return v; }
static inline real real_load(const double *p) { return *p; }
static inline void real_store(double *p, real v) { *p = v; }
static inline real real_sqrt(real v) { return __builtin_sqrt(v); }
static inline real real_if_above(real a, real b, real x, real y) { return a > b ? x : y; }

#include "cpu/ref/two_view_lanes.h"

static void seven(const two_view_matches *matches, const uint32_t *samples, const bool *may_repeat,
                  two_view_seven *out) {
  (void)may_repeat;
  for (int first = 0; first < (int)TWO_VIEW_SAMPLES; first++) seven_of_register(matches, samples, first, out);
}

const two_view_ops two_view_ops_ref = TWO_VIEW_OPS("ref", seven);
