/*
 * The graph of a capture.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_DEVICE_GRAPH_CUH
#define HARTSIFT_CUDA_RUNTIME_DEVICE_GRAPH_CUH

#include "cuda/runtime/device.h"

/* Nodes keep the priorities of the streams that they were captured on; a driver that refuses runs them all with that of
   the stream that the graph is launched on. */
cudaError_t device_graph_instantiate(cudaGraphExec_t *graph, cudaGraph_t captured);

#endif
