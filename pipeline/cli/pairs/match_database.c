/* Matches the images of a database, and verifies stored matches; see match_database.h. */
#include "pipeline/cli/pairs/match_database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "os/os_threads.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/pairs/pair_states.h"
#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/colmap/colmap_pairs.h"

/* ---- Verification of stored matches, in blocks of pairs. */

enum { PAIRS_A_THREAD = 4, PAIR_MESSAGE_BYTES = 512 };

/* A pair of the current block. */
typedef struct stored_pair {
  hs_pair_result result;
  hs_features features[2]; /* keypoints */
  hs_match_pair *matches;
  uint8_t *inliers;
  hs_pair_geometry found;
  char message[PAIR_MESSAGE_BYTES];
} stored_pair;

struct stored_matches {
  stored_plan plan;
  stage_queue *queue; /* threads that verify; null: this thread alone does */
  stored_pair *block;
  size_t block_capacity, block_count, block_next; /* pairs of the block: maximum number, number read, number returned */
  size_t next;                                    /* index of the next pair to read, among all pairs */
};

/* ------------------------------------------------------------------ reading */

static void keep_fault(stored_pair *p, hs_status status, const char *message) {
  p->result.status = status;
  snprintf(p->message, sizeof p->message, "%s", message);
}

static hs_status read_keypoints(stored_matches *g, uint32_t image, hs_features *features) {
  const stored_plan *plan = &g->plan;
  const database_image *wanted = &plan->images->each[image];
  char sentence[CLI_MESSAGE_BYTES];
  const hs_status status = colmap_read_keypoints(plan->database, wanted->image_id, features);
  if (status == HS_OK) return status;
  snprintf(sentence, sizeof sentence, "%s: %s", wanted->name, hs_colmap_last_error(plan->database));
  pair_failures_blame(plan->failures, image, sentence);
  return status;
}

static void read_pair(stored_matches *g, stored_pair *p) {
  const stored_plan *plan = &g->plan;
  const hs_image_pair pair = p->result.images;
  const database_image *images = plan->images->each;
  hs_status status = read_keypoints(g, pair.first, &p->features[0]);
  if (status == HS_OK) status = read_keypoints(g, pair.second, &p->features[1]);
  if (status == HS_OK)
    status = colmap_read_matches(plan->database, images[pair.first].image_id, images[pair.second].image_id, &p->matches,
                                 &p->result.match_count);
  p->inliers = status == HS_OK ? malloc(p->result.match_count + 1) : NULL;
  p->result.matches = p->matches;
  if (status != HS_OK)
    keep_fault(p, status, hs_colmap_last_error(plan->database));
  else if (!p->inliers)
    keep_fault(p, HS_ERR_MEMORY, "out of memory");
}

/* ------------------------------------------------------------------ verifying */

/* queue_task */
static void verify_pair(void *job, int32_t chunk, int32_t worker) {
  stored_matches *g = job;
  stored_pair *p = &g->block[chunk];
  hs_pair_result *const result = &p->result;
  const database_image *images = g->plan.images->each;
  const database_image *a = &images[result->images.first], *b = &images[result->images.second];
  hs_verify_options verify = g->plan.verify;
  hs_pairs_options options = g->plan.options;
  (void)worker;
  if (result->status != HS_OK) return;
  options.verify = &verify;
  verify.message = p->message;
  verify.message_bytes = sizeof p->message;
  verify.camera_a = a->is_calibrated ? a->camera : (hs_camera){0.0, 0.0, 0.0, 0.0};
  verify.camera_b = b->is_calibrated ? b->camera : (hs_camera){0.0, 0.0, 0.0, 0.0};
  const hs_pair_geometry *const found = &p->found;
  result->status = hs_verify_pair(&p->features[0], &p->features[1], p->matches, result->match_count, &options,
                                  p->inliers, &p->found);
  if (result->status != HS_OK) return;
  result->inliers = p->inliers;
  result->geometry = &found->model;
  result->plane = found->has_plane != 0 ? &found->plane : NULL;
  result->fundamental = found->fundamental.found != 0 ? &found->fundamental : NULL;
  result->pose = found->model.found != 0 && found->model.model == HS_ESSENTIAL ? &found->pose : NULL;
  result->watermark = found->watermark;
}

/* ------------------------------------------------------------------ blocks */

static void empty_block(stored_matches *g) {
  for (size_t i = 0; i < g->block_count; i++) {
    stored_pair *p = &g->block[i];
    hs_features_free(&p->features[0]);
    hs_features_free(&p->features[1]);
    hs_memory_release(NULL, p->matches);
    free(p->inliers);
  }
  g->block_count = g->block_next = 0;
}

static void fill_block(stored_matches *g) {
  empty_block(g);
  for (; g->block_count < g->block_capacity && g->next < g->plan.count; g->block_count++, g->next++) {
    stored_pair *p = &g->block[g->block_count];
    *p = (stored_pair){.result = {.index = g->next, .images = g->plan.pairs[g->next], .message = p->message}};
    read_pair(g, p);
  }
  queue_run(g->queue, (int32_t)g->block_count, verify_pair, g);
}

const hs_pair_result *stored_matches_next(stored_matches *stored) {
  if (stored->block_next == stored->block_count) fill_block(stored);
  return stored->block_next < stored->block_count ? &stored->block[stored->block_next++].result : NULL;
}

stored_matches *stored_matches_begin(const stored_plan *plan) {
  stored_matches *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->plan = *plan;
  g->plan.verify.allocator = NULL;
  g->block_capacity = (size_t)plan->threads * PAIRS_A_THREAD;
  g->block = calloc(g->block_capacity, sizeof *g->block);
  g->queue = plan->threads > 1 ? malloc(queue_bytes(plan->threads)) : NULL;
  if (g->queue && !queue_start(g->queue, plan->threads)) {
    free(g->queue);
    g->queue = NULL;
  }
  if (g->block && (g->queue || plan->threads == 1)) return g;
  stored_matches_end(g);
  return NULL;
}

void stored_matches_end(stored_matches *stored) {
  if (!stored) return;
  empty_block(stored);
  if (stored->queue) queue_stop(stored->queue);
  free(stored->queue);
  free(stored->block);
  free(stored);
}

/* ---- Matching. The library's thread reads features and this thread writes results, through one handle and under a
   lock, so that reads see current tables and never wait for this process's own transaction. */

/* Factor of the tolerance of homographies: our error is symmetric, COLMAP's is one-sided. */
static const double transfer_to_both = 0.70710678118654752;

enum {
  COMMIT_EACH_MS = 500, /* a killed run may lose results of this time */
  TICK_MS = 100         /* interval of signal checks and progress line updates */
};

typedef struct database_job {
  const match_database_plan *plan;
  hs_options options;
  cli_devices devices;
  hs_context *contexts[HS_BATCH_DEVICES_MAX]; /* a context of each device; the first is the run's */
  pthread_mutex_t lock;                       /* protects the database handle */
  hs_colmap_database *database;
  database_images images;
  sorted_pairs pairs;
  hs_collection_image *views;
  pair_output output;
  size_t left_out; /* pairs of a list with unknown names */
  bool has_uncommitted;
  double committed_at, ticked_at;
  int stopped_by; /* signal that stopped the run; 0: none */
} database_job;

static bool has_option(const database_job *job, option_id id) { return job->plan->set->values[id].is_set; }

static cli_exit fail(const database_job *job, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: %s", job->images.path, reason);
}

/* ---- preparation */

/* hs_collection.read */
static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  database_job *job = user;
  const database_image *wanted = &job->images.each[image];
  char sentence[CLI_MESSAGE_BYTES];
  (void)message, (void)message_bytes; /* the failure is reported for the image instead */
  pthread_mutex_lock(&job->lock);
  hs_status status = database_image_read(job->database, wanted, features, sentence, sizeof sentence);
  if (status == HS_OK && features->count > 0 && features->descriptor_type == HS_DESCRIPTOR_NONE) {
    snprintf(sentence, sizeof sentence, "%s has no descriptors", wanted->name);
    status = HS_ERR_ARGUMENT;
  }
  if (status != HS_OK) pair_failures_blame(&job->output.failures, image, sentence);
  pthread_mutex_unlock(&job->lock);
  return status;
}

static bool describe_images(database_job *job) {
  job->views = calloc(job->images.count + 1, sizeof *job->views);
  for (size_t i = 0; job->views && i < job->images.count; i++) {
    job->views[i].feature_count = job->images.each[i].features;
    if (job->images.each[i].is_calibrated) job->views[i].camera = job->images.each[i].camera;
  }
  return job->views != NULL;
}

static void report_replaced(const database_job *job) {
  const sorted_pairs *pairs = &job->pairs;
  char raw[96] = "";
  if (pairs->replaced == 0 || has_option(job, OPTION_QUIET)) return;
  if (pairs->without_geometry > 0)
    snprintf(raw, sizeof raw, ", %zu of them without geometry, as other programs leave them", pairs->without_geometry);
  cli_note("%s: --replace: %zu pair%s ha%s matches%s; what is matched now takes their place", job->images.path,
           pairs->replaced, pairs->replaced == 1 ? "" : "s", pairs->replaced == 1 ? "s" : "ve", raw);
}

/* ------------------------------------------------------------------ the run */

/* Commits from time to time, so that a stopped run can be continued. */
static cli_exit commit(database_job *job, bool at_once) {
  const double now = cli_milliseconds();
  const bool is_due = at_once || now - job->committed_at >= COMMIT_EACH_MS || pair_output_is_full(&job->output);
  if (!job->has_uncommitted || !is_due) return CLI_DONE;
  pthread_mutex_lock(&job->lock);
  const hs_status status = hs_colmap_commit(job->database);
  if (status != HS_OK) cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(job->database));
  pthread_mutex_unlock(&job->lock);
  job->committed_at = now;
  job->has_uncommitted = false;
  if (status != HS_OK) {
    pair_output_drop(&job->output);
    return CLI_FAILED;
  }
  pair_output_commit(&job->output);
  return CLI_DONE;
}

/* Stores a result. False: no more can be stored, and the reason was printed. */
static bool take_result(database_job *job, const hs_pair_result *result, bool is_stale) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = result->status;
  snprintf(message, sizeof message, "%s", result->message);
  pthread_mutex_lock(&job->lock);
  if (status == HS_OK) {
    status = pair_output_store(&job->output, result, is_stale, message);
    if (!job->has_uncommitted) job->committed_at = cli_milliseconds();
    job->has_uncommitted = true;
  }
  pair_output_report(&job->output, result, status, message);
  const bool is_lost = colmap_is_lost(job->database);
  if (is_lost) pair_output_drop(&job->output);
  pthread_mutex_unlock(&job->lock);
  return !is_lost;
}

static void tick(database_job *job, const stop_signals *signals) {
  const double now = cli_milliseconds();
  if (now - job->ticked_at < TICK_MS) return;
  job->ticked_at = now;
  job->stopped_by = stop_signals_take(signals);
  pair_output_progress(&job->output);
}

static cli_exit match_all(database_job *job, hs_pairs *run, const stop_signals *signals) {
  cli_exit result = CLI_DONE;
  size_t left = job->pairs.to_match.count;
  while (left > 0 && job->stopped_by == 0) {
    const hs_pair_result *next;
    const hs_status status = hs_pairs_next(run, TICK_MS, &next);
    if (status != HS_OK) {
      const char *why = hs_pairs_last_error(run);
      (void)fail(job, why[0] != '\0' ? why : hs_status_string(status));
      result = CLI_FAILED;
      break;
    }
    if (next) left--;
    if (next && !take_result(job, next, job->pairs.is_stale[next->index])) return CLI_FAILED;
    if (commit(job, false) != CLI_DONE) return CLI_FAILED;
    tick(job, signals);
  }
  return commit(job, true) == CLI_DONE ? result : CLI_FAILED;
}

static hs_pairs_options pair_options(const database_job *job) {
  const match_database_plan *plan = job->plan;
  const bool verified = plan->verify.model != 0;
  return (hs_pairs_options){.struct_size = sizeof(hs_pairs_options),
                            .match = &plan->wanted,
                            .verify = verified ? &plan->verify : NULL,
                            .guided = plan->guided,
                            .find_plane = verified,
                            .plane_tolerance = verified ? plan->verify.tolerance * transfer_to_both : 0.0,
                            .find_essential = verified && plan->tries_essential,
                            .skip_next_distance = 1,
                            .contexts = job->contexts + 1,
                            .context_count = (size_t)job->devices.count - 1};
}

/* Verifies matches that the database already has. */
static cli_exit verify_stored(database_job *job, const stop_signals *signals) {
  const pair_list *pairs = &job->pairs.to_verify;
  const int32_t wanted = job->options.threads;
  const stored_plan plan = {.database = job->database,
                            .images = &job->images,
                            .pairs = pairs->each,
                            .count = pairs->count,
                            .verify = job->plan->verify,
                            .options = pair_options(job),
                            .threads = wanted > 0 ? wanted : cpu_usable_threads(),
                            .failures = &job->output.failures};
  if (pairs->count == 0) return CLI_DONE;
  stored_matches *run = stored_matches_begin(&plan);
  if (!run) return fail(job, "out of memory or threads for the verification of its matches");
  cli_exit result = CLI_DONE;
  for (const hs_pair_result *next; result == CLI_DONE && job->stopped_by == 0;) {
    next = stored_matches_next(run);
    if (!next) break;
    const size_t done = job->output.totals.done;
    const bool is_taken = take_result(job, next, false);
    if (is_taken) job->output.totals.stored += job->output.totals.done - done;
    if (!is_taken || commit(job, false) != CLI_DONE) result = CLI_FAILED;
    tick(job, signals);
  }
  stored_matches_end(run);
  return result == CLI_DONE ? commit(job, true) : result;
}

/* Says how many pairs a stopped run, or one whose transaction was lost, has left. */
static void say_stopped(database_job *job) {
  const pair_totals *t = &job->output.totals;
  char reason[64] = "stopped";
  if (job->stopped_by != 0) snprintf(reason, sizeof reason, "stopped by %s", stop_signal_name(job->stopped_by));
  cli_error(COMMAND_MATCH, "%s: %s with %zu of %zu pairs left; the same command continues", job->images.path, reason,
            t->pairs - t->kept - t->done - t->failed, t->pairs);
}

static cli_exit list_pairs(database_job *job) {
  pair_list pairs = {0};
  const pair_wish wish = {.replaces = has_option(job, OPTION_REPLACE), .verifies = job->plan->verify.model != 0};
  const pair_source source = {.set = job->plan->set,
                              .images = &job->images,
                              .database = job->database,
                              .context = job->contexts[0],
                              .chosen = job->plan->chosen,
                              .chosen_count = job->plan->chosen_count,
                              .max_memory_bytes = job->options.max_memory_bytes};
  /* other programs may write while pairs are selected, which may take long */
  if (hs_colmap_commit(job->database) != HS_OK)
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(job->database));
  cli_exit result = pair_list_make(&source, &pairs);
  if (result == CLI_DONE) result = pair_states_sort(&source, &pairs, wish, &job->pairs);
  job->output.totals.pairs = pairs.count + pairs.left_out;
  job->output.totals.failed = pairs.left_out;
  job->left_out = pairs.left_out;
  job->output.totals.kept = job->pairs.done;
  pair_list_free(&pairs);
  return result;
}

/* Reports devices that failed in a run that others completed. */
static void report_lost(database_job *job, hs_pairs *run) {
  char reason[CLI_MESSAGE_BYTES], name[32];
  int32_t last;
  const int32_t lost = hs_pairs_lost_devices(run, &last, reason, sizeof reason);
  if (lost == 0) return;
  cli_device_name(&job->devices.each[last], name, sizeof name);
  progress_line_clear(&job->output.line);
  if (lost == 1)
    cli_error(COMMAND_MATCH, "warning: %s failed, and the other devices matched its pairs: %s", name, reason);
  else
    cli_error(COMMAND_MATCH, "warning: %d devices failed, and the others matched their pairs; the last, %s: %s",
              (int)lost, name, reason);
}

static cli_exit match_pairs(database_job *job, const stop_signals *signals) {
  const hs_collection collection = {
      .images = job->views, .image_count = job->images.count, .read = read_image, .user = job};
  const hs_pairs_options options = pair_options(job);
  hs_pairs *run;
  const pair_list *pairs = &job->pairs.to_match;
  if (hs_pairs_start(&run, job->contexts[0], &collection, pairs->each, pairs->count, &options) != HS_OK)
    return fail(job, hs_last_error(job->contexts[0]));
  const cli_exit result = match_all(job, run, signals);
  if (result == CLI_DONE && job->stopped_by == 0) report_lost(job, run);
  hs_pairs_end(run);
  return result;
}

static cli_exit settle_doubtful(const database_job *job, const stop_signals *signals) {
  const doubtful_plan plan = {.database = job->database,
                              .images = &job->images,
                              .signals = signals,
                              .max_memory_bytes = job->options.max_memory_bytes,
                              .tracks = job->plan->tracks,
                              .keeps = job->plan->keeps_doubtful,
                              .is_quiet = has_option(job, OPTION_QUIET),
                              .has_json = job->output.has_json};
  return doubtful_pairs_settle(&plan);
}

static cli_exit run_pairs(database_job *job, const stop_signals *signals) {
  cli_exit result = verify_stored(job, signals);
  if (result == CLI_DONE && job->stopped_by == 0) result = match_pairs(job, signals);
  const bool is_whole = result == CLI_DONE && job->stopped_by == 0; /* true even if single pairs failed */
  if (job->output.totals.failed > (job->plan->skips_unknown ? job->left_out : 0)) result = CLI_FAILED;
  if (job->stopped_by != 0) result = CLI_FAILED;
  pair_output_end(&job->output);
  if (job->stopped_by != 0 || colmap_is_lost(job->database)) say_stopped(job);
  const bool judges = is_whole && job->plan->verify.model != 0 && !colmap_is_lost(job->database);
  return judges && settle_doubtful(job, signals) != CLI_DONE ? CLI_FAILED : result;
}

/* Selects the pairs to match. Nothing has been stored yet, so signals may end the process directly. */
static cli_exit prepare(database_job *job) {
  cli_exit result = database_images_read(job->database, &job->images);
  if (result == CLI_DONE && job->images.without > 0 && !has_option(job, OPTION_QUIET))
    cli_note("%s: %zu of %zu images ha%s no features and %s in no pair%s", job->images.path, job->images.without,
             job->images.without + job->images.count, job->images.without == 1 ? "s" : "ve",
             job->images.without == 1 ? "is" : "are", cli_hint(": 'hartsift extract' adds them"));
  if (result == CLI_DONE &&
      (!pair_failures_begin(&job->output.failures, &job->images) || !pair_output_begin(&job->output)))
    result = fail(job, "out of memory for the images");
  if (result == CLI_DONE) result = list_pairs(job);
  if (result == CLI_DONE && !describe_images(job)) result = fail(job, "out of memory for the images");
  if (result == CLI_DONE) report_replaced(job);
  return result;
}

static cli_exit prepare_and_run(database_job *job, stop_signals *signals) {
  progress_line_begin(&job->output.line, has_option(job, OPTION_QUIET));
  stop_signals_restore(signals);
  const cli_exit result = prepare(job);
  stop_signals_block(signals);
  return result == CLI_DONE ? run_pairs(job, signals) : result;
}

static void free_job(database_job *job) {
  pair_output_free(&job->output);
  pair_failures_free(&job->output.failures);
  database_images_free(&job->images);
  sorted_pairs_free(&job->pairs);
  free(job->views);
  hs_colmap_close(job->database);
  for (int32_t i = 0; i < job->devices.count; i++) hs_destroy(job->contexts[i]);
}

static cli_exit open_and_run(database_job *job, stop_signals *signals) {
  const option_set *set = job->plan->set;
  char message[CLI_MESSAGE_BYTES];
  os_set_variable("CUDA_DEVICE_MAX_CONNECTIONS", "8", false); /* several streams match pairs for a long time */
  cli_exit result = cli_make_contexts(set, &job->devices, &job->options, job->contexts);
  for (int32_t i = 0; result == CLI_DONE && i < job->devices.count; i++)
    cli_device_resolve(&job->devices.each[i], hs_backend_report(job->contexts[i]));
  if (result == CLI_DONE) result = cli_check_devices(COMMAND_MATCH, &job->devices);
  if (result == CLI_DONE &&
      database_open(set, job->images.path, HS_LAYOUT_UBC, &job->database, message, sizeof message) != HS_OK) {
    cli_error(COMMAND_MATCH, "%s", message);
    result = CLI_FAILED;
  }
  job->output.database = job->database;
  return result == CLI_DONE ? prepare_and_run(job, signals) : result;
}

cli_exit match_database(const match_database_plan *plan) {
  stop_signals signals;
  database_job job = {.plan = plan, .images.path = plan->set->values[OPTION_DATABASE].text};
  job.output = (pair_output){.images = &job.images,
                             .has_json = has_option(&job, OPTION_JSON),
                             .is_quiet = has_option(&job, OPTION_QUIET),
                             .is_verified = plan->verify.model != 0};
  /* checked first, because opening would create the file */
  if (!os_exists(job.images.path)) return fail(&job, strerror(errno));
  char message[CLI_MESSAGE_BYTES];
  const cli_exit parsed = cli_parse_devices(plan->set, &job.devices, message, sizeof message);
  if (parsed != CLI_DONE) return cli_fail(parsed, COMMAND_MATCH, "%s", message);
  if (has_option(&job, OPTION_DEVICES)) job.output.devices = &job.devices;
  if (pthread_mutex_init(&job.lock, NULL) != 0) return fail(&job, hs_status_string(HS_ERR_THREAD));
  stop_signals_block(&signals); /* so that they are also blocked in the threads of a GPU's driver */
  const cli_exit result = open_and_run(&job, &signals);
  free_job(&job);
  pthread_mutex_destroy(&job.lock);
  stop_signals_restore(&signals);
  return result;
}
