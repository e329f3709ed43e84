/*
 * Values whose origin is hidden from the compiler by an empty asm statement, so that it keeps them in registers. No
 * instruction is emitted. Any thread.
 */
#ifndef HARTSIFT_CUDA_PRIM_OPAQUE_CUH
#define HARTSIFT_CUDA_PRIM_OPAQUE_CUH

#include <stdint.h>

/* Keeps the compiler from taking a pointer apart again into what it was computed from, once for each use in a loop. */
static __device__ __forceinline__ const float *opaque_pointer(const float *p) {
  asm("" : "+l"(p));
  return p;
}

/* The same of a number: without this the compiler may read it anew in each turn of a loop. */
static __device__ __forceinline__ int32_t opaque_int(int32_t v) {
  asm("" : "+r"(v));
  return v;
}

/* The same where not even a value that has not changed may be computed anew: the statement counts as a side effect. */
static __device__ __forceinline__ int32_t keep_in_register(int32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}

#endif
