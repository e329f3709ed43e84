/*
 * Lists of pairs; see pair_list.h.
 */
#include "pipeline/cli/pairs/pair_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/utf8.h"
#include "pipeline/cli/pairs/pair_choice.h"
#include "pipeline/cli/pairs/rig_pairs.h"

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
