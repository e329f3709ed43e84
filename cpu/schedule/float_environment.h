/*
 * The floating-point environment of every entry point and worker: round to nearest, denormals kept.
 *
 * A caller may have set flush-to-zero or another rounding mode; the library's bytes must not depend on that, and the
 * caller's state must be restored.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FLOAT_ENVIRONMENT_H
#define HARTSIFT_CPU_SCHEDULE_FLOAT_ENVIRONMENT_H

#include <fenv.h>

typedef struct float_environment {
  fenv_t saved;
} float_environment;

/* The default environment has neither FTZ nor DAZ in MXCSR on x86, and an FPCR of 0 on AArch64. */
static inline void float_environment_enter(float_environment *e) {
  fegetenv(&e->saved);
  fesetenv(FE_DFL_ENV);
}

static inline void float_environment_leave(const float_environment *e) { fesetenv(&e->saved); }

static inline float_environment float_environment_of_library(void) {
  float_environment e;
  float_environment_enter(&e);
  return e;
}

/* First statement of each thread, and of each public function that computes or converts numbers to or from text. It
 * enters the library's environment, and restores the caller's at any return. tests/api/check_float_environment.py
 * checks this. */
#define FLOAT_ENVIRONMENT_OF_LIBRARY                                                                                   \
  __attribute__((cleanup(float_environment_leave), unused)) float_environment environment_of_caller =                  \
      float_environment_of_library()

#endif
