/*
 * State of a run: which pair may be taken, whether a phase is over, which pairs are done. The callers of all functions
 * hold the run's lock. See pair_run.h.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/pairs/pair_run.h"

enum { RECORDS_A_WAKE = 16 };

void pair_run_fail(hs_pairs *run, hs_status status, const char *message) {
  if (run->failure == HS_OK) {
    run->failure = status;
    hs_message_set(run->message, sizeof run->message, "%s", message);
  }
  pthread_cond_broadcast(&run->work);
  pthread_cond_broadcast(&run->matching);
  pthread_cond_broadcast(&run->progress);
  pthread_cond_broadcast(&run->ready);
}

void pair_run_wake(hs_pairs *run) {
  if (run->device_count > 0) pthread_cond_broadcast(&run->matching);
  if (run->workers_match) pthread_cond_broadcast(&run->work);
}

/* Wakes one worker for every RECORDS_A_WAKE records: each takes several, and a wake-up costs as much as verifying an
   unrelated pair. */
void pair_run_wake_verifiers(hs_pairs *run) {
  const size_t wanted = (run->matched_count + RECORDS_A_WAKE - 1) / RECORDS_A_WAKE;
  for (size_t i = 0; i < wanted && i < (size_t)run->waiting_workers; i++) pthread_cond_signal(&run->work);
}

void pair_run_put_matched(hs_pairs *run, pair_record *record) {
  record->next = NULL;
  if (run->matched)
    run->last_matched->next = record;
  else
    run->matched = record;
  run->last_matched = record;
  run->matched_count++;
  run->held_bytes += record->bytes;
}

pair_record *pair_run_take_matched(hs_pairs *run) {
  pair_record *record = run->matched;
  if (!record) return NULL;
  /* the queue or the memory for results was full, so the devices' threads may be waiting */
  const bool was_full = run->matched_count == PAIRS_MATCHED_MAX || run->held_bytes > run->held_budget;
  run->matched = record->next;
  run->matched_count--;
  run->held_bytes -= record->bytes;
  if (was_full) pair_run_wake(run);
  return record;
}

/* True if the pair may be processed now. Results wait for earlier ones; if their memory is full, only pairs near the
   head are processed. */
static bool fits(const hs_pairs *run, size_t index) {
  return run->held_bytes <= run->held_budget || index < run->head + run->lookahead;
}

static bool is_read(const hs_pairs *run, size_t index) {
  const hs_image_pair *pair = &run->pairs[index];
  return run->images[pair->first].state != PAIR_IMAGE_ABSENT && run->images[pair->second].state != PAIR_IMAGE_ABSENT;
}

/* Moves both positions to pairs that are not taken. */
static void skip_taken(hs_pairs *run) {
  const pair_phase *phase = &run->phase;
  while (run->next < phase->count && run->is_done[phase->pairs[run->next]] != PAIR_WAITING) run->next++;
  while (run->ahead < phase->count && run->is_done[run->by_reading[run->ahead]] != PAIR_WAITING) run->ahead++;
}

bool pair_run_next(hs_pairs *run, size_t *index) {
  if (run->next == run->phase.count || run->matched_count >= PAIRS_MATCHED_MAX) return false;
  *index = run->phase.pairs[run->next];
  if (!is_read(run, *index) && run->ahead < run->phase.count) *index = run->by_reading[run->ahead];
  return is_read(run, *index) && fits(run, *index);
}

void pair_run_take(hs_pairs *run, size_t index) {
  run->active++;
  run->is_done[index] = PAIR_TAKEN;
  skip_taken(run);
}

bool pair_run_phase_over(const hs_pairs *run) {
  if (run->active > 0) return false;
  if (run->next == run->phase.count) return true;
  return !fits(run, run->phase.pairs[run->next]) && !run->records[run->head];
}

void pair_run_finish(hs_pairs *run, size_t index, pair_record *record) {
  run->active--;
  run->is_done[index] = PAIR_DONE;
  run->records[index] = record;
  if (record) {
    run->held_bytes += record->bytes;
    run->record_bytes += record->bytes;
    run->record_count++;
  } else {
    pair_run_fail(run, HS_ERR_MEMORY, "no memory for the result of a pair");
  }
  if (index == run->head) pthread_cond_signal(&run->ready);
  if (pair_run_phase_over(run)) pthread_cond_signal(&run->progress);
}

void pair_run_hold(hs_pairs *run) { run->active++; }

void pair_run_release(hs_pairs *run) {
  run->active--;
  if (pair_run_phase_over(run)) pthread_cond_signal(&run->progress);
}

void pair_run_leave(hs_pairs *run, size_t index) {
  run->is_done[index] = PAIR_WAITING;
  pair_run_release(run);
}

/* ------------------------------------------------- records of pairs */

static pair_record *make(const hs_pairs *run, size_t index, size_t extra) {
  pair_record *r = hs_memory_alloc(run->allocator, sizeof *r + extra);
  if (!r) return NULL;
  memset(r, 0, sizeof *r);
  r->bytes = sizeof *r + extra;
  r->result.index = index;
  r->result.images = run->pairs[index];
  r->result.message = "";
  return r;
}

/* The sizes cannot overflow, because match counts are below 2^32. */
pair_record *pair_record_make(const hs_pairs *run, size_t index, size_t match_count, bool has_inliers) {
  const size_t inliers = has_inliers ? match_count : 0;
  pair_record *r = make(run, index, match_count * sizeof *r->matches + inliers);
  if (!r) return NULL;
  r->matches = (hs_match_pair *)(r + 1);
  r->inliers = has_inliers ? (uint8_t *)(r->matches + match_count) : NULL;
  r->result.match_count = match_count;
  r->result.matches = r->matches;
  return r;
}

pair_record *pair_record_failed(const hs_pairs *run, size_t index, hs_status status, const char *message) {
  if (!message || message[0] == '\0') message = hs_status_string(status);
  pair_record *r = make(run, index, strlen(message) + 1);
  if (!r) return NULL;
  r->message = (char *)(r + 1);
  strcpy(r->message, message);
  r->result.message = r->message;
  r->result.status = status;
  return r;
}

void pair_record_free(const hs_pairs *run, pair_record *record) { hs_memory_release(run->allocator, record); }

/* ------------------------------------------------- options of a run, and of one pair */

OPTIONS_END_WITH(hs_pairs_options, context_count);
static const options_kind kind = OPTIONS_KIND(hs_pairs_options, match);
static const hs_pairs_options defaults = {.struct_size = sizeof defaults};

hs_status hs_pairs_options_init_sized(hs_pairs_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

hs_status pairs_adopt_options(const hs_pairs_options *callers, hs_pairs_options *mine,
                              char reason[ADOPT_REASON_BYTES]) {
  *mine = defaults;
  reason[0] = '\0';
  return callers ? options_adopt(mine, callers, kind, reason) : HS_OK;
}

const char *pairs_options_fault(const hs_pairs_options *o) {
  if (o->guided != 0 && o->guided != 1) return "guided: 0 or 1 expected";
  if (o->find_plane != 0 && o->find_plane != 1) return "find_plane: 0 or 1 expected";
  if (o->find_essential != 0 && o->find_essential != 1) return "find_essential: 0 or 1 expected";
  if (o->skip_next_distance != 0 && o->skip_next_distance != 1) return "skip_next_distance: 0 or 1 expected";
  if (o->context_count > HS_PAIRS_CONTEXTS_MAX || (o->context_count > 0 && !o->contexts))
    return "context_count: 0..64 expected, and 0 if contexts is null";
  if (!(o->plane_tolerance >= 0.0) || isinf(o->plane_tolerance)) return "plane_tolerance: 0 or more expected";
  return NULL;
}
