/*
 * Chains: several level steps of a small octave in one kernel.
 * Drawing: cuda/KERNELS.md, "A chain".
 */
#include "cuda/pyramid/pyramid_cuda.h"

#include "cuda/pyramid/blur_march.cuh"
#include "cuda/runtime/launch.h"

template <bool SMALL> struct chain_tile {
  static constexpr int side = CHAIN_TILE(SMALL), segment = CHAIN_SEGMENT(SMALL), threads = CHAIN_THREADS(SMALL);
};

template <bool SMALL, int R1, int R2, int R3> struct chain_shape {
  static constexpr int halo = CHAIN_HALO(R1 + R2 + R3), side0 = CHAIN_SIDE(SMALL, R1 + R2 + R3);
  static constexpr int rows = CHAIN_ROWS(SMALL, R1, R1 + R2 + R3), stride = CHAIN_STRIDE(rows);
};

/* Row pass of a chain's step: a lane takes a segment of outputs of a row; window sample i of output 0 is column i. */
template <bool SMALL, int R, int STRIDE>
__device__ __forceinline__ void chain_rows(const float *taps, const float *s_from, float *s_to, int32_t side) {
  constexpr int count = chain_tile<SMALL>::segment;
  const int32_t segments = (side - 2 * R + count - 1) / count;
  constexpr int vectors = (count + 2 * R + 3) / 4;
  for (int32_t i = (int32_t)threadIdx.x; i < segments * side; i += chain_tile<SMALL>::threads) {
    const int32_t segment = i / side, row = i - segment * side;
    const float4 *from = reinterpret_cast<const float4 *>(s_from + row * STRIDE + count * segment);
    float v[4 * vectors], a[count];
#pragma unroll
    for (int n = 0; n < vectors; n++) {
      const float4 f = from[n];
      v[4 * n] = f.x;
      v[4 * n + 1] = f.y;
      v[4 * n + 2] = f.z;
      v[4 * n + 3] = f.w;
    }
    filter_window<R, count>(taps, v, a);
    float4 *to = reinterpret_cast<float4 *>(s_to + row * STRIDE + count * segment);
#pragma unroll
    for (int n = 0; n < count / 4; n++) to[n] = make_float4(a[4 * n], a[4 * n + 1], a[4 * n + 2], a[4 * n + 3]);
  }
}

/* Column pass: a lane takes a segment of outputs of a column. Outputs inside the tile and the picture are stored as the
 * step's level; all outputs are the next step's input. `before`: distance of the output region's start from the
 * tile. */
template <bool SMALL, int R, int STRIDE, bool LAST>
__device__ __forceinline__ void chain_columns(const chain_params &p, int32_t step, const float *s_from, float *s_to,
                                              int32_t side, int32_t before) {
  constexpr int count = chain_tile<SMALL>::segment, tile = chain_tile<SMALL>::side;
  const int32_t out_side = side - 2 * R, segments = (out_side + count - 1) / count;
  const int32_t left = (int32_t)blockIdx.x * tile, top = (int32_t)blockIdx.y * tile;
  float *level = p.out + (size_t)step * p.level_floats;
  for (int32_t i = (int32_t)threadIdx.x; i < segments * out_side; i += chain_tile<SMALL>::threads) {
    const int32_t segment = i / out_side, column = i - segment * out_side, x = left - before + column;
    const float *from = s_from + count * segment * STRIDE + column;
    float v[count + 2 * R], a[count];
#pragma unroll
    for (int n = 0; n < count + 2 * R; n++) v[n] = from[n * STRIDE];
    filter_window<R, count>(p.taps[step], v, a);
    const bool column_stored = x >= left && x < min(left + tile, p.width);
#pragma unroll
    for (int n = 0; n < count; n++) {
      const int32_t row = count * segment + n, y = top - before + row;
      if (!LAST) s_to[row * STRIDE + column] = a[n];
      if (!column_stored || y < top || y >= min(top + tile, p.height)) continue;
      level[(size_t)y * p.stride + (size_t)x] = a[n];
      if (LAST && p.halved && !((x | y) & 1) && x / 2 < p.halved_width && y / 2 < p.halved_height)
        p.halved[(size_t)(y / 2) * p.halved_stride + (size_t)(x / 2)] = a[n];
    }
  }
}

/* Region 0: the input around the tile, extended beyond the picture's sides by the border mode. */
template <bool SMALL, int SIDE, int STRIDE>
__device__ __forceinline__ void chain_stage(const chain_params &p, int32_t halo, float *s_to) {
  const int32_t left = (int32_t)blockIdx.x * chain_tile<SMALL>::side - halo,
                top = (int32_t)blockIdx.y * chain_tile<SMALL>::side - halo;
  for (int32_t i = (int32_t)threadIdx.x; i < SIDE * (SIDE / 4); i += chain_tile<SMALL>::threads) {
    const int32_t row = i / (SIDE / 4), vector = i - row * (SIDE / 4), x = left + 4 * vector;
    const float *from = p.in + (size_t)fold_index(top + row, p.height, p.border) * p.stride;
    float *to = s_to + row * STRIDE + 4 * vector;
    if (x >= 0 && x + 4 <= p.width)
      copy_16_async(to, from + x);
    else
      for (int32_t e = 0; e < 4; e++) copy_4_async(to + e, from + fold_index(x + e, p.width, p.border));
  }
  copies_commit();
  copies_wait();
}

/* Between two steps: sets the part of a region outside the picture to the border mode's values. A reflection is already
 * correct: outside, a region holds the blur of the reflected input, which equals the reflection of the blurred level
 * bit for bit, because mirroring only exchanges the two samples of each sum. A repeated side is filled in: the nearest
 * sample of the picture is in the region, because the tile begins in the picture. Call it after all threads have
 * written the region; it reads the picture's samples and writes the others. */
template <bool SMALL, int STRIDE>
__device__ __forceinline__ void chain_border(const chain_params &p, float *s_level, int32_t side, int32_t before) {
  const int32_t left = (int32_t)blockIdx.x * chain_tile<SMALL>::side - before,
                top = (int32_t)blockIdx.y * chain_tile<SMALL>::side - before;
  __syncthreads();
  if (p.border == BORDER_REFLECT_101 || (left >= 0 && top >= 0 && left + side <= p.width && top + side <= p.height))
    return;
  for (int32_t i = (int32_t)threadIdx.x; i < side * side; i += chain_tile<SMALL>::threads) {
    const int32_t row = i / side, column = i - row * side;
    const int32_t y = border_index(top + row, p.height, BORDER_REPLICATE) - top,
                  x = border_index(left + column, p.width, BORDER_REPLICATE) - left;
    if (y != row || x != column) s_level[row * STRIDE + column] = s_level[y * STRIDE + x];
  }
  __syncthreads();
}

/*
 * Does      two or three level steps, as that many blur_ref, and halve_ref of the last level.
 * Launch    one block per chain_tile::side x side samples, chain_tile::threads threads.
 * Shared    chain_shape::shared_bytes, dynamic: a level's region, and the same with rows filtered.
 * Reads     the input level: the tile with a halo of all radii.
 * Writes    the tile of each level; `halved` if wanted.
 * Barriers  after staging and after each pass, because the next pass reads the values written; one more for a
 *           repeated side.
 * Limits    any size, either border.
 * Order     each output is one fixed chain of operations; repeatable bit for bit.
 * Cost      radii 5, 7, 8 filter 2.8 times (small tiles: 5 times) the samples that single steps would; bound by
 *           latency at the sizes that chains are for.
 */
template <bool SMALL, int R1, int R2, int R3>
static __device__ __forceinline__ void chain_of_block(const chain_params &p) {
  using shape = chain_shape<SMALL, R1, R2, R3>;
  constexpr int side1 = shape::side0 - 2 * R1, side2 = side1 - 2 * R2, stride = shape::stride;
  extern __shared__ float4 s_vectors[];
  float *s_level = reinterpret_cast<float *>(s_vectors), *s_rows = s_level + shape::rows * stride;
  chain_stage<SMALL, shape::side0, stride>(p, shape::halo, s_level);
  __syncthreads();
  chain_rows<SMALL, R1, stride>(p.taps[0], s_level, s_rows, shape::side0);
  __syncthreads();
  chain_columns<SMALL, R1, stride, false>(p, 0, s_rows, s_level, shape::side0, shape::halo - R1);
  chain_border<SMALL, stride>(p, s_level, side1, shape::halo - R1);
  chain_rows<SMALL, R2, stride>(p.taps[1], s_level, s_rows, side1);
  __syncthreads();
  chain_columns<SMALL, R2, stride, R3 == 0>(p, 1, s_rows, s_level, side1, shape::halo - R1 - R2);
  if (R3 == 0) return;
  chain_border<SMALL, stride>(p, s_level, side2, shape::halo - R1 - R2);
  chain_rows<SMALL, R3, stride>(p.taps[2], s_level, s_rows, side2);
  __syncthreads();
  chain_columns<SMALL, R3, stride, true>(p, 2, s_rows, s_level, side2, shape::halo - R1 - R2 - R3);
}

template <bool SMALL, bool GROUP, int R1, int R2, int R3>
static __device__ __forceinline__ void blur_chain(const chain_params &p, size_t group_stride_bytes) {
  if (GROUP) {
    chain_params q = p;
    const size_t bytes = blockIdx.z * group_stride_bytes;
    q.in = group_shifted(p.in, bytes);
    q.out = group_shifted(p.out, bytes);
    q.halved = group_shifted(p.halved, bytes);
    chain_of_block<SMALL, R1, R2, R3>(q);
  } else {
    chain_of_block<SMALL, R1, R2, R3>(p);
  }
}

#define CHAIN_KERNEL(name, SMALL, GROUP, R1, R2, R3)                                                                   \
  extern "C" __global__ void __launch_bounds__(CHAIN_THREADS(SMALL))                                                   \
      name(const __grid_constant__ chain_params p, size_t group_stride_bytes) {                                        \
    blur_chain<SMALL, GROUP, R1, R2, R3>(p, group_stride_bytes);                                                       \
  }
#define CHAIN_KERNELS(R1, R2, R3)                                                                                      \
  CHAIN_KERNEL(blur_chain_kernel_##R1##_##R2##_##R3, false, false, R1, R2, R3)                                         \
  CHAIN_KERNEL(blur_chain_group_kernel_##R1##_##R2##_##R3, false, true, R1, R2, R3)                                    \
  CHAIN_KERNEL(blur_chain_small_kernel_##R1##_##R2##_##R3, true, false, R1, R2, R3)                                    \
  CHAIN_KERNEL(blur_chain_small_group_kernel_##R1##_##R2##_##R3, true, true, R1, R2, R3)
TUNE_CHAINS(CHAIN_KERNELS)
