/*
 * Dot products of byte vectors: every variant equals 64-bit sums, with awkward lengths and extreme values. Projections:
 * every variant has the bytes of sums in the defined order, which products of very different size tell from others.
 */
#include "tests/support/test.h"

#include <math.h>

#include "cpu/dispatch.h"

static const char *const variants[] = {"ref", "sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"};

TEST(every_variant_agrees) {
  static const size_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 255, 1000, 8192, DOT_LENGTH_MAX};
  const size_t bytes_made = (DOT_ASKING + DOT_ANSWERS) * ((size_t)DOT_LENGTH_MAX + 2);
  SCOPED_MEMORY int8_t *bytes = malloc(bytes_made);
  uint32_t random = 3;
  (void)state;
  assert_non_null(bytes);
  for (int extreme = 0; extreme < 2; extreme++) {
    for (size_t i = 0; i < bytes_made; i++)
      bytes[i] = extreme ? INT8_MIN : (int8_t)(feature_maker_random(&random) >> 8);
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
      const size_t length = lengths[n];
      const dot_vectors asking = {bytes + n % 2, n % 5 == 4 ? 0 : length + n % 2};
      const dot_vectors answering = {bytes + DOT_ASKING * ((size_t)DOT_LENGTH_MAX + 1), length + n % 3};
      int64_t expected[DOT_ASKING][DOT_ANSWERS] = {{0}};
      for (size_t r = 0; r < DOT_ASKING; r++)
        for (size_t k = 0; k < DOT_ANSWERS; k++)
          for (size_t i = 0; i < length; i++)
            expected[r][k] += asking.first[r * asking.stride + i] * answering.first[k * answering.stride + i];
      for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const dot_bytes_function dot = cpu_dot_of(variants[v]);
        int32_t products[DOT_ASKING][DOT_ANSWERS];
        if (!dot) continue; /* this processor cannot run the variant */
        dot(asking, answering, length, products);
        for (size_t r = 0; r < DOT_ASKING; r++)
          for (size_t k = 0; k < DOT_ANSWERS; k++)
            if (products[r][k] != expected[r][k]) fail_msg("%s differs: length %zu, case %zu", variants[v], length, n);
      }
    }
  }
}

TEST(every_projection_agrees) {
  enum { LENGTH_MAX = 129, COUNT_MAX = 128 };
  static double vector[LENGTH_MAX], axes[LENGTH_MAX * COUNT_MAX], values[COUNT_MAX], expected[COUNT_MAX];
  static const size_t lengths[] = {0, 1, 128, LENGTH_MAX};
  uint32_t random = 5;
  (void)state;
  for (size_t i = 0; i < LENGTH_MAX; i++) vector[i] = (int)(feature_maker_random(&random) % 5001) - 2500;
  for (size_t i = 0; i < LENGTH_MAX * COUNT_MAX; i++)
    axes[i] =
        ldexp((int)(feature_maker_random(&random) % 20001) - 10000, (int)(feature_maker_random(&random) % 60) - 40);
  for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++)
    for (size_t count = 1; count <= COUNT_MAX; count++) {
      for (size_t k = 0; k < count; k++) {
        expected[k] = 0.0;
        for (size_t i = 0; i < lengths[n]; i++) expected[k] += vector[i] * axes[i * count + k];
      }
      for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const project_function project = cpu_project_of(variants[v]);
        if (!project) continue; /* this processor cannot run the variant */
        memset(values, 0xff, sizeof values);
        project(vector, lengths[n], axes, count, values);
        if (memcmp(values, expected, count * sizeof *values) != 0)
          fail_msg("%s differs: length %zu, count %zu", variants[v], lengths[n], count);
      }
    }
}

TEST(the_choice_is_usable) {
  assert_non_null(cpu_choose_project());
  assert_non_null(cpu_project_of("ref"));
  assert_null(cpu_project_of("none"));
  assert_non_null(cpu_choose_dot());
  assert_non_null(cpu_dot_of("ref"));
  assert_null(cpu_dot_of("none"));
}
