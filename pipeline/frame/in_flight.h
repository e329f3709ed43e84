/*
 * Images in flight: lanes, each a thread with a context of its own, process what hs_submit puts into the ring. Results
 * are returned in the order of submission.
 *
 * A lane of a GPU context has its own stream, memory and graphs, so that copies and kernels of different images overlap;
 * it alternates between two sets of pinned results, and starts no image while both hold results that have not been
 * waited for. A lane of a CPU context has its share of the threads.
 */
#ifndef HARTSIFT_FRAME_IN_FLIGHT_H
#define HARTSIFT_FRAME_IN_FLIGHT_H

#include "pipeline/context/context.h"

typedef struct in_flight_ring in_flight_ring;

/* Ends the lanes and frees the ring, if there is one: images that no lane has taken are dropped, the others are
   finished. */
void in_flight_end(hs_context *context);

/* Most images that the context lets be submitted and not yet taken, by options.in_flight and options.workload. for_files:
   the first is a file. */
int32_t in_flight_most(const hs_context *context, bool for_files);

/* Adds what the lanes hold and have done to *statistics. null is allowed. */
void in_flight_add_statistics(in_flight_ring *ring, hs_statistics *statistics);

#endif
