/*
 * Matching on a device: the two nearest of every descriptor, exactly as match_ref finds them, and the pairs kept.
 *
 * All pointers are device memory; descriptors and work are aligned to 16 bytes. Legal during stream capture.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_CUDA_H
#define HARTSIFT_CUDA_MATCH_MATCH_CUDA_H

#include "cuda/runtime/stream.h"
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

#ifdef __cplusplus
}
#endif
#endif
