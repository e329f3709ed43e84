/* The list of blocks. It is short, so a linear search suffices. */
#include "pipeline/device/cuda_result_pool.h"

#include <stdlib.h>

#include "os/os_threads.h"
#include "cuda/runtime/device.h"
#include "pipeline/base/memory.h"

/* Capacity for the features of a picture in flight, before a picture of its size was seen: FEATURES_OF_MILLION per
   million samples, plus FEATURES_BESIDES. Most photographs have fewer features. The frame of a picture with more is
   repeated once, which costs less than pinning memory that is not needed. */
enum { FEATURES_OF_MILLION = 1000, FEATURES_BESIDES = 1024, SIZE_CLASSES = 64 };

/* When a block is made, free blocks stay if they have at most FREE_BLOCKS_KEPT times its bytes together. */
enum { FREE_BLOCKS_KEPT = 4 };

struct cuda_result_pool {
  hs_allocator allocator; /* of lists that borrow blocks; its user is this pool */
  pthread_mutex_t lock;
  cuda_result_block *blocks;
  int32_t device;
  int64_t process;                            /* process that owns the device */
  uint32_t owners;                            /* contexts that share the pool */
  uint32_t borrowed;                          /* number of blocks with borrowed arrays */
  uint32_t features_of_million[SIZE_CLASSES]; /* by the bit length of the number of samples; 0: none seen */
};

static void *allocate(size_t bytes, void *user) {
  (void)user;
  return hs_memory_alloc(NULL, bytes);
}

/* Returns the block that contains a pointer, null if none does. Under the lock. */
static cuda_result_block *block_of(const cuda_result_pool *p, const void *pointer) {
  const uintptr_t at = (uintptr_t)pointer;
  for (cuda_result_block *b = p->blocks; b; b = b->next)
    if (at >= (uintptr_t)b->host && at < (uintptr_t)b->host + b->bytes) return b;
  return NULL;
}

/* Takes the smallest free block (neither held nor borrowed) out of the list, if all free blocks together have more than
   most_bytes; else returns null. Under the lock. */
static cuda_result_block *take_out(cuda_result_pool *p, size_t most_bytes) {
  cuda_result_block **smallest = NULL;
  size_t bytes = 0;
  for (cuda_result_block **at = &p->blocks; *at; at = &(*at)->next) {
    if ((*at)->held || (*at)->borrowed > 0) continue;
    bytes += (*at)->bytes;
    if (!smallest || (*at)->bytes < (*smallest)->bytes) smallest = at;
  }
  if (!smallest || bytes <= most_bytes) return NULL;
  cuda_result_block *b = *smallest;
  *smallest = b->next;
  return b;
}

static void free_block(cuda_result_block *b) {
  device_free_pinned(b->host);
  hs_memory_release(NULL, b);
}

/* Frees every block that is neither held nor borrowed. Under the lock; the device must be entered. */
static void free_blocks(cuda_result_pool *p) {
  for (cuda_result_block *b = take_out(p, 0); b; b = take_out(p, 0)) free_block(b);
}

/* Frees a pool without owners and without borrowed blocks. */
static void end_pool(cuda_result_pool *p) {
  int32_t previous = -1;
  const bool entered = device_enter(p->device, &previous) == STAGE_OK;
  free_blocks(p);
  if (entered) device_leave(previous);
  pthread_mutex_destroy(&p->lock);
  hs_memory_release(NULL, p);
}

static void release(void *pointer, void *user) {
  cuda_result_pool *p = user;
  if (!pointer) return;
  /* In a forked child nothing changes: the lock may be held by a thread that exists only in the parent. */
  const bool forked = p->process != os_process_id();
  if (!forked) pthread_mutex_lock(&p->lock);
  cuda_result_block *b = block_of(p, pointer);
  if (b && !forked && --b->borrowed == 0) p->borrowed--;
  const bool last = p->owners == 0 && p->borrowed == 0;
  if (!forked) pthread_mutex_unlock(&p->lock);
  if (!b) hs_memory_release(NULL, pointer);
  if (b && !forked && last) end_pool(p);
}

cuda_result_pool *cuda_result_pool_create(int32_t device) {
  cuda_result_pool *p = hs_memory_alloc(NULL, sizeof *p);
  if (!p) return NULL;
  *p = (cuda_result_pool){
      .allocator = {allocate, release, p}, .device = device, .process = os_process_id(), .owners = 1};
  if (pthread_mutex_init(&p->lock, NULL) == 0) return p;
  hs_memory_release(NULL, p);
  return NULL;
}

cuda_result_pool *cuda_result_pool_share(cuda_result_pool *p) {
  pthread_mutex_lock(&p->lock);
  p->owners++;
  pthread_mutex_unlock(&p->lock);
  return p;
}

void cuda_result_pool_leave(cuda_result_pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  if (--p->owners == 0) free_blocks(p);
  const bool last = p->owners == 0 && p->borrowed == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) end_pool(p);
}

/* Returns the smallest free block of at least `bytes`, null if there is none. Under the lock. */
static cuda_result_block *find_free(const cuda_result_pool *p, size_t bytes) {
  cuda_result_block *found = NULL;
  for (cuda_result_block *b = p->blocks; b; b = b->next)
    if (!b->held && b->borrowed == 0 && b->bytes >= bytes && (!found || b->bytes < found->bytes)) found = b;
  return found;
}

/* Makes a new, held block, because the free ones are too small. Free blocks stay for smaller pictures, up to
   FREE_BLOCKS_KEPT times the new block's bytes. The caller holds the lock. It is released during the allocation, which
   takes half a millisecond per megabyte, so that other threads can borrow and return blocks meanwhile. */
static stage_status make_block(cuda_result_pool *p, size_t bytes, cuda_result_block **made) {
  cuda_result_block *b = hs_memory_alloc(NULL, sizeof *b);
  void *host = NULL, *device = NULL;
  if (!b) return STAGE_OUT_OF_MEMORY;
  for (cuda_result_block *old = take_out(p, FREE_BLOCKS_KEPT * bytes); old;
       old = take_out(p, FREE_BLOCKS_KEPT * bytes)) {
    pthread_mutex_unlock(&p->lock);
    free_block(old);
    pthread_mutex_lock(&p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  const stage_status st = device_alloc_pinned(&host, &device, bytes);
  pthread_mutex_lock(&p->lock);
  if (st != STAGE_OK) {
    hs_memory_release(NULL, b);
    return st;
  }
  *b = (cuda_result_block){.next = p->blocks, .host = host, .device = device, .bytes = bytes, .held = true};
  p->blocks = *made = b;
  return STAGE_OK;
}

stage_status cuda_result_pool_hold(cuda_result_pool *p, size_t bytes, cuda_result_block **block) {
  stage_status st = STAGE_OK;
  pthread_mutex_lock(&p->lock);
  cuda_result_block *b = *block;
  if (!b || b->borrowed > 0 || b->bytes < bytes) {
    if (b) b->held = false;
    b = find_free(p, bytes);
    if (b)
      b->held = true;
    else
      st = make_block(p, bytes, &b);
    *block = b;
  }
  pthread_mutex_unlock(&p->lock);
  return st;
}

void cuda_result_pool_drop(cuda_result_pool *p, cuda_result_block *b) {
  if (!b) return;
  pthread_mutex_lock(&p->lock);
  b->held = false;
  pthread_mutex_unlock(&p->lock);
}

bool cuda_result_pool_hand_out(cuda_result_pool *p, cuda_result_block *b, uint32_t arrays, uint32_t most,
                               const hs_allocator **allocator) {
  pthread_mutex_lock(&p->lock);
  const bool lends = b->borrowed > 0 || p->borrowed < most;
  if (lends) {
    p->borrowed += b->borrowed == 0;
    b->borrowed += arrays;
    *allocator = &p->allocator;
  }
  pthread_mutex_unlock(&p->lock);
  return lends;
}

static int size_class(uint64_t samples) {
  int bits = 0;
  while (bits < SIZE_CLASSES - 1 && samples >> bits) bits++;
  return bits;
}

static uint64_t thousands_of(uint64_t samples) { return samples / 1000 + 1; }

uint32_t cuda_result_pool_capacity(cuda_result_pool *p, uint64_t samples) {
  pthread_mutex_lock(&p->lock);
  const uint32_t seen = p->features_of_million[size_class(samples)];
  pthread_mutex_unlock(&p->lock);
  const uint64_t capacity = FEATURES_BESIDES + (seen > 0 ? seen : FEATURES_OF_MILLION) * thousands_of(samples) / 1000;
  return capacity < UINT32_MAX / 2 ? ((uint32_t)capacity + 31u) & ~31u : UINT32_MAX / 2;
}

void cuda_result_pool_note(cuda_result_pool *p, uint64_t samples, uint32_t features) {
  const uint64_t wanted = (uint64_t)features + features / 4, thousands = thousands_of(samples);
  const uint64_t of_million = (wanted * 1000 + thousands - 1) / thousands;
  pthread_mutex_lock(&p->lock);
  uint32_t *seen = &p->features_of_million[size_class(samples)];
  if (of_million > *seen) *seen = of_million < UINT32_MAX ? (uint32_t)of_million : UINT32_MAX;
  pthread_mutex_unlock(&p->lock);
}

uint64_t cuda_result_pool_bytes(cuda_result_pool *p) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&p->lock);
  for (const cuda_result_block *b = p->blocks; b; b = b->next) bytes += b->bytes;
  pthread_mutex_unlock(&p->lock);
  return bytes;
}
