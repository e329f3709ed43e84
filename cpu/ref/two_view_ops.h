/*
 * Two-view geometry for each instruction set it may be built for, and the choice among them.
 */
#ifndef HARTSIFT_CPU_REF_TWO_VIEW_OPS_H
#define HARTSIFT_CPU_REF_TWO_VIEW_OPS_H

#include "stages/two_view.h"

extern const two_view_ops two_view_ops_ref, two_view_ops_sse2, two_view_ops_avx2, two_view_ops_avx512,
    two_view_ops_neon;

/* The variant for this machine, narrowed by the environment variable HARTSIFT_CPU where that names one. */
const two_view_ops *cpu_choose_two_view(void);
/* One variant; null when the name is unknown or not usable on this machine. */
const two_view_ops *cpu_two_view_of(const char *name);

#endif
