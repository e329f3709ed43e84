/* Many pairs on a context's CUDA device. */
#include "pipeline/device/cuda_engine.h"

#include <string.h>

#include "cuda/match/match_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/device/cuda_state.h"

enum { PINNED_ALIGNMENT = 256 };

struct device_descriptors {
  cuda_match_image view;
};

/* A batch of pairs. Pinned memory: tasks, counts and matches. Device memory: tasks, keys and nearest neighbours. */
typedef struct pair_batch {
  cuda_event finished;
  unsigned char *slab, *pinned, *d_pinned;
  uint32_t count;
  const match_pair *results[PAIRS_PER_BATCH]; /* host addresses */
} pair_batch;

struct pair_matcher {
  int32_t device;
  const hs_allocator *allocator;
  cuda_stream images, batches;
  uint64_t batch_bytes;
  pair_batch each[PAIR_BATCHES];
};

/* ------------------------------------------------------------------ sizes */

enum {
  TASKS_BYTES = PAIRS_PER_BATCH * sizeof(cuda_match_task),
  COUNTS_BYTES = PAIRS_PER_BATCH * sizeof(uint32_t),
  LAYOUT_SLACK = 6 * PINNED_ALIGNMENT /* for the alignment of a task's parts */
};

uint64_t cuda_pairs_image_bytes(size_t count) {
  cuda_match_image unused;
  return count <= CUDA_MATCH_COUNT_MAX ? cuda_match_image_layout((uint32_t)count, NULL, &unused) : UINT64_MAX / 4;
}

/* 32 bytes per feature for keys and nearest neighbours; the matches take less on the host. */
uint64_t cuda_pairs_pair_bytes(size_t first_count, size_t second_count) {
  return ((uint64_t)first_count + second_count) * 2 * sizeof(match_nearest) + LAYOUT_SLACK;
}

uint64_t cuda_pairs_free_bytes(const hs_context *c, uint64_t sharing) {
  size_t free_bytes = 0, all;
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK) return 0;
  if (device_memory(&free_bytes, &all) != STAGE_OK) free_bytes = 0;
  device_leave(previous);
  const uint64_t share = free_bytes / 2 / sharing, tasks = (uint64_t)PAIR_BATCHES * TASKS_BYTES;
  return share > tasks ? share - tasks : 0;
}

/* ------------------------------------------------------------------ making and ending */

stage_status cuda_pairs_push(const pair_matcher *p, int32_t *previous) { return device_enter(p->device, previous); }

void cuda_pairs_pop(int32_t previous) { device_leave(previous); }

const char *cuda_pairs_error_text(void) { return device_error_text(); }

static stage_status make_batch(const pair_matcher *p, pair_batch *b) {
  void *slab = NULL, *pinned = NULL, *d_pinned = NULL;
  stage_status st = device_event_create(&b->finished, false);
  if (st == STAGE_OK) st = device_alloc(&slab, (size_t)p->batch_bytes + TASKS_BYTES);
  b->slab = slab;
  /* A pair has at most as many matches as its first image has features: 16 bytes each, while the slab has 32 per
     feature. So half of batch_bytes suffices. */
  if (st == STAGE_OK)
    st = device_alloc_pinned(&pinned, &d_pinned, TASKS_BYTES + COUNTS_BYTES + (size_t)p->batch_bytes / 2);
  b->pinned = pinned;
  b->d_pinned = d_pinned;
  return st;
}

static void free_all(pair_matcher *p) {
  for (int i = 0; i < PAIR_BATCHES; i++) {
    device_free(p->each[i].slab);
    device_free_pinned(p->each[i].pinned);
    if (p->each[i].finished) device_event_destroy(p->each[i].finished);
  }
  if (p->images) device_stream_destroy(p->images);
  if (p->batches) device_stream_destroy(p->batches);
}

hs_status cuda_pairs_open(hs_context *c, uint64_t batch_bytes, pair_matcher **pairs, char *message,
                          size_t message_bytes) {
  int32_t previous;
  pair_matcher *p = hs_memory_alloc(c->options.allocator, sizeof *p);
  if (!p) return HS_ERR_MEMORY;
  memset(p, 0, sizeof *p);
  p->device = cuda_of(c)->device;
  p->allocator = c->options.allocator;
  p->batch_bytes = batch_bytes;
  stage_status st = device_enter(p->device, &previous);
  const bool entered = st == STAGE_OK;
  if (st == STAGE_OK) st = device_stream_create(&p->images);
  if (st == STAGE_OK) st = device_stream_create(&p->batches);
  for (int i = 0; i < PAIR_BATCHES && st == STAGE_OK; i++) st = make_batch(p, &p->each[i]);
  if (st != STAGE_OK) {
    hs_message_set(message, message_bytes, "%s", device_error_text());
    if (entered) free_all(p);
    hs_memory_release(p->allocator, p);
    p = NULL;
  }
  if (entered) device_leave(previous);
  *pairs = p;
  return st == STAGE_OK ? HS_OK : (st == STAGE_OUT_OF_MEMORY ? HS_ERR_MEMORY : HS_ERR_DEVICE);
}

void cuda_pairs_close(pair_matcher *p) {
  int32_t previous;
  if (!p) return;
  if (device_enter(p->device, &previous) == STAGE_OK) {
    (void)device_stream_wait(p->batches); /* batches may still be running */
    free_all(p);
    device_leave(previous);
  }
  hs_memory_release(p->allocator, p);
}

/* ------------------------------------------------------------------ images */

stage_status cuda_pairs_upload(pair_matcher *p, const void *descriptors, uint32_t count, device_descriptors **image) {
  void *memory = NULL;
  device_descriptors *i = hs_memory_alloc(p->allocator, sizeof *i);
  *image = NULL;
  if (!i) return STAGE_OUT_OF_MEMORY;
  const size_t bytes = cuda_match_image_layout(count, NULL, &i->view);
  stage_status st = bytes > 0 ? device_alloc(&memory, bytes) : STAGE_OK;
  if (st == STAGE_OK) {
    (void)cuda_match_image_layout(count, memory, &i->view);
    if (count > 0) st = device_copy_to(i->view.descriptors, descriptors, (size_t)count * MATCH_LENGTH, p->images);
    if (st == STAGE_OK) st = cuda_match_image_launch(&i->view, p->images);
    const stage_status waited = device_stream_wait(p->images);
    if (st == STAGE_OK) st = waited;
  }
  if (st == STAGE_OK) {
    *image = i;
    return st;
  }
  device_free(memory);
  hs_memory_release(p->allocator, i);
  return st;
}

void cuda_pairs_free(pair_matcher *p, device_descriptors *image) {
  if (!image) return;
  device_free(image->view.descriptors);
  hs_memory_release(p->allocator, image);
}

/* ------------------------------------------------------------------ batches */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Lays out the tasks of a batch: on the device, all keys before all nearest neighbours; on the host, the matches. */
static void lay_out(pair_batch *b, const descriptor_pair *images, bool mutual, cuda_match_many_args *args) {
  cuda_match_task *tasks = (cuda_match_task *)(void *)b->pinned;
  unsigned char *const keys = b->slab + TASKS_BYTES;
  size_t key_bytes = 0, nearest_bytes = 0, matches = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    tasks[i] = (cuda_match_task){.first = images[i].first->view, .second = images[i].second->view};
    cuda_match_task_layout(&tasks[i], mutual, NULL, &key_bytes, NULL, &nearest_bytes);
    args->rows_most = larger(args->rows_most, tasks[i].first.count);
    args->columns_most = larger(args->columns_most, tasks[i].second.count);
  }
  unsigned char *const nearest = keys + key_bytes;
  key_bytes = nearest_bytes = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    const size_t at = TASKS_BYTES + COUNTS_BYTES + matches;
    cuda_match_task_layout(&tasks[i], mutual, keys, &key_bytes, nearest, &nearest_bytes);
    tasks[i].pairs = (match_pair *)(void *)(b->d_pinned + at);
    tasks[i].pair_count = (uint32_t *)(void *)(b->d_pinned + TASKS_BYTES) + i;
    b->results[i] = (const match_pair *)(const void *)(b->pinned + at);
    matches += tasks[i].first.count * sizeof(match_pair);
  }
  args->tasks = (const cuda_match_task *)(const void *)b->slab;
  args->count = b->count;
  args->keys = keys;
  args->key_bytes = key_bytes;
}

stage_status cuda_pairs_begin(pair_matcher *p, int32_t batch, const descriptor_pair *images, uint32_t count,
                              const match_limits *limits, bool mutual) {
  pair_batch *b = &p->each[batch];
  cuda_match_many_args args = {.limits = *limits, .mutual = mutual};
  b->count = count;
  lay_out(b, images, mutual, &args);
  stage_status st = device_copy_to(b->slab, b->pinned, count * sizeof(cuda_match_task), p->batches);
  if (st == STAGE_OK) st = cuda_match_many_launch(&args, p->batches);
  return st == STAGE_OK ? device_event_record(b->finished, p->batches) : st;
}

stage_status cuda_pairs_finish(pair_matcher *p, int32_t batch) { return device_event_finish(p->each[batch].finished); }

const match_pair *cuda_pairs_result(const pair_matcher *p, int32_t batch, uint32_t pair, uint32_t *count) {
  const pair_batch *b = &p->each[batch];
  *count = ((const uint32_t *)(const void *)(b->pinned + TASKS_BYTES))[pair];
  return b->results[pair];
}
