/*
 * What this machine's cores can do: single-precision multiply-adds, and copying within the second-level cache, the
 * third-level cache and main memory, on one thread and on all. The floors in bench/NOTES.md come from these rates.
 *
 * usage: bench_machine_rates [THREADS]
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/schedule/usable_threads.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

enum { CHAINS = 12, THREADS_MAX = 256, TRIES = 5 };

/* One measurement on one thread; returns the amount of work done. */
typedef double (*rate_task)(void *state);

typedef struct rate_worker {
  pthread_t thread;
  pthread_barrier_t *start;
  rate_task task;
  void *state;
  double work, begin, end;
} rate_worker;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static const long fma_loops = 4000000;

/* Twelve chains hide the latency of the multiply-add. The result is returned so that nothing is left out. */
static double sum_of(const float *values, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += (double)values[i];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double run_fma_avx512(void *sink) {
  const __m512 factor = _mm512_set1_ps(0.999999f), term = _mm512_set1_ps(1e-7f);
  __m512 chain[CHAINS];
  float values[16];
  for (int i = 0; i < CHAINS; i++) chain[i] = _mm512_set1_ps((float)i + 1.0f);
  for (long loop = 0; loop < fma_loops; loop++) {
#  pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) chain[i] = _mm512_fmadd_ps(chain[i], factor, term);
  }
  for (int i = 1; i < CHAINS; i++) chain[0] = _mm512_add_ps(chain[0], chain[i]);
  _mm512_storeu_ps(values, chain[0]);
  *(double *)sink = sum_of(values, 16);
  return (double)fma_loops * CHAINS * 32.0;
}

__attribute__((target("avx2,fma"))) static double run_fma_avx2(void *sink) {
  const __m256 factor = _mm256_set1_ps(0.999999f), term = _mm256_set1_ps(1e-7f);
  __m256 chain[CHAINS];
  float values[8];
  for (int i = 0; i < CHAINS; i++) chain[i] = _mm256_set1_ps((float)i + 1.0f);
  for (long loop = 0; loop < fma_loops; loop++) {
#  pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) chain[i] = _mm256_fmadd_ps(chain[i], factor, term);
  }
  for (int i = 1; i < CHAINS; i++) chain[0] = _mm256_add_ps(chain[0], chain[i]);
  _mm256_storeu_ps(values, chain[0]);
  *(double *)sink = sum_of(values, 8);
  return (double)fma_loops * CHAINS * 16.0;
}
#endif

/* Products and sums, in vectors of four as every 64-bit machine has them. */
static double run_multiply_add(void *sink) {
  float values[4 * CHAINS];
  for (int i = 0; i < 4 * CHAINS; i++) values[i] = (float)i + 1.0f;
  for (long loop = 0; loop < fma_loops; loop++)
    for (int i = 0; i < 4 * CHAINS; i++) values[i] = values[i] * 0.999999f + 1e-7f;
  *(double *)sink = sum_of(values, 4 * CHAINS);
  return (double)fma_loops * CHAINS * 8.0;
}

typedef struct copy_state {
  char *from, *to;
  size_t bytes, times;
} copy_state;

static double run_copy(void *state) {
  const copy_state *copy = state;
  for (size_t i = 0; i < copy->times; i++) {
    memcpy(copy->to, copy->from, copy->bytes);
    copy->from[i % copy->bytes] ^= 1; /* no two copies are the same, so none can be left out */
  }
  return 2.0 * (double)copy->bytes * (double)copy->times;
}

static void *run_worker(void *argument) {
  rate_worker *worker = argument;
  pthread_barrier_wait(worker->start);
  worker->begin = now_ms();
  worker->work = worker->task(worker->state);
  worker->end = now_ms();
  return NULL;
}

/* Work a nanosecond of all threads together, the best of some tries. states: one for each thread, size bytes apart. */
static double measure(rate_task task, void *states, size_t size, int threads) {
  static rate_worker workers[THREADS_MAX];
  double best = 0.0;
  for (int attempt = 0; attempt < TRIES; attempt++) {
    pthread_barrier_t start;
    double work = 0.0, begin = HUGE_VAL, end = 0.0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
      workers[i] = (rate_worker){.start = &start, .task = task, .state = (char *)states + (size_t)i * size};
      if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
        exit(1); /* the others wait at the barrier */
    }
    for (int i = 0; i < threads; i++) {
      pthread_join(workers[i].thread, NULL);
      work += workers[i].work;
      begin = fmin(begin, workers[i].begin);
      end = fmax(end, workers[i].end);
    }
    pthread_barrier_destroy(&start);
    best = fmax(best, work / (end - begin) * 1e-6);
  }
  return best;
}

static void print_multiply_adds(int threads) {
  static double sinks[THREADS_MAX];
  rate_task task = run_multiply_add;
  const char *name = "product and sum, 4 floats";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    task = run_fma_avx512;
    name = "multiply-add, 16 floats";
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    task = run_fma_avx2;
    name = "multiply-add, 8 floats";
  }
#endif
  printf("| %s | %d | %.1f GFLOP/s |\n", name, threads, measure(task, sinks, sizeof sinks[0], threads));
}

/* bytes: of the two buffers of a thread together. */
static void print_copy(const char *name, size_t bytes, int threads) {
  static copy_state states[THREADS_MAX];
  const size_t half = bytes / 2;
  for (int i = 0; i < threads; i++) {
    states[i] =
        (copy_state){.from = malloc(half), .to = malloc(half), .bytes = half, .times = ((size_t)1 << 29) / half};
    if (!states[i].from || !states[i].to) exit(1);
    memset(states[i].from, 1, half);
    memset(states[i].to, 2, half);
  }
  printf("| copy within %s, read and written | %d | %.1f GB/s |\n", name, threads,
         measure(run_copy, states, sizeof states[0], threads));
  for (int i = 0; i < threads; i++) {
    free(states[i].from);
    free(states[i].to);
  }
}

int main(int argc, char **argv) {
  const int given = argc > 1 ? atoi(argv[1]) : cpu_usable_threads();
  const int most = given < 1 ? 1 : given > THREADS_MAX ? THREADS_MAX : given;
  printf("| rate | threads | all threads together |\n|---|--:|--:|\n");
  for (int threads = 1; threads <= most; threads += most > 1 ? most - 1 : 1) {
    print_multiply_adds(threads);
    print_copy("L2 (256 KiB)", (size_t)256 << 10, threads);
    print_copy("L3 (8 MiB)", (size_t)8 << 20, threads);
    print_copy("memory (512 MiB)", (size_t)512 << 20, threads);
  }
  return 0;
}
