/*
 * Matching on a device: the two nearest of every descriptor, exactly as match_ref finds them, and the pairs kept.
 *
 * All pointers are device memory; descriptors and work are aligned to 16 bytes. Legal during stream capture.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_CUDA_H
#define HARTSIFT_CUDA_MATCH_MATCH_CUDA_H

#include "cuda/runtime/device.h"
#include "stages/match.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How squares of 8-bit descriptors are made; the same values from each. TENSOR: matrix instructions, in the form that
   the device has. TENSOR_NARROW: in the form of compute capability 7.5. PLAIN: four products an instruction. */
typedef enum cuda_match_variant { CUDA_MATCH_TENSOR, CUDA_MATCH_TENSOR_NARROW, CUDA_MATCH_PLAIN } cuda_match_variant;

/* The most descriptors of a list. */
#define CUDA_MATCH_COUNT_MAX 0x7fffff00u

/* What the launchers below write besides their results. */
typedef struct cuda_match_work {
  int32_t *first_norms;                      /* squared norms of first's 8-bit descriptors */
  int32_t *second_base;                      /* of second's: norm << 8 | number; whole strips of columns */
  uint64_t *first_best, *first_second;       /* smallest keys of first's features */
  uint64_t *second_best, *second_second;     /* and of second's */
  match_place *first_places, *second_places; /* for cuda_match_places_launch; not touched without a guide */
  uint32_t *tile_counts;                     /* pairs of each tile of first's features */
} cuda_match_work;

/* Lays the work out from base on (null: only its size); returns its bytes. guided: with room for places. */
size_t cuda_match_work_layout(uint32_t first_count, uint32_t second_count, bool guided, void *base,
                              cuda_match_work *work);

/* Once for a device, before the first launch: allows the shared memory that kernels take. */
stage_status cuda_match_prepare(void);

/* places[i] of the keypoints (records of 24 bytes that begin with x and y): match_place_first or, of_second,
   match_place_second. */
stage_status cuda_match_places_launch(const match_guide *guide, bool of_second, const void *keypoints, uint32_t count,
                                      match_place *places, cuda_stream stream);

/* args->forward and, unless null, args->backward, as match_ref; args->work is not used. */
stage_status cuda_match_nearest_launch(const match_args *args, const cuda_match_work *work, cuda_match_variant variant,
                                       cuda_stream stream);

/* What cuda_match_pairs_launch reads and writes. pairs and pair_count may be mapped host memory. */
typedef struct cuda_match_pairs_args {
  match_limits limits;
  const match_nearest *forward, *backward; /* backward: null unless both ways are asked for */
  uint32_t count;                          /* of forward */
  uint32_t *tile_counts;                   /* of the work */
  match_pair *pairs;                       /* room for count */
  uint32_t *pair_count;
} cuda_match_pairs_args;

/* The pairs kept, by ascending first, and how many. */
stage_status cuda_match_pairs_launch(const cuda_match_pairs_args *args, cuda_stream stream);

/* Matching of many pairs of images at a time, by 8-bit descriptors: what depends on one image alone is made once and stays
   with it; all pairs share each launch. The same results as match_ref for each pair.
   
   All pointers are device memory unless said otherwise. */

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

/* The steps of matching that cuda_match_nearest_launch puts together: one launcher per kernel. */

/* Norms, and no best yet. Needed before either of the next two. */
stage_status cuda_match_norms_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream);

/* 8-bit descriptors by matrix instructions: into the work's best and second of `first` and, if args->backward, of
   `second`. The second of the work is that outside the group of the best: cuda_match_settle_launch knows. */
stage_status cuda_match_products_launch(const match_args *args, const cuda_match_work *work, bool narrow,
                                        cuda_stream stream);
/* The same for all tasks in one launch. */
stage_status cuda_match_products_many_launch(const cuda_match_many_args *args, cuda_stream stream);
stage_status cuda_match_products_prepare(void);

/* Descriptors of either type without them; best and second are final. */
stage_status cuda_match_tiles_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream);

/* Keys to args->forward and args->backward. grouped: the keys come from cuda_match_products_launch. */
stage_status cuda_match_settle_launch(const match_args *args, const cuda_match_work *work, bool grouped,
                                      cuda_stream stream);

/* args->forward, or args->backward, with a guide: only candidates whose places agree. */
stage_status cuda_match_guided_launch(const match_args *args, bool backward, cuda_stream stream);

/* More neighbours than two on a device: all squares of some rows, and which of them are wanted.
   
   All pointers are device memory; descriptors and squares are aligned to 16 bytes. Legal during stream capture. */

/* args->squares, as squares_ref; args->work is not used. work: as cuda_match_norms_launch leaves it for the whole lists.
   pitch: a multiple of 128. */
stage_status cuda_squares_launch(const squares_args *args, const cuda_match_work *work, cuda_stream stream);

/* Of args->rows rows of squares that are there: the k nearest of each in order, with distances, below the bound; k up to
   NEIGHBOURS_MAX. nearest: rows x k; what is missing is neighbour_none. */
stage_status cuda_neighbours_nearest_launch(const squares_args *args, float bound, uint32_t k, match_neighbour *nearest,
                                            cuda_stream stream);

/* How many of each row are below the bound: counts[rows]. */
stage_status cuda_neighbours_count_launch(const squares_args *args, float bound, uint32_t *counts, cuda_stream stream);

/* These by index, with squares, from found + starts[row] on. */
stage_status cuda_neighbours_list_launch(const squares_args *args, float bound, const uint32_t *starts,
                                         match_neighbour *found, cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
