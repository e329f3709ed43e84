/*
 * Level step and DoG level in one kernel, from the device functions of the split ones.
 */
#include "cuda/pyramid/uber_level.h"

#include "cuda/device/launch.cuh"
#include "cuda/pyramid/blur_march.cuh"

/*
 * Does: one level step and the DoG level below it, as blur_ref and dog_at. Everything else as blur_march_kernel; writes
 *   `dog` too, from the new sample in its register and the old one read again through the L2 cache.
 * Cost: 4 bytes more a sample than blur_march_kernel; the extremum search reads S+2 planes instead of S+3.
 */
template <int R>
__global__ void __launch_bounds__(march_shape<R>::threads, MARCH_BLOCKS_PER_SM)
    uber_level_kernel(const __grid_constant__ march_params<R> p) {
  extern __shared__ float4 s_vectors[];
  march_plane<R, true>(p, reinterpret_cast<float *>(s_vectors));
}

template <int R> static stage_status uber_level(const blur_launch_args *args, cuda_stream stream) {
  const march_params<R> p = march_params_of<R>(args);
  return launch(uber_level_kernel<R>, march_grid(p), march_shape<R>::threads, march_shape<R>::shared_bytes, stream, p);
}

stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && args->dog.data && args->dog.stride == args->out.stride);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  switch (args->filter->radius) {
#define RADIUS_CASE(R)                                                                                                 \
  case R:                                                                                                              \
    return uber_level<R>(args, stream);
    TUNE_MARCH_RADII(RADIUS_CASE)
#undef RADIUS_CASE
  default:
    assert(!"a radius without a marching kernel");
    return STAGE_OVERFLOW;
  }
}

stage_status uber_level_prepare(void) {
  stage_status status = STAGE_OK;
#define RADIUS_PREPARE(R)                                                                                              \
  if (status == STAGE_OK) status = launch_prepare((const void *)uber_level_kernel<R>, march_shape<R>::shared_bytes);
  TUNE_MARCH_RADII(RADIUS_PREPARE)
#undef RADIUS_PREPARE
  return status;
}
