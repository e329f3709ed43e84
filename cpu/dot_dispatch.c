/* Which variant of the dot products this machine runs; see dot.h. */
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/ref/dot_bytes.h"

static void dot_bytes_ref(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                          int32_t products[DOT_ANSWERS]) {
  dot_bytes(asking, answering, stride, length, products);
}

static const struct {
  const char *name;
  dot_bytes_function dot;
} variants[] = {
    {"ref", dot_bytes_ref},
#if HARTSIFT_HAVE_ISA_SSE2
    {"sse2", dot_bytes_sse2},
#endif
#if HARTSIFT_HAVE_ISA_AVX2
    {"avx2", dot_bytes_avx2},
#endif
#if HARTSIFT_HAVE_ISA_AVX512
    {"avx512", dot_bytes_avx512},
#endif
#if HARTSIFT_HAVE_ISA_NEON
    {"neon", dot_bytes_neon},
#endif
};

dot_bytes_function cpu_dot_of(const char *name) {
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
    if (strcmp(variants[i].name, name) == 0) return cpu_variant_ops(name) ? variants[i].dot : NULL;
  return NULL;
}

dot_bytes_function cpu_choose_dot(void) {
  const char *limit = getenv("HARTSIFT_CPU");
  if (limit && *limit && !cpu_variant_ops(limit)) return NULL;
  const dot_bytes_function chosen = limit && *limit ? cpu_dot_of(limit) : NULL;
  return chosen ? chosen : cpu_dot_of(cpu_level_name());
}
