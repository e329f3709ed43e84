/*
 * More neighbours than two on a context's CUDA device.
 *
 * The memory is that of matching (cuda_match.h), and max_memory_bytes bounds it. All calls block.
 */
#ifndef HARTSIFT_DEVICE_CUDA_NEIGHBOURS_H
#define HARTSIFT_DEVICE_CUDA_NEIGHBOURS_H

#include "pipeline/context/engine.h"

/* The k nearest below the bound of each of the first list's features, which are one or more, into host memory: nearest
   [first.count * k]. Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_neighbours_nearest(hs_context *context, const match_request *request, float bound, uint32_t k,
                                  match_neighbour *nearest);

/* All below the bound, by index and with squares, where take puts them, which is called for every row in turn. Statuses:
   as above, and those of take. */
hs_status cuda_neighbours_within(hs_context *context, const match_request *request, float bound, neighbours_take take,
                                 void *user);

#endif
