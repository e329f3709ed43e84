/* Lists of pairs, and what the database has of each; see pair_list.h. */
#include "pipeline/cli/pairs/pair_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/utf8.h"
#include "pipeline/cli/pairs/pair_choice.h"
#include "pipeline/formats/colmap/colmap_pairs.h"

/* ---- a growing list */

bool pair_list_add(pair_list *pairs, size_t first, size_t second) {
  /* Room doubles: at powers of two. */
  if ((pairs->count & (pairs->count - 1)) == 0) {
    const size_t room = pairs->count == 0 ? 1 : 2 * pairs->count;
    hs_image_pair *larger = room <= SIZE_MAX / sizeof *larger ? realloc(pairs->each, room * sizeof *larger) : NULL;
    if (!larger) return false;
    pairs->each = larger;
  }
  pairs->each[pairs->count++] = (hs_image_pair){(uint32_t)first, (uint32_t)second};
  return true;
}

void pair_list_free(pair_list *pairs) {
  free(pairs->each);
  *pairs = (pair_list){0};
}

static int compare_pairs(const void *one, const void *other) {
  const hs_image_pair *a = one, *b = other;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a->second > b->second) - (a->second < b->second);
}

void pair_list_settle(pair_list *pairs) {
  size_t kept = 0;
  if (pairs->count > 1) qsort(pairs->each, pairs->count, sizeof *pairs->each, compare_pairs);
  for (size_t i = 0; i < pairs->count; i++)
    if (kept == 0 || compare_pairs(&pairs->each[kept - 1], &pairs->each[i]) != 0) pairs->each[kept++] = pairs->each[i];
  pairs->count = kept;
}

/* ---- the pairs of a list or a rule */

enum { PAIR_LINE_BYTES = 8192 };

static cli_exit no_memory(const database_images *images) {
  cli_error(COMMAND_MATCH, "%s: no memory for its pairs", images->path);
  return CLI_FAILED;
}

static cli_exit list_all_pairs(const database_images *images, pair_list *pairs) {
  for (size_t i = 0; i < images->count; i++) {
    for (size_t k = i + 1; k < images->count; k++)
      if (!pair_list_add(pairs, i, k)) return no_memory(images);
  }
  return CLI_DONE;
}

/* ------------------------------------------------------------------ a file of names */

/* For finding an image by its name. */
typedef struct named_image {
  const char *name;
  size_t index; /* of the images */
} named_image;

enum { PAIR_UNKNOWN_MOST = 32 };

typedef struct pair_file {
  const char *path;
  const database_images *images;
  named_image *by_name; /* sorted */
  pair_list *pairs;
  char *unknown[PAIR_UNKNOWN_MOST]; /* names of no image, each of which was named to the user */
  size_t unknown_count, further;    /* further: lines with others */
} pair_file;

static int compare_names(const void *one, const void *other) {
  return strcmp(((const named_image *)one)->name, ((const named_image *)other)->name);
}

static bool sort_names(pair_file *file) {
  const size_t count = file->images->count;
  file->by_name = malloc((count + 1) * sizeof *file->by_name);
  if (!file->by_name) return false;
  for (size_t i = 0; i < count; i++) file->by_name[i] = (named_image){file->images->each[i].name, i};
  qsort(file->by_name, count, sizeof *file->by_name, compare_names);
  return true;
}

static size_t index_of(const pair_file *file, const char *name) {
  const named_image key = {.name = name};
  const named_image *found = bsearch(&key, file->by_name, file->images->count, sizeof key, compare_names);
  return found ? found->index : file->images->count;
}

/* Names an image that the database has not, once however many pairs it is in. */
static void tell_unknown(pair_file *file, const char *name, size_t number) {
  for (size_t i = 0; i < file->unknown_count; i++)
    if (strcmp(file->unknown[i], name) == 0) return;
  char *copy = file->unknown_count < PAIR_UNKNOWN_MOST ? strdup(name) : NULL;
  if (!copy) {
    file->further++;
    return;
  }
  file->unknown[file->unknown_count++] = copy;
  cli_error(COMMAND_MATCH, "--pairs: %s:%zu: '%s' is not an image with features in %s: its pairs are left out",
            file->path, number, name, file->images->path);
}

static void end_unknown(pair_file *file) {
  if (file->further > 0)
    cli_error(COMMAND_MATCH, "--pairs: %s: %zu more lines with other images that are not in %s with features",
              file->path, file->further, file->images->path);
  for (size_t i = 0; i < file->unknown_count; i++) free(file->unknown[i]);
}

/* "NAME NAME" or, for names with spaces, with a tab between. */
static cli_exit read_pair(pair_file *file, char *line, size_t number) {
  char *separator = strchr(line, '\t');
  if (!separator) separator = strchr(line, ' ');
  size_t found[2];
  if (!separator) {
    cli_error(COMMAND_MATCH, "--pairs: %s:%zu: has one name, '%s': expected two, with a space or a tab between",
              file->path, number, line);
    return CLI_FAILED;
  }
  *separator = '\0';
  const char *const names[2] = {line, separator + 1};
  for (size_t i = 0; i < 2; i++) {
    found[i] = index_of(file, names[i]);
    if (found[i] == file->images->count) {
      tell_unknown(file, names[i], number);
      file->pairs->left_out++;
      return CLI_DONE;
    }
  }
  if (found[0] == found[1]) {
    cli_error(COMMAND_MATCH, "--pairs: %s:%zu: an image cannot be matched with itself", file->path, number);
    return CLI_FAILED;
  }
  return pair_list_add(file->pairs, found[0], found[1]) ? CLI_DONE : no_memory(file->images);
}

static cli_exit read_lines(pair_file *from, FILE *file) {
  char line[PAIR_LINE_BYTES];
  cli_exit result = CLI_DONE;
  for (size_t number = 1; result == CLI_DONE && fgets(line, sizeof line, file) != NULL; number++) {
    const size_t length = strcspn(line, "\r\n");
    if (number == 1 && utf16_is_marked(line, length)) {
      cli_error(COMMAND_MATCH, "--pairs: %s: is in UTF-16: expected UTF-8, with two names a line", from->path);
      return CLI_FAILED;
    }
    if (line[length] == '\0' && !feof(file)) {
      cli_error(COMMAND_MATCH, "--pairs: %s:%zu: is longer than %d bytes or has a zero byte", from->path, number,
                PAIR_LINE_BYTES - 2);
      result = CLI_FAILED;
    }
    line[length] = '\0';
    const size_t mark = number == 1 ? utf8_mark_length(line, length) : 0;
    if (result == CLI_DONE && length > mark && line[mark] != '#') result = read_pair(from, line + mark, number);
  }
  if (result == CLI_DONE && ferror(file)) {
    cli_error(COMMAND_MATCH, "--pairs: cannot read %s", from->path);
    result = CLI_FAILED;
  }
  return result;
}

/* A pair of the list, the lower image first. */
typedef struct listed_pair {
  uint32_t low, high;
  size_t at;
} listed_pair;

static int compare_listed(const void *one, const void *other) {
  const listed_pair *a = one, *b = other;
  if (a->low != b->low) return a->low < b->low ? -1 : 1;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

/* Keeps the first of the pairs that are of the same images, in whichever order: a database has room for one. */
static cli_exit drop_repeated(const database_images *images, pair_list *pairs) {
  const size_t count = pairs->count;
  listed_pair *listed = malloc((count + 1) * sizeof *listed);
  if (!listed) return no_memory(images);
  for (size_t i = 0; i < count; i++) {
    const hs_image_pair p = pairs->each[i];
    listed[i] = (listed_pair){p.first < p.second ? p.first : p.second, p.first < p.second ? p.second : p.first, i};
  }
  qsort(listed, count, sizeof *listed, compare_listed);
  for (size_t i = 1; i < count; i++) /* an image is in no pair with itself */
    if (listed[i].low == listed[i - 1].low && listed[i].high == listed[i - 1].high)
      pairs->each[listed[i].at].second = pairs->each[listed[i].at].first;
  pairs->count = 0;
  for (size_t i = 0; i < count; i++)
    if (pairs->each[i].first != pairs->each[i].second) pairs->each[pairs->count++] = pairs->each[i];
  free(listed);
  return CLI_DONE;
}

static cli_exit read_file(const char *path, const database_images *images, pair_list *pairs) {
  pair_file from = {.path = path, .images = images, .pairs = pairs};
  if (!sort_names(&from)) {
    cli_error(COMMAND_MATCH, "%s: no memory for its images", images->path);
    return CLI_FAILED;
  }
  FILE *file = fopen(path, "r");
  cli_exit result = CLI_FAILED;
  if (file) {
    result = read_lines(&from, file);
    end_unknown(&from);
    (void)fclose(file);
    if (result == CLI_DONE) result = drop_repeated(images, pairs);
  } else {
    cli_error(
        COMMAND_MATCH,
        "--pairs '%s': cannot be opened: %s; expected all, sequential:N, spatial:METRES, retrieval:K, or a file of pairs",
        path, strerror(errno));
  }
  free(from.by_name);
  return result;
}

cli_exit pair_list_check(const option_set *set) {
  pair_choice choice;
  return set->values[OPTION_PAIRS].given ? pair_choice_parse(set->values[OPTION_PAIRS].text, &choice) : CLI_DONE;
}

cli_exit pair_list_make(const pair_source *source, pair_list *pairs) {
  const option_value *named = &source->set->values[OPTION_PAIRS];
  pair_choice choice = {.kind = PAIR_CHOICE_ALL};
  const cli_exit result = named->given ? pair_choice_parse(named->text, &choice) : CLI_DONE;
  if (result != CLI_DONE) return result;
  if (choice.kind == PAIR_CHOICE_ALL) return list_all_pairs(source->images, pairs);
  if (choice.kind == PAIR_CHOICE_SEQUENTIAL) return rig_pairs_make(&choice, source, pairs);
  if (choice.kind == PAIR_CHOICE_FILE) return read_file(named->text, source->images, pairs);
  hs_image_pairs chosen = {0};
  const cli_exit made = pair_choice_make(&choice, source, &chosen);
  bool added = made == CLI_DONE;
  for (size_t i = 0; i < chosen.count && added; i++)
    added = pair_list_add(pairs, chosen.pairs[i].first, chosen.pairs[i].second);
  hs_image_pairs_free(&chosen);
  return made == CLI_DONE && !added ? no_memory(source->images) : made;
}

/* ---- pairs by what the database has of them */

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
