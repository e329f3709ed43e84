/*
 * Public functions of runs over many pairs: checks, threads, results in order.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/geometry/models.h"
#include "pipeline/matching/match_call.h"
#include "pipeline/matching/pairs/pair_run.h"

enum { CONDITIONS = 4 };

/* ------------------------------------------------------------------ checks */

static hs_status check_options(hs_context *c, const hs_pairs_options *callers, hs_pairs *run) {
  char reason[PAIR_MESSAGE_BYTES] = "";
  hs_pairs_options *o = &run->options;
  if (pairs_adopt_options(callers, o, reason) != HS_OK) return CONTEXT_FAIL(c, HS_ERR_OPTION, "%s", reason);
  hs_status status = match_check_options(o->match, &run->match, reason, sizeof reason);
  if (status != HS_OK) return CONTEXT_FAIL(c, status, "%s", reason);
  if (run->match.guide != HS_GUIDE_NONE)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "match options.guide is %d, expected 0: each pair has its own guide",
                        (int)run->match.guide);
  const char *fault = pairs_options_fault(o);
  if (fault) return CONTEXT_FAIL(c, HS_ERR_OPTION, "pairs options.%s", fault);
  if (!o->verify) {
    if (o->guided != 0 || o->find_plane != 0 || o->find_essential != 0)
      return CONTEXT_FAIL(c, HS_ERR_OPTION, "pairs options.%s is 1 without verify",
                          o->guided       ? "guided"
                          : o->find_plane ? "find_plane"
                                          : "find_essential");
    return HS_OK;
  }
  /* a verification without points checks the options; cameras are set later for each pair */
  hs_geometry none;
  status = geometry_adopt_options(o->verify, &run->verify);
  run->verify.allocator = NULL;
  run->verify.message = reason;
  run->verify.message_bytes = sizeof reason;
  run->verify.camera_a = run->verify.camera_b = (hs_camera){1.0, 1.0, 0.0, 0.0};
  if (status == HS_OK) status = hs_verify_points(NULL, NULL, 0, &run->verify, NULL, &none);
  run->verify.message = NULL;
  run->verify.message_bytes = 0;
  if (status != HS_OK)
    return CONTEXT_FAIL(c, status, "verify options.%s", reason[0] != '\0' ? reason : "struct_size is not set");
  o->verify = &run->verify;
  return HS_OK;
}

/* Takes the contexts, each of which must be in no other run. */
static hs_status take_contexts(hs_context *c, hs_pairs *run) {
  const hs_pairs_options *const o = &run->options;
  run->contexts[run->context_count++] = c;
  for (size_t i = 0; i < o->context_count; i++) {
    hs_context *const other = o->contexts[i];
    bool is_repeated = false;
    for (int32_t k = 0; k < run->context_count; k++) is_repeated = is_repeated || run->contexts[k] == other;
    if (!other || is_repeated)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "pairs options.contexts[%d] is %s", (int)i,
                          other ? "in the run already" : "null");
    if (other->pairs)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "pairs options.contexts[%d] is in a run over pairs: end it first",
                          (int)i);
    run->contexts[run->context_count++] = other;
  }
  return HS_OK;
}

static bool camera_is_usable(const hs_camera *c) {
  return isfinite(c->fx) && isfinite(c->fy) && isfinite(c->cx) && isfinite(c->cy) &&
         (c->fx == 0.0 || (c->fx > 0.0 && c->fy > 0.0));
}

static hs_status check_collection(hs_context *c, const hs_collection *collection, const hs_image_pair *pairs,
                                  size_t count) {
  if (!collection || (!collection->images && collection->image_count > 0) || (!pairs && count > 0))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "the collection, its images or the pairs are null");
  if (count >= UINT32_MAX || collection->image_count > UINT32_MAX)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu pairs of %zu images, expected fewer than 2^32 - 1", count,
                        collection->image_count);
  if (!RESERVED_IS_CLEAR(collection->reserved))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "collection.reserved is set: start with {0}, or use a later library");
  for (size_t i = 0; i < collection->image_count; i++) {
    const hs_collection_image *image = &collection->images[i];
    if (!image->features && !collection->read)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image %zu has no features, and the collection has no function read", i);
    if (!RESERVED_IS_CLEAR(image->reserved))
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image %zu: reserved is set: start with {0}, or use a later library", i);
    if (!camera_is_usable(&image->camera))
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image %zu: a camera with focal lengths above 0 expected, or all 0", i);
  }
  for (size_t i = 0; i < count; i++) {
    if (pairs[i].first >= collection->image_count || pairs[i].second >= collection->image_count)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "pair %zu refers to images %lu and %lu, but there are %zu images", i,
                          (unsigned long)pairs[i].first, (unsigned long)pairs[i].second, collection->image_count);
    if (pairs[i].first == pairs[i].second)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "pair %zu consists of image %lu and itself", i,
                          (unsigned long)pairs[i].first);
  }
  return HS_OK;
}

/* ------------------------------------------------------------------ start and end */

/* Allocates cleared memory, because free_lists reads all lists even if a later allocation failed. */
static void *cleared_list(const hs_pairs *run, size_t entries, size_t entry_bytes) {
  void *list = hs_memory_alloc(run->allocator, entries * entry_bytes);
  return list ? memset(list, 0, entries * entry_bytes) : NULL;
}

static bool make_lists(hs_pairs *run) {
  const size_t images = run->collection.image_count, count = run->count, devices = (size_t)run->device_count;
  run->images = cleared_list(run, images + 1, sizeof *run->images);
  run->copies = devices > 0 ? cleared_list(run, images + 1, devices * sizeof *run->copies) : NULL;
  for (size_t i = 0; run->images && run->copies && i < images; i++)
    run->images[i].on_device = run->copies + i * devices;
  run->phase.marks = cleared_list(run, images + 1, sizeof *run->phase.marks);
  run->phase.pairs = hs_memory_alloc(run->allocator, (count + 1) * sizeof *run->phase.pairs);
  run->by_reading = hs_memory_alloc(run->allocator, (count + 1) * sizeof *run->by_reading);
  run->reading_order = hs_memory_alloc(run->allocator, (images + 1) * sizeof *run->reading_order);
  run->reading_starts = hs_memory_alloc(run->allocator, (images + 1) * sizeof *run->reading_starts);
  run->is_done = cleared_list(run, count + 1, 1);
  run->records = cleared_list(run, count + 1, sizeof *run->records);
  return run->images && (run->copies || devices == 0) && run->phase.marks && run->phase.pairs && run->by_reading &&
         run->reading_order && run->reading_starts && run->is_done && run->records;
}

static void free_lists(hs_pairs *run) {
  for (size_t i = 0; run->records && i < run->count; i++) pair_record_free(run, run->records[i]);
  pair_record_free(run, run->returned);
  for (size_t i = run->given_first; i < run->given_count; i++) pair_record_free(run, run->given[i]);
  for (uint32_t i = 0; run->images && i < run->collection.image_count; i++) pair_image_forget(run, i);
  hs_memory_release(run->allocator, run->images);
  hs_memory_release(run->allocator, run->copies);
  hs_memory_release(run->allocator, run->devices);
  hs_memory_release(run->allocator, run->phase.marks);
  hs_memory_release(run->allocator, run->phase.pairs);
  hs_memory_release(run->allocator, run->by_reading);
  hs_memory_release(run->allocator, run->reading_order);
  hs_memory_release(run->allocator, run->reading_starts);
  hs_memory_release(run->allocator, run->is_done);
  hs_memory_release(run->allocator, run->records);
  for (int s = 0; s < PAIR_SPACES; s++) hs_memory_release(run->allocator, run->image_bytes[s]);
}

static bool make_locks(hs_pairs *run) {
  if (pthread_mutex_init(&run->lock, NULL) != 0) return false;
  int made = 0;
  pthread_cond_t *const all[CONDITIONS] = {&run->work, &run->matching, &run->progress, &run->ready};
  while (made < CONDITIONS && os_condition_make(all[made])) made++;
  for (int i = 0; made < CONDITIONS && i < made; i++) pthread_cond_destroy(all[i]);
  if (made < CONDITIONS) pthread_mutex_destroy(&run->lock);
  return made == CONDITIONS;
}

/* Marks pairs that cannot fit the memory as done, with a failure. */
static bool refuse_large(hs_pairs *run) {
  static const char text[] = "the features of the two images exceed max_memory_bytes";
  for (size_t i = 0; i < run->count; i++) {
    if (run->worker_count > 0 && pair_memory_fits(run, &run->pairs[i])) continue;
    run->records[i] = pair_record_failed(run, i, HS_ERR_LIMIT, text);
    if (!run->records[i]) return false;
    run->is_done[i] = PAIR_DONE;
    run->held_bytes += run->records[i]->bytes;
  }
  return true;
}

/* Starts the threads with all signals blocked, as for other workers. */
static bool start_threads(hs_pairs *run) {
  os_signal_mask saved;
  const int32_t wanted = run->worker_count;
  run->worker_count = 0;
  if (wanted == 0) return true;
  if (!os_signals_block(&saved)) return false;
  run->has_scheduler = os_thread_start(&run->scheduler, pair_scheduler_main, run);
  bool has_devices = true;
  for (int32_t i = 0; i < run->device_count; i++) {
    pair_device *d = &run->devices[i];
    if (d->is_lost) continue; /* left out by pair_memory_plan */
    d->has_thread = os_thread_start(&d->thread, pair_device_main, d);
    has_devices = has_devices && d->has_thread;
  }
  while (run->has_scheduler && run->worker_count < wanted) {
    pair_worker *w = &run->workers[run->worker_count];
    *w = (pair_worker){.run = run,
                       .matcher = {.ops = &run->ops, .allocator = run->allocator},
                       .scratch = {.allocator = run->allocator}};
    if (!os_thread_start(&w->thread, pair_worker_main, w)) break;
    run->worker_count++;
  }
  os_signals_restore(&saved);
  return run->has_scheduler && run->worker_count == wanted && has_devices;
}

static void stop_threads(hs_pairs *run) {
  pthread_mutex_lock(&run->lock);
  run->is_ending = true;
  pthread_cond_broadcast(&run->work);
  pthread_cond_broadcast(&run->matching);
  pthread_cond_broadcast(&run->progress);
  pthread_mutex_unlock(&run->lock);
  for (int32_t i = 0; i < run->device_count; i++) {
    if (run->devices[i].has_thread) pthread_join(run->devices[i].thread, NULL);
    run->devices[i].has_thread = false;
  }
  if (run->has_scheduler) pthread_join(run->scheduler, NULL);
  run->has_scheduler = false;
  for (int32_t i = 0; i < run->worker_count; i++) {
    pthread_join(run->workers[i].thread, NULL);
    match_one_thread_free(&run->workers[i].matcher);
    verify_scratch_release(&run->workers[i].scratch);
  }
  run->worker_count = 0;
  for (pair_record *r = pair_run_take_matched(run); r; r = pair_run_take_matched(run)) pair_record_free(run, r);
}

/* Sets the run to which the contexts belong. */
static void set_run(const hs_pairs *run, hs_pairs *of_contexts) {
  for (int32_t i = 0; i < run->context_count; i++) run->contexts[i]->pairs = of_contexts;
}

void pairs_detach(hs_context *c) {
  hs_pairs *run = c->pairs;
  if (!run) return;
  if (run->process == os_process_id()) {
    stop_threads(run);
    pair_images_leave_devices(run);
    for (int32_t i = 0; i < run->device_count; i++) {
      run->engine->close(run->devices[i].matcher);
      run->devices[i].matcher = NULL;
    }
  }
  set_run(run, NULL);
  run->context = NULL;
}

static void free_run(hs_pairs *run) {
  free_lists(run);
  pthread_cond_destroy(&run->work);
  pthread_cond_destroy(&run->matching);
  pthread_cond_destroy(&run->progress);
  pthread_cond_destroy(&run->ready);
  pthread_mutex_destroy(&run->lock);
  hs_memory_release(run->allocator, run);
}

void hs_pairs_end(hs_pairs *run) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!run) return;
  /* A forked child has none of the threads. Their locks and memory are in an unknown state, so nothing is freed. */
  if (run->process != os_process_id()) {
    if (run->context) set_run(run, NULL);
    return;
  }
  if (run->context) pairs_detach(run->context);
  free_run(run);
}

/* Lists the devices of the run's contexts. False: out of memory. */
static bool list_devices(hs_pairs *run) {
  int32_t cpus = 0;
  for (int32_t i = run->context_count - 1; i >= 0; i--) {
    if (run->contexts[i]->engine->pairs) continue;
    cpus++;
    run->workers_match = true;
    run->host_number = i;
  }
  const int32_t count = run->context_count - cpus;
  if (count == 0) return true;
  run->devices = cleared_list(run, (size_t)count, sizeof *run->devices);
  if (!run->devices) return false;
  run->device_count = count;
  pair_device *d = run->devices;
  for (int32_t i = 0; i < run->context_count; i++) {
    if (!run->contexts[i]->engine->pairs) continue;
    run->engine = run->contexts[i]->engine->pairs;
    *d = (pair_device){
        .run = run, .context = run->contexts[i], .number = (int32_t)(d - run->devices), .context_number = i};
    d++;
  }
  return true;
}

/* Prepares the run, without its threads. */
static hs_status prepare(hs_pairs *run, hs_context *c, int32_t threads) {
  if (!list_devices(run) || !pair_memory_plan(run, threads) || !make_lists(run) || !refuse_large(run))
    return CONTEXT_FAIL(c, HS_ERR_MEMORY, "no memory for %zu pairs of %zu images", run->count,
                        run->collection.image_count);
  run->lookahead = (size_t)run->worker_count * LOOKAHEAD_A_WORKER;
  for (int32_t i = 0; i < run->device_count; i++) {
    char reason[PAIR_MESSAGE_BYTES] = "";
    pair_device *d = &run->devices[i];
    if (d->is_lost) continue;
    const hs_status status = run->engine->open(d->context, run->batch_bytes, &d->matcher, reason, sizeof reason);
    if (status != HS_OK) return CONTEXT_FAIL(c, status, "cannot make batches of pairs on the device: %s", reason);
  }
  return HS_OK;
}

static hs_status begin(hs_pairs *run, hs_context *c, int32_t threads) {
  const hs_status status = prepare(run, c, threads);
  if (status != HS_OK) {
    run->worker_count = 0; /* the number was only planned: no worker has been started */
    return status;
  }
  if (!start_threads(run)) return CONTEXT_FAIL(c, HS_ERR_THREAD, "cannot start threads for matching pairs");
  return HS_OK;
}

hs_status hs_pairs_start(hs_pairs **run, hs_context *c, const hs_collection *collection, const hs_image_pair *pairs,
                         size_t count, const hs_pairs_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (run) *run = NULL;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!run) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "run is null");
  if (c->pairs) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "a run over pairs is not ended: end it first");
  hs_status status = check_collection(c, collection, pairs, count);
  if (status != HS_OK) return status;
  const int32_t most = context_threads(c), threads = count < (size_t)most ? (int32_t)count : most;
  const size_t bytes = sizeof(hs_pairs) + (size_t)threads * sizeof(pair_worker);
  hs_pairs *made = hs_memory_alloc(c->options.allocator, bytes);
  if (!made) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes for a run over pairs", bytes);
  memset(made, 0, bytes);
  made->allocator = c->options.allocator;
  made->process = os_process_id();
  made->context = c;
  made->collection = *collection;
  made->pairs = pairs;
  made->count = count;
  made->ops = c->ops;
  status = check_options(c, options, made);
  if (status == HS_OK) status = take_contexts(c, made);
  if (status == HS_OK && !make_locks(made)) status = CONTEXT_FAIL(c, HS_ERR_THREAD, "cannot make a lock for pairs");
  if (status != HS_OK) {
    hs_memory_release(made->allocator, made);
    return status;
  }
  set_run(made, made);
  status = begin(made, c, threads);
  if (status == HS_OK)
    *run = made;
  else
    hs_pairs_end(made);
  return status;
}

/* ------------------------------------------------------------------ results */

/* Waits until the next pair is done, the run has failed or wait_ms is over. The caller holds the lock. */
static void wait_for_head(hs_pairs *run, int32_t wait_ms) {
  const struct timespec deadline = os_deadline(wait_ms > 0 ? wait_ms : 0);
  while (run->failure == HS_OK && run->context && run->head < run->count && !run->records[run->head])
    if (wait_ms < 0)
      pthread_cond_wait(&run->ready, &run->lock);
    else if (os_condition_wait(&run->ready, &run->lock, &deadline) == ETIMEDOUT)
      return;
}

/* Takes the head's record and, within their memory, those that follow it. The caller holds the lock. */
static void give(hs_pairs *run) {
  const bool was_full = run->held_bytes > run->held_budget;
  uint64_t bytes = 0;
  run->given_first = run->given_count = 0;
  do {
    pair_record *record = run->records[run->head];
    run->records[run->head++] = NULL;
    run->given[run->given_count++] = record;
    run->held_bytes -= record->bytes;
    bytes += record->bytes;
  } while (run->given_count < PAIRS_GIVEN_MAX && run->head < run->count && run->records[run->head] &&
           bytes + run->records[run->head]->bytes <= run->given_budget);
  if (was_full) {
    pair_run_wake(run);
    pthread_cond_signal(&run->progress);
  }
}

/* Waits for results and takes them; none: the time is over, or all have been returned. Statuses: as hs_pairs_next. */
static hs_status take_results(hs_pairs *run, int32_t wait_ms) {
  hs_status status = HS_OK;
  pthread_mutex_lock(&run->lock);
  wait_for_head(run, wait_ms);
  if (!run->has_reported_failure && run->head < run->count && run->records[run->head]) {
    give(run);
  } else if (run->failure != HS_OK) {
    status = run->failure;
  } else if (!run->context && run->head < run->count) {
    hs_message_set(run->message, sizeof run->message, "the context was destroyed");
    status = run->failure = HS_ERR_ARGUMENT;
  }
  run->has_reported_failure = status != HS_OK;
  pthread_mutex_unlock(&run->lock);
  return status;
}

hs_status hs_pairs_next(hs_pairs *run, int32_t wait_ms, const hs_pair_result **result) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (result) *result = NULL;
  if (!run || !result) return HS_ERR_ARGUMENT;
  if (run->process != os_process_id()) return HS_ERR_ARGUMENT;
  pair_record_free(run, run->returned);
  run->returned = NULL;
  const hs_status status = run->given_first < run->given_count ? HS_OK : take_results(run, wait_ms);
  if (status == HS_OK && run->given_first < run->given_count) {
    run->returned = run->given[run->given_first++];
    *result = &run->returned->result;
    /* a GPU, and matching within a guide, compute the distances all the same */
    for (size_t i = 0; run->options.skip_next_distance && i < run->returned->result.match_count; i++)
      run->returned->matches[i].next_distance = 0.0f;
  }
  return status;
}

int32_t hs_pairs_lost_devices(hs_pairs *run, int32_t *last, char *message, size_t message_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_message_set(message, message_bytes, "%s", "");
  if (last) *last = -1;
  if (!run || run->process != os_process_id()) return 0;
  pthread_mutex_lock(&run->lock);
  const int32_t lost = run->lost_devices;
  if (last && lost > 0) *last = run->last_lost;
  hs_message_set(message, message_bytes, "%s", run->lost);
  pthread_mutex_unlock(&run->lock);
  return lost;
}

const char *hs_pairs_last_error(const hs_pairs *run) { return run ? run->message : ""; }
