/*
 * The steps of matching that cuda_match_nearest_launch puts together: one launcher per kernel.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_KERNELS_H
#define HARTSIFT_CUDA_MATCH_MATCH_KERNELS_H

#include "cuda/match/match_cuda.h"
#include "cuda/match/match_many.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
