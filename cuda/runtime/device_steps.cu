/* What cuda/runtime/device.h puts on a stream: steps, which a list takes too. */
#include "cuda/runtime/launch_step.cuh"

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
  assert(!launch_is_listed()); /* rows have no step, and would be copied at once */
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
