/*
 * Dot products of byte vectors: every variant equals 64-bit sums, with awkward lengths and extreme values.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"

TEST(every_variant_agrees) {
  static const char *const variants[] = {"ref", "sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"};
  static const size_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 255, 1000, 8192, DOT_LENGTH_MAX};
  SCOPED_MEMORY int8_t *bytes = malloc((DOT_ANSWERS + 1) * (size_t)DOT_LENGTH_MAX);
  uint32_t random = 3;
  (void)state;
  assert_non_null(bytes);
  for (int extreme = 0; extreme < 2; extreme++) {
    for (size_t i = 0; i < (DOT_ANSWERS + 1) * (size_t)DOT_LENGTH_MAX; i++)
      bytes[i] = extreme ? INT8_MIN : (int8_t)(feature_maker_random(&random) >> 8);
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
      const size_t length = lengths[n], stride = length + n % 3;
      const int8_t *answering = bytes + DOT_LENGTH_MAX - 2 * DOT_ANSWERS * (n % 3 != 0);
      int64_t expected[DOT_ANSWERS] = {0};
      for (size_t k = 0; k < DOT_ANSWERS; k++)
        for (size_t i = 0; i < length; i++) expected[k] += bytes[i] * answering[k * stride + i];
      for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        const dot_bytes_function dot = cpu_dot_of(variants[v]);
        int32_t products[DOT_ANSWERS];
        if (!dot) continue; /* this processor cannot run the variant */
        dot(bytes, answering, stride, length, products);
        for (size_t k = 0; k < DOT_ANSWERS; k++)
          if (products[k] != expected[k]) fail_msg("%s differs: length %zu, stride %zu", variants[v], length, stride);
      }
    }
  }
}

TEST(the_choice_is_usable) {
  assert_non_null(cpu_choose_dot());
  assert_non_null(cpu_dot_of("ref"));
  assert_null(cpu_dot_of("none"));
}
