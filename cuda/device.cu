/* The CUDA runtime behind cuda/device.h. */
#include "cuda/device.h"

#include <stdio.h>
#include <string.h>

static stage_status status_of(cudaError_t error) {
  if (error == cudaSuccess) return STAGE_OK;
  return error == cudaErrorMemoryAllocation ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

static void say(char *reason, size_t bytes, const char *what, const char *why) {
  if (reason && bytes > 0) snprintf(reason, bytes, "%s: %s", what, why);
}

const char *device_error_text(void) { return cudaGetErrorString(cudaGetLastError()); }

int32_t device_count(char *reason, size_t reason_bytes) {
  int n = 0, driver = 0;
  if (reason && reason_bytes > 0) reason[0] = '\0';
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    (void)cudaGetLastError();
    say(reason, reason_bytes, "no CUDA driver", "none is installed, or it does not start");
    return 0;
  }
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    say(reason, reason_bytes, "no usable CUDA device", cudaGetErrorString(error));
    return 0;
  }
  if (n == 0) say(reason, reason_bytes, "no CUDA device", "the driver shows none");
  return n;
}

/* Any kernel serves: what matters is that the build has code for this device. */
__global__ void device_probe_kernel(void) {}

static cudaError_t read_properties(int32_t index, device_info *info) {
  cudaDeviceProp p;
  cudaError_t error = cudaGetDeviceProperties(&p, index);
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
  return cudaMemGetInfo(&info->free_bytes, &info->memory_bytes);
}

stage_status device_query(int32_t index, device_info *info, char *reason, size_t reason_bytes) {
  memset(info, 0, sizeof *info);
  int32_t previous;
  if (device_enter(index, &previous) != STAGE_OK) {
    say(reason, reason_bytes, "the device cannot be used", device_error_text());
    return STAGE_DEVICE;
  }
  cudaFuncAttributes attributes;
  cudaError_t error = read_properties(index, info);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, device_probe_kernel);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    say(reason, reason_bytes, "this build has no code that the device or its driver can run", cudaGetErrorString(error));
  }
  device_leave(previous);
  return status_of(error);
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
  return status_of(cudaMalloc(pointer, bytes));
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
  return status_of(error);
}

void device_free_pinned(void *host) { (void)cudaFreeHost(host); }

stage_status device_stream_create(cuda_stream *stream) { return device_stream_create_urgent(stream, 0); }

stage_status device_stream_create_urgent(cuda_stream *stream, int32_t urgency) {
  int least = 0, greatest = 0;
  *stream = NULL;
  const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest); /* smaller numbers are more urgent */
  if (error != cudaSuccess) return status_of(error);
  const int priority = least + (greatest - least) * urgency / 2;
  return status_of(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, priority));
}

void device_stream_destroy(cuda_stream stream) {
  if (stream) (void)cudaStreamDestroy(stream);
}

stage_status device_stream_wait(cuda_stream stream) { return status_of(cudaStreamSynchronize(stream)); }

stage_status device_stream_query(cuda_stream stream, bool *busy) {
  const cudaError_t error = cudaStreamQuery(stream);
  *busy = error == cudaErrorNotReady;
  if (!*busy) return status_of(error);
  (void)cudaGetLastError(); /* not an error */
  return STAGE_OK;
}

stage_status device_copy_to(void *device, const void *host, size_t bytes, cuda_stream stream) {
  return bytes == 0 ? STAGE_OK : status_of(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
}

stage_status device_copy_from(void *host, const void *device, size_t bytes, cuda_stream stream) {
  return bytes == 0 ? STAGE_OK : status_of(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
}

stage_status device_copy_rows_to(void *device, size_t device_pitch, const void *source, size_t source_pitch, size_t row_bytes,
                                 size_t rows, cuda_stream stream) {
  if (row_bytes == 0 || rows == 0) return STAGE_OK;
  return status_of(cudaMemcpy2DAsync(device, device_pitch, source, source_pitch, row_bytes, rows, cudaMemcpyDefault, stream));
}

stage_status device_clear(void *device, size_t bytes, cuda_stream stream) {
  return bytes == 0 ? STAGE_OK : status_of(cudaMemsetAsync(device, 0, bytes, stream));
}

stage_status device_event_create(cuda_event *event, bool timed) {
  *event = NULL;
  return status_of(cudaEventCreateWithFlags(event, timed ? cudaEventDefault : cudaEventDisableTiming));
}

void device_event_destroy(cuda_event event) {
  if (event) (void)cudaEventDestroy(event);
}

stage_status device_event_record(cuda_event event, cuda_stream stream) { return status_of(cudaEventRecord(event, stream)); }

stage_status device_event_wait(cuda_event event, cuda_stream stream) { return status_of(cudaStreamWaitEvent(stream, event, 0)); }

stage_status device_event_finish(cuda_event event) { return status_of(cudaEventSynchronize(event)); }

stage_status device_event_elapsed_ms(cuda_event start, cuda_event stop, float *milliseconds) {
  return status_of(cudaEventElapsedTime(milliseconds, start, stop));
}

stage_status device_capture_begin(cuda_stream stream) {
  return status_of(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

/* Nodes keep the priorities of the streams that they were captured on; a driver that refuses runs them all with that of
   the stream that the graph is launched on. */
static cudaError_t instantiate(cudaGraphExec_t *graph, cudaGraph_t captured) {
#if CUDART_VERSION >= 11070
  if (cudaGraphInstantiateWithFlags(graph, captured, cudaGraphInstantiateFlagUseNodePriority) == cudaSuccess)
    return cudaSuccess;
  (void)cudaGetLastError();
#endif
  return cudaGraphInstantiateWithFlags(graph, captured, 0);
}

stage_status device_capture_end(cuda_stream stream, cuda_graph *graph) {
  cudaGraph_t captured = NULL;
  *graph = NULL;
  cudaError_t error = cudaStreamEndCapture(stream, &captured);
  if (error == cudaSuccess) error = instantiate(graph, captured);
  if (captured) (void)cudaGraphDestroy(captured);
  return status_of(error);
}

void device_capture_abandon(cuda_stream stream) {
  cudaGraph_t captured = NULL;
  (void)cudaStreamEndCapture(stream, &captured);
  if (captured) (void)cudaGraphDestroy(captured);
  (void)cudaGetLastError();
}

stage_status device_graph_launch(cuda_graph graph, cuda_stream stream) { return status_of(cudaGraphLaunch(graph, stream)); }

void device_graph_destroy(cuda_graph graph) {
  if (graph) (void)cudaGraphExecDestroy(graph);
}
