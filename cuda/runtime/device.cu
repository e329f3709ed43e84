/* Implementation of cuda/runtime/device.h on the CUDA runtime. */
#include "cuda/runtime/device.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda/runtime/launch.cuh"

const char *device_error_text(void) { return cudaGetErrorString(cudaGetLastError()); }

static_assert(DEVICE_ERROR_MEMORY == (int)cudaErrorMemoryAllocation &&
                  DEVICE_ERROR_STUB_LIBRARY == (int)cudaErrorStubLibrary &&
                  DEVICE_ERROR_OLD_DRIVER == (int)cudaErrorInsufficientDriver &&
                  DEVICE_ERROR_UNAVAILABLE == (int)cudaErrorDevicesUnavailable &&
                  DEVICE_ERROR_NO_DEVICE == (int)cudaErrorNoDevice &&
                  DEVICE_ERROR_NO_CODE == (int)cudaErrorNoKernelImageForDevice &&
                  DEVICE_ERROR_UNKNOWN_PTX == (int)cudaErrorUnsupportedPtxVersion &&
                  DEVICE_ERROR_NO_JIT == (int)cudaErrorJitCompilationDisabled &&
                  DEVICE_ERROR_SYSTEM_CALL == (int)cudaErrorOperatingSystem &&
                  DEVICE_ERROR_NOT_READY == (int)cudaErrorSystemNotReady &&
                  DEVICE_ERROR_DRIVER_PARTS == (int)cudaErrorSystemDriverMismatch,
              "CUDA's numbers of errors");
static_assert(DEVICE_MODE_SHARED == (int)cudaComputeModeDefault &&
                  DEVICE_MODE_PROHIBITED == (int)cudaComputeModeProhibited &&
                  DEVICE_MODE_EXCLUSIVE == (int)cudaComputeModeExclusiveProcess,
              "CUDA's numbers of compute modes");

static void take_error(cudaError_t error, device_answer *a) {
  a->error = (int32_t)error;
  a->error_text = cudaGetErrorString(error);
  (void)cudaGetLastError();
}

void device_ask_count(device_answer *a) {
  int version = 0, count = 0;
  (void)cudaRuntimeGetVersion(&version);
  a->runtime = version;
  version = 0;
  cudaError_t error = cudaDriverGetVersion(&version);
  a->driver = error == cudaSuccess ? version : 0;
  if (a->driver > 0) error = cudaGetDeviceCount(&count);
  a->count = error == cudaSuccess ? count : 0;
  take_error(error, a);
}

/* Any kernel serves, because only the build's code for this device is tested. */
__global__ void device_probe_kernel(void) {}

static cudaError_t read_properties(int32_t index, device_info *info) {
  cudaDeviceProp p;
  const cudaError_t error = cudaGetDeviceProperties(&p, index);
  if (error != cudaSuccess) return error;
  snprintf(info->name, sizeof info->name, "%s", p.name);
  info->major = p.major;
  info->minor = p.minor;
  info->multiprocessors = p.multiProcessorCount;
  info->l2_bytes = p.l2CacheSize;
  info->shared_bytes_block_optin = (int32_t)p.sharedMemPerBlockOptin;
  info->shared_bytes_sm = (int32_t)p.sharedMemPerMultiprocessor;
  int version = 0;
  (void)cudaDriverGetVersion(&version);
  info->driver = version;
  (void)cudaRuntimeGetVersion(&version);
  info->runtime = version;
  return cudaSuccess;
}

stage_status device_ask(int32_t index, device_info *info, device_answer *a) {
  cudaFuncAttributes attributes;
  int32_t previous = -1;
  int mode = 0;
  a->architectures = HARTSIFT_CUDA_ARCHITECTURE_NAMES;
  cudaError_t error = read_properties(index, info); /* needs no memory on the device; it is listed whatever follows */
  if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, index) != cudaSuccess) mode = DEVICE_MODE_SHARED;
  a->mode = mode;
  if (error == cudaSuccess && device_enter(index, &previous) != STAGE_OK) error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaMemGetInfo(&info->free_bytes, &info->memory_bytes);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, device_probe_kernel);
  take_error(error, a);
  device_leave(previous);
  return launch_status(error);
}

stage_status device_memory(size_t *free_bytes, size_t *memory_bytes) {
  *free_bytes = *memory_bytes = 0;
  return launch_status(cudaMemGetInfo(free_bytes, memory_bytes));
}

stage_status device_enter(int32_t index, int32_t *previous) {
  int current = -1;
  *previous = -1;
  if (cudaGetDevice(&current) != cudaSuccess) return STAGE_DEVICE;
  if (current != index && cudaSetDevice(index) != cudaSuccess) return STAGE_DEVICE;
  *previous = current;
  return STAGE_OK;
}

void device_leave(int32_t previous) {
  int current = -1;
  if (previous >= 0 && cudaGetDevice(&current) == cudaSuccess && current != previous) (void)cudaSetDevice(previous);
}

stage_status device_alloc(void **pointer, size_t bytes) {
  *pointer = NULL;
  return launch_status(cudaMalloc(pointer, bytes));
}

void device_free(void *pointer) { (void)cudaFree(pointer); }

stage_status device_alloc_pinned(void **host, void **device, size_t bytes) {
  *host = *device = NULL;
  cudaError_t error = cudaHostAlloc(host, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (error == cudaSuccess) error = cudaHostGetDevicePointer(device, *host, 0);
  if (error != cudaSuccess && *host) {
    (void)cudaFreeHost(*host);
    *host = NULL;
  }
  return launch_status(error);
}

void device_free_pinned(void *host) { (void)cudaFreeHost(host); }

bool device_is_pageable(const void *memory) {
  cudaPointerAttributes attributes;
  const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess && attributes.type == cudaMemoryTypeUnregistered;
}

stage_status device_stream_create(cuda_stream *stream) { return device_stream_create_urgent(stream, 0); }

stage_status device_stream_create_urgent(cuda_stream *stream, int32_t urgency) {
  int least = 0, greatest = 0;
  *stream = NULL;
  const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest); /* smaller numbers are more urgent */
  if (error != cudaSuccess) return launch_status(error);
  const int priority = least + (greatest - least) * urgency / 2;
  return launch_status(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority));
}

void device_stream_destroy(cuda_stream stream) {
  if (stream) (void)cudaStreamDestroy(stream);
}

stage_status device_stream_wait(cuda_stream stream) { return launch_status(cudaStreamSynchronize(stream)); }

stage_status device_stream_query(cuda_stream stream, bool *busy) {
  const cudaError_t error = cudaStreamQuery(stream);
  *busy = error == cudaErrorNotReady;
  if (!*busy) return launch_status(error);
  (void)cudaGetLastError(); /* not an error */
  return STAGE_OK;
}

stage_status device_event_create(cuda_event *event, bool timed) {
  *event = NULL;
  return launch_status(cudaEventCreateWithFlags(event, timed ? cudaEventDefault : cudaEventDisableTiming));
}

stage_status device_event_create_sleeping(cuda_event *event) {
  *event = NULL;
  return launch_status(cudaEventCreateWithFlags(event, cudaEventDisableTiming | cudaEventBlockingSync));
}

void device_event_destroy(cuda_event event) {
  if (event) (void)cudaEventDestroy(event);
}

stage_status device_event_finish(cuda_event event) { return launch_status(cudaEventSynchronize(event)); }

stage_status device_event_elapsed_ms(cuda_event start, cuda_event stop, float *milliseconds) {
  return launch_status(cudaEventElapsedTime(milliseconds, start, stop));
}

/* Captures and graphs of cuda/runtime/device.h. */

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

/* Launch steps of cuda/runtime/device.h, on a stream or in a list. */

static stage_status copy(void *to, const void *from, size_t bytes, cudaMemcpyKind direction, cudaStream_t stream) {
  launch_step step = {};
  step.kind = STEP_COPY;
  step.stream = stream;
  step.to = to;
  step.from = from;
  step.bytes = bytes;
  step.direction = direction;
  return bytes == 0 ? STAGE_OK : launch_step_run(&step);
}

stage_status device_copy_to(void *device, const void *host, size_t bytes, cuda_stream stream) {
  return copy(device, host, bytes, cudaMemcpyHostToDevice, stream);
}

stage_status device_copy_from(void *host, const void *device, size_t bytes, cuda_stream stream) {
  return copy(host, device, bytes, cudaMemcpyDeviceToHost, stream);
}

stage_status device_copy_rows_to(void *device, size_t device_pitch, const void *source, size_t source_pitch,
                                 size_t row_bytes, size_t rows, cuda_stream stream) {
  assert(!launch_is_listed()); /* rows have no list step, and would be copied at once */
  if (row_bytes == 0 || rows == 0) return STAGE_OK;
  return launch_status(
      cudaMemcpy2DAsync(device, device_pitch, source, source_pitch, row_bytes, rows, cudaMemcpyDefault, stream));
}

stage_status device_clear(void *device, size_t bytes, cuda_stream stream) {
  launch_step step = {};
  step.kind = STEP_CLEAR;
  step.stream = stream;
  step.to = device;
  step.bytes = bytes;
  return bytes == 0 ? STAGE_OK : launch_step_run(&step);
}

static stage_status run_event(step_kind kind, cuda_event event, cuda_stream stream) {
  launch_step step = {};
  step.kind = kind;
  step.stream = stream;
  step.event = event;
  return launch_step_run(&step);
}

stage_status device_event_record(cuda_event event, cuda_stream stream) { return run_event(STEP_RECORD, event, stream); }

stage_status device_event_wait(cuda_event event, cuda_stream stream) { return run_event(STEP_WAIT, event, stream); }

/* The driver's answers on kernels' resident blocks. A query takes some 10 us, five times a frame. */

typedef struct resident_answer {
  const void *kernel;
  size_t dynamic_shared_bytes;
  int device, threads;
  unsigned blocks;
} resident_answer;

enum { ANSWERS_KEPT = 128 }; /* later kernels are queried every time */

static resident_answer answers[ANSWERS_KEPT];
static int answer_count;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_question(const resident_answer *a, const resident_answer *b) {
  return a->kernel == b->kernel && a->device == b->device && a->threads == b->threads &&
         a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* 0: not known yet. */
static unsigned find_answer(const resident_answer *question) {
  unsigned blocks = 0;
  pthread_mutex_lock(&answers_lock);
  for (int i = 0; i < answer_count && blocks == 0; i++)
    if (same_question(&answers[i], question)) blocks = answers[i].blocks;
  pthread_mutex_unlock(&answers_lock);
  return blocks;
}

/* Two threads may store the same entry. */
static void keep_answer(const resident_answer *answer) {
  pthread_mutex_lock(&answers_lock);
  if (answer_count < ANSWERS_KEPT) answers[answer_count++] = *answer;
  pthread_mutex_unlock(&answers_lock);
}

unsigned launch_resident_blocks(const void *kernel, int threads, size_t dynamic_shared_bytes) {
  int processors = 0, blocks = 0;
  resident_answer a = {kernel, dynamic_shared_bytes, 0, threads, 0};
  if (cudaGetDevice(&a.device) != cudaSuccess) return 1;
  const unsigned known = find_answer(&a);
  if (known > 0) return known;
  if (cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, a.device) != cudaSuccess) return 1;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared_bytes) != cudaSuccess)
    return 1;
  if (processors * blocks <= 0) return 1;
  a.blocks = (unsigned)(processors * blocks);
  keep_answer(&a);
  return a.blocks;
}

/*
 * Does: tells the host that the writes of earlier kernels of the stream are complete. No _ref: it computes nothing.
 * Launch: 1 block of 1 thread. Shared: none.
 * Reads: nothing. Writes: one word of mapped host memory.
 * Barriers: none; the fence orders the word after all earlier writes, for the host too.
 * Limits: none. Order: the word is 0 before a frame (the host's work) and 1 after. Cost: one write over the bus.
 */
__global__ void handover_signal_kernel(volatile uint32_t *flag) {
  __threadfence_system();
  *flag = 1;
}

stage_status handover_launch(uint32_t *flag, cuda_stream stream) {
  assert(flag);
  return launch(handover_signal_kernel, 1, 1, 0, stream, flag);
}

/* ------------------------------------------------------------------ listed launches (launch_list.h) */

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
