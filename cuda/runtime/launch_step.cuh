/*
 * One step of a frame: it goes to the calling thread's list where one has begun, else to the device.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_LAUNCH_STEP_CUH
#define HARTSIFT_CUDA_RUNTIME_LAUNCH_STEP_CUH

#include "cuda/runtime/launch_list.h"

/* Those before STEP_RECORD are nodes of a graph. */
typedef enum step_kind { STEP_KERNEL, STEP_COPY, STEP_CLEAR, STEP_RECORD, STEP_WAIT } step_kind;

typedef struct launch_step {
  step_kind kind;
  cudaStream_t stream;
  cudaEvent_t event;  /* recorded, waited for */
  const void *kernel; /* its arguments: pointers to each, all of them in the list */
  void **arguments;
  dim3 grid, block;
  size_t bytes; /* copied, cleared; of a kernel's dynamic shared memory */
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
/* To that list, with copies of the arguments. */
void launch_list_kernel(const launch_step *step, launch_arguments arguments);
/* No kernel: to the list, or to the device. */
stage_status launch_step_run(const launch_step *step);

#endif
