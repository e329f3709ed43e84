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

/* How squares of 8-bit descriptors are computed; each gives the same values. TENSOR: matrix instructions, in the
 * device's form. TENSOR_NARROW: in the form of compute capability 7.5. PLAIN: four products per instruction. */
typedef enum cuda_match_variant { CUDA_MATCH_TENSOR, CUDA_MATCH_TENSOR_NARROW, CUDA_MATCH_PLAIN } cuda_match_variant;

/* Maximum number of descriptors in a list. */
#define CUDA_MATCH_COUNT_MAX 0x7fffff00u

/* Lists are padded to a multiple of this. */
enum { CUDA_MATCH_PADDING = 128 };

/* An image's features. */
typedef struct cuda_match_image {
  uint8_t *descriptors; /* [padded][128], 16-byte aligned; packed if cuda_match_has_rows */
  int32_t *norms;       /* [count] squared norms */
  int32_t *base;        /* [padded] norm << 8 | number */
  uint32_t count;       /* at most CUDA_MATCH_COUNT_MAX */
} cuda_match_image;

/* One pair of images. The keys of all tasks are in one block of memory; forward and backward results may be
 * anywhere. */
typedef struct cuda_match_task {
  cuda_match_image first, second;
  uint64_t *first_best, *first_second, *second_best, *second_second;
  match_nearest *forward, *backward; /* without rows; backward: null unless mutual */
  match_pair *pairs;                 /* [first.count]; may be mapped host memory, as may pair_count */
  uint32_t *pair_count;
  /* Of match_rows.cu, in this order; all ones before a launch, but for `list`. */
  uint32_t *claims;    /* counters: match_kernels.h */
  uint32_t *unclaimed; /* a bit for each of second's features */
  uint32_t *list;      /* second's features that are claimed */
} cuda_match_task;

/* Intermediate memory of the launchers below. */
typedef struct cuda_match_work {
  int32_t *first_norms;                  /* squared norms of first's 8-bit descriptors */
  int32_t *second_base;                  /* second's norms << 8 | number; padded to complete strips of columns */
  uint64_t *first_best, *first_second;   /* smallest and second smallest keys of first's features */
  uint64_t *second_best, *second_second; /* the same for second's features */
  match_position *first_positions, *second_positions; /* for cuda_match_positions_launch; unused without a guide */
  uint32_t *tile_counts;                              /* number of pairs in each tile of first's features */
  cuda_match_task rows;                               /* of cuda_match_rows_layout; zeros without */
} cuda_match_work;

/* Lays out the work from `base` on (null: only the size is valid). Returns its bytes. guided: with memory for
 * places. */
size_t cuda_match_work_layout(uint32_t first_count, uint32_t second_count, bool guided, void *base,
                              cuda_match_work *work);

/* Computes places[i] of the keypoints (records of 24 bytes that begin with x and y): match_position_second if
   of_second, otherwise match_position_first. */
stage_status cuda_match_positions_launch(const match_guide *guide, bool of_second, const void *keypoints,
                                         uint32_t count, match_position *positions, cuda_stream stream);

/* Writes args->forward and, unless null, args->backward, as match_ref. args->work is not used. */
stage_status cuda_match_nearest_launch(const match_args *args, const cuda_match_work *work, cuda_match_variant variant,
                                       cuda_stream stream);

/* Whether the current device runs match_rows.cu. */
bool cuda_match_has_rows(void);

/* Lays out work->rows from `base` on (null: only the size is valid), after cuda_match_work_layout. Returns its bytes;
 * 0: these lists are faster without on the current device. */
size_t cuda_match_rows_layout(const match_args *args, void *base, cuda_match_work *work);

/* Writes the pairs that args->limits keep, by ascending first, and their number, as cuda_match_nearest_launch and
 * cuda_match_pairs_launch. args->forward and args->backward are undefined afterwards; backward is null if one direction
 * is requested. */
stage_status cuda_match_kept_launch(const match_args *args, const cuda_match_work *work, match_pair *pairs,
                                    uint32_t *pair_count, cuda_stream stream);

/* Inputs and outputs of cuda_match_pairs_launch. pairs and pair_count may be mapped host memory. */
typedef struct cuda_match_pairs_args {
  match_limits limits;
  const match_nearest *forward, *backward; /* backward: null if only one direction is requested */
  uint32_t count;                          /* length of forward */
  uint32_t *tile_counts;                   /* from cuda_match_work */
  match_pair *pairs;                       /* [count] */
  uint32_t *pair_count;
} cuda_match_pairs_args;

/* Writes the kept pairs, by ascending first, and their number. */
stage_status cuda_match_pairs_launch(const cuda_match_pairs_args *args, cuda_stream stream);

/* Matching of many pairs of images at a time, by 8-bit descriptors: data of a single image are computed once and
 * kept with it. All pairs share each launch. For each pair the results equal match_ref's.
 *
 * All pointers are device memory unless said otherwise. */

/* Lays out an image from `base` on (null: only the size is valid). Returns its bytes. */
size_t cuda_match_image_layout(uint32_t count, void *base, cuda_match_image *image);

/* Computes norms and base from the descriptors. */
stage_status cuda_match_image_launch(const cuda_match_image *image, cuda_stream stream);

/* Lays out a task's keys, claims and nearest lists, and adds their bytes to the two totals. keys, nearest: start
 * addresses, or null. */
void cuda_match_task_layout(cuda_match_task *task, bool mutual, void *keys, size_t *key_bytes, void *nearest,
                            size_t *nearest_bytes);

typedef struct cuda_match_many_args {
  const cuda_match_task *tasks;
  uint32_t count;                   /* 1..65535 */
  uint32_t rows_most, columns_most; /* the largest first.count and the largest second.count */
  void *keys;                       /* keys of all tasks */
  size_t key_bytes;
  match_limits limits;
  bool mutual;
} cuda_match_many_args;

/* Writes the kept pairs of every task, by ascending first, and their numbers. */
stage_status cuda_match_many_launch(const cuda_match_many_args *args, cuda_stream stream);

/* The steps of cuda_match_nearest_launch, one launcher for each kernel. */

/* Computes norms and initial best keys. Required before either of the next two. */
stage_status cuda_match_norms_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream);

/* Compares 8-bit descriptors by matrix instructions. Writes the work's best and second keys of `first` and, if
 * args->backward is not null, of `second`. The stored second excludes the group of the best;
 * cuda_match_settle_launch completes it. */
stage_status cuda_match_products_launch(const match_args *args, const cuda_match_work *work, bool narrow,
                                        cuda_stream stream);
/* Does the same for all tasks in one launch. */
stage_status cuda_match_products_many_launch(const cuda_match_many_args *args, cuda_stream stream);

/* Compares descriptors of either type without matrix instructions. The best and second keys are final. */
stage_status cuda_match_tiles_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream);

/* Turns keys into args->forward and args->backward. grouped: the keys come from cuda_match_products_launch. */
stage_status cuda_match_settle_launch(const match_args *args, const cuda_match_work *work, bool grouped,
                                      cuda_stream stream);

/* Writes args->forward, or args->backward, with a guide: only candidates whose positions agree. */
stage_status cuda_match_guided_launch(const match_args *args, bool backward, cuda_stream stream);

/* More neighbours than two on a device: all squares of some rows, and the choice of neighbours by them.
 *
 * All pointers are device memory; descriptors and squares are aligned to 16 bytes. Legal during stream capture. */

/* Writes args->squares, as squares_ref; args->work is not used. work: from cuda_match_norms_launch, for the
 * complete lists. pitch: a multiple of 128. */
stage_status cuda_squares_launch(const squares_args *args, const cuda_match_work *work, cuda_stream stream);

/* Finds the k nearest neighbours below the bound for args->rows rows of computed squares, in order, with distances.
 * k is at most NEIGHBOURS_MAX. nearest: [rows][k]; missing entries are neighbour_none. */
stage_status cuda_neighbours_nearest_launch(const squares_args *args, float bound, uint32_t k, match_neighbour *nearest,
                                            cuda_stream stream);

/* Counts the squares below the bound in each row: counts[rows]. */
stage_status cuda_neighbours_count_launch(const squares_args *args, float bound, uint32_t *counts, cuda_stream stream);

/* Lists the neighbours below the bound by index, with squares, from found + starts[row] on. */
stage_status cuda_neighbours_list_launch(const squares_args *args, float bound, const uint32_t *starts,
                                         match_neighbour *found, cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
