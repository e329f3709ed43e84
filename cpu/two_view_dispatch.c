/* Which variant of two-view geometry this machine runs. */
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/ref/two_view_ops.h"

/* Weakest first; the stages' table says which the machine can run. */
static const two_view_ops *const variants[] = {
    &two_view_ops_ref,
#if HARTSIFT_HAVE_ISA_SSE2
    &two_view_ops_sse2,
#endif
#if HARTSIFT_HAVE_ISA_AVX2
    &two_view_ops_avx2,
#endif
#if HARTSIFT_HAVE_ISA_AVX512
    &two_view_ops_avx512,
#endif
#if HARTSIFT_HAVE_ISA_NEON
    &two_view_ops_neon,
#endif
};

enum { VARIANT_COUNT = sizeof variants / sizeof variants[0] };

const two_view_ops *cpu_two_view_of(const char *name) {
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (strcmp(variants[i]->name, name) == 0) return cpu_variant_ops(name) ? variants[i] : NULL;
  return NULL;
}

const two_view_ops *cpu_choose_two_view(void) {
  const char *limit = getenv("HARTSIFT_CPU");
  const two_view_ops *chosen = limit && *limit ? cpu_two_view_of(limit) : NULL;
  return chosen ? chosen : cpu_two_view_of(cpu_level_name());
}
