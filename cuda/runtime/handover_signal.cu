/* The signal that a level has been handed over to the host. */
#include "cuda/runtime/handover_signal.h"

#include "cuda/runtime/launch.cuh"

/*
 * Does: tells the host that what earlier kernels of the stream wrote is there. No _ref: it computes nothing.
 * Launch: 1 block of 1 thread. Shared: none.
 * Reads: nothing. Writes: one word of mapped host memory.
 * Barriers: none; the fence orders the word behind everything written before it, for the host too.
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
