/* Which variant of the primitives this machine runs. */
#include <stdlib.h>

#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_ref.h"
#include "cpu/primitives/primitives_simd.h"
#include "cpu/primitives/primitives_threads.h"

/* Weakest first; the stages' table says which the machine can run. */
static const prim_ops *const variants[] = {
    &prim_ops_ref,
#if HARTSIFT_HAVE_ISA_SSE2
    &prim_ops_sse2,
#endif
#if HARTSIFT_HAVE_ISA_AVX2
    &prim_ops_avx2,
#endif
#if HARTSIFT_HAVE_ISA_AVX512
    &prim_ops_avx512,
#endif
#if HARTSIFT_HAVE_ISA_NEON
    &prim_ops_neon,
#endif
};

enum { VARIANT_COUNT = sizeof variants / sizeof variants[0] };

const prim_ops *cpu_prims_of(const char *name) {
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (strcmp(variants[i]->name, name) == 0) return cpu_variant_ops(name) ? variants[i] : NULL;
  return NULL;
}

const prim_ops *cpu_choose_prims(void) {
  const char *limit = getenv("HARTSIFT_CPU");
  if (limit && *limit && !cpu_variant_ops(limit)) return NULL;
  const prim_ops *chosen = limit && *limit ? cpu_prims_of(limit) : NULL;
  return chosen ? chosen : cpu_prims_of(cpu_level_name());
}
