/* Captures and graphs of cuda/runtime/device.h. */
#include "cuda/runtime/device_graph.cuh"
#include "cuda/runtime/launch_step.cuh"

stage_status device_capture_begin(cuda_stream stream) {
  return launch_status(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

cudaError_t device_graph_instantiate(cudaGraphExec_t *graph, cudaGraph_t captured) {
  if (cudaGraphInstantiateWithFlags(graph, captured, cudaGraphInstantiateFlagUseNodePriority) == cudaSuccess)
    return cudaSuccess;
  (void)cudaGetLastError();
  return cudaGraphInstantiateWithFlags(graph, captured, 0);
}

stage_status device_capture_end(cuda_stream stream, cuda_graph *graph) {
  cudaGraph_t captured = NULL;
  *graph = NULL;
  cudaError_t error = cudaStreamEndCapture(stream, &captured);
  if (error == cudaSuccess) error = device_graph_instantiate(graph, captured);
  if (captured) (void)cudaGraphDestroy(captured);
  return launch_status(error);
}

void device_capture_abandon(cuda_stream stream) {
  cudaGraph_t captured = NULL;
  (void)cudaStreamEndCapture(stream, &captured);
  if (captured) (void)cudaGraphDestroy(captured);
  (void)cudaGetLastError();
}

stage_status device_graph_launch(cuda_graph graph, cuda_stream stream) {
  return launch_status(cudaGraphLaunch(graph, stream));
}

void device_graph_destroy(cuda_graph graph) {
  if (graph) (void)cudaGraphExecDestroy(graph);
}
