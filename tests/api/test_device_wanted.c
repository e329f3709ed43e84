/*
 * Primitives for device memory in a context on the CPU fail with an error that gives this reason. Needs no device;
 * skipped in a build without CUDA.
 */
#include "tests/support/test.h"

#include "pipeline/include/hartsift_primitives.h"

#if HARTSIFT_HAVE_CUDA

#  include "pipeline/include/hartsift_cuda.h"

TEST(cpu_context) {
  hs_options o;
  scoped_context *c = NULL;
  double sum = 3.0;
  uint64_t counts[256] = {7};
  const float one = 1.0f;
  const uint8_t byte = 1;
  const hs_array floats = {&one, 1, 1, 0, HS_ELEMENT_F32}, bytes = {&byte, 1, 1, 0, HS_ELEMENT_U8};
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  assert_int_equal(hs_create(&c, &o), HS_OK);
  assert_int_equal(hs_cuda_reduce_sum(c, &floats, NULL, &sum), HS_ERR_NO_DEVICE);
  assert_non_null(strstr(hs_last_error(c), "CPU"));
  assert_int_equal(hs_cuda_histogram256(c, &bytes, NULL, NULL, counts), HS_ERR_NO_DEVICE);
  assert_true(sum == 3.0 && counts[0] == 7);
  void *memory = &sum;
  assert_int_equal(hs_cuda_alloc_host(c, 8, &memory), HS_ERR_NO_DEVICE);
  assert_null(memory);
  assert_int_equal(hs_cuda_finish(c), HS_ERR_NO_DEVICE);
  hs_cuda_free_host(c, NULL);
}

#else

TEST(cpu_context) { skip_because(NEEDS_GPU); }

#endif
