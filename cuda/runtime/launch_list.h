/*
 * The launches of a frame as a list in host memory, and a graph that is updated to run them.
 *
 * A capture calls the driver for every launch and event, some 150 us for a frame, and its graph has to be compared with
 * the graph to update. A list is made without the driver, and two lists of one shape differ in kernels, grids and
 * arguments only, so the graph of the first is changed to the second node by node.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_LAUNCH_LIST_H
#define HARTSIFT_CUDA_RUNTIME_LAUNCH_LIST_H

#include "cuda/runtime/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct launch_list launch_list;
typedef struct CUgraph_st *cuda_captured; /* a graph that cannot run yet */
typedef struct CUgraphNode_st *cuda_node; /* a launch, copy or clear of a graph */
enum { LISTED_NODES_MAX = 192 };          /* maximum nodes of a graph */

/* A graph that can be updated; all null: there is none. */
typedef struct listed_graph {
  cuda_graph graph;
  cuda_captured source;
  cuda_node nodes[LISTED_NODES_MAX]; /* in the order of the list */
} listed_graph;

/* Bytes of a list, in the caller's host memory, initially zero; the list owns nothing else. */
size_t launch_list_bytes(void);
/* From begin to end the calling thread's launches, copies, clears, and events between streams go to the list, which is
 * emptied first, instead of to the device. The caller must not launch a group of images or a copy of rows meanwhile,
 * because these would go to the device at once. */
stage_status launch_list_begin(launch_list *list);
/* recorded: the status of the launches in the list, which is returned. */
stage_status launch_list_end(launch_list *list, stage_status recorded);
/* Returns a value that is equal for lists whose graphs differ only in kernels, grids, arguments, addresses and
 * sizes. 0: the list was too long. */
uint64_t launch_list_shape(const launch_list *list);
/* Makes the graph run the list. The graph must be of a list of the same shape, or not exist yet. A list may be used
 * once. stream: the stream that all other streams of the list wait for first. Launches of the graph in flight are not
 * affected. After a failure there is no graph. */
stage_status launch_list_to_graph(launch_list *list, cuda_stream stream, listed_graph *graph);

/* Returns the graph, which can no longer be updated; the caller frees it with device_graph_destroy. */
cuda_graph listed_graph_take(listed_graph *graph);
void listed_graph_free(listed_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
