/*
 * Reductions on the device: sum, mean and range of a view of elements, as stages/primitives.h says.
 *
 * `processors`: multiprocessors of the device, for the grid. Launches that follow one another may share scratch memory
 * and ticket.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_REDUCE_CUDA_H
#define HARTSIFT_CUDA_PRIMITIVES_REDUCE_CUDA_H

#include "cuda/runtime/stream.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum reduce_kind { REDUCE_SUM, REDUCE_MEAN, REDUCE_RANGE } reduce_kind;

typedef struct reduce_args {
  prim_view view; /* rows without gaps have height 1 */
  reduce_kind kind;
  double *first;    /* device: the sum, the mean or the minimum; null for a range: not wanted */
  double *second;   /* device: the maximum; null: not wanted */
  void *scratch;    /* device, 256-byte aligned, of the size asked for below */
  uint32_t *ticket; /* device: 0 before every launch, and after it */
  int32_t processors;
} reduce_args;

size_t reduce_scratch_bytes(const reduce_args *args);

/* All of it, whatever the type: one launch, for more than 2^20 elements of f32 or f64 summed two or three. */
stage_status reduce_launch(const reduce_args *args, cuda_stream stream);

/* The kernels by themselves. u8 and u16, any kind. */
stage_status reduce_integers_launch(const reduce_args *args, cuda_stream stream);
/* f32, f64: the range. */
stage_status reduce_range_launch(const reduce_args *args, cuda_stream stream);
/* f32, f64: the sums of all chunks to `sums`; with at most PRIM_CHUNK of them also the end of it: their sum, for a
   mean divided by `count`, to *args->first. */
stage_status reduce_sum_launch(const reduce_args *args, double *sums, uint64_t count, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
