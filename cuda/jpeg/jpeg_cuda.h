/*
 * Luma of baseline JPEGs decoded on the GPU, with libjpeg's pixels: Huffman codes by self-synchronisation (Klein and
 * Wiseman, The Computer Journal 2003; Weissenberger and Schmidt, ICPP 2018 and HiPC 2021), the inverse cosine transform
 * of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) in libjpeg's integers.
 */
#ifndef HARTSIFT_CUDA_JPEG_JPEG_CUDA_H
#define HARTSIFT_CUDA_JPEG_JPEG_CUDA_H

#include "cuda/runtime/device.h"
#include "stages/jpeg_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A packed picture and the destination of its pixels. Pixel (x, y) as stored goes to gray[start + x * step_x + y *
 * step_y]: rows of any pitch, rotated as an EXIF orientation requires. */
typedef struct jpeg_decode_args {
  jpeg_shape shape;
  const void *packed; /* pinned host memory, shape.packed_bytes; must stay until the stream has read it */
  void *scratch; /* device memory, jpeg_scratch_bytes(&shape), a multiple of 256 bytes; used by one picture at a time */
  uint8_t *gray; /* device memory */
  int64_t start, step_x, step_y;
  uint32_t *refused; /* device memory: becomes 0 if the pixels are libjpeg's. Otherwise libjpeg must decode the
                      * picture: its data are damaged, or have values on which decoders differ */
} jpeg_decode_args;

/* Returns the bytes of device memory for decoding a picture, in addition to its pixels. */
size_t jpeg_scratch_bytes(const jpeg_shape *shape);

/* Copies a packed picture to the device and decodes it, in stream order. Neither waits nor allocates. */
stage_status jpeg_decode_launch(const jpeg_decode_args *args, cuda_stream stream);

/* ---- kernels: their launchers are in jpeg_cuda.c */

/* Threads of a block that writes coefficients, one for each subsequence of its tile. */
enum { SCAN_THREADS = 128 };

/* A picture in the decoder's memory. */
typedef struct scan_view {
  jpeg_shape shape;
  const jpeg_tables *tables;
  const jpeg_interval *intervals;
  const uint32_t *data; /* the coded bytes; the first bit is the topmost of the first byte */
  /* for each subsequence: */
  uint32_t *entry, *exit; /* packed states at the beginning and the end of decoding it */
  uint32_t *blocks;       /* number of blocks that end in it */
  uint32_t *luma;         /* sum of the DC differences of its luma blocks, modulo 2^32 */
  /* for each tile, sums from the last restart in it: */
  uint32_t *tile_blocks, *tile_luma;
  uint32_t *carry; /* [2][tiles]: exit of the last subsequence of each tile, after even and after odd rounds */
  uint32_t tiles;
  int16_t *coefficients; /* [luma block][64]: blocks in the order of the scan, coefficients by column and row */
  uint32_t *refused;
} scan_view;

enum { REFUSED_NOT_FOUND = 1, REFUSED_DAMAGED = 2, REFUSED_TOO_LARGE = 4 };

/* Words of a tile, whose `threads` threads have `each` subsequences each. GAP: words between two gaps. WORDS: all words
 * without gaps. MEMORY: all words with gaps. */
#define JPEG_STAGED_GAP(each)            ((each)*JPEG_SUBSEQUENCE_BITS / 32)
#define JPEG_STAGED_WORDS(threads, each) ((threads)*JPEG_STAGED_GAP(each) + JPEG_WORDS_AHEAD + 1)
#define JPEG_STAGED_MEMORY(threads, each)                                                                              \
  (JPEG_STAGED_WORDS(threads, each) + JPEG_STAGED_WORDS(threads, each) / JPEG_STAGED_GAP(each) + 1)

enum {
  SYNC_THREADS = 64,
  SYNC_GROUP = 4,
  SYNC_TILE = SYNC_THREADS * SYNC_GROUP,
  /* after the second round states agree over two tiles, after the third over three: 96 KB of data */
  SYNC_ROUNDS = 3
};
/* A block's memory. */
typedef struct sync_shared {
  jpeg_huffman tables[JPEG_HUFFMAN_TABLES];
  uint32_t words[JPEG_STAGED_MEMORY(SYNC_THREADS, SYNC_GROUP)];
  uint32_t entry[SYNC_THREADS];           /* entry states of the groups; any thread may decode a group */
  uint32_t list[SYNC_THREADS], listed[2]; /* numbers of the groups to decode; the two counts are used alternately */
  uint32_t sum[32];
} sync_shared;

enum {
  PIXELS_THREADS = 256,
  PIXELS_BLOCKS = PIXELS_THREADS / JPEG_BLOCK_SIDE,
  PIXELS_ROW = JPEG_BLOCK_SIDE + 1,           /* stride between rows of a block in words: neither columns nor rows
                                               * have bank conflicts */
  PIXELS_BLOCK = PIXELS_ROW * JPEG_BLOCK_SIDE /* stride between blocks in words: 8 banks on */
};

/* Destination of the pixels. */
typedef struct pixel_target {
  uint8_t *gray;
  int64_t start, step_x, step_y;
} pixel_target;

#define JPEG_SYNC_KERNELS(K)                                                                                           \
  K(jpeg_sync, sync_first_kernel, scan_view, uint32_t)                                                                 \
  K(jpeg_sync, sync_next_kernel, scan_view, uint32_t)
#define JPEG_COEFFICIENTS_KERNELS(K) K(jpeg_coefficients, coefficients_kernel, scan_view)
#define JPEG_PIXELS_KERNELS(K)       K(jpeg_cuda, pixels_kernel, scan_view, pixel_target)

#ifdef __cplusplus
}
#endif
#endif
