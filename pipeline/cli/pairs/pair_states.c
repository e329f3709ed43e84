/* State of a database's pairs: matched, doubtful; see pair_states.h. */
#include "pipeline/cli/pairs/pair_states.h"

#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

enum {
  PAIRS_PER_LOOK = 4096,
  FEATURE_BYTES = 5, /* hs_judge_options.allocator */
  /* minimum number of inliers that --tracks leaves in a pair, because mappers ignore pairs with fewer */
  FEWEST_INLIERS = 50
};

typedef struct doubtful_job {
  const doubtful_plan *plan;
  size_t *feature_counts; /* [image]: its feature count if it is in a pair, else 0 */
  hs_judged_pair *pairs;
  int64_t *pair_ids;
  size_t count, capacity, looked_at;
  size_t taken_back, set_aside, damaged;
  uint64_t inliers, inliers_kept; /* number of inliers before and after --tracks */
  bool has_damaged;               /* a list is damaged, or has an index beyond its image's features */
  int stopped_by;                 /* signal that stopped the work; 0: none */
} doubtful_job;

static cli_exit fail(const doubtful_job *job, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: %s", job->plan->images->path, reason);
}

static cli_exit fail_database(const doubtful_job *job) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(job->plan->database));
}

/* Returns whether to continue. Checks for a signal from time to time. */
static bool should_continue(doubtful_job *job) {
  if (job->stopped_by == 0 && job->looked_at++ % PAIRS_PER_LOOK == 0)
    job->stopped_by = stop_signals_take(job->plan->signals);
  return job->stopped_by == 0;
}

static cli_exit say_stopped(const doubtful_job *job) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH,
                  "%s: stopped by %s before its doubtful pairs were left out; the same command continues",
                  job->plan->images->path, stop_signal_name(job->stopped_by));
}

/* ------------------------------------------------------------------ the pairs */

static bool grow(doubtful_job *job) {
  if (job->count < job->capacity) return true;
  const size_t capacity = job->capacity > 0 ? 2 * job->capacity : 1024;
  hs_judged_pair *const pairs = realloc(job->pairs, capacity * sizeof *pairs);
  if (pairs) job->pairs = pairs;
  int64_t *const pair_ids = realloc(job->pair_ids, capacity * sizeof *pair_ids);
  if (pair_ids) job->pair_ids = pair_ids;
  if (!pairs || !pair_ids) return false;
  job->capacity = capacity;
  return true;
}

/* Returns the number of matches from which a pair's share of inliers is computed. For a guided pair it is that of the
   first pass, because nearly all guided matches are inliers. */
static size_t count_matches(const colmap_verified_pair *pair) {
  if (pair->inliers == pair->stored || pair->inliers == 0) return pair->matches;
  return (size_t)((uint64_t)pair->stored * pair->matches / pair->inliers);
}

static cli_exit list_pairs(doubtful_job *job) {
  const database_images *const images = job->plan->images;
  colmap_verified_pair next = {.pair_id = -1};
  while (should_continue(job)) {
    if (colmap_next_verified(job->plan->database, next.pair_id, &next) != HS_OK) return fail_database(job);
    if (next.pair_id < 0) return CLI_DONE;
    hs_judged_pair pair = {.match_count = count_matches(&next), .inlier_count = next.stored};
    job->damaged += next.is_damaged;
    size_t first, second; /* an image that is not found has no features, so its pairs are meaningless */
    if (next.is_damaged || !database_images_find(images, next.images[0], &first) ||
        !database_images_find(images, next.images[1], &second))
      continue;
    pair.images.first = (uint32_t)first;
    pair.images.second = (uint32_t)second;
    if (!grow(job)) return fail(job, "out of memory for the pairs");
    job->pair_ids[job->count] = next.pair_id;
    job->pairs[job->count++] = pair;
  }
  return say_stopped(job);
}

static cli_exit count_features(doubtful_job *job) {
  const database_images *const images = job->plan->images;
  const uint64_t limit = job->plan->max_memory_bytes;
  const size_t feature_bytes = job->plan->tracks > 0 ? LONG_TRACKS_FEATURE_BYTES : FEATURE_BYTES;
  uint64_t features = 0, most = 0;
  job->feature_counts = calloc(images->count + 1, sizeof *job->feature_counts);
  if (!job->feature_counts) return fail(job, "out of memory for the images");
  for (size_t p = 0; p < job->count; p++) {
    job->feature_counts[job->pairs[p].images.first] = 1;
    job->feature_counts[job->pairs[p].images.second] = 1;
  }
  for (size_t i = 0; i < images->count; i++) {
    if (job->feature_counts[i] == 0) continue;
    if (colmap_count_held_keypoints(job->plan->database, images->each[i].image_id, &job->feature_counts[i]) != HS_OK)
      return fail_database(job);
    features += job->feature_counts[i];
    most = job->feature_counts[i] > most ? job->feature_counts[i] : most;
  }
  if (job->plan->tracks == 0) most = 0;
  const double bytes = (double)features * (double)feature_bytes + (double)most * LONG_TRACKS_SORT_BYTES +
                       (double)job->capacity * (sizeof *job->pairs + 8);
  if (limit == 0 || bytes <= (double)limit) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_MATCH,
                  "%s: %.0f bytes are needed to %s its %zu verified pairs: expected a larger --max-memory, or %s",
                  images->path, bytes, job->plan->keeps ? "follow the tracks of" : "judge", job->count,
                  job->plan->tracks > 0 ? "no --tracks" : "--doubtful keep");
}

/* ------------------------------------------------------------------ judging */

/* hs_pair_inliers.read */
static hs_status read_inliers(void *user, size_t pair, uint32_t *inliers) {
  doubtful_job *const job = user;
  const hs_judged_pair *const judged = &job->pairs[pair];
  if (!should_continue(job)) return HS_ERR_INTERNAL;
  hs_status status = colmap_read_inliers(job->plan->database, job->pair_ids[pair], inliers, judged->inlier_count);
  for (size_t i = 0; status == HS_OK && i < judged->inlier_count; i++)
    if (inliers[2 * i] >= job->feature_counts[judged->images.first] ||
        inliers[2 * i + 1] >= job->feature_counts[judged->images.second])
      status = HS_ERR_FORMAT;
  job->has_damaged = job->has_damaged || status == HS_ERR_FORMAT;
  return status;
}

/* Removes pairs whose inliers cannot be read. */
static cli_exit drop_damaged(doubtful_job *job) {
  size_t kept = 0, most = 0;
  for (size_t p = 0; p < job->count; p++) most = job->pairs[p].inlier_count > most ? job->pairs[p].inlier_count : most;
  uint32_t *const inliers = calloc(most + 1, 2 * sizeof *inliers);
  if (!inliers) return fail(job, "out of memory for the inliers of a pair");
  hs_status status = HS_OK;
  for (size_t p = 0; p < job->count && (status == HS_OK || status == HS_ERR_FORMAT); p++) {
    status = read_inliers(job, p, inliers);
    job->damaged += status == HS_ERR_FORMAT;
    if (status != HS_OK) continue;
    job->pair_ids[kept] = job->pair_ids[p];
    job->pairs[kept++] = job->pairs[p];
  }
  free(inliers);
  job->count = kept;
  if (job->stopped_by != 0) return say_stopped(job);
  return status == HS_OK || status == HS_ERR_FORMAT ? CLI_DONE : fail_database(job);
}

static cli_exit judge(doubtful_job *job) {
  char message[CLI_MESSAGE_BYTES];
  hs_judge_options options;
  (void)hs_judge_options_init(&options);
  options.message = message;
  options.message_bytes = sizeof message;
  const hs_pair_inliers source = {.feature_counts = job->feature_counts,
                                  .image_count = job->plan->images->count,
                                  .read = read_inliers,
                                  .user = job};
  hs_status status = hs_judge_pairs(&source, job->pairs, job->count, &options);
  if (status == HS_ERR_FORMAT && job->has_damaged) {
    if (drop_damaged(job) != CLI_DONE) return CLI_FAILED;
    status = hs_judge_pairs(&source, job->pairs, job->count, &options);
  }
  if (status == HS_OK) return CLI_DONE;
  if (job->stopped_by != 0) return say_stopped(job);
  if (message[0] == '\0' && hs_colmap_last_error(job->plan->database)[0] != '\0') return fail_database(job);
  return fail(job, message[0] != '\0' ? message : hs_status_string(status));
}

/* ---- results */

static void print_record(const doubtful_job *job, const hs_judged_pair *pair) {
  const database_image *const images = job->plan->images->each;
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, images[pair->images.first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, images[pair->images.second].name);
  printf(", \"doubtful\": true, \"inliers\": %zu, \"on_tracks\": %zu, \"supported\": %zu}\n", pair->inlier_count,
         pair->on_tracks, pair->supported);
}

static cli_exit set_aside(doubtful_job *job) {
  for (size_t p = 0; p < job->count; p++) {
    const hs_judged_pair *const pair = &job->pairs[p];
    if (pair->verdict != HS_PAIR_DOUBTFUL) continue;
    if (colmap_set_aside(job->plan->database, job->pair_ids[p], pair->on_tracks, pair->supported) != HS_OK)
      return fail_database(job);
    job->set_aside++;
  }
  return CLI_DONE;
}

/* ------------------------------------------------------------------ tracks */

/* Reads the inliers of all pairs that were not set aside: joins their features to tracks, or with `shortens` reduces
   the pairs to the chosen tracks. Skips pairs that cannot be read. */
static hs_status pass_over_inliers(doubtful_job *job, long_tracks *tracks, bool shortens, uint32_t *inliers) {
  hs_status status = HS_OK;
  for (size_t p = 0; p < job->count && status == HS_OK; p++) {
    const hs_judged_pair *const pair = &job->pairs[p];
    if (pair->verdict == HS_PAIR_DOUBTFUL) continue;
    status = read_inliers(job, p, inliers);
    if (status == HS_ERR_FORMAT) {
      status = HS_OK;
      continue;
    }
    if (status == HS_OK && !shortens) long_tracks_join(tracks, pair->images, inliers, pair->inlier_count);
    if (status != HS_OK || !shortens) continue;
    const size_t kept = long_tracks_filter(tracks, pair->images, inliers, pair->inlier_count, FEWEST_INLIERS);
    job->inliers += pair->inlier_count;
    job->inliers_kept += kept;
    if (kept < pair->inlier_count) status = colmap_leave_inliers(job->plan->database, job->pair_ids[p], inliers, kept);
  }
  return status;
}

static cli_exit shorten(doubtful_job *job) {
  size_t most = 0;
  long_tracks tracks;
  for (size_t p = 0; p < job->count; p++) most = job->pairs[p].inlier_count > most ? job->pairs[p].inlier_count : most;
  uint32_t *const inliers = calloc(most + 1, 2 * sizeof *inliers);
  bool has_memory = long_tracks_begin(&tracks, job->feature_counts, job->plan->images->count) && inliers;
  hs_status status = has_memory ? pass_over_inliers(job, &tracks, false, inliers) : HS_OK;
  has_memory = has_memory && (status != HS_OK || long_tracks_choose(&tracks, job->plan->tracks));
  if (has_memory && status == HS_OK) status = pass_over_inliers(job, &tracks, true, inliers);
  long_tracks_end(&tracks);
  free(inliers);
  if (!has_memory) return fail(job, "out of memory for the tracks");
  if (job->stopped_by != 0) return say_stopped(job);
  return status == HS_OK ? CLI_DONE : fail_database(job);
}

static void report(const doubtful_job *job) {
  const char *hint = cli_hint(" (--doubtful keep restores them)");
  if (hint[0] == '\0') hint = " (--Hartsift.keep_doubtful 1 restores them)"; /* hartsift-colmap */
  const char *const path = job->plan->images->path;
  for (size_t p = 0; job->plan->has_json && p < job->count; p++)
    if (job->pairs[p].verdict == HS_PAIR_DOUBTFUL) print_record(job, &job->pairs[p]);
  if (job->plan->is_quiet) return;
  if (job->damaged > 0)
    cli_note("%s: %zu verified pair%s not judged: damaged, or with features that the images do not have", path,
             job->damaged, job->damaged == 1 ? "" : "s");
  if (job->set_aside > 0)
    cli_note("%s: %zu of %zu verified pairs left out as doubtful: tracks of the sure pairs do not confirm them%s", path,
             job->set_aside, job->count, hint);
  if (job->plan->tracks > 0)
    cli_note(
        "%s: %llu of %llu inliers stay: those of the %zu longest tracks of each image (a run without --tracks takes"
        " all back)",
        path, (unsigned long long)job->inliers_kept, (unsigned long long)job->inliers, job->plan->tracks);
  if (job->plan->keeps && job->taken_back > 0)
    cli_note("%s: %zu doubtful pair%s restored", path, job->taken_back, job->taken_back == 1 ? "" : "s");
}

cli_exit doubtful_pairs_settle(const doubtful_plan *plan) {
  doubtful_job job = {.plan = plan};
  const bool judges = !plan->keeps, lists = judges || plan->tracks > 0;
  cli_exit result = colmap_take_back(plan->database, &job.taken_back) == HS_OK ? CLI_DONE : fail_database(&job);
  if (result == CLI_DONE && lists) result = list_pairs(&job);
  if (result == CLI_DONE && lists) result = count_features(&job);
  if (result == CLI_DONE && judges && job.count > 0) result = judge(&job);
  if (result == CLI_DONE && judges) result = set_aside(&job);
  if (result == CLI_DONE && plan->tracks > 0) result = shorten(&job);
  if (result == CLI_DONE && hs_colmap_commit(plan->database) != HS_OK) result = fail_database(&job);
  if (result == CLI_DONE) report(&job);
  free(job.feature_counts);
  free(job.pairs);
  free(job.pair_ids);
  return result;
}

/* ---- sorting of pairs by their entries in the database */

/* READ_AT_ONCE: pairs read in one transaction; few, because other programs' commits wait meanwhile */
enum { STALE_NAMED = 8, STALE_TEXT_BYTES = 1024, READ_AT_ONCE = 1024 };

/* Kinds of invalid entries. */
typedef enum stale_kind { STALE_BEYOND, STALE_DAMAGED, STALE_KINDS } stale_kind;

/* Pairs whose entries are invalid because of one of their images. */
typedef struct stale_image {
  size_t count;
  int64_t largest;                /* largest feature index in the entries of these pairs */
  uint32_t partners[STALE_NAMED]; /* other images of the first of these pairs */
} stale_image;

typedef struct sorting {
  const pair_source *source;
  pair_wish wish;
  sorted_pairs *sorted;
  stale_image *stale[STALE_KINDS]; /* [kind][image] */
} sorting;

void sorted_pairs_free(sorted_pairs *sorted) {
  pair_list_free(&sorted->to_match);
  pair_list_free(&sorted->to_verify);
  free(sorted->is_stale);
  *sorted = (sorted_pairs){0};
}

static void note_stale(sorting *s, stale_kind kind, uint32_t image, uint32_t partner, int64_t largest) {
  stale_image *stale = &s->stale[kind][image];
  if (stale->count < STALE_NAMED) stale->partners[stale->count] = partner;
  if (largest > stale->largest) stale->largest = largest;
  stale->count++;
}

/* True if the entries of a pair are unusable. */
static bool is_stale(sorting *s, hs_image_pair pair, const colmap_pair_state *state) {
  const database_image *images = s->source->images->each;
  const uint32_t both[2] = {pair.first, pair.second};
  if (state->is_damaged) {
    note_stale(s, STALE_DAMAGED, pair.first, pair.second, 0);
    return true;
  }
  for (int i = 0; i < 2; i++) {
    if (state->largest[i] < 0 || (uint64_t)state->largest[i] < images[both[i]].features) continue;
    note_stale(s, STALE_BEYOND, both[i], both[1 - i], state->largest[i]);
    return true;
  }
  return false;
}

static bool add_to_match(sorting *s, hs_image_pair pair, bool stale) {
  sorted_pairs *sorted = s->sorted;
  sorted->is_stale[sorted->to_match.count] = stale;
  return pair_list_add(&sorted->to_match, pair.first, pair.second);
}

/* Sorts a pair if pair_wish.replaces is set. Its lists need not be read. */
static bool sort_replaced(sorting *s, hs_image_pair pair) {
  const database_image *images = s->source->images->each;
  int64_t matches = -1, verified = -1;
  /* a failure appears again when the pair is stored */
  (void)hs_colmap_count_matches(s->source->database, images[pair.first].image_id, images[pair.second].image_id,
                                &matches, &verified);
  s->sorted->replaced += matches >= 0 || verified >= 0;
  s->sorted->without_geometry += matches >= 0 && verified < 0;
  return add_to_match(s, pair, false);
}

/* Sorts a pair by the state of its entries. False: out of memory. */
static bool sort_pair(sorting *s, hs_image_pair pair) {
  const database_image *images = s->source->images->each;
  sorted_pairs *sorted = s->sorted;
  colmap_pair_state state;
  if (s->wish.replaces) return sort_replaced(s, pair);
  if (colmap_look_at_pair(s->source->database, images[pair.first].image_id, images[pair.second].image_id, &state) !=
      HS_OK)
    return add_to_match(s, pair, false);
  if (is_stale(s, pair, &state)) return add_to_match(s, pair, true);
  if (state.matches < 0 && state.verified < 0) return add_to_match(s, pair, false);
  if (s->wish.verifies && state.verified < 0) return pair_list_add(&sorted->to_verify, pair.first, pair.second);
  sorted->done++;
  return true;
}

/* ---- messages */

/* Writes the other images of an image's pairs: "b, c and 7 more images". */
static void name_partners(const database_images *images, const stale_image *stale, char text[STALE_TEXT_BYTES]) {
  const size_t named = stale->count < STALE_NAMED ? stale->count : STALE_NAMED;
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < named && used < STALE_TEXT_BYTES; i++) {
    const char *joined = i == 0 ? "" : i + 1 == stale->count ? " and " : ", ";
    used +=
        (size_t)snprintf(text + used, STALE_TEXT_BYTES - used, "%s%s", joined, images->each[stale->partners[i]].name);
  }
  if (stale->count > named && used < STALE_TEXT_BYTES)
    snprintf(text + used, STALE_TEXT_BYTES - used, " and %zu more image%s", stale->count - named,
             stale->count - named == 1 ? "" : "s");
}

static void report_stale(const sorting *s) {
  const database_images *images = s->source->images;
  char partners[STALE_TEXT_BYTES];
  for (size_t i = 0; i < images->count; i++) {
    const stale_image *beyond = &s->stale[STALE_BEYOND][i], *damaged = &s->stale[STALE_DAMAGED][i];
    if (beyond->count > 0) {
      name_partners(images, beyond, partners);
      cli_error(COMMAND_MATCH,
                "%s: %s has %zu features, and its matches with %s are of features up to number %" PRId64
                ": they were made for other features, and are made anew",
                images->path, images->each[i].name, images->each[i].features, partners, beyond->largest);
    }
    if (damaged->count > 0) {
      name_partners(images, damaged, partners);
      cli_error(COMMAND_MATCH, "%s: the matches of %s with %s are damaged, and are made anew", images->path,
                images->each[i].name, partners);
    }
  }
}

cli_exit pair_states_sort(const pair_source *source, const pair_list *pairs, pair_wish wish, sorted_pairs *sorted) {
  sorting s = {.source = source, .wish = wish, .sorted = sorted};
  *sorted = (sorted_pairs){.is_stale = calloc(pairs->count + 1, sizeof *sorted->is_stale)};
  bool done = sorted->is_stale != NULL;
  for (int i = 0; i < STALE_KINDS; i++) {
    s.stale[i] = calloc(source->images->count + 1, sizeof *s.stale[i]);
    done = done && s.stale[i];
  }
  for (size_t i = 0; done && i < pairs->count;) {
    const size_t end = pairs->count - i < READ_AT_ONCE ? pairs->count : i + READ_AT_ONCE;
    colmap_begin_reading(source->database);
    for (; done && i < end; i++) done = sort_pair(&s, pairs->each[i]);
    colmap_end_reading(source->database);
  }
  if (done)
    report_stale(&s);
  else
    cli_error(COMMAND_MATCH, "%s: out of memory for the pairs", source->images->path);
  for (int i = 0; i < STALE_KINDS; i++) free(s.stale[i]);
  return done ? CLI_DONE : CLI_FAILED;
}
