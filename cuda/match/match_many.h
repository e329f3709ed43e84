/*
 * Matching of many pairs of images at a time, by 8-bit descriptors: what depends on one image alone is made once and stays
 * with it; all pairs share each launch. The same results as match_ref for each pair.
 *
 * All pointers are device memory unless said otherwise.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_MANY_H
#define HARTSIFT_CUDA_MATCH_MATCH_MANY_H

#include "cuda/runtime/stream.h"
#include "stages/match.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An image's features. */
typedef struct cuda_match_image {
  uint8_t *descriptors; /* count x 128, 16-byte aligned */
  int32_t *norms;       /* squared */
  int32_t *base;        /* norm << 8 | number, whole strips of 64 */
  uint32_t count;       /* at most CUDA_MATCH_COUNT_MAX */
} cuda_match_image;

/* Lays an image out from base on (null: only its size); returns its bytes. */
size_t cuda_match_image_layout(uint32_t count, void *base, cuda_match_image *image);

/* norms and base from descriptors. */
stage_status cuda_match_image_launch(const cuda_match_image *image, cuda_stream stream);

/* One pair. The keys of all tasks lie in one piece of memory, forward and backward anywhere. */
typedef struct cuda_match_task {
  cuda_match_image first, second;
  uint64_t *first_best, *first_second, *second_best, *second_second;
  match_nearest *forward, *backward; /* backward: null unless mutual */
  match_pair *pairs;                 /* room for first.count; may be mapped host memory, as pair_count */
  uint32_t *pair_count;
} cuda_match_task;

/* Lays out what a task works in, its keys and its nearest; adds their bytes to the two totals. keys, nearest: null, or
   where they begin. */
void cuda_match_task_layout(cuda_match_task *task, bool mutual, void *keys, size_t *key_bytes, void *nearest,
                            size_t *nearest_bytes);

typedef struct cuda_match_many_args {
  const cuda_match_task *tasks;
  uint32_t count;                   /* 1..65535 */
  uint32_t rows_most, columns_most; /* the largest first.count and second.count */
  void *keys;                       /* of all tasks */
  size_t key_bytes;
  match_limits limits;
  bool mutual;
} cuda_match_many_args;

/* The pairs kept of every task, by ascending first, and how many. cuda_match_prepare comes before. */
stage_status cuda_match_many_launch(const cuda_match_many_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
