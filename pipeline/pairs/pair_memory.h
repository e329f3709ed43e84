/*
 * How a run shares out the memory that it may take.
 */
#ifndef HARTSIFT_PAIRS_PAIR_MEMORY_H
#define HARTSIFT_PAIRS_PAIR_MEMORY_H

#include "pipeline/pairs/pair_run.h"

/* Fills image_bytes, the budgets and worker_count (0: not even one worker fits) of a run whose other inputs are
   complete. threads: the most workers. False: no memory. */
bool pair_memory_plan(hs_pairs *run, int32_t threads);

/* Whether a pair's images fit at all. */
bool pair_memory_fits(const hs_pairs *run, const hs_image_pair *pair);

#endif
