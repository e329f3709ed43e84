/*
 * Patches on the host: affine shapes with the orientations and descriptors in them, and the patches of
 * hs_extract_patches.
 *
 * The patches of some keypoints are stored as the levels of one octave in work memory, so that the stages for plain
 * keypoints compute orientations and descriptors, on every instruction set.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_PATCH_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_PATCH_THREADS_H

#include "cpu/schedule/threads.h"
#include "stages/patch.h"

/* Floats of work memory for so many threads. */
size_t affine_work_floats(int32_t threads);

/* See affine_args; work: affine_work_floats(threads of the queue). */
stage_status affine_shape_run(stage_queue *queue, const stage_ops *ops, const affine_args *args);
stage_status affine_orient_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);
stage_status affine_describe_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);

/* Takes the patches; see patch_args. queue null: on the calling thread. */
void patch_run(stage_queue *queue, const patch_args *args);

#endif
