/* Gray bytes of 8-bit colour. */
#include "cuda/pyramid/gray_cuda.h"

#include "cuda/runtime/launch.cuh"

enum { GRAY_THREADS = 256, GRAY_ROWS_MAX = 65535 };

/* A picture's first byte, and what lies in it where. */
typedef struct gray_source {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height, channels, red, blue; /* bytes of a pixel; which of them are red and blue, both 0: no colours */
} gray_source;

/*
 * Does      gray of every pixel, as equalize_picture.c does on the host.
 * Launch    blocks of 256 threads, a thread a pixel; grid: parts of a row, rows (looping), pictures of the group.
 * Shared    none.
 * Reads     source: bytes, any stride. Writes out.
 * Barriers  none.
 * Limits    any size. Order: repeatable.
 * Cost      at most 5 bytes of memory a pixel: bound by memory.
 */
__global__ void __launch_bounds__(GRAY_THREADS)
    gray_kernel(gray_source source, uint8_t *out, size_t out_stride, size_t group_stride) {
  const int32_t x = (int32_t)(blockIdx.x * GRAY_THREADS + threadIdx.x);
  const uint8_t *in = source.data + blockIdx.z * group_stride;
  uint8_t *to = out + blockIdx.z * group_stride;
  if (x >= source.width) return;
  for (int32_t y = (int32_t)blockIdx.y; y < source.height; y += (int32_t)gridDim.y) {
    const uint8_t *p = in + (size_t)y * source.stride_bytes + (size_t)x * (size_t)source.channels;
    const uint32_t gray = source.red == source.blue ? p[0] : gray_of_rgb_int(p[source.red], p[1], p[source.blue]);
    to[(size_t)y * out_stride + (size_t)x] = (uint8_t)gray;
  }
}

stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream) {
  assert(source->type == SOURCE_U8 && source->data && out && out_stride_bytes >= (size_t)source->width);
  const bool colour = source_channels(source->layout) >= 3;
  const bool blue_first = source->layout == SOURCE_BGR || source->layout == SOURCE_BGRA;
  const gray_source s = {(const uint8_t *)source->data,
                         source->stride_bytes,
                         source->width,
                         source->height,
                         (int32_t)source_channels(source->layout),
                         colour && !blue_first ? 0
                         : colour              ? 2
                                               : 0,
                         colour && !blue_first ? 2 : 0};
  const unsigned columns = ((unsigned)source->width + GRAY_THREADS - 1u) / GRAY_THREADS;
  const unsigned rows = source->height < GRAY_ROWS_MAX ? (unsigned)source->height : (unsigned)GRAY_ROWS_MAX;
  const dim3 blocks(columns, rows, group.count > 1 ? (unsigned)group.count : 1u);
  return launch(gray_kernel, blocks, GRAY_THREADS, 0, stream, s, out, out_stride_bytes, group.stride_bytes);
}
