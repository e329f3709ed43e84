/* The list of blocks, searched from end to end, because it is short. */
#include "pipeline/device/cuda_result_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda/device/device.h"
#include "pipeline/base/memory.h"

struct cuda_result_pool {
  hs_allocator allocator; /* of the lists that have blocks; user: this pool */
  pthread_mutex_t lock;
  cuda_result_block *blocks;
  int32_t device;
  pid_t process;   /* whose device it is */
  uint32_t owners; /* contexts */
  uint32_t lent;   /* blocks */
};

static void *allocate(size_t bytes, void *user) {
  (void)user;
  return hs_memory_alloc(NULL, bytes);
}

/* The block that a pointer lies in, null when it is no block's. Under the lock. */
static cuda_result_block *block_of(const cuda_result_pool *p, const void *pointer) {
  const uintptr_t at = (uintptr_t)pointer;
  for (cuda_result_block *b = p->blocks; b; b = b->next)
    if (at >= (uintptr_t)b->host && at < (uintptr_t)b->host + b->bytes) return b;
  return NULL;
}

/* Frees every block that is neither held nor lent. Under the lock, on the device. */
static void free_blocks(cuda_result_pool *p) {
  for (cuda_result_block **at = &p->blocks; *at;) {
    cuda_result_block *b = *at;
    if (b->held || b->lent > 0) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    device_free_pinned(b->host);
    hs_memory_release(NULL, b);
  }
}

/* Frees a pool of which nobody has anything any more. */
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
  /* In a forked child the lock may be held by a thread that exists only in the parent, and nothing changes. */
  const bool forked = p->process != getpid();
  if (!forked) pthread_mutex_lock(&p->lock);
  cuda_result_block *b = block_of(p, pointer);
  if (b && !forked && --b->lent == 0) p->lent--;
  const bool last = p->owners == 0 && p->lent == 0;
  if (!forked) pthread_mutex_unlock(&p->lock);
  if (!b) hs_memory_release(NULL, pointer);
  if (b && !forked && last) end_pool(p);
}

cuda_result_pool *cuda_result_pool_create(int32_t device) {
  cuda_result_pool *p = hs_memory_alloc(NULL, sizeof *p);
  if (!p) return NULL;
  *p = (cuda_result_pool){.allocator = {allocate, release, p}, .device = device, .process = getpid(), .owners = 1};
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
  const bool last = p->owners == 0 && p->lent == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) end_pool(p);
}

/* The smallest block that will do, null: none does. Under the lock. */
static cuda_result_block *find_free(const cuda_result_pool *p, size_t bytes) {
  cuda_result_block *found = NULL;
  for (cuda_result_block *b = p->blocks; b; b = b->next)
    if (!b->held && b->lent == 0 && b->bytes >= bytes && (!found || b->bytes < found->bytes)) found = b;
  return found;
}

/* A new block in the place of the free ones, which were too small. Under the lock. */
static stage_status make_block(cuda_result_pool *p, size_t bytes, cuda_result_block **made) {
  free_blocks(p);
  cuda_result_block *b = hs_memory_alloc(NULL, sizeof *b);
  if (!b) return STAGE_OUT_OF_MEMORY;
  void *host = NULL, *device = NULL;
  const stage_status st = device_alloc_pinned(&host, &device, bytes);
  if (st != STAGE_OK) {
    hs_memory_release(NULL, b);
    return st;
  }
  *b = (cuda_result_block){.next = p->blocks, .host = host, .device = device, .bytes = bytes};
  p->blocks = *made = b;
  return STAGE_OK;
}

stage_status cuda_result_pool_hold(cuda_result_pool *p, size_t bytes, cuda_result_block **block) {
  stage_status st = STAGE_OK;
  pthread_mutex_lock(&p->lock);
  cuda_result_block *b = *block;
  if (!b || b->lent > 0 || b->bytes < bytes) {
    if (b) b->held = false;
    b = find_free(p, bytes);
    if (!b) st = make_block(p, bytes, &b);
    if (b) b->held = true;
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

bool cuda_result_pool_lend(cuda_result_pool *p, cuda_result_block *b, uint32_t arrays, const hs_allocator **allocator) {
  pthread_mutex_lock(&p->lock);
  const bool lends = b->lent > 0 || p->lent < RESULT_BLOCKS_LENT;
  if (lends) {
    p->lent += b->lent == 0;
    b->lent += arrays;
    *allocator = &p->allocator;
  }
  pthread_mutex_unlock(&p->lock);
  return lends;
}

uint64_t cuda_result_pool_bytes(cuda_result_pool *p) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&p->lock);
  for (const cuda_result_block *b = p->blocks; b; b = b->next) bytes += b->bytes;
  pthread_mutex_unlock(&p->lock);
  return bytes;
}
