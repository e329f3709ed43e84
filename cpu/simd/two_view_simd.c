/* Two-view geometry in vectors; built once for each instruction set. */
#include "cpu/simd/simd_f64.h"
#include "cpu/simd/stages_simd.h"

typedef simd_f64 real;
#define REAL_LANES SIMD_F64
SIMD_INLINE real real_of(double v) { return simd_f64_set1(v); }
SIMD_INLINE real real_load(const double *p) { return simd_f64_load(p); }
SIMD_INLINE void real_store(double *p, real v) { simd_f64_store(p, v); }
SIMD_INLINE real real_sqrt(real v) { return simd_f64_sqrt(v); }
SIMD_INLINE real real_if_above(real a, real b, real x, real y) { return simd_f64_if_above(a, b, x, y); }

#include "cpu/ref/two_view_lanes.h"
#include "cpu/simd/two_view_seven_simd.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const two_view_ops SIMD_NAME(two_view_ops) = TWO_VIEW_OPS(TEXT(HARTSIFT_ISA), seven_in_pairs);
