/*
 * Patches on the host.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_PATCH_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_PATCH_THREADS_H

#include "cpu/schedule/threads.h"
#include "stages/patch.h"

/* Takes the patches; see patch_args. queue null: on the calling thread. */
void patch_run(stage_queue *queue, const patch_args *args);

#endif
