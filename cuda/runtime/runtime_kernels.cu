/* The kernels of the runtime: a signal to the host, and a probe for this build's code. */
#include "cuda/runtime/launch.h"

/* Any kernel serves, because only the build's code for this device is tested. */
extern "C" __global__ void device_probe_kernel(void) {}

/*
 * Does: tells the host that the writes of earlier kernels of the stream are complete. No _ref: it computes nothing.
 * Launch: 1 block of 1 thread. Shared: none.
 * Reads: nothing. Writes: one word of mapped host memory.
 * Barriers: none; the fence orders the word after all earlier writes, for the host too.
 * Limits: none. Order: the word is 0 before a frame (the host's work) and 1 after. Cost: one write over the bus.
 */
extern "C" __global__ void handover_signal_kernel(volatile uint32_t *flag) {
  __threadfence_system();
  *flag = 1;
}

LAUNCH_CHECK(runtime_kernels, handover_signal_kernel, volatile uint32_t *)
