/* Makes guarded planes, patterns and pools for tests of stages. */
#include "tests/support/stage_planes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/schedule/threads.h"
#include "os/os_process.h"
#include "tests/support/extent.h"

enum { GUARD_FLOATS = 16 };
#define GUARD 12345.5f

const char *const stage_variant_names[] = {"sse2", "avx2", "avx512", "neon", NULL};
const int32_t stage_thread_counts[STAGE_THREAD_COUNTS] = {1, 3, 2, 7};

int stage_threads(void) { return extent_is_short() ? 2 : STAGE_THREAD_COUNTS; }

int stage_variants_usable(void) {
  int count = 0;
  for (int v = 0; stage_variant_names[v]; v++) count += cpu_variant_ops(stage_variant_names[v]) != NULL;
  return count;
}

guarded_plane plane_make(int32_t width, int32_t height, size_t stride) {
  guarded_plane p;
  p.block_floats = 2 * GUARD_FLOATS + stride * (size_t)height;
  p.block = os_memory_alloc(sizeof(float) * p.block_floats, 64, false); /* sample 0 begins a cache line */
  assert_non_null(p.block);
  for (size_t i = 0; i < p.block_floats; i++) p.block[i] = GUARD;
  p.view = (plane_view){p.block + GUARD_FLOATS, width, height, stride};
  return p;
}

void plane_free(guarded_plane *plane) {
  os_memory_free(plane->block);
  plane->block = NULL;
}

uint32_t stage_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

void plane_fill(guarded_plane *plane, plane_pattern pattern, uint32_t seed) {
  for (int32_t y = 0; y < plane->view.height; y++)
    for (int32_t x = 0; x < plane->view.width; x++) {
      float v = 0.4375f;
      if (pattern == PATTERN_NOISE) v = (float)stage_random(&seed) / 16777216.0f;
      if (pattern == PATTERN_CHECKERBOARD) v = ((x / 3) ^ (y / 2)) & 1 ? 1.0f : 0.0f;
      if (pattern == PATTERN_RAMP) v = (float)((x * 7 + y * 13) % 251) / 250.0f;
      plane->view.data[(size_t)y * plane->view.stride + (size_t)x] = v;
    }
}

static void check_guard(const guarded_plane *p, size_t at, const char *what) {
  if (p->block[at] != GUARD) fail_msg("%s: wrote %g at float %zu beside the plane", what, (double)p->block[at], at);
}

void plane_check_guards(const guarded_plane *plane, const char *what) {
  const plane_view *v = &plane->view;
  for (size_t i = 0; i < GUARD_FLOATS; i++) {
    check_guard(plane, i, what);
    check_guard(plane, plane->block_floats - 1 - i, what);
  }
  for (int32_t y = 0; y < v->height; y++)
    for (size_t x = (size_t)v->width; x < v->stride; x++)
      check_guard(plane, GUARD_FLOATS + (size_t)y * v->stride + x, what);
}

void plane_check_equal(const guarded_plane *expected, const guarded_plane *got, const char *what) {
  const plane_view *e = &expected->view, *g = &got->view;
  assert_int_equal(e->width, g->width);
  assert_int_equal(e->height, g->height);
  for (int32_t y = 0; y < e->height; y++)
    for (int32_t x = 0; x < e->width; x++) {
      const float *a = e->data + (size_t)y * e->stride + (size_t)x, *b = g->data + (size_t)y * g->stride + (size_t)x;
      if (memcmp(a, b, sizeof *a) != 0)
        fail_msg("%s: %d x %d, sample (%d, %d) is %a, the reference has %a", what, e->width, e->height, x, y,
                 (double)*b, (double)*a);
    }
}

int stage_queues_make(void **state) {
  if (stage_variants_usable() == 0) return -1;
  stage_queue **queues = calloc(STAGE_THREAD_COUNTS, sizeof *queues);
  assert_non_null(queues);
  for (int t = 0; t < STAGE_THREAD_COUNTS; t++) {
    if (stage_thread_counts[t] == 1) continue;
    queues[t] = malloc(queue_bytes(stage_thread_counts[t]));
    assert_non_null(queues[t]);
    assert_true(queue_start(queues[t], stage_thread_counts[t]));
  }
  *state = queues;
  return 0;
}

int stage_queues_free(void **state) {
  stage_queue **queues = *state;
  for (int t = 0; t < STAGE_THREAD_COUNTS; t++) {
    if (queues[t]) queue_stop(queues[t]);
    free(queues[t]);
  }
  free(queues);
  return 0;
}
