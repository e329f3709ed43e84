/* Plans the phases of a run. The scheduler's thread plans them and reads their images. See pair_run.h. */
#include "cpu/schedule/float_environment.h"
#include "pipeline/matching/pairs/pair_run.h"

/* State of filling a phase. */
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

/* Adds an image if the images of the phase then use at most 1 / parts of the budget. */
static bool add_within(phase_filling *f, uint32_t image, uint64_t parts) {
  if (holds(f, image)) return true;
  for (int s = 0; s < PAIR_SPACES; s++)
    if (f->request->bytes[s] && f->used[s] + f->request->bytes[s][image] > f->request->budget[s] / parts) return false;
  add(f, image);
  return true;
}

/* Takes candidates in order until an image does not fit. Returns the index of that candidate. */
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

/* Takes first images of pairs up to half of the memory, then second images of their pairs. */
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
  /* if pairs that follow each other share images, blocks gain little; in order, no result waits for long */
  if (in_order >= phase->count / 2) (void)fill_in_order(&f);
}

enum { HORIZON_MIN = 1024, RECORD_GUESS_BYTES = 4096 };

/* Returns the end of the pairs that may be processed out of order, so that the waiting results fit their memory. */
static size_t horizon(const hs_pairs *run) {
  const uint64_t each =
      run->record_count > 0 ? run->record_bytes / run->record_count + 1 : (uint64_t)RECORD_GUESS_BYTES;
  const uint64_t pairs = run->held_budget / each;
  const size_t ahead = pairs < HORIZON_MIN ? HORIZON_MIN : (size_t)pairs;
  return ahead < run->count - run->head ? run->head + ahead : run->count;
}

/* Frees images outside the phase until the images of the phase fit. No pair is active. */
static void free_images(hs_pairs *run) {
  uint64_t used[PAIR_SPACES] = {0};
  for (int kept = 1; kept >= 0; kept--)
    for (uint32_t i = 0; i < run->collection.image_count; i++) {
      const bool wanted = run->phase.marks[i] == run->phase.number;
      bool fits = true;
      if (wanted != (kept == 1) || (!wanted && run->images[i].state == PAIR_IMAGE_ABSENT)) continue;
      for (int s = 0; s < PAIR_SPACES && run->image_bytes[s]; s++)
        fits = fits && used[s] + run->image_bytes[s][i] <= run->image_budget[s];
      if (!wanted && !fits) {
        pair_image_forget(run, i);
        continue;
      }
      for (int s = 0; s < PAIR_SPACES && run->image_bytes[s]; s++) used[s] += run->image_bytes[s][i];
    }
}

/* Orders the phase's pairs by the image of each that is read last. Images are read in the order of the phase's pairs.
 */
static void order_by_reading(hs_pairs *run) {
  const pair_phase *phase = &run->phase;
  uint32_t *const order = run->reading_order, images = 0;
  for (size_t i = 0; i < run->collection.image_count; i++) order[i] = UINT32_MAX;
  for (size_t k = 0; k < phase->count; k++) {
    const hs_image_pair *pair = &run->pairs[phase->pairs[k]];
    if (order[pair->first] == UINT32_MAX) order[pair->first] = images++;
    if (order[pair->second] == UINT32_MAX) order[pair->second] = images++;
  }
  /* a counting sort; starts[n]: where the pairs of the image with number n begin */
  uint32_t *const starts = run->reading_starts;
  for (uint32_t n = 0; n <= images; n++) starts[n] = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t k = 0; k < phase->count; k++) {
      const hs_image_pair *pair = &run->pairs[phase->pairs[k]];
      const uint32_t a = order[pair->first], b = order[pair->second], last = a > b ? a : b;
      if (pass == 0)
        starts[last + 1]++;
      else
        run->by_reading[starts[last]++] = phase->pairs[k];
    }
    for (uint32_t n = 0; pass == 0 && n < images; n++) starts[n + 1] += starts[n];
  }
}

/* Plans the next phase. in_order: the previous phase ended because results wait for the pair at the head. */
static void plan(hs_pairs *run, bool in_order) {
  const pair_phase_request request = {.pairs = run->pairs,
                                      .is_done = run->is_done,
                                      .begin = run->head,
                                      .end = run->count,
                                      .horizon = horizon(run),
                                      .bytes = {run->image_bytes[0], run->image_bytes[1]},
                                      .budget = {run->image_budget[0], run->image_budget[1]},
                                      .in_order = in_order};
  run->next = run->ahead = 0;
  pair_phase_plan(&request, &run->phase);
  order_by_reading(run);
  free_images(run);
}

static bool has_ended(const hs_pairs *run) { return run->is_ending || run->failure != HS_OK; }

/* Reads the images of the phase, in the order of its pairs. The caller holds the lock, which is released during the
 * reading. */
static void read_images(hs_pairs *run) {
  for (size_t k = 0; k < run->phase.count; k++) {
    const hs_image_pair *pair = &run->pairs[run->phase.pairs[k]];
    const uint32_t images[2] = {pair->first, pair->second};
    for (int n = 0; n < 2; n++) {
      if (run->images[images[n]].state != PAIR_IMAGE_ABSENT) continue;
      if (has_ended(run) || pair_run_phase_over(run)) return;
      pthread_mutex_unlock(&run->lock);
      pair_image_read(run, images[n]);
      pthread_mutex_lock(&run->lock);
    }
  }
}

void *pair_scheduler_main(void *argument) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_pairs *run = argument;
  bool in_order = false;
  pthread_mutex_lock(&run->lock);
  while (!has_ended(run)) {
    plan(run, in_order);
    if (run->phase.count == 0) break;
    pair_run_wake(run);
    read_images(run);
    while (!has_ended(run) && !pair_run_phase_over(run)) pthread_cond_wait(&run->progress, &run->lock);
    in_order = run->next < run->phase.count;
  }
  pthread_mutex_unlock(&run->lock);
  return NULL;
}
