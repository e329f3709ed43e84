/* Compares cuda/runtime/driver.h with the toolkit's cuda.h: compiled where there is one, never run. */
#include <cuda.h>

#include "cuda/runtime/driver.h"

#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define FIELD(ours, field, theirs, of_theirs)                                                                          \
  _Static_assert(offsetof(ours, field) == offsetof(theirs, of_theirs) &&                                               \
                     sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->of_theirs),                                   \
                 #of_theirs)

_Static_assert(sizeof(CUresult) == sizeof(driver_status) && sizeof(CUdevice) == sizeof(driver_device) &&
                   sizeof(CUdeviceptr) == sizeof(driver_pointer) && sizeof(cuuint64_t) == sizeof(uint64_t),
               "types");

EQUAL(DRIVER_SUCCESS, CUDA_SUCCESS);
EQUAL(DRIVER_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
EQUAL(DRIVER_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(DRIVER_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
EQUAL(DRIVER_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
EQUAL(DRIVER_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(DRIVER_UNKNOWN, CUDA_ERROR_UNKNOWN);
EQUAL(DEVICE_ERROR_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
EQUAL(DEVICE_ERROR_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
EQUAL(DEVICE_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
EQUAL(DEVICE_ERROR_NO_CODE, CUDA_ERROR_NO_BINARY_FOR_GPU);
EQUAL(DEVICE_ERROR_UNKNOWN_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
EQUAL(DEVICE_ERROR_NO_JIT, CUDA_ERROR_JIT_COMPILATION_DISABLED);
EQUAL(DEVICE_ERROR_SYSTEM_CALL, CUDA_ERROR_OPERATING_SYSTEM);
EQUAL(DEVICE_ERROR_RESET, CUDA_ERROR_CONTEXT_IS_DESTROYED);
EQUAL(DEVICE_ERROR_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
EQUAL(DEVICE_ERROR_DRIVER_PARTS, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
EQUAL(DEVICE_MODE_SHARED, CU_COMPUTEMODE_DEFAULT);
EQUAL(DEVICE_MODE_PROHIBITED, CU_COMPUTEMODE_PROHIBITED);
EQUAL(DEVICE_MODE_EXCLUSIVE, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
EQUAL(DRIVER_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(DRIVER_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
EQUAL(DRIVER_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EQUAL(DRIVER_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(DRIVER_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(DRIVER_SHARED_BYTES_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
EQUAL(DRIVER_SHARED_BYTES_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EQUAL(DRIVER_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQUAL(DRIVER_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
EQUAL(DRIVER_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
EQUAL(DRIVER_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
EQUAL(DRIVER_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(DRIVER_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC);
EQUAL(DRIVER_EVENT_UNTIMED, CU_EVENT_DISABLE_TIMING);
EQUAL(DRIVER_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
EQUAL(DRIVER_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
EQUAL(DRIVER_GRAPH_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
EQUAL(DRIVER_MEMORY_HOST, CU_MEMORYTYPE_HOST);
EQUAL(DRIVER_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
EQUAL(DRIVER_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);

_Static_assert(sizeof(driver_copy_rows) == sizeof(CUDA_MEMCPY2D), "copies of rows");
FIELD(driver_copy_rows, from_type, CUDA_MEMCPY2D, srcMemoryType);
FIELD(driver_copy_rows, from_host, CUDA_MEMCPY2D, srcHost);
FIELD(driver_copy_rows, from_device, CUDA_MEMCPY2D, srcDevice);
FIELD(driver_copy_rows, from_pitch, CUDA_MEMCPY2D, srcPitch);
FIELD(driver_copy_rows, to_type, CUDA_MEMCPY2D, dstMemoryType);
FIELD(driver_copy_rows, to_device, CUDA_MEMCPY2D, dstDevice);
FIELD(driver_copy_rows, to_pitch, CUDA_MEMCPY2D, dstPitch);
FIELD(driver_copy_rows, row_bytes, CUDA_MEMCPY2D, WidthInBytes);
FIELD(driver_copy_rows, rows, CUDA_MEMCPY2D, Height);

_Static_assert(sizeof(driver_copy) == sizeof(CUDA_MEMCPY3D), "copies");
FIELD(driver_copy, from_type, CUDA_MEMCPY3D, srcMemoryType);
FIELD(driver_copy, from_host, CUDA_MEMCPY3D, srcHost);
FIELD(driver_copy, from_device, CUDA_MEMCPY3D, srcDevice);
FIELD(driver_copy, from_pitch, CUDA_MEMCPY3D, srcPitch);
FIELD(driver_copy, from_height, CUDA_MEMCPY3D, srcHeight);
FIELD(driver_copy, to_type, CUDA_MEMCPY3D, dstMemoryType);
FIELD(driver_copy, to_host, CUDA_MEMCPY3D, dstHost);
FIELD(driver_copy, to_device, CUDA_MEMCPY3D, dstDevice);
FIELD(driver_copy, to_pitch, CUDA_MEMCPY3D, dstPitch);
FIELD(driver_copy, to_height, CUDA_MEMCPY3D, dstHeight);
FIELD(driver_copy, row_bytes, CUDA_MEMCPY3D, WidthInBytes);
FIELD(driver_copy, rows, CUDA_MEMCPY3D, Height);
FIELD(driver_copy, slices, CUDA_MEMCPY3D, Depth);

_Static_assert(sizeof(driver_clear) == sizeof(CUDA_MEMSET_NODE_PARAMS), "clearing");
FIELD(driver_clear, to, CUDA_MEMSET_NODE_PARAMS, dst);
FIELD(driver_clear, value, CUDA_MEMSET_NODE_PARAMS, value);
FIELD(driver_clear, element_bytes, CUDA_MEMSET_NODE_PARAMS, elementSize);
FIELD(driver_clear, width, CUDA_MEMSET_NODE_PARAMS, width);
FIELD(driver_clear, rows, CUDA_MEMSET_NODE_PARAMS, height);

_Static_assert(sizeof(driver_kernel_node) == sizeof(CUDA_KERNEL_NODE_PARAMS), "kernels");
FIELD(driver_kernel_node, function, CUDA_KERNEL_NODE_PARAMS, func);
FIELD(driver_kernel_node, grid_x, CUDA_KERNEL_NODE_PARAMS, gridDimX);
FIELD(driver_kernel_node, block_z, CUDA_KERNEL_NODE_PARAMS, blockDimZ);
FIELD(driver_kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
FIELD(driver_kernel_node, arguments, CUDA_KERNEL_NODE_PARAMS, kernelParams);
FIELD(driver_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS, extra);
FIELD(driver_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
FIELD(driver_kernel_node, context, CUDA_KERNEL_NODE_PARAMS, ctx);
