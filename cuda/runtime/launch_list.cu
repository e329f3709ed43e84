/* Launches as a list: a table of steps and a separate buffer with the bytes of all arguments. */
#include "cuda/runtime/launch.cuh"

#include <string.h>

enum { STEPS_MAX = 2 * LISTED_NODES_MAX, ARGUMENTS_MAX = 8 * LISTED_NODES_MAX, ARGUMENT_BYTES_MAX = 128 << 10 };
enum { ARGUMENT_ALIGNMENT = 16 };

struct launch_list {
  int steps, nodes, arguments;
  size_t argument_bytes;
  bool is_too_long;
  uint64_t shape;
  launch_step step[STEPS_MAX];
  void *argument[ARGUMENTS_MAX];
  alignas(ARGUMENT_ALIGNMENT) unsigned char bytes[ARGUMENT_BYTES_MAX];
};

static thread_local launch_list *list_of_thread;

size_t launch_list_bytes(void) { return sizeof(launch_list); }

stage_status launch_list_begin(launch_list *list) {
  const uint64_t fnv_offset = 14695981039346656037ull;
  list->steps = list->nodes = list->arguments = 0;
  list->argument_bytes = 0;
  list->is_too_long = false;
  list->shape = fnv_offset;
  list_of_thread = list;
  return STAGE_OK;
}

stage_status launch_list_end(launch_list *list, stage_status recorded) {
  (void)list;
  list_of_thread = NULL;
  return recorded;
}

bool launch_is_listed(void) { return list_of_thread != NULL; }

uint64_t launch_list_shape(const launch_list *list) { return list->is_too_long ? 0 : list->shape; }

/* FNV-1a over 64-bit words. A product carries only upwards, so the upper half is folded down after each. */
static void add_to_shape(launch_list *list, uint64_t value) {
  const uint64_t fnv_prime = 1099511628211ull;
  list->shape = (list->shape ^ value) * fnv_prime;
  list->shape ^= list->shape >> 32;
}

static launch_step *add_step(launch_list *list, const launch_step *step) {
  const bool is_node = step->kind < STEP_RECORD;
  if (list->steps == STEPS_MAX || (is_node && list->nodes == LISTED_NODES_MAX)) {
    list->is_too_long = true;
    return NULL;
  }
  add_to_shape(list, (uint64_t)step->kind);
  add_to_shape(list, (uint64_t)(uintptr_t)step->stream);
  add_to_shape(list, (uint64_t)(uintptr_t)step->event);
  list->nodes += is_node;
  launch_step *added = &list->step[list->steps++];
  *added = *step;
  return added;
}

void launch_list_kernel(const launch_step *step, launch_arguments arguments) {
  launch_list *list = list_of_thread;
  launch_step *added = add_step(list, step);
  if (!added || list->arguments + arguments.count > ARGUMENTS_MAX) {
    list->is_too_long = true;
    return;
  }
  added->arguments = list->argument + list->arguments;
  for (int i = 0; i < arguments.count; i++) {
    const size_t bytes = arguments.bytes[i],
                 room = (bytes + ARGUMENT_ALIGNMENT - 1) & ~(size_t)(ARGUMENT_ALIGNMENT - 1);
    if (list->argument_bytes + room > ARGUMENT_BYTES_MAX) {
      list->is_too_long = true;
      return;
    }
    void *copy = list->bytes + list->argument_bytes;
    memcpy(copy, arguments.address[i], bytes);
    list->argument[list->arguments++] = copy;
    list->argument_bytes += room;
  }
}

static cudaError_t to_device(const launch_step *s) {
  switch (s->kind) {
  case STEP_KERNEL:
    return cudaLaunchKernel(s->kernel, s->grid, s->block, s->arguments, s->bytes, s->stream);
  case STEP_COPY:
    return cudaMemcpyAsync(s->to, s->from, s->bytes, s->direction, s->stream);
  case STEP_CLEAR:
    return cudaMemsetAsync(s->to, 0, s->bytes, s->stream);
  case STEP_RECORD:
    return cudaEventRecord(s->event, s->stream);
  case STEP_WAIT:
    return cudaStreamWaitEvent(s->stream, s->event, 0);
  }
  return cudaErrorUnknown;
}

stage_status launch_step_run(const launch_step *step) {
  assert(step->kind != STEP_KERNEL);
  if (!list_of_thread) return launch_status(to_device(step));
  (void)add_step(list_of_thread, step);
  return STAGE_OK;
}

/* The node of a capturing stream's last step. */
static cudaError_t last_node(cudaStream_t stream, cudaGraphNode_t *node) {
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t *last = NULL;
  size_t count = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &last, NULL, &count);
#else
  const cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &last, &count);
#endif
  if (error != cudaSuccess) return error;
  if (count != 1) return cudaErrorUnknown;
  *node = *last;
  return cudaSuccess;
}

static cudaError_t capture(const launch_list *list, cudaStream_t stream, listed_graph *graph) {
  cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) return error;
  for (int i = 0, node = 0; i < list->steps && error == cudaSuccess; i++) {
    const launch_step *s = &list->step[i];
    error = to_device(s);
    if (error == cudaSuccess && s->kind < STEP_RECORD) error = last_node(s->stream, &graph->nodes[node++]);
  }
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph->source);
  return error == cudaSuccess ? ended : error;
}

static cudaError_t change_node(const launch_step *s, cudaGraphExec_t graph, cudaGraphNode_t node) {
  if (s->kind == STEP_COPY)
    return cudaGraphExecMemcpyNodeSetParams1D(graph, node, s->to, s->from, s->bytes, s->direction);
  if (s->kind == STEP_CLEAR) {
    cudaMemsetParams clear = {};
    clear.dst = s->to;
    clear.elementSize = 1;
    clear.width = s->bytes;
    clear.height = 1;
    return cudaGraphExecMemsetNodeSetParams(graph, node, &clear);
  }
  cudaKernelNodeParams kernel = {};
  kernel.func = const_cast<void *>(s->kernel);
  kernel.gridDim = s->grid;
  kernel.blockDim = s->block;
  kernel.sharedMemBytes = (unsigned)s->bytes;
  kernel.kernelParams = s->arguments;
  return cudaGraphExecKernelNodeSetParams(graph, node, &kernel);
}

static cudaError_t change(const launch_list *list, const listed_graph *graph) {
  cudaError_t error = cudaSuccess;
  for (int i = 0, node = 0; i < list->steps && error == cudaSuccess; i++)
    if (list->step[i].kind < STEP_RECORD) error = change_node(&list->step[i], graph->graph, graph->nodes[node++]);
  return error;
}

stage_status launch_list_to_graph(launch_list *list, cuda_stream stream, listed_graph *graph) {
  assert(list->steps > 0 && !list->is_too_long);
  if (graph->graph) {
    if (change(list, graph) == cudaSuccess) return STAGE_OK;
    (void)cudaGetLastError(); /* if the driver refuses, a new graph is made */
  }
  listed_graph_free(graph);
  cudaError_t error = capture(list, stream, graph);
  if (error == cudaSuccess) error = device_graph_instantiate(&graph->graph, graph->source);
  if (error != cudaSuccess) listed_graph_free(graph);
  return launch_status(error);
}

cuda_graph listed_graph_take(listed_graph *graph) {
  const cuda_graph taken = graph->graph;
  graph->graph = NULL;
  listed_graph_free(graph);
  return taken;
}

void listed_graph_free(listed_graph *graph) {
  device_graph_destroy(graph->graph);
  if (graph->source) (void)cudaGraphDestroy(graph->source);
  memset(graph, 0, sizeof *graph);
}
