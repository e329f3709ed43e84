/*
 * Shapes, and orientations and descriptors in them, on the host.
 *
 * The patches of some keypoints stand beside each other in work memory as the levels of one octave, so that orientation
 * and descriptor are the stages that plain keypoints have, on every instruction set.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_AFFINE_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_AFFINE_THREADS_H

#include "cpu/schedule/threads.h"

/* Floats of work memory for so many threads. */
size_t affine_work_floats(int32_t threads);

/* See affine_args; work: affine_work_floats(threads of the queue). */
stage_status affine_shape_run(stage_queue *queue, const stage_ops *ops, const affine_args *args);
stage_status affine_orient_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);
stage_status affine_describe_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work);

#endif
