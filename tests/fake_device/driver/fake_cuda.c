/*
 * A CUDA driver without a GPU, as a shared library: cuda/runtime/driver.c loads it in place of NVIDIA's. Device memory
 * is the host's; copies and clearing happen at once, or when a graph with them runs; kernels write a line to the log.
 *
 * The variable FAKE_CUDA says what it plays: version=12040, init=100 (the result of cuInit), gpus=1, load=209 (the
 * result of loading a library of kernels), update=1 (graphs refuse to be changed), slow=1 (contexts and libraries take
 * milliseconds). fake_cuda_log() returns what was
 * called; fake_cuda_reset() is what another user of the driver does in this process. Contexts and loading may be used
 * by several threads at once, all else by one.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/runtime/driver.h"

#define EXPORTED __attribute__((visibility("default")))

/* Declarations, so that a difference from the table does not compile. */
#define DECLARED(name, symbol, parameters) EXPORTED driver_status symbol parameters;
DRIVER_FUNCTIONS(DECLARED)
EXPORTED const char *fake_cuda_log(void);
EXPORTED void fake_cuda_reset(void);

enum { LOG_BYTES = 1 << 16, NODES_MAX = 256 };
enum { INVALID_CONTEXT = 201, NOT_FOUND = 500, INVALID_VALUE = 1 };

typedef struct node {
  enum { NODE_COPY, NODE_CLEAR, NODE_KERNEL } kind;
  void *to;
  const void *from;
  size_t bytes;
  const char *kernel;
} node;

struct CUgraph_st {
  node nodes[NODES_MAX];
  int count;
};
struct CUgraphExec_st {
  struct CUgraph_st graph;
  struct CUgraph_st *source;
};
struct CUfunc_st {
  const char *name;
  int shared_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the log and the functions */
static char log_text[LOG_BYTES];
static size_t logged;
static _Thread_local driver_context contexts[8];
static _Thread_local int depth;
static unsigned long long resets;
static driver_graph capturing;
static driver_node last;
static _Thread_local int capture_mode;

/* The last allocation, the only memory that counts as a device's. */
typedef struct block {
  const char *at;
  size_t bytes;
} block;
static block of_device;
static struct CUfunc_st functions[64];
static int function_count;

static void put(const char *format, ...) {
  va_list arguments;
  pthread_mutex_lock(&lock);
  va_start(arguments, format);
  const int n = vsnprintf(log_text + logged, sizeof log_text - logged, format, arguments);
  va_end(arguments);
  if (n > 0 && (size_t)n < sizeof log_text - logged) logged += (size_t)n;
  pthread_mutex_unlock(&lock);
}

void fake_cuda_reset(void) { resets++; }

const char *fake_cuda_log(void) {
  static char copy[LOG_BYTES];
  memcpy(copy, log_text, sizeof copy);
  memset(log_text, 0, sizeof log_text);
  logged = 0;
  return copy;
}

static int number_of(const char *name, int otherwise) {
  const char *text = getenv("FAKE_CUDA"), *at = text ? strstr(text, name) : NULL;
  return at ? (int)strtol(at + strlen(name), NULL, 10) : otherwise;
}

/* Long enough that other threads come meanwhile. */
static void take_long(void) {
  const struct timespec delay = {0, 3000000};
  if (number_of("slow=", 0)) (void)nanosleep(&delay, NULL);
}

static driver_status in_context(void) { return depth > 0 && contexts[depth - 1] ? DRIVER_SUCCESS : INVALID_CONTEXT; }

static void *memory_of(driver_pointer pointer) { return (void *)(uintptr_t)pointer; }

static void run(const node *n) {
  if (n->kind == NODE_COPY) memcpy(n->to, n->from, n->bytes);
  if (n->kind == NODE_CLEAR) memset(n->to, 0, n->bytes);
  if (n->kind == NODE_KERNEL) put("run %s\n", n->kernel);
}

static driver_status enqueue(node n) {
  if (in_context() != DRIVER_SUCCESS) return INVALID_CONTEXT;
  if (!capturing) {
    run(&n);
    return DRIVER_SUCCESS;
  }
  last = (driver_node)(void *)&capturing->nodes[capturing->count];
  capturing->nodes[capturing->count++] = n;
  return DRIVER_SUCCESS;
}

/* ------------------------------------------------------------------ machine */

driver_status cuInit(uint32_t flags) {
  (void)flags;
  return number_of("init=", DRIVER_SUCCESS);
}

driver_status cuDriverGetVersion(int *version) {
  *version = number_of("version=", 13000);
  return DRIVER_SUCCESS;
}

driver_status cuGetErrorString(driver_status status, const char **text) {
  *text = status == DRIVER_SUCCESS ? "no error" : "a fake error";
  return DRIVER_SUCCESS;
}

driver_status cuDeviceGetCount(int *count) {
  *count = number_of("gpus=", 1);
  return DRIVER_SUCCESS;
}

driver_status cuDeviceGet(driver_device *device, int index) {
  *device = index;
  return index >= 0 && index < number_of("gpus=", 1) ? DRIVER_SUCCESS : 101;
}

driver_status cuDeviceGetName(char *name, int bytes, driver_device device) {
  (void)snprintf(name, (size_t)bytes, "fake GPU %d", (int)device);
  return DRIVER_SUCCESS;
}

/* FAKE_CUDA's major=9: the compute capability is 9.2. */
driver_status cuDeviceGetAttribute(int *value, int attribute, driver_device device) {
  (void)device;
  *value = attribute == DRIVER_COMPUTE_MAJOR ? number_of("major=", 9) : attribute == DRIVER_COMPUTE_MODE ? 0 : 2;
  return DRIVER_SUCCESS;
}

driver_status cuDevicePrimaryCtxRetain(driver_context *context, driver_device device) {
  put("retain %d\n", (int)device);
  take_long();
  *context = (driver_context)(uintptr_t)(device + 1);
  return DRIVER_SUCCESS;
}

driver_status cuCtxGetCurrent(driver_context *context) {
  *context = depth > 0 ? contexts[depth - 1] : NULL;
  return DRIVER_SUCCESS;
}

driver_status cuCtxSetCurrent(driver_context context) {
  if (depth == 0) depth = 1;
  contexts[depth - 1] = context;
  return DRIVER_SUCCESS;
}

driver_status cuCtxPushCurrent_v2(driver_context context) {
  contexts[depth++] = context;
  return DRIVER_SUCCESS;
}

driver_status cuCtxPopCurrent_v2(driver_context *context) {
  if (depth == 0) return INVALID_CONTEXT;
  *context = contexts[--depth];
  return DRIVER_SUCCESS;
}

driver_status cuCtxGetDevice(driver_device *device) {
  if (in_context() != DRIVER_SUCCESS) return INVALID_CONTEXT;
  *device = (driver_device)(uintptr_t)contexts[depth - 1] - 1;
  return DRIVER_SUCCESS;
}

driver_status cuCtxGetId(driver_context context, unsigned long long *id) {
  *id = (unsigned long long)(uintptr_t)context + 100 * resets;
  return number_of("destroyed=", 0) && resets > 0 ? DRIVER_CONTEXT_DESTROYED : DRIVER_SUCCESS;
}

driver_status cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return in_context();
}

/* ------------------------------------------------------------------ memory */

driver_status cuMemGetInfo_v2(size_t *free_bytes, size_t *bytes) {
  *free_bytes = *bytes = (size_t)1 << 30;
  return in_context();
}

driver_status cuMemAlloc_v2(driver_pointer *pointer, size_t bytes) {
  void *memory = in_context() == DRIVER_SUCCESS ? malloc(bytes) : NULL;
  if (memory) of_device = (block){memory, bytes};
  *pointer = (driver_pointer)(uintptr_t)memory;
  return memory ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

driver_status cuMemFree_v2(driver_pointer pointer) {
  free(memory_of(pointer));
  return DRIVER_SUCCESS;
}

driver_status cuMemHostAlloc(void **host, size_t bytes, uint32_t flags) {
  *host = flags == (DRIVER_HOST_PORTABLE | DRIVER_HOST_MAPPED) ? malloc(bytes) : NULL;
  return *host ? in_context() : INVALID_VALUE;
}

driver_status cuMemHostGetDevicePointer_v2(driver_pointer *device, void *host, uint32_t flags) {
  *device = (driver_pointer)(uintptr_t)host;
  return flags == 0 ? DRIVER_SUCCESS : INVALID_VALUE;
}

driver_status cuMemFreeHost(void *host) {
  free(host);
  return DRIVER_SUCCESS;
}

static bool is_of_device(const void *memory) {
  return of_device.at && (uintptr_t)memory - (uintptr_t)of_device.at < of_device.bytes;
}

driver_status cuPointerGetAttributes(uint32_t count, const int *attributes, void **values, driver_pointer pointer) {
  const uint32_t type = is_of_device(memory_of(pointer)) ? DRIVER_MEMORY_DEVICE : 0;
  if (count != 1 || attributes[0] != DRIVER_POINTER_MEMORY_TYPE) return INVALID_VALUE;
  memcpy(values[0], &type, sizeof type);
  return DRIVER_SUCCESS;
}

driver_status cuMemcpyHtoDAsync_v2(driver_pointer to, const void *from, size_t bytes, cuda_stream stream) {
  (void)stream;
  return enqueue((node){.kind = NODE_COPY, .to = memory_of(to), .from = from, .bytes = bytes});
}

driver_status cuMemcpyDtoHAsync_v2(void *to, driver_pointer from, size_t bytes, cuda_stream stream) {
  (void)stream;
  return enqueue((node){.kind = NODE_COPY, .to = to, .from = memory_of(from), .bytes = bytes});
}

driver_status cuMemcpy2DAsync_v2(const driver_copy_rows *copy, cuda_stream stream) {
  (void)stream;
  const bool from_host = copy->from_type == DRIVER_MEMORY_HOST, to_host = copy->to_type == DRIVER_MEMORY_HOST;
  const char *from = from_host ? copy->from_host : memory_of(copy->from_device);
  char *to = to_host ? copy->to_host : memory_of(copy->to_device);
  if (from_host == is_of_device(from) || to_host == is_of_device(to)) return INVALID_VALUE;
  for (size_t y = 0; y < copy->rows; y++) memcpy(to + y * copy->to_pitch, from + y * copy->from_pitch, copy->row_bytes);
  return DRIVER_SUCCESS;
}

driver_status cuMemsetD8Async(driver_pointer to, unsigned char value, size_t bytes, cuda_stream stream) {
  (void)stream;
  if (value == 0) return enqueue((node){.kind = NODE_CLEAR, .to = memory_of(to), .bytes = bytes});
  memset(memory_of(to), value, bytes);
  return in_context();
}

driver_status cuMemsetD2D8Async(driver_pointer to, size_t pitch, unsigned char value, size_t width, size_t rows,
                                cuda_stream stream) {
  (void)stream;
  for (size_t y = 0; y < rows; y++) memset((char *)memory_of(to) + y * pitch, value, width);
  return in_context();
}

/* ------------------------------------------------------------------ streams and events */

driver_status cuStreamCreateWithPriority(cuda_stream *stream, uint32_t flags, int priority) {
  put("stream %d\n", priority);
  *stream = (cuda_stream)malloc(1);
  return flags == DRIVER_STREAM_NON_BLOCKING ? in_context() : INVALID_VALUE;
}

driver_status cuStreamDestroy_v2(cuda_stream stream) {
  free(stream);
  return DRIVER_SUCCESS;
}

driver_status cuStreamSynchronize(cuda_stream stream) {
  (void)stream;
  return in_context();
}

driver_status cuStreamQuery(cuda_stream stream) {
  (void)stream;
  return number_of("busy=", 0) ? DRIVER_NOT_READY : DRIVER_SUCCESS;
}

driver_status cuStreamGetCtx(cuda_stream stream, driver_context *context) {
  (void)stream;
  *context = number_of("foreign=", 0) ? NULL : contexts[depth - 1];
  return in_context();
}

driver_status cuStreamWaitEvent(cuda_stream stream, cuda_event event, uint32_t flags) {
  (void)stream, (void)event;
  return flags == 0 ? in_context() : INVALID_VALUE;
}

driver_status cuEventCreate(cuda_event *event, uint32_t flags) {
  put("event %u\n", flags);
  *event = (cuda_event)malloc(1);
  return in_context();
}

driver_status cuEventDestroy_v2(cuda_event event) {
  free(event);
  return DRIVER_SUCCESS;
}

driver_status cuEventRecord(cuda_event event, cuda_stream stream) {
  (void)event, (void)stream;
  return in_context();
}

driver_status cuEventSynchronize(cuda_event event) {
  (void)event;
  return DRIVER_SUCCESS;
}

driver_status cuEventElapsedTime(float *milliseconds, cuda_event start, cuda_event stop) {
  (void)start, (void)stop;
  *milliseconds = 1.0f;
  return DRIVER_SUCCESS;
}

/* ------------------------------------------------------------------ kernels */

driver_status cuLibraryLoadData(driver_library *library, const void *code, int *jit_options, void **jit_values,
                                uint32_t jit_count, int *options, void **values, uint32_t count) {
  (void)jit_options, (void)jit_values, (void)options, (void)values;
  put("load\n");
  take_long();
  if (capturing && capture_mode != DRIVER_CAPTURE_RELAXED) return INVALID_VALUE;
  *library = (driver_library)(uintptr_t)code;
  return jit_count + count == 0 ? number_of("load=", DRIVER_SUCCESS) : INVALID_VALUE;
}

driver_status cuLibraryGetKernel(driver_kernel *kernel, driver_library library, const char *name) {
  pthread_mutex_lock(&lock);
  const bool is_found = library && function_count < 64 && strcmp(name, "missing_kernel") != 0;
  struct CUfunc_st *function = is_found ? &functions[function_count++] : NULL;
  pthread_mutex_unlock(&lock);
  if (!function) return NOT_FOUND;
  function->name = name;
  *kernel = (driver_kernel)(void *)function;
  put("kernel %s\n", name);
  return DRIVER_SUCCESS;
}

driver_status cuKernelGetFunction(driver_function *function, driver_kernel kernel) {
  *function = (driver_function)(void *)kernel;
  return in_context();
}

driver_status cuFuncSetAttribute(driver_function function, int attribute, int value) {
  put("set %s %d\n", function->name, value);
  function->shared_bytes = value;
  return attribute == DRIVER_FUNCTION_SHARED_BYTES ? DRIVER_SUCCESS : INVALID_VALUE;
}

driver_status cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, driver_function function, int threads,
                                                          size_t shared_bytes) {
  put("resident %s %d %zu\n", function->name, threads, shared_bytes);
  *blocks = 3;
  return DRIVER_SUCCESS;
}

driver_status cuLaunchKernel(driver_function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                             uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                             cuda_stream stream, void **arguments, void **extra) {
  (void)stream;
  uint32_t first = 0;
  memcpy(&first, arguments[0], sizeof first);
  put("launch %s %ux%ux%u %ux%ux%u %u: %u\n", function->name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
      shared_bytes, first);
  if (extra || (shared_bytes > 48u << 10 && (uint32_t)function->shared_bytes < shared_bytes)) return INVALID_VALUE;
  return enqueue((node){.kind = NODE_KERNEL, .kernel = function->name});
}

/* ------------------------------------------------------------------ graphs */

driver_status cuStreamBeginCapture_v2(cuda_stream stream, int mode) {
  (void)stream;
  capturing = calloc(1, sizeof *capturing);
  return mode == DRIVER_CAPTURE_THREAD_LOCAL && capturing ? in_context() : INVALID_VALUE;
}

driver_status cuThreadExchangeStreamCaptureMode(int *mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return DRIVER_SUCCESS;
}

driver_status cuStreamEndCapture(cuda_stream stream, driver_graph *graph) {
  (void)stream;
  *graph = capturing;
  capturing = NULL;
  return *graph ? DRIVER_SUCCESS : INVALID_VALUE;
}

driver_status cuStreamGetCaptureInfo_v2(cuda_stream stream, int *state, uint64_t *id, driver_graph *graph,
                                        const driver_node **nodes, size_t *count) {
  (void)stream, (void)id, (void)graph;
  *state = capturing ? 1 : 0;
  *nodes = &last;
  *count = capturing && capturing->count > 0 ? 1 : 0;
  return DRIVER_SUCCESS;
}

driver_status cuGraphInstantiateWithFlags(cuda_graph *runnable, driver_graph graph, uint64_t flags) {
  put("instantiate %u\n", (unsigned)flags);
  if (flags != 0 && number_of("priorities=", 1) == 0) return INVALID_VALUE;
  *runnable = malloc(sizeof **runnable);
  if (!*runnable) return DRIVER_OUT_OF_MEMORY;
  (*runnable)->graph = *graph;
  (*runnable)->source = graph;
  return DRIVER_SUCCESS;
}

driver_status cuGraphLaunch(cuda_graph runnable, cuda_stream stream) {
  (void)stream;
  for (int i = 0; i < runnable->graph.count; i++) run(&runnable->graph.nodes[i]);
  return in_context();
}

driver_status cuGraphExecDestroy(cuda_graph runnable) {
  free(runnable);
  return DRIVER_SUCCESS;
}

driver_status cuGraphDestroy(driver_graph graph) {
  free(graph);
  return DRIVER_SUCCESS;
}

/* The node of a runnable graph for one of the graph that it was made of. */
static node *node_in(cuda_graph runnable, driver_node of_source) {
  const node *n = (const node *)(const void *)of_source;
  return number_of("update=", 0) ? NULL : &runnable->graph.nodes[n - runnable->source->nodes];
}

#ifndef FAKE_CUDA_LACKS_A_FUNCTION
driver_status cuGraphExecKernelNodeSetParams_v2(cuda_graph runnable, driver_node at, const driver_kernel_node *kernel) {
  node *n = node_in(runnable, at);
  if (!n || n->kind != NODE_KERNEL) return INVALID_VALUE;
  n->kernel = kernel->function->name;
  put("change %s %u %u\n", n->kernel, kernel->grid_x, kernel->block_x);
  return DRIVER_SUCCESS;
}
#endif

driver_status cuGraphExecMemcpyNodeSetParams(cuda_graph runnable, driver_node at, const driver_copy *copy,
                                             driver_context context) {
  node *n = node_in(runnable, at);
  if (!n || n->kind != NODE_COPY || !context || copy->rows != 1 || copy->slices != 1) return INVALID_VALUE;
  n->to = copy->to_type == DRIVER_MEMORY_HOST ? copy->to_host : memory_of(copy->to_device);
  n->from = copy->from_type == DRIVER_MEMORY_HOST ? copy->from_host : memory_of(copy->from_device);
  n->bytes = copy->row_bytes;
  return DRIVER_SUCCESS;
}

driver_status cuGraphExecMemsetNodeSetParams(cuda_graph runnable, driver_node at, const driver_clear *clear,
                                             driver_context context) {
  node *n = node_in(runnable, at);
  if (!n || n->kind != NODE_CLEAR || !context || clear->element_bytes != 1 || clear->rows != 1) return INVALID_VALUE;
  n->to = memory_of(clear->to);
  n->bytes = clear->width;
  return DRIVER_SUCCESS;
}
