/*
 * Pinned memory for results, in blocks that a frame writes and the caller may keep.
 *
 * A block is held by a context's set of results while frames write to it. Afterwards the caller's lists of features borrow
 * it, without a copy: hs_features.allocator is then the pool's. It is returned when the last array in it is released, by
 * any thread, also after the context's end; the pool's memory is freed when the context has ended and nothing is borrowed.
 * At most RESULT_BLOCKS_BORROWED blocks, or RESULT_BLOCKS_BORROWED_THROUGHPUT, are borrowed at once, so that a program which
 * keeps all its results does not pin the machine's memory: further results are copied.
 *
 * In a forked child blocks are neither given back nor freed, because only the parent has the device.
 */
#ifndef HARTSIFT_DEVICE_CUDA_RESULT_POOL_H
#define HARTSIFT_DEVICE_CUDA_RESULT_POOL_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"
#include "stages/base.h"

enum { RESULT_BLOCKS_BORROWED = 16, RESULT_BLOCKS_BORROWED_THROUGHPUT = 64 };

typedef struct cuda_result_pool cuda_result_pool;

typedef struct cuda_result_block {
  struct cuda_result_block *next;
  unsigned char *host, *device; /* the same memory, as each of the two addresses it */
  size_t bytes;
  bool held;         /* by a set of results */
  uint32_t borrowed; /* arrays of the caller's in it */
} cuda_result_block;

/* A pool of the device, with one owner; null: no memory. */
cuda_result_pool *cuda_result_pool_create(int32_t device);
/* One owner more, and one less: the last frees what is not lent. The device must be entered. */
cuda_result_pool *cuda_result_pool_share(cuda_result_pool *pool);
void cuda_result_pool_leave(cuda_result_pool *pool);

/* Makes *block one of at least so many bytes that is held and not lent: itself where it is so already, else another. The
   device must be entered. On failure *block is null. Statuses: STAGE_OUT_OF_MEMORY, STAGE_DEVICE. */
stage_status cuda_result_pool_hold(cuda_result_pool *pool, size_t bytes, cuda_result_block **block);
/* Ends the hold; null is allowed. */
void cuda_result_pool_drop(cuda_result_pool *pool, cuda_result_block *block);

/* Whether `arrays` arrays of the block are the caller's from now on, to be released through *allocator; false when `most`
   other blocks are lent. */
bool cuda_result_pool_lend(cuda_result_pool *pool, cuda_result_block *block, uint32_t arrays, uint32_t most,
                           const hs_allocator **allocator);

/* How many features pictures in flight get room for, by the number of samples of their first octave: what those noted so
   far had, and a quarter more. A picture that has more than there is room for is noted, and its frame repeated. By classes
   of size, because small pictures have more features a sample than large ones. */
uint32_t cuda_result_pool_capacity(cuda_result_pool *pool, uint64_t samples);
void cuda_result_pool_note(cuda_result_pool *pool, uint64_t samples, uint32_t features);

/* Pinned bytes of all blocks. */
uint64_t cuda_result_pool_bytes(cuda_result_pool *pool);

#endif
