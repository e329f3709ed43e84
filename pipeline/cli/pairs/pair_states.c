/*
 * Pairs by what the database has of them; see pair_states.h.
 */
#include "pipeline/cli/pairs/pair_states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

enum { STALE_NAMED = 8, STALE_TEXT_BYTES = 1024 };

/* What is wrong with entries. */
typedef enum stale_kind { STALE_BEYOND, STALE_DAMAGED, STALE_KINDS } stale_kind;

/* The pairs of an image whose entries are wrong because of it. */
typedef struct stale_image {
  size_t count;
  int64_t largest;                /* index of a feature */
  uint32_t partners[STALE_NAMED]; /* the first ones */
} stale_image;

typedef struct sorting {
  const pair_source *source;
  pair_wish wish;
  sorted_pairs *sorted;
  stale_image *stale[STALE_KINDS]; /* by image */
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

/* Whether the entries cannot be used. */
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

/* With pair_wish.replaces: the lists themselves need not be read. */
static bool sort_replaced(sorting *s, hs_image_pair pair) {
  const database_image *images = s->source->images->each;
  int64_t matches = -1, verified = -1;
  /* A failure shows again when the pair is stored. */
  (void)hs_colmap_count_matches(s->source->database, images[pair.first].image_id, images[pair.second].image_id,
                                &matches, &verified);
  s->sorted->replaced += matches >= 0 || verified >= 0;
  s->sorted->without_geometry += matches >= 0 && verified < 0;
  return add_to_match(s, pair, false);
}

/* False: no memory. */
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

/* ------------------------------------------------------------------ what is wrong */

/* "b, c and 7 more images" */
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

static void tell_stale(const sorting *s) {
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
  for (size_t i = 0; done && i < pairs->count; i++) done = sort_pair(&s, pairs->each[i]);
  if (done)
    tell_stale(&s);
  else
    cli_error(COMMAND_MATCH, "%s: no memory for its pairs", source->images->path);
  for (int i = 0; i < STALE_KINDS; i++) free(s.stale[i]);
  return done ? CLI_DONE : CLI_FAILED;
}
