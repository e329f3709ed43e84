/*
 * Shared memory by byte addresses, asynchronous copies to it, and values that the compiler cannot recompute.
 *
 * Byte addresses keep address arithmetic in 32 bits, and may carry constants that cancel (bits of floats). Any
 * thread may call. Additions are atomic among the threads of the block and return nothing.
 */
#ifndef HARTSIFT_CUDA_PRIM_SHARED_COPY_CUH
#define HARTSIFT_CUDA_PRIM_SHARED_COPY_CUH

#include <stdint.h>

/* The address of an object in shared memory. */
static __device__ __forceinline__ uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void shared_add(uint32_t address, int32_t v) {
  asm volatile("red.shared.add.s32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

/* Loads two floats of shared memory at a byte address (a multiple of 8) plus a constant. */
static __device__ __forceinline__ float2 shared_pair(uint32_t address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
  return v;
}

/* Copies from global to shared memory that run while the thread continues: cp.async, from compute capability 8.0
 * on. On older devices the thread copies. */

/* Copies 16 bytes from global to shared memory, bypassing registers if the hardware can (8.0 on). s_to: an address
 * in the shared window. */
__device__ __forceinline__ void copy_16_async_to(unsigned s_to, const float *from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(s_to), "l"(from) : "memory");
#else
  const float4 v = *reinterpret_cast<const float4 *>(from);
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(s_to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
#endif
}

/* Copies 16 bytes likewise, to a pointer. */
__device__ __forceinline__ void copy_16_async(float *s_to, const float *from) {
  copy_16_async_to((unsigned)__cvta_generic_to_shared(s_to), from);
}

/* Copies 16 bytes likewise, but through the L1 cache, which asks the L2 for complete lines. Without it each lane's
 * 16 bytes are fetched as a separate sector: twice the traffic if neighbouring lanes copy neighbouring bytes. */
__device__ __forceinline__ void copy_16_async_cached(void *s_to, const void *from) {
#if __CUDA_ARCH__ >= 800
  const unsigned to = (unsigned)__cvta_generic_to_shared(s_to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
#else
  *(uint4 *)s_to = *(const uint4 *)from;
#endif
}

__device__ __forceinline__ void copy_4_async(float *s_to, const float *from) {
#if __CUDA_ARCH__ >= 800
  const unsigned to = (unsigned)__cvta_generic_to_shared(s_to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from) : "memory");
#else
  *s_to = *from;
#endif
}

/* Copies 16 bytes of any type likewise, or 16 bytes of zeros. `from` must be readable in either case. */
__device__ __forceinline__ void copy_16_async_or_zero(void *s_to, const void *from, bool there) {
#if __CUDA_ARCH__ >= 800
  const unsigned to = (unsigned)__cvta_generic_to_shared(s_to), bytes = there ? 16u : 0u;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  *(uint4 *)s_to = there ? *(const uint4 *)from : make_uint4(0u, 0u, 0u, 0u);
#endif
}

__device__ __forceinline__ void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/* Waits until the thread's copies are done, except for the copies of the newest COUNT commits. */
template <int COUNT> __device__ __forceinline__ void copies_wait_but() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(COUNT) : "memory");
#endif
}

__device__ __forceinline__ void copies_wait() { copies_wait_but<0>(); }

/* Values whose origin an empty asm statement hides from the compiler, so that it keeps them in registers. No
   instruction is emitted. Any thread may call. */

/* Keeps the compiler from recomputing a pointer from its components at each use in a loop. */
static __device__ __forceinline__ const float *opaque_pointer(const float *p) {
  asm("" : "+l"(p));
  return p;
}

/* Does the same for a number: otherwise the compiler may read it again in each iteration of a loop. */
static __device__ __forceinline__ int32_t opaque_int(int32_t v) {
  asm("" : "+r"(v));
  return v;
}

/* Does the same for a number that must not even be recomputed when unchanged: the statement counts as a side
 * effect. */
static __device__ __forceinline__ int32_t keep_in_register(int32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}

#endif
