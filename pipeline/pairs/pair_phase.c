/*
 * Phases of a run; see pair_phase.h.
 */
#include "pipeline/pairs/pair_phase.h"

/* A phase being filled. */
typedef struct phase_filling {
  const pair_phase_request *request;
  pair_phase *phase;
  uint64_t used[PAIR_SPACES];
} phase_filling;

static void begin(phase_filling *f) {
  f->phase->number++;
  f->phase->count = 0;
  for (int s = 0; s < PAIR_SPACES; s++) f->used[s] = 0;
}

static bool holds(const phase_filling *f, uint32_t image) { return f->phase->marks[image] == f->phase->number; }

static void add(phase_filling *f, uint32_t image) {
  if (holds(f, image)) return;
  for (int s = 0; s < PAIR_SPACES; s++)
    if (f->request->bytes[s]) f->used[s] += f->request->bytes[s][image];
  f->phase->marks[image] = f->phase->number;
}

/* Adds an image if all of them fit a share of the budget then: 1 / parts. */
static bool add_within(phase_filling *f, uint32_t image, uint64_t parts) {
  if (holds(f, image)) return true;
  for (int s = 0; s < PAIR_SPACES; s++)
    if (f->request->bytes[s] && f->used[s] + f->request->bytes[s][image] > f->request->budget[s] / parts) return false;
  add(f, image);
  return true;
}

/* The candidates in order until an image does not fit; returns where that is. */
static size_t fill_in_order(phase_filling *f) {
  const pair_phase_request *r = f->request;
  begin(f);
  for (size_t i = r->begin; i < r->end; i++) {
    if (r->is_done[i]) continue;
    if (f->phase->count == 0) {
      add(f, r->pairs[i].first);
      add(f, r->pairs[i].second);
    }
    if (!add_within(f, r->pairs[i].first, 1) || !add_within(f, r->pairs[i].second, 1)) return i;
    f->phase->pairs[f->phase->count++] = (uint32_t)i;
  }
  return r->end;
}

/* First images up to half of the memory, then their pairs' second images. */
static void fill_in_blocks(phase_filling *f) {
  const pair_phase_request *r = f->request;
  bool is_first = true;
  begin(f);
  for (size_t i = r->begin; i < r->horizon; i++) {
    if (r->is_done[i]) continue;
    if (is_first) {
      add(f, r->pairs[i].first);
      add(f, r->pairs[i].second);
    } else if (!add_within(f, r->pairs[i].first, 2)) {
      break;
    }
    is_first = false;
  }
  for (size_t i = r->begin; i < r->horizon; i++)
    if (!r->is_done[i] && holds(f, r->pairs[i].first)) (void)add_within(f, r->pairs[i].second, 1);
  for (size_t i = r->begin; i < r->horizon; i++)
    if (!r->is_done[i] && holds(f, r->pairs[i].first) && holds(f, r->pairs[i].second))
      f->phase->pairs[f->phase->count++] = (uint32_t)i;
}

void pair_phase_plan(const pair_phase_request *request, pair_phase *phase) {
  phase_filling f = {.request = request, .phase = phase};
  if (fill_in_order(&f) == request->end || request->in_order) return;
  const size_t in_order = phase->count;
  fill_in_blocks(&f);
  /* Lists whose pairs lie near each other need no blocks, and then no result waits for long. */
  if (in_order >= phase->count / 2) (void)fill_in_order(&f);
}
