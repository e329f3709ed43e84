/*
 * The CUDA driver's functions as a table, loaded at run time, and the types and constants that they need.
 *
 * NVIDIA documents them as the driver API and keeps them from one driver to the next, so that no toolkit is needed
 * here. If a toolkit is installed, tests/fake_device/driver/driver_types.c compares them with its cuda.h.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_DRIVER_H
#define HARTSIFT_CUDA_RUNTIME_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/runtime/device.h"

typedef int32_t driver_status; /* CUresult */
typedef int32_t driver_device;
typedef uint64_t driver_pointer; /* an address in device memory */
typedef struct CUctx_st *driver_context;
typedef struct CUlib_st *driver_library;
typedef struct CUkern_st *driver_kernel;
typedef struct CUfunc_st *driver_function;
typedef struct CUgraph_st *driver_graph;
typedef struct CUgraphNode_st *driver_node;

enum {
  DRIVER_SUCCESS = 0,
  DRIVER_INVALID_VALUE = 1,
  DRIVER_OUT_OF_MEMORY = 2,
  DRIVER_NOT_INITIALIZED = 3,
  DRIVER_NOT_FOUND = 500,
  DRIVER_NOT_READY = 600,
  DRIVER_CONTEXT_DESTROYED = 709,
  DRIVER_UNKNOWN = 999
};

/* CUdevice_attribute */
enum {
  DRIVER_MULTIPROCESSORS = 16,
  DRIVER_COMPUTE_MODE = 20,
  DRIVER_L2_BYTES = 38,
  DRIVER_COMPUTE_MAJOR = 75,
  DRIVER_COMPUTE_MINOR = 76,
  DRIVER_SHARED_BYTES_SM = 81,
  DRIVER_SHARED_BYTES_OPTIN = 97
};

enum { DRIVER_FUNCTION_SHARED_BYTES = 8 }; /* CUfunction_attribute: most dynamic shared memory of a launch */
enum { DRIVER_POINTER_MEMORY_TYPE = 2 };   /* CUpointer_attribute */
enum { DRIVER_HOST_PORTABLE = 1, DRIVER_HOST_MAPPED = 2 };
enum { DRIVER_STREAM_NON_BLOCKING = 1 };
enum { DRIVER_EVENT_BLOCKING = 1, DRIVER_EVENT_UNTIMED = 2 };
enum { DRIVER_CAPTURE_THREAD_LOCAL = 1, DRIVER_CAPTURE_RELAXED = 2 };
enum { DRIVER_GRAPH_NODE_PRIORITY = 8 };

/* CUmemorytype; 0, as an answer: memory that the driver does not know. */
enum { DRIVER_MEMORY_HOST = 1, DRIVER_MEMORY_DEVICE = 2, DRIVER_MEMORY_UNIFIED = 4 };

/* CUDA_MEMCPY2D */
typedef struct driver_copy_rows {
  size_t from_x, from_y;
  uint32_t from_type;
  const void *from_host;
  driver_pointer from_device;
  void *from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  uint32_t to_type;
  void *to_host;
  driver_pointer to_device;
  void *to_array;
  size_t to_pitch;
  size_t row_bytes, rows;
} driver_copy_rows;

/* CUDA_MEMCPY3D */
typedef struct driver_copy {
  size_t from_x, from_y, from_z, from_level;
  uint32_t from_type;
  const void *from_host;
  driver_pointer from_device;
  void *from_array, *from_reserved;
  size_t from_pitch, from_height;
  size_t to_x, to_y, to_z, to_level;
  uint32_t to_type;
  void *to_host;
  driver_pointer to_device;
  void *to_array, *to_reserved;
  size_t to_pitch, to_height;
  size_t row_bytes, rows, slices;
} driver_copy;

/* CUDA_MEMSET_NODE_PARAMS */
typedef struct driver_clear {
  driver_pointer to;
  size_t pitch;
  uint32_t value, element_bytes;
  size_t width, rows;
} driver_clear;

/* CUDA_KERNEL_NODE_PARAMS, second version */
typedef struct driver_kernel_node {
  driver_function function;
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
  uint32_t shared_bytes;
  void **arguments, **extra;
  driver_kernel kernel;
  driver_context context;
} driver_kernel_node;

/* X(name in the table, name in the driver, its parameters): exact versions, which every later driver keeps. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
  X(init, cuInit, (uint32_t flags))                                                                                    \
  X(version, cuDriverGetVersion, (int *version))                                                                       \
  X(error_text, cuGetErrorString, (driver_status status, const char **text))                                           \
  X(device_count, cuDeviceGetCount, (int *count))                                                                      \
  X(device_of, cuDeviceGet, (driver_device * device, int index))                                                       \
  X(device_name, cuDeviceGetName, (char *name, int bytes, driver_device device))                                       \
  X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, driver_device device))                         \
  X(context_retain, cuDevicePrimaryCtxRetain, (driver_context * context, driver_device device))                        \
  X(context_get, cuCtxGetCurrent, (driver_context * context))                                                          \
  X(context_set, cuCtxSetCurrent, (driver_context context))                                                            \
  X(context_push, cuCtxPushCurrent_v2, (driver_context context))                                                       \
  X(context_pop, cuCtxPopCurrent_v2, (driver_context * context))                                                       \
  X(context_device, cuCtxGetDevice, (driver_device * device))                                                          \
  X(context_id, cuCtxGetId, (driver_context context, unsigned long long *id))                                          \
  X(stream_priorities, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                       \
  X(memory_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * bytes))                                               \
  X(memory_alloc, cuMemAlloc_v2, (driver_pointer * pointer, size_t bytes))                                             \
  X(memory_free, cuMemFree_v2, (driver_pointer pointer))                                                               \
  X(host_alloc, cuMemHostAlloc, (void **host, size_t bytes, uint32_t flags))                                           \
  X(host_device_pointer, cuMemHostGetDevicePointer_v2, (driver_pointer * device, void *host, uint32_t flags))          \
  X(host_free, cuMemFreeHost, (void *host))                                                                            \
  X(pointer_attributes, cuPointerGetAttributes,                                                                        \
    (uint32_t count, const int *attributes, void **values, driver_pointer pointer))                                    \
  X(copy_to, cuMemcpyHtoDAsync_v2, (driver_pointer to, const void *from, size_t bytes, cuda_stream stream))            \
  X(copy_from, cuMemcpyDtoHAsync_v2, (void *to, driver_pointer from, size_t bytes, cuda_stream stream))                \
  X(copy_rows, cuMemcpy2DAsync_v2, (const driver_copy_rows *copy, cuda_stream stream))                                 \
  X(set_bytes, cuMemsetD8Async, (driver_pointer to, unsigned char value, size_t bytes, cuda_stream stream))            \
  X(set_rows, cuMemsetD2D8Async,                                                                                       \
    (driver_pointer to, size_t pitch, unsigned char value, size_t width, size_t rows, cuda_stream stream))             \
  X(stream_create, cuStreamCreateWithPriority, (cuda_stream * stream, uint32_t flags, int priority))                   \
  X(stream_destroy, cuStreamDestroy_v2, (cuda_stream stream))                                                          \
  X(stream_wait, cuStreamSynchronize, (cuda_stream stream))                                                            \
  X(stream_query, cuStreamQuery, (cuda_stream stream))                                                                 \
  X(stream_context, cuStreamGetCtx, (cuda_stream stream, driver_context * context))                                    \
  X(stream_wait_event, cuStreamWaitEvent, (cuda_stream stream, cuda_event event, uint32_t flags))                      \
  X(event_create, cuEventCreate, (cuda_event * event, uint32_t flags))                                                 \
  X(event_destroy, cuEventDestroy_v2, (cuda_event event))                                                              \
  X(event_record, cuEventRecord, (cuda_event event, cuda_stream stream))                                               \
  X(event_wait, cuEventSynchronize, (cuda_event event))                                                                \
  X(event_elapsed, cuEventElapsedTime, (float *milliseconds, cuda_event start, cuda_event stop))                       \
  X(library_load, cuLibraryLoadData,                                                                                   \
    (driver_library * library, const void *code, int *jit_options, void **jit_values, uint32_t jit_count,              \
     int *options, void **values, uint32_t count))                                                                     \
  X(library_kernel, cuLibraryGetKernel, (driver_kernel * kernel, driver_library library, const char *name))            \
  X(kernel_function, cuKernelGetFunction, (driver_function * function, driver_kernel kernel))                          \
  X(function_set, cuFuncSetAttribute, (driver_function function, int attribute, int value))                            \
  X(resident_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                      \
    (int *blocks, driver_function function, int threads, size_t shared_bytes))                                         \
  X(launch, cuLaunchKernel,                                                                                            \
    (driver_function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,  \
     uint32_t block_z, uint32_t shared_bytes, cuda_stream stream, void **arguments, void **extra))                     \
  X(capture_begin, cuStreamBeginCapture_v2, (cuda_stream stream, int mode))                                            \
  X(capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))                                                      \
  X(capture_end, cuStreamEndCapture, (cuda_stream stream, driver_graph * graph))                                       \
  X(capture_info, cuStreamGetCaptureInfo_v2,                                                                           \
    (cuda_stream stream, int *state, uint64_t *id, driver_graph *graph, const driver_node **last, size_t *count))      \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (cuda_graph * runnable, driver_graph graph, uint64_t flags))       \
  X(graph_launch, cuGraphLaunch, (cuda_graph runnable, cuda_stream stream))                                            \
  X(graph_exec_destroy, cuGraphExecDestroy, (cuda_graph runnable))                                                     \
  X(graph_destroy, cuGraphDestroy, (driver_graph graph))                                                               \
  X(graph_set_kernel, cuGraphExecKernelNodeSetParams_v2,                                                               \
    (cuda_graph runnable, driver_node node, const driver_kernel_node *kernel))                                         \
  X(graph_set_copy, cuGraphExecMemcpyNodeSetParams,                                                                    \
    (cuda_graph runnable, driver_node node, const driver_copy *copy, driver_context context))                          \
  X(graph_set_clear, cuGraphExecMemsetNodeSetParams,                                                                   \
    (cuda_graph runnable, driver_node node, const driver_clear *clear, driver_context context))

typedef struct driver_table {
#define DRIVER_ENTRY(name, symbol, parameters) driver_status(*name) parameters;
  DRIVER_FUNCTIONS(DRIVER_ENTRY)
#undef DRIVER_ENTRY
} driver_table;

/* Result of loading the driver. */
typedef struct driver_load {
  const driver_table *table; /* null: there is none that can be used */
  int32_t version;           /* 1000 * major + 10 * minor; 0: no driver */
  driver_status status;      /* of the first failed call */
  const char *missing;       /* a function that the driver lacks; null: none */
} driver_load;

/* Loads the driver on the first call; from any thread. In a forked child of a process that had loaded it, there is no
 * table, and the status is DEVICE_ERROR_FORKED. */
const driver_load *driver_loaded(void);

/* Returns the number of the device that the driver calls 0; see device_show_only. */
int32_t driver_first(void);

/* Returns the driver's words for an error, also one of its initialisation; null: none. The text is static. */
const char *driver_text(driver_status status);

/* The primary context of a device, which other users of CUDA in this process have too. After a reset of the device
 * (cudaDeviceReset), always DRIVER_CONTEXT_DESTROYED: streams, memory and kernels of this library are gone. */
enum { DRIVER_DEVICES_KEPT = 32 };
driver_status driver_context_of(int32_t index, driver_context *context);

/* Loads a fat binary, for a driver of this version. */
driver_status fat_binary_load(const driver_table *driver, int32_t version, const unsigned char *image,
                              driver_library *library);

/* Keeps a failed status as the thread's last error. Returns it as a stage_status. */
stage_status driver_result(driver_status status);

/* The table, with a current context: the calling thread's or, where it has none, the first device's primary one. Null,
 * with the thread's last error set: there is none. */
const driver_table *driver_ready(void);

#endif
