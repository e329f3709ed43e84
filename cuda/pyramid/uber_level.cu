/*
 * Level step and DoG level in one kernel, from the device functions of the split ones.
 */
#include "cuda/pyramid/uber_level.h"

#include "cuda/runtime/launch.cuh"
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

template <int R> static stage_status uber_level_prepare_radius(void) {
  return launch_prepare((const void *)uber_level_kernel<R>, march_shape<R>::shared_bytes);
}

struct uber_row {
  int32_t radius;
  stage_status (*prepare)(void);
  stage_status (*launch)(const blur_launch_args *args, cuda_stream stream);
};

#define UBER_ROW(R) {R, uber_level_prepare_radius<R>, uber_level<R>},
static const uber_row uber_rows[] = {TUNE_MARCH_RADII(UBER_ROW)};

stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && args->dog.data && args->dog.stride == args->out.stride);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  const uber_row *row = march_row_of(uber_rows, args->filter->radius);
  assert(row);
  return row ? row->launch(args, stream) : STAGE_OVERFLOW;
}

stage_status uber_level_prepare(void) { return march_prepare(uber_rows); }
