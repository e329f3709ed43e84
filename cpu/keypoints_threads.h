/*
 * The stages between the extremum search and orientation on several threads: plain arithmetic, the same for every
 * instruction set.
 */
#ifndef HARTSIFT_CPU_KEYPOINTS_THREADS_H
#define HARTSIFT_CPU_KEYPOINTS_THREADS_H

#include "stages/ops.h"

stage_status refine_threads(stage_queue *queue, const refine_args *args);
stage_status locate_threads(stage_queue *queue, const locate_args *args);

#endif
