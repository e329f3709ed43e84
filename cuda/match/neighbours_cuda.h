/*
 * More neighbours than two on a device: all squares of some rows, and which of them are wanted.
 *
 * All pointers are device memory; descriptors and squares are aligned to 16 bytes. Legal during stream capture.
 */
#ifndef HARTSIFT_CUDA_MATCH_NEIGHBOURS_CUDA_H
#define HARTSIFT_CUDA_MATCH_NEIGHBOURS_CUDA_H

#include "cuda/match/match_kernels.h"
#include "stages/neighbours.h"

#ifdef __cplusplus
extern "C" {
#endif

/* args->squares, as squares_ref; args->work is not used. work: as cuda_match_norms_launch leaves it for the whole lists.
   pitch: a multiple of 128. */
stage_status cuda_squares_launch(const squares_args *args, const cuda_match_work *work, cuda_stream stream);

/* Of args->rows rows of squares that are there: the k nearest of each in order, with distances, below the bound; k up to
   NEIGHBOURS_MOST. nearest: rows x k; what is missing is neighbour_none. */
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
