/*
 * Matching the images of a database; see match_database.h.
 *
 * Features are read by the library's thread, results written by this one: through one handle, each under a lock, so that
 * reading sees the tables as they are and never waits for a transaction of its own process.
 */
#include "pipeline/cli/pairs/match_database.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/common/stop_signals.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/cli/pairs/pair_output.h"

/* A homography measures in both images, COLMAP's in the second alone: its error there, spread over both points, is
   1 / sqrt 2 of it. */
static const double transfer_to_both = 0.70710678118654752;

enum {
  COMMIT_EACH_MS = 500, /* what a killed run may lose */
  TICK_MS = 100         /* how often signals are looked for and the progress line is drawn */
};

typedef struct database_job {
  const match_database_plan *plan;
  hs_options options;
  hs_context *context;
  pthread_mutex_t lock; /* around the database */
  hs_colmap_database *database;
  database_images images;
  pair_list pairs; /* those to be matched yet */
  hs_collection_image *views;
  pair_output output;
  bool has_uncommitted;
  double committed_at, ticked_at;
  int stopped_by; /* a signal; 0: none */
} database_job;

static bool given(const database_job *job, option_id id) { return job->plan->set->values[id].given; }

static cli_exit fail(const database_job *job, const char *reason) {
  cli_error(COMMAND_MATCH, "%s: %s", job->images.path, reason);
  return CLI_FAILED;
}

/* ------------------------------------------------------------------ what there is to do */

/* hs_collection.read */
static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  database_job *job = user;
  const database_image *wanted = &job->images.each[image];
  pthread_mutex_lock(&job->lock);
  hs_status status = hs_colmap_read_features(job->database, wanted->image_id, features);
  if (status != HS_OK) snprintf(message, message_bytes, "%s", hs_colmap_last_error(job->database));
  pthread_mutex_unlock(&job->lock);
  if (status == HS_OK && features->count > 0 && features->descriptor_type == HS_DESCRIPTOR_NONE) {
    snprintf(message, message_bytes, "%s has no descriptors", wanted->name);
    status = HS_ERR_ARGUMENT;
  }
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

/* Leaves out the pairs that have matches. A failure to tell shows again when such a pair is stored. */
static void leave_done_pairs(database_job *job) {
  size_t kept = 0;
  if (given(job, OPTION_REPLACE)) return;
  for (size_t i = 0; i < job->pairs.count; i++) {
    const hs_image_pair pair = job->pairs.each[i];
    int64_t matches = -1, verified = -1;
    if (hs_colmap_count_matches(job->database, job->images.each[pair.first].image_id,
                                job->images.each[pair.second].image_id, &matches, &verified) == HS_OK &&
        (matches >= 0 || verified >= 0))
      job->output.totals.kept++;
    else
      job->pairs.each[kept++] = pair;
  }
  job->pairs.count = kept;
}

/* ------------------------------------------------------------------ the run */

/* Commits now and then, so that a run that is stopped need not begin again. */
static cli_exit commit(database_job *job, bool at_once) {
  const double now = cli_milliseconds();
  if (!job->has_uncommitted || (!at_once && now - job->committed_at < COMMIT_EACH_MS)) return CLI_DONE;
  pthread_mutex_lock(&job->lock);
  const hs_status status = hs_colmap_commit(job->database);
  if (status != HS_OK) cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(job->database));
  pthread_mutex_unlock(&job->lock);
  job->committed_at = now;
  job->has_uncommitted = false;
  return status == HS_OK ? CLI_DONE : CLI_FAILED;
}

/* Stores a result. False: nothing more can be stored, and why was said. */
static bool take_result(database_job *job, const hs_pair_result *result) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = result->status;
  snprintf(message, sizeof message, "%s", result->message);
  if (status == HS_OK) {
    pthread_mutex_lock(&job->lock);
    status = pair_output_store(&job->output, result, message);
    pthread_mutex_unlock(&job->lock);
    if (!job->has_uncommitted) job->committed_at = cli_milliseconds();
    job->has_uncommitted = true;
  }
  pair_output_tell(&job->output, result, status, message);
  return result->status != HS_OK || status != HS_ERR_IO; /* then the transaction may be lost */
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
  size_t left = job->pairs.count;
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
    if (next && !take_result(job, next)) return CLI_FAILED;
    if (commit(job, false) != CLI_DONE) return CLI_FAILED;
    tick(job, signals);
  }
  if (commit(job, true) != CLI_DONE || job->output.totals.failed > 0) result = CLI_FAILED;
  return result;
}

static void say_stopped(database_job *job) {
  const pair_totals *t = &job->output.totals;
  cli_error(COMMAND_MATCH, "%s: stopped by %s with %zu of %zu pairs left; the same command goes on", job->images.path,
            stop_signal_name(job->stopped_by), t->pairs - t->kept - t->done - t->failed, t->pairs);
}

static cli_exit list_pairs(database_job *job) {
  const pair_source source = {.set = job->plan->set,
                              .images = &job->images,
                              .database = job->database,
                              .context = job->context,
                              .max_memory_bytes = job->options.max_memory_bytes};
  return pair_list_make(&source, &job->pairs);
}

static cli_exit run_pairs(database_job *job, const stop_signals *signals) {
  const match_database_plan *plan = job->plan;
  const bool verified = plan->verify.model != 0;
  const hs_collection collection = {
      .images = job->views, .image_count = job->images.count, .read = read_image, .user = job};
  const hs_pairs_options options = {.struct_size = sizeof options,
                                    .match = &plan->wanted,
                                    .verify = verified ? &plan->verify : NULL,
                                    .guided = plan->guided,
                                    .find_plane = verified,
                                    .plane_tolerance = verified ? plan->verify.tolerance * transfer_to_both : 0.0};
  hs_pairs *run;
  if (hs_pairs_start(&run, job->context, &collection, job->pairs.each, job->pairs.count, &options) != HS_OK)
    return fail(job, hs_last_error(job->context));
  cli_exit result = match_all(job, run, signals);
  hs_pairs_end(run);
  if (job->stopped_by != 0) result = CLI_FAILED;
  pair_output_end(&job->output);
  if (job->stopped_by != 0) say_stopped(job);
  return result;
}

/* Which pairs there are to match. Nothing is stored yet, so that signals may end the process, as they do by themselves. */
static cli_exit prepare(database_job *job) {
  cli_exit result = database_images_read(job->database, &job->images);
  if (result == CLI_DONE) result = list_pairs(job);
  if (result == CLI_DONE && !describe_images(job)) result = fail(job, "no memory for its images");
  if (result != CLI_DONE) return result;
  job->output.totals.pairs = job->pairs.count;
  leave_done_pairs(job);
  return CLI_DONE;
}

static cli_exit prepare_and_run(database_job *job, stop_signals *signals) {
  progress_line_begin(&job->output.line, given(job, OPTION_QUIET));
  stop_signals_restore(signals);
  const cli_exit result = prepare(job);
  stop_signals_block(signals);
  return result == CLI_DONE ? run_pairs(job, signals) : result;
}

static void free_job(database_job *job) {
  database_images_free(&job->images);
  pair_list_free(&job->pairs);
  free(job->views);
  hs_colmap_close(job->database);
  hs_destroy(job->context);
}

static cli_exit open_and_run(database_job *job, stop_signals *signals) {
  const option_set *set = job->plan->set;
  char message[CLI_MESSAGE_BYTES];
  cli_exit result = cli_make_context(set, &job->options, &job->context);
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
                             .has_json = given(&job, OPTION_JSON),
                             .is_quiet = given(&job, OPTION_QUIET),
                             .is_verified = plan->verify.model != 0};
  if (access(job.images.path, F_OK) != 0) return fail(&job, strerror(errno)); /* opening would make it */
  if (pthread_mutex_init(&job.lock, NULL) != 0) return fail(&job, hs_status_string(HS_ERR_THREAD));
  stop_signals_block(&signals); /* also for the threads of a GPU's driver */
  const cli_exit result = open_and_run(&job, &signals);
  free_job(&job);
  pthread_mutex_destroy(&job.lock);
  stop_signals_restore(&signals);
  return result;
}
