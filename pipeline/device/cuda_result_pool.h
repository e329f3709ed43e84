/*
 * Pinned memory for results, in blocks that a frame writes and the caller may keep.
 *
 * A context's set of results holds a block while frames write to it. Afterwards the caller's lists of features borrow
 * the block without a copy: hs_features.allocator is then the pool's. The block is returned when the last borrowed
 * array in it is released, by any thread, even after the context's end. The pool's memory is freed when the context has
 * ended and nothing is borrowed. At most RESULT_BLOCKS_BORROWED or RESULT_BLOCKS_BORROWED_THROUGHPUT blocks are
 * borrowed at once; further results are copied. So a program that keeps all its results does not pin all the machine's
 * memory.
 *
 * In a forked child blocks are neither returned nor freed, because only the parent has the device.
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
  unsigned char *host, *device; /* host's and device's address of the same memory */
  size_t bytes;
  bool held;         /* a set of results holds it */
  uint32_t borrowed; /* number of the caller's arrays in it */
} cuda_result_block;

/* Makes a pool of the device with one owner; null: no memory. */
cuda_result_pool *cuda_result_pool_create(int32_t device);
/* The first adds an owner, the second removes one; the last owner to leave frees all blocks that are not borrowed. The
   device must be entered. */
cuda_result_pool *cuda_result_pool_share(cuda_result_pool *pool);
void cuda_result_pool_leave(cuda_result_pool *pool);

/* Makes *block a held block of at least `bytes` that is not borrowed; keeps the present block if possible. The device
 * must be entered. On failure *block is null. Statuses: STAGE_OUT_OF_MEMORY, STAGE_DEVICE. */
stage_status cuda_result_pool_hold(cuda_result_pool *pool, size_t bytes, cuda_result_block **block);
/* Ends the hold; null is allowed. */
void cuda_result_pool_drop(cuda_result_pool *pool, cuda_result_block *block);

/* Lets the caller borrow `arrays` arrays of the block, and release them by *allocator. False: `most` other blocks are
   borrowed already. */
bool cuda_result_pool_hand_out(cuda_result_pool *pool, cuda_result_block *block, uint32_t arrays, uint32_t most,
                               const hs_allocator **allocator);

/* cuda_result_pool_capacity returns the capacity in features for a picture in flight, from the samples of its first
   octave: the most features of noted pictures, plus a quarter. cuda_result_pool_note notes a picture that exceeds its
   capacity; its frame is repeated. Both distinguish classes of sizes, because small pictures have more features per
   sample than large ones. */
uint32_t cuda_result_pool_capacity(cuda_result_pool *pool, uint64_t samples);
void cuda_result_pool_note(cuda_result_pool *pool, uint64_t samples, uint32_t features);

/* Returns the pinned bytes of all blocks. */
uint64_t cuda_result_pool_bytes(cuda_result_pool *pool);

#endif
