/*
 * Statistics of every tile of a view, on the device: prim_tile as stages/primitives.h says.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_TILE_STATS_CUDA_H
#define HARTSIFT_CUDA_PRIMITIVES_TILE_STATS_CUDA_H

#include "cuda/runtime/stream.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_stats_args {
  prim_view view;
  size_t tile_width, tile_height; /* 1 or more, at most the view's */
  double threshold;
  prim_tile *tiles; /* device: the first `count` tiles, row by row */
  uint64_t count;   /* 1 or more, at most all */
  void *scratch;    /* device, 256-byte aligned; null where tile_stats_scratch_bytes is 0 */
  int32_t processors;
} tile_stats_args;

/* Large tiles are shared by several blocks or warps, which meet in scratch memory. */
size_t tile_stats_scratch_bytes(const tile_stats_args *args);

/* One launch; with scratch memory two, three for tiles of more than 2^20 elements that are not bytes. */
stage_status tile_stats_launch(const tile_stats_args *args, cuda_stream stream);

/* The kernels by themselves; the last of each group ends what the first one left in scratch memory. u8: */
stage_status tile_bytes_launch(const tile_stats_args *args, cuda_stream stream);
stage_status tile_bytes_finish_launch(const tile_stats_args *args, cuda_stream stream);
/* u16, f32, f64: */
stage_status tile_chunks_launch(const tile_stats_args *args, cuda_stream stream);
stage_status tile_chunks_floor_launch(const tile_stats_args *args, cuda_stream stream); /* between; not always one */
stage_status tile_chunks_finish_launch(const tile_stats_args *args, cuda_stream stream);
/* f32, small tiles, which tile_chunks_launch leaves to it: */
stage_status tile_floats_launch(const tile_stats_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
