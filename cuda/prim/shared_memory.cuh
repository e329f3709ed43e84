/*
 * Shared memory by byte addresses, so that address arithmetic stays in 32 bits and may carry constants that cancel
 * (bits of floats). Any thread. Additions are atomic among the threads of the block and return nothing.
 */
#ifndef HARTSIFT_CUDA_PRIM_SHARED_MEMORY_CUH
#define HARTSIFT_CUDA_PRIM_SHARED_MEMORY_CUH

#include <stdint.h>

/* The address of something in shared memory. */
static __device__ __forceinline__ uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void shared_add(uint32_t address, int32_t v) {
  asm volatile("red.shared.add.s32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

/* Two floats of shared memory at a byte address (a multiple of 8) plus a constant. */
static __device__ __forceinline__ float2 shared_pair(uint32_t address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
  return v;
}

#endif
