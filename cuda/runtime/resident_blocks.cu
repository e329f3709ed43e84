/* What the driver said of kernels' resident blocks. Asking takes some 10 us, five times a frame. */
#include <pthread.h>

#include "cuda/runtime/launch.cuh"

typedef struct resident_answer {
  const void *kernel;
  size_t dynamic_shared_bytes;
  int device, threads;
  unsigned blocks;
} resident_answer;

enum { ANSWERS_KEPT = 128 }; /* what comes later is asked every time */

static resident_answer answers[ANSWERS_KEPT];
static int answer_count;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_question(const resident_answer *a, const resident_answer *b) {
  return a->kernel == b->kernel && a->device == b->device && a->threads == b->threads &&
         a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* 0: not known yet. */
static unsigned find_answer(const resident_answer *question) {
  unsigned blocks = 0;
  pthread_mutex_lock(&answers_lock);
  for (int i = 0; i < answer_count && blocks == 0; i++)
    if (same_question(&answers[i], question)) blocks = answers[i].blocks;
  pthread_mutex_unlock(&answers_lock);
  return blocks;
}

/* Two threads may keep the same one. */
static void keep_answer(const resident_answer *answer) {
  pthread_mutex_lock(&answers_lock);
  if (answer_count < ANSWERS_KEPT) answers[answer_count++] = *answer;
  pthread_mutex_unlock(&answers_lock);
}

unsigned launch_resident_blocks(const void *kernel, int threads, size_t dynamic_shared_bytes) {
  int processors = 0, blocks = 0;
  resident_answer a = {kernel, dynamic_shared_bytes, 0, threads, 0};
  if (cudaGetDevice(&a.device) != cudaSuccess) return 1;
  const unsigned known = find_answer(&a);
  if (known > 0) return known;
  if (cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, a.device) != cudaSuccess) return 1;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared_bytes) != cudaSuccess)
    return 1;
  if (processors * blocks <= 0) return 1;
  a.blocks = (unsigned)(processors * blocks);
  keep_answer(&a);
  return a.blocks;
}
