/*
 * The launches of a frame as a list in host memory, and a graph that is changed to run them.
 *
 * A capture asks the driver for every launch and event, some 150 us for a frame, and its graph has to be compared with the
 * one that it changes. A list is made without the driver, and two lists of one shape differ in kernels, grids and
 * arguments only, so the graph of the first is changed to the second node by node.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_LAUNCH_LIST_H
#define HARTSIFT_CUDA_RUNTIME_LAUNCH_LIST_H

#include "cuda/runtime/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct launch_list launch_list;
typedef struct CUgraph_st *cuda_captured; /* what a graph is made of */
typedef struct CUgraphNode_st *cuda_node; /* a launch, copy or clear of it */
enum { LISTED_NODES_MAX = 192 };

/* A graph that can be changed; all null: there is none. */
typedef struct listed_graph {
  cuda_graph graph;
  cuda_captured source;
  cuda_node nodes[LISTED_NODES_MAX]; /* in the order of the list */
} listed_graph;

/* Bytes of a list, host memory of the caller, zero at first; nothing else belongs to it. */
size_t launch_list_bytes(void);
/* From begin to end the calling thread's launches, copies, clears, and events between streams go to the list, in place of
   what it held, instead of to the device. The caller records no group of images and no copy of rows meanwhile: those would
   go to the device at once. */
stage_status launch_list_begin(launch_list *list);
/* recorded: how these went, which is returned. */
stage_status launch_list_end(launch_list *list, stage_status recorded);
/* Equal for lists whose graphs differ in kernels, grids, arguments, addresses and sizes only. 0: the list was too long. */
uint64_t launch_list_shape(const launch_list *list);
/* Makes the graph, of a list of the same shape or none, run the list; once for each list. stream: the one that all others of
   the list wait for first. Launches of the graph that are under way run as they were. There is no graph after a failure. */
stage_status launch_list_to_graph(launch_list *list, cuda_stream stream, listed_graph *graph);

/* The graph as one that is changed no more, device_graph_destroy's; leaves none. */
cuda_graph listed_graph_take(listed_graph *graph);
void listed_graph_free(listed_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
