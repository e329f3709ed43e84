/*
 * Launches: one step of a frame goes to the calling thread's list if one has begun, else to the device.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_LAUNCH_CUH
#define HARTSIFT_CUDA_RUNTIME_LAUNCH_CUH

#include "cuda/runtime/device.h"
#include "cuda/runtime/launch_list.h"
#include "stages/base.h"

/* Steps before STEP_RECORD are nodes of a graph. */
typedef enum step_kind { STEP_KERNEL, STEP_COPY, STEP_CLEAR, STEP_RECORD, STEP_WAIT } step_kind;

typedef struct launch_step {
  step_kind kind;
  cudaStream_t stream;
  cudaEvent_t event;  /* the event that is recorded, or waited for */
  const void *kernel; /* its arguments: pointers to each, all of them in the list */
  void **arguments;
  dim3 grid, block;
  size_t bytes; /* bytes copied or cleared; for a kernel, bytes of its dynamic shared memory */
  void *to;
  const void *from;
  cudaMemcpyKind direction;
} launch_step;

static inline stage_status launch_status(cudaError_t error) {
  if (error == cudaSuccess) return STAGE_OK;
  return error == cudaErrorMemoryAllocation ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

/* A kernel's arguments: the address and the bytes of each. */
typedef struct launch_arguments {
  const void *const *address;
  const size_t *bytes;
  int count;
} launch_arguments;

/* Whether the calling thread's launches go to a list. */
bool launch_is_listed(void);
/* Adds a kernel to the thread's list, with copies of the arguments. */
void launch_list_kernel(const launch_step *step, launch_arguments arguments);
/* A step without a kernel: to the list, or to the device. */
stage_status launch_step_run(const launch_step *step);

/* Nodes keep the priorities of the streams that they were captured on; if the driver refuses, all run with the priority
 * of the stream that the graph is launched on. */
cudaError_t device_graph_instantiate(cudaGraphExec_t *graph, cudaGraph_t captured);

/* Shared parts of launchers: the launch of a kernel, grids, resident blocks, shared-memory limits. */

/* Number of blocks of `threads` resident on the current device at once; at least 1. The driver is queried once for each
 * kernel and device. Legal during stream capture, and on any thread. */
unsigned launch_resident_blocks(const void *kernel, int threads, size_t dynamic_shared_bytes);

template <class... PARAMETERS>
static inline void launch_listed(void (*kernel)(PARAMETERS...), launch_step *step, const PARAMETERS &...parameters) {
  const void *const address[] = {static_cast<const void *>(&parameters)...};
  const size_t bytes[] = {sizeof(PARAMETERS)...};
  step->kind = STEP_KERNEL;
  step->kernel = reinterpret_cast<const void *>(kernel);
  const launch_arguments arguments = {address, bytes, (int)sizeof...(PARAMETERS)};
  launch_list_kernel(step, arguments);
}

/* Launches a kernel, or lists it; the status is the launch's own. <<<>>> would only give the thread's last error, which
 * may come from an application that shares the runtime in a static build, or from an old call. Arguments are converted
 * to the kernel's parameters as in a call. */
template <class... PARAMETERS, class... ARGUMENTS>
static inline stage_status launch(void (*kernel)(PARAMETERS...), dim3 grid, dim3 block, size_t shared_bytes,
                                  cudaStream_t stream, const ARGUMENTS &...arguments) {
  if (launch_is_listed()) {
    launch_step step = {};
    step.stream = stream;
    step.grid = grid;
    step.block = block;
    step.bytes = shared_bytes;
    launch_listed<PARAMETERS...>(kernel, &step, arguments...);
    return STAGE_OK;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...) == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

enum { GRID_Y_MAX = 65535 };

static inline int32_t ceil_div(int32_t n, int32_t part) { return n / part + (n % part != 0); }

/* A grid over columns and rows; a loop in the kernel covers rows beyond the hardware's maximum grid. */
static inline dim3 launch_grid_2d(int32_t columns, int32_t columns_a_block, int32_t rows, int32_t rows_a_block) {
  const int32_t y = ceil_div(rows, rows_a_block);
  return dim3((unsigned)ceil_div(columns, columns_a_block), (unsigned)(y < GRID_Y_MAX ? y : GRID_Y_MAX));
}

/* A plane of another picture of a group; null stays null. */
template <class T> static __device__ __forceinline__ T *group_shifted(T *plane, size_t bytes) {
  return plane ? reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(plane) + bytes) : plane;
}

/* Allows a kernel this much dynamic shared memory. */
static inline stage_status launch_prepare(const void *kernel, int32_t shared_bytes) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  return error == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

/* Multiprocessors of the current device; 1 if unknown. */
static inline int32_t launch_multiprocessors(void) {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return 1;
  return count > 0 ? count : 1;
}

#endif
