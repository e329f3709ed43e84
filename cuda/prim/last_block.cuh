/*
 * Which block of a launch comes last: the one that may gather what all of them wrote.
 *
 * `ticket`: a word of global memory that is 0 before the launch, and again after it. All threads of a block call this
 * after they have written their results; the threads of the last block then see those of all blocks, if they read past
 * the L1 (__ldcg). Two barriers. `s_last`: a word of shared memory.
 */
#ifndef HARTSIFT_CUDA_PRIM_LAST_BLOCK_CUH
#define HARTSIFT_CUDA_PRIM_LAST_BLOCK_CUH

#include <stdint.h>

static __device__ __forceinline__ bool last_block(uint32_t *ticket, uint32_t *s_last) {
  __syncthreads(); /* the block has written; what its barrier has ordered, the release below covers */
  if (threadIdx.x == 0) {
    uint32_t before; /* wraps around to 0 */
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(ticket), "r"(gridDim.x - 1u)
                 : "memory");
    *s_last = before == gridDim.x - 1u ? 1u : 0u;
  }
  __syncthreads();
  return *s_last != 0;
}

#endif
