/*
 * Sequences of images and of frames; see rig_pairs.h.
 */
#include "pipeline/cli/pairs/rig_pairs.h"

#include <stdlib.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

/* An image and what it belongs to. */
typedef struct rig_image {
  uint32_t image;
  size_t frame; /* index of the frame, of a rig's image */
  colmap_frame in;
} rig_image;

typedef struct rig_sequence {
  const pair_choice *choice;
  const pair_source *source;
  rig_image *images; /* sorted as the current step needs them */
  const char **names;
  size_t *starts;   /* of each frame in images that are sorted by frame, and of what follows the last one */
  uint32_t *sorted; /* the images by frame */
  size_t frame_count;
  pair_list frames; /* pairs of frames */
  pair_list *pairs;
} rig_sequence;

static cli_exit no_memory(const rig_sequence *s) {
  cli_error(COMMAND_MATCH, "%s: no memory for its pairs", s->source->images->path);
  return CLI_FAILED;
}

/* ------------------------------------------------------------------ orders */

static int compare_integers(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* Images of no rig first, then by frame, then by number. */
static int compare_frames(const void *one, const void *other) {
  const rig_image *a = one, *b = other;
  if (a->in.is_of_rig != b->in.is_of_rig) return a->in.is_of_rig ? 1 : -1;
  const int order = a->in.is_of_rig ? compare_integers(a->in.frame_id, b->in.frame_id) : 0;
  return order != 0 ? order : compare_integers(a->image, b->image);
}

/* Images of no rig first, then by camera, then by number. */
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
    cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(s->source->database));
    return CLI_FAILED;
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

/* The neighbours among images from..to-1, as pairs of images or, of a rig's, of frames. */
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
  return added ? CLI_DONE : no_memory(s);
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

/* All images of a frame with all of another, or with each other. */
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
  if (!added) return no_memory(s);
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
  cli_exit result = s.images && s.names && s.starts && s.sorted ? read_frames(&s) : no_memory(&s);
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
