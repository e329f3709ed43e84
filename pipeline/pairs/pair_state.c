/*
 * How a run goes on: which pair may be taken, when a phase is over, what is done. See pair_run.h; all under its lock.
 */
#include "pipeline/base/message.h"
#include "pipeline/pairs/pair_run.h"

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
  if (run->device)
    pthread_cond_signal(&run->matching);
  else
    pthread_cond_broadcast(&run->work);
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
  pthread_cond_signal(&run->work);
}

pair_record *pair_run_take_matched(hs_pairs *run) {
  pair_record *record = run->matched;
  if (!record) return NULL;
  /* The device's thread may wait because as many as may be are matched, or as much as may be is held. */
  const bool was_full = run->matched_count == PAIRS_MATCHED_MOST || run->held_bytes > run->held_budget;
  run->matched = record->next;
  run->matched_count--;
  run->held_bytes -= record->bytes;
  if (was_full) pthread_cond_signal(&run->matching);
  return record;
}

/* Results wait for those before them; beyond the memory that is for them only pairs near the head go on. */
static bool has_room(const hs_pairs *run, size_t index) {
  return run->held_bytes <= run->held_budget || index < run->head + run->lookahead;
}

bool pair_run_may_take(const hs_pairs *run) {
  if (run->next == run->phase.count || run->matched_count >= PAIRS_MATCHED_MOST) return false;
  const size_t index = run->phase.pairs[run->next];
  const hs_image_pair *pair = &run->pairs[index];
  return run->images[pair->first].state != PAIR_IMAGE_ABSENT && run->images[pair->second].state != PAIR_IMAGE_ABSENT &&
         has_room(run, index);
}

bool pair_run_phase_over(const hs_pairs *run) {
  if (run->active > 0) return false;
  if (run->next == run->phase.count) return true;
  return !has_room(run, run->phase.pairs[run->next]) && !run->records[run->head];
}

void pair_run_finish(hs_pairs *run, size_t index, pair_record *record) {
  run->active--;
  run->is_done[index] = 1;
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
