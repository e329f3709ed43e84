/*
 * The floating-point environment every entry point and worker works in: round to nearest, denormals kept.
 *
 * A caller may have set flush-to-zero or another rounding; the library's bytes must not depend on that, and the
 * caller's state must be restored.
 */
#ifndef HARTSIFT_CPU_FLOAT_ENVIRONMENT_H
#define HARTSIFT_CPU_FLOAT_ENVIRONMENT_H

#include <fenv.h>

typedef struct float_environment {
  fenv_t saved;
} float_environment;

/* On x86 the default environment's MXCSR has neither FTZ nor DAZ, on AArch64 its FPCR is 0. */
static inline void float_environment_enter(float_environment *e) {
  fegetenv(&e->saved);
  fesetenv(FE_DFL_ENV);
}

static inline void float_environment_leave(const float_environment *e) { fesetenv(&e->saved); }

#endif
