/* Lists of pairs: a growing list, pairs from a file, and pairs by sequence, position or similarity; see pair_list.h. */
#include "pipeline/cli/pairs/pair_list.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/text_cursor.h"

/* ---- a growing list */

bool pair_list_add(pair_list *pairs, size_t first, size_t second) {
  /* the capacity doubles when count reaches a power of two */
  if ((pairs->count & (pairs->count - 1)) == 0) {
    const size_t capacity = pairs->count == 0 ? 1 : 2 * pairs->count;
    hs_image_pair *larger =
        capacity <= SIZE_MAX / sizeof *larger ? realloc(pairs->each, capacity * sizeof *larger) : NULL;
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

/* ---- pairs of a file or a rule */

static cli_exit no_memory(const database_images *images) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: out of memory", images->path);
}

static cli_exit list_all_pairs(const database_images *images, pair_list *pairs) {
  for (size_t i = 0; i < images->count; i++) {
    for (size_t k = i + 1; k < images->count; k++)
      if (!pair_list_add(pairs, i, k)) return no_memory(images);
  }
  return CLI_DONE;
}

/* ------------------------------------------------------------------ a file of names */

/* An image, for the search by name. */
typedef struct named_image {
  const char *name;
  size_t index; /* index of the image */
} named_image;

enum { PAIR_UNKNOWN_MAX = 32 };

typedef struct pair_file {
  const char *path;
  const database_images *images;
  named_image *by_name; /* sorted */
  pair_list *pairs;
  char *unknown[PAIR_UNKNOWN_MAX]; /* unknown names that were already reported */
  size_t unknown_count, further;   /* further: number of lines with more unknown names */
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

/* Reports an unknown image only once, even if it is in many pairs. */
static void report_unknown(pair_file *file, const char *name, size_t number) {
  for (size_t i = 0; i < file->unknown_count; i++)
    if (strcmp(file->unknown[i], name) == 0) return;
  char *copy = file->unknown_count < PAIR_UNKNOWN_MAX ? strdup(name) : NULL;
  if (!copy) {
    file->further++;
    return;
  }
  file->unknown[file->unknown_count++] = copy;
  cli_error(COMMAND_MATCH, "%s%s:%zu: '%s' is not an image with features in %s: its pairs are left out",
            cli_hint("--pairs: "), file->path, number, name, file->images->path);
}

static void end_unknown(pair_file *file) {
  if (file->further > 0)
    cli_error(COMMAND_MATCH, "%s%s: %zu more lines with other images that are not in %s with features",
              cli_hint("--pairs: "), file->path, file->further, file->images->path);
  for (size_t i = 0; i < file->unknown_count; i++) free(file->unknown[i]);
}

/* Reads "NAME NAME", or with a tab between for names with spaces. */
static cli_exit read_pair(pair_file *file, char *line, size_t number) {
  char *separator = strchr(line, '\t');
  if (!separator) separator = strchr(line, ' ');
  size_t found[2];
  if (!separator)
    return cli_fail(CLI_FAILED, COMMAND_MATCH,
                    "%s%s:%zu: has one name, '%s': expected two, with a space or a tab between", cli_hint("--pairs: "),
                    file->path, number, line);
  os_normalise_path(line);
  *separator = '\0';
  const char *const names[2] = {line, separator + 1};
  for (size_t i = 0; i < 2; i++) {
    found[i] = index_of(file, names[i]);
    if (found[i] == file->images->count) {
      report_unknown(file, names[i], number);
      file->pairs->left_out++;
      return CLI_DONE;
    }
  }
  if (found[0] == found[1]) {
    cli_error(COMMAND_MATCH, "%s%s:%zu: an image cannot be matched with itself: the pair is left out",
              cli_hint("--pairs: "), file->path, number);
    file->pairs->left_out++;
    return CLI_DONE;
  }
  return pair_list_add(file->pairs, found[0], found[1]) ? CLI_DONE : no_memory(file->images);
}

static cli_exit read_lines(pair_file *from, FILE *file) {
  name_lines lines = {.command = COMMAND_MATCH, .option = cli_hint("--pairs: "), .path = from->path, .file = file};
  char *line;
  for (;;) {
    cli_exit result = name_lines_next(&lines, &line);
    if (result != CLI_DONE || !line) return result;
    if (line[0] != '\0' && line[0] != '#') result = read_pair(from, line, lines.number);
    if (result != CLI_DONE) return result;
  }
}

/* A pair from a list, with the lower image first. */
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

/* Keeps only the first of repeated pairs, in either order, because a database has one entry per pair. */
static cli_exit drop_repeated(const database_images *images, pair_list *pairs) {
  const size_t count = pairs->count;
  listed_pair *listed = malloc((count + 1) * sizeof *listed);
  if (!listed) return no_memory(images);
  for (size_t i = 0; i < count; i++) {
    const hs_image_pair p = pairs->each[i];
    listed[i] = (listed_pair){p.first < p.second ? p.first : p.second, p.first < p.second ? p.second : p.first, i};
  }
  qsort(listed, count, sizeof *listed, compare_listed);
  for (size_t i = 1; i < count; i++) /* drops pairs of an image with itself */
    if (listed[i].low == listed[i - 1].low && listed[i].high == listed[i - 1].high)
      pairs->each[listed[i].at].second = pairs->each[listed[i].at].first;
  pairs->count = 0;
  for (size_t i = 0; i < count; i++)
    if (pairs->each[i].first != pairs->each[i].second) pairs->each[pairs->count++] = pairs->each[i];
  free(listed);
  return CLI_DONE;
}

/* Lists the pairs of image_ids that the caller chose. */
static cli_exit list_chosen(const pair_source *source, pair_list *pairs) {
  const database_images *images = source->images;
  size_t a, b;
  for (size_t i = 0; i < source->chosen_count; i++) {
    const hs_image_pair ids = source->chosen[i];
    if (database_images_find(images, ids.first, &a) && database_images_find(images, ids.second, &b) &&
        !pair_list_add(pairs, a, b))
      return no_memory(images);
  }
  return drop_repeated(images, pairs);
}

static cli_exit read_file(const char *path, const database_images *images, pair_list *pairs) {
  pair_file from = {.path = path, .images = images, .pairs = pairs};
  if (!sort_names(&from)) return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: out of memory for the images", images->path);
  FILE *file = os_open_stream(path, "r");
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
  return set->values[OPTION_PAIRS].is_set ? pair_choice_parse(set->values[OPTION_PAIRS].text, &choice) : CLI_DONE;
}

cli_exit pair_list_make(const pair_source *source, pair_list *pairs) {
  const option_value *named = &source->set->values[OPTION_PAIRS];
  pair_choice choice = {.kind = PAIR_CHOICE_ALL};
  if (source->chosen) return list_chosen(source, pairs);
  const cli_exit result = named->is_set ? pair_choice_parse(named->text, &choice) : CLI_DONE;
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

/* ---- sequences of images and of frames */

/* An image with its rig, frame and camera. */
typedef struct rig_image {
  uint32_t image;
  size_t frame; /* index of the frame; only for an image of a rig */
  colmap_frame in;
} rig_image;

typedef struct rig_sequence {
  const pair_choice *choice;
  const pair_source *source;
  rig_image *images; /* images in the order of the current step */
  const char **names;
  size_t *starts;   /* start of each frame in `sorted`, and the end of the last one */
  uint32_t *sorted; /* images sorted by frame */
  size_t frame_count;
  pair_list frames; /* pairs of frames */
  pair_list *pairs;
} rig_sequence;

/* ------------------------------------------------------------------ orders */

static int compare_integers(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Compares images: those without rig first, then by frame, then by index. */
static int compare_frames(const void *one, const void *other) {
  const rig_image *a = one, *b = other;
  if (a->in.is_of_rig != b->in.is_of_rig) return a->in.is_of_rig ? 1 : -1;
  const int order = a->in.is_of_rig ? compare_integers(a->in.frame_id, b->in.frame_id) : 0;
  return order != 0 ? order : compare_integers(a->image, b->image);
}

/* Compares images: those without rig first, then by camera, then by index. */
static int compare_cameras(const void *one, const void *other) {
  const rig_image *a = one, *b = other;
  if (a->in.is_of_rig != b->in.is_of_rig) return a->in.is_of_rig ? 1 : -1;
  const int order = a->in.is_of_rig ? compare_integers(a->in.camera_id, b->in.camera_id) : 0;
  return order != 0 ? order : compare_integers(a->image, b->image);
}

static bool add_ordered(pair_list *pairs, size_t one, size_t other) {
  return one < other ? pair_list_add(pairs, one, other) : pair_list_add(pairs, other, one);
}

/* ------------------------------------------------------------------ steps */

static cli_exit read_frames(rig_sequence *s) {
  const database_images *images = s->source->images;
  for (size_t i = 0; i < images->count; i++) {
    s->images[i].image = (uint32_t)i;
    if (colmap_read_frame(s->source->database, images->each[i].image_id, &s->images[i].in) == HS_OK) continue;
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(s->source->database));
  }
  return CLI_DONE;
}

/* Numbers the frames of rigs, and lists their images. */
static void number_frames(rig_sequence *s) {
  const size_t count = s->source->images->count;
  const rig_image *before = NULL;
  qsort(s->images, count, sizeof *s->images, compare_frames);
  for (size_t i = 0; i < count; i++) {
    rig_image *image = &s->images[i];
    s->sorted[i] = image->image;
    if (!image->in.is_of_rig) continue;
    if (!before || before->in.frame_id != image->in.frame_id) s->starts[s->frame_count++] = i;
    image->frame = s->frame_count - 1;
    before = image;
  }
  s->starts[s->frame_count] = count;
}

/* Adds the neighbours among the images from..to-1: pairs of images, or for a rig pairs of frames. */
static cli_exit follow(rig_sequence *s, size_t from, size_t to) {
  hs_image_pairs found = {0};
  const bool of_rig = s->images[from].in.is_of_rig;
  for (size_t i = from; i < to; i++) s->names[i - from] = s->source->images->each[s->images[i].image].name;
  const hs_status status = hs_pair_sequence(s->names, to - from, s->choice->neighbors, s->choice->quadratic, &found);
  bool added = status == HS_OK;
  for (size_t i = 0; i < found.count && added; i++) {
    const rig_image *a = &s->images[from + found.pairs[i].first], *b = &s->images[from + found.pairs[i].second];
    if (!of_rig)
      added = add_ordered(s->pairs, a->image, b->image);
    else if (a->frame != b->frame)
      added = add_ordered(&s->frames, a->frame, b->frame);
  }
  hs_image_pairs_free(&found);
  return added ? CLI_DONE : no_memory(s->source->images);
}

static cli_exit follow_all(rig_sequence *s) {
  const size_t count = s->source->images->count;
  cli_exit result = CLI_DONE;
  qsort(s->images, count, sizeof *s->images, compare_cameras);
  for (size_t from = 0, to; result == CLI_DONE && from < count; from = to) {
    const rig_image *first = &s->images[from];
    for (to = from; to < count && s->images[to].in.is_of_rig == first->in.is_of_rig &&
                    (!first->in.is_of_rig || s->images[to].in.camera_id == first->in.camera_id);)
      to++;
    result = follow(s, from, to);
  }
  return result;
}

/* Pairs all images of one frame with all images of another, or within one frame. */
static bool pair_frames(rig_sequence *s, size_t one, size_t other) {
  for (size_t i = s->starts[one]; i < s->starts[one + 1]; i++)
    for (size_t k = one == other ? i + 1 : s->starts[other]; k < s->starts[other + 1]; k++)
      if (!add_ordered(s->pairs, s->sorted[i], s->sorted[k])) return false;
  return true;
}

static cli_exit expand(rig_sequence *s) {
  bool added = true;
  pair_list_settle(&s->frames);
  for (size_t i = 0; i < s->frame_count && added; i++) added = pair_frames(s, i, i);
  for (size_t i = 0; i < s->frames.count && added; i++)
    added = pair_frames(s, s->frames.each[i].first, s->frames.each[i].second);
  if (!added) return no_memory(s->source->images);
  pair_list_settle(s->pairs);
  return CLI_DONE;
}

cli_exit rig_pairs_make(const pair_choice *choice, const pair_source *source, pair_list *pairs) {
  const size_t count = source->images->count;
  rig_sequence s = {.choice = choice,
                    .source = source,
                    .images = calloc(count + 1, sizeof *s.images),
                    .names = calloc(count + 1, sizeof *s.names),
                    .starts = calloc(count + 1, sizeof *s.starts),
                    .sorted = calloc(count + 1, sizeof *s.sorted),
                    .pairs = pairs};
  cli_exit result = s.images && s.names && s.starts && s.sorted ? read_frames(&s) : no_memory(s.source->images);
  if (result == CLI_DONE) {
    number_frames(&s);
    result = follow_all(&s);
  }
  if (result == CLI_DONE) result = expand(&s);
  pair_list_free(&s.frames);
  free(s.images);
  free(s.names);
  free(s.starts);
  free(s.sorted);
  return result;
}

/* ---- positions */

/* ------------------------------------------------------------------ forms */

static cli_exit refuse(const char *text, const char *expected) {
  return cli_fail(CLI_USAGE, COMMAND_MATCH, "--pairs '%s': expected %s (a file of that name: ./%s)", text, expected,
                  text);
}

/* Parses a number of at least 1 from `length` characters: digits without leading zeros, as in the Python package. */
static bool parse_count(const char *text, size_t length, uint32_t *count) {
  int64_t value;
  if (text[0] < '1' || text[0] > '9' || !number_to_int(text, length, &value) || value > UINT32_MAX) return false;
  *count = (uint32_t)value;
  return true;
}

static bool parse_sequential(const char *rest, pair_choice *choice) {
  const size_t length = strcspn(rest, ",");
  choice->quadratic = rest[length] == ',';
  return parse_count(rest, length, &choice->neighbors) &&
         (!choice->quadratic || strcmp(rest + length + 1, "quadratic") == 0);
}

static bool parse_spatial(const char *rest, pair_choice *choice) {
  const size_t length = strcspn(rest, ",");
  if (!number_to_double(rest, length, &choice->metres) || !(choice->metres >= 0.0)) return false;
  return rest[length] == '\0' || parse_count(rest + length + 1, strlen(rest + length + 1), &choice->neighbors);
}

static bool parse_retrieval(const char *rest, pair_choice *choice) {
  const size_t length = strcspn(rest, ",");
  if (rest[length] == ',') choice->vectors = rest + length + 1;
  return parse_count(rest, length, &choice->neighbors) && (!choice->vectors || path_ends_with(choice->vectors, ".npy"));
}

cli_exit pair_choice_parse(const char *text, pair_choice *choice) {
  static const char sequential[] = "sequential:", spatial[] = "spatial:", retrieval[] = "retrieval:";
  *choice = (pair_choice){.kind = PAIR_CHOICE_FILE};
  if (strcmp(text, "all") == 0) choice->kind = PAIR_CHOICE_ALL;
  if (strncmp(text, sequential, sizeof sequential - 1) == 0) {
    choice->kind = PAIR_CHOICE_SEQUENTIAL;
    if (!parse_sequential(text + sizeof sequential - 1, choice))
      return refuse(text, "sequential:N or sequential:N,quadratic, N 1 or more");
  } else if (strncmp(text, spatial, sizeof spatial - 1) == 0) {
    choice->kind = PAIR_CHOICE_SPATIAL;
    if (!parse_spatial(text + sizeof spatial - 1, choice))
      return refuse(text, "spatial:METRES or spatial:METRES,N, METRES 0 or more, N 1 or more");
  } else if (strncmp(text, retrieval, sizeof retrieval - 1) == 0) {
    choice->kind = PAIR_CHOICE_RETRIEVAL;
    if (!parse_retrieval(text + sizeof retrieval - 1, choice))
      return refuse(text, "retrieval:K or retrieval:K,FILE.npy, K 1 or more");
  }
  return CLI_DONE;
}

/* ---- by positions */

static bool is_quiet(const pair_source *source) { return source->set->values[OPTION_QUIET].is_set; }

/* Reads positions without altitude, because cameras' altitudes are tens of metres off, or missing. */
static cli_exit read_positions(const pair_source *source, double *positions, size_t *known) {
  for (size_t i = 0; i < source->images->count; i++) {
    hs_colmap_position position;
    double *xyz = positions + 3 * i;
    if (hs_colmap_read_position(source->database, source->images->each[i].image_id, &position) != HS_OK)
      return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(source->database));
    const double *at = position.coordinates;
    for (int k = 0; k < 3; k++) xyz[k] = position.is_cartesian != 0 ? at[k] : NAN;
    bool has_position = position.found != 0;
    if (has_position && position.is_cartesian == 0) has_position = hs_earth_place(at[0], at[1], 0.0, xyz) == HS_OK;
    if (has_position)
      (*known)++;
    else
      xyz[0] = NAN;
  }
  return CLI_DONE;
}

static cli_exit pair_by_positions(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  const size_t count = source->images->count;
  size_t known = 0;
  double *positions = malloc((count + 1) * 3 * sizeof *positions);
  if (!positions) return database_images_fail(source->images, "out of memory for the images");
  cli_exit result = read_positions(source, positions, &known);
  if (result == CLI_DONE && known == 0 && count > 0)
    result = database_images_fail(
        source->images, "none of its images has a position: expected GPS in the EXIF of the JPEGs that features are "
                        "extracted from, or COLMAP's pose_priors");
  if (result == CLI_DONE && known < count && !is_quiet(source))
    cli_note("%s: %zu of %zu images have no position and are matched with none", source->images->path, count - known,
             count);
  if (result == CLI_DONE) {
    const hs_status status = hs_pair_nearby(positions, count, choice->metres, choice->neighbors, pairs);
    if (status != HS_OK) result = database_images_fail_status(source->images, source->context, status);
  }
  free(positions);
  return result;
}

cli_exit pair_choice_make(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  if (choice->kind == PAIR_CHOICE_SPATIAL) return pair_by_positions(choice, source, pairs);
  return pair_by_looks(choice, source, pairs);
}
