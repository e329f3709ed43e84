/*
 * hartsift draw with two images and a file of matches: both pictures side by side, a line for each match.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pipeline/cli/draw/draw_common.h"
#include "pipeline/cli/common/match_file.h"

/* Places in draw_palette. */
enum { COLOUR_INLIER = 1, COLOUR_OUTLIER = 5 };

/* Two pictures side by side and what is drawn on them. */
typedef struct match_picture {
  const drawing *pictures; /* both */
  drawing both;
  const hs_features *features; /* of both */
  const match_table *table;
  int32_t shift; /* of the second picture to the right */
} match_picture;

/* What the operands name. */
typedef struct match_operands {
  const option_set *set;
  hs_context *context; /* null: features come from files */
  cli_input input;
  drawing pictures[2];
  hs_features features[2];
  match_table table;
} match_operands;

static void draw_end(drawing *picture, const hs_keypoint *keypoint, int32_t shift, draw_colour colour, double width) {
  const drawing_pen rim = {.opacity = 0.5, .width = 2.0 * width};
  const drawing_pen pen = {colour.red, colour.green, colour.blue, .opacity = 1.0, .width = width};
  const double x = (double)keypoint->x + shift, y = (double)keypoint->y;
  drawing_circle(picture, x, y, 2.0 * width, rim);
  drawing_circle(picture, x, y, 2.0 * width, pen);
}

static void draw_match(match_picture *p, size_t index, draw_colour colour, double opacity, double width) {
  const hs_match_pair *pair = &p->table->matches.pairs[index];
  const hs_keypoint *a = &p->features[0].keypoints[pair->first];
  const hs_keypoint *b = &p->features[1].keypoints[pair->second];
  const drawing_pen pen = {colour.red, colour.green, colour.blue, .opacity = opacity, .width = width};
  drawing_line(&p->both, (double)a->x, (double)a->y, (double)b->x + p->shift, (double)b->y, pen);
  draw_end(&p->both, a, 0, colour, width);
  draw_end(&p->both, b, p->shift, colour, width);
}

/* Wrong matches first and fainter: the right ones stay on top. Without verification neighbours differ in colour. */
static size_t draw_all(match_picture *p) {
  const double width = draw_line_width(&p->pictures[0]);
  const match_table *table = p->table;
  size_t inliers = 0;
  for (size_t i = 0; i < table->matches.count; i++)
    if (!table->inliers)
      draw_match(p, i, draw_palette[i % DRAW_COLOURS], 0.8, width);
    else if (!table->inliers[i])
      draw_match(p, i, draw_palette[COLOUR_OUTLIER], 0.5, width);
  for (size_t i = 0; table->inliers && i < table->matches.count; i++) {
    if (table->inliers[i]) {
      draw_match(p, i, draw_palette[COLOUR_INLIER], 0.8, width);
      inliers++;
    }
  }
  return inliers;
}

static cli_exit draw_and_save(const option_set *set, const char *path, match_picture *p) {
  char summary[CLI_MESSAGE_BYTES], verified[64] = "";
  char *const *names = set->operands;
  const hs_status status = drawing_side_by_side(&p->both, &p->pictures[0], &p->pictures[1], &p->shift);
  if (status != HS_OK) {
    return draw_fail(names[1],
                     status == HS_ERR_LIMIT ? "side by side the pictures are too large" : hs_status_string(status));
  }
  const size_t inliers = draw_all(p);
  if (p->table->inliers) snprintf(verified, sizeof verified, ", %zu inliers", inliers);
  snprintf(summary, sizeof summary, "%s, %s: %" PRId32 "x%" PRId32 ", %zu matches%s", names[0], names[1], p->both.width,
           p->both.height, p->table->matches.count, verified);
  return draw_save_picture(set, path, &p->both, summary);
}

cli_exit draw_pair(const option_set *set, const char *path, const drawing pictures[2], const hs_features features[2],
                   const match_table *table) {
  match_picture p = {.pictures = pictures, .features = features, .table = table};
  const cli_exit result = draw_and_save(set, path, &p);
  drawing_free(&p.both);
  return result;
}

/* ------------------------------------------------------------------ from files */

static cli_exit load_image_and_features(match_operands *o, int side) {
  const char *path = o->set->operands[side];
  /* Extracted as match does it, which the indices count in. */
  const bool as_stored = o->context ? match_format_of_file(o->set->operands[2]) == MATCH_FORMAT_COLMAP
                                    : draw_is_as_stored(o->set->operands[3 + side]);
  cli_input_for(&o->input, o->set, as_stored);
  const cli_exit result = draw_load_picture(&o->input, path, &o->pictures[side]);
  if (result != CLI_DONE) return result;
  if (o->context) return draw_extract_features(&o->input, o->context, path, NULL, &o->features[side]);
  return draw_load_features(&o->input, o->set->operands[3 + side], path, &o->pictures[side], &o->features[side]);
}

/* Distance of two descriptors, in the unit of bytes. */
static double byte_distance(const hs_features *a, uint32_t i, const hs_features *b, uint32_t k) {
  const size_t at = (size_t)i * HS_DESCRIPTOR_LENGTH, to = (size_t)k * HS_DESCRIPTOR_LENGTH;
  double sum = 0.0;
  for (size_t n = 0; n < HS_DESCRIPTOR_LENGTH; n++) {
    const bool floats = a->descriptor_type == HS_DESCRIPTOR_F32;
    const double x =
        floats ? (double)((const float *)a->descriptors)[at + n] : ((const uint8_t *)a->descriptors)[at + n];
    const double y =
        floats ? (double)((const float *)b->descriptors)[to + n] : ((const uint8_t *)b->descriptors)[to + n];
    sum += (x - y) * (x - y);
  }
  return sqrt(sum);
}

/* Whether a distance is the one that a file has: also where floats of unit norm were matched and bytes are drawn, or the
   other way round, to within the rounding of all 128 entries. */
static bool is_distance(double found, double written) {
  static const double scales[] = {1.0, 512.0, 1.0 / 512.0};
  for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
    const double unit = scales[i] < 1.0 ? 1.0 / 512.0 : 1.0;
    if (fabs(found - scales[i] * written) <= 0.01 * found + (i == 0 ? 0.001 : 8.0) * unit) return true;
  }
  return false;
}

/* A file of matches has their distances: features between which they are others are not those that were matched. */
static cli_exit check_distances(const match_operands *o) {
  const hs_features *a = &o->features[0], *b = &o->features[1];
  const hs_matches *matches = &o->table.matches;
  bool has_distances = a->descriptor_type == b->descriptor_type && a->descriptor_type != HS_DESCRIPTOR_NONE;
  bool any = false;
  for (size_t i = 0; i < matches->count; i++) any = any || matches->pairs[i].distance > 0.0f;
  has_distances = has_distances && any; /* a file without this column is read as zeros */
  for (size_t i = 0; has_distances && i < matches->count; i++) {
    const hs_match_pair *pair = &matches->pairs[i];
    const double found = byte_distance(a, pair->first, b, pair->second);
    if (is_distance(found, (double)pair->distance)) continue;
    char message[CLI_MESSAGE_BYTES];
    snprintf(message, sizeof message,
             "these are not the features that were matched: match %zu, of features %" PRIu32 " and %" PRIu32
             ", has the distance %g there and %g here: expected %s",
             i + 1, pair->first, pair->second, (double)pair->distance, found,
             o->context ? "the options that match was given, or the files of features after MATCHES"
                        : "the files of features that match was given");
    return draw_fail(o->set->operands[2], message);
  }
  return CLI_DONE;
}

static cli_exit load_matches(match_operands *o) {
  char message[CLI_MESSAGE_BYTES] = "";
  const char *path = o->set->operands[2];
  const hs_status status = match_table_load(path, o->features[0].count, o->features[1].count,
                                            o->input.load.max_memory_bytes, NULL, &o->table, message, sizeof message);
  if (status != HS_OK) return draw_fail(path, message[0] != '\0' ? message : hs_status_string(status));
  return check_distances(o);
}

cli_exit draw_matches(const option_set *set) {
  match_operands o = {.set = set};
  hs_options options;
  hs_expert_options expert;
  const bool extracts = set->operand_count == 3;
  if (strcmp(set->operands[0], "-") == 0 && strcmp(set->operands[1], "-") == 0) {
    cli_error(COMMAND_DRAW, "'-' is given twice: standard input holds one image");
    return CLI_USAGE;
  }
  cli_exit result = extracts ? cli_make_context(set, &options, &o.context) : CLI_DONE;
  if (result == CLI_DONE) {
    cli_fill_options(set, &options, &expert);
    cli_input_init(&o.input, set, &options);
    o.input.keeps_stdin = extracts;
    result = load_image_and_features(&o, 0);
  }
  if (result == CLI_DONE) result = load_image_and_features(&o, 1);
  if (result == CLI_DONE) result = load_matches(&o);
  if (result == CLI_DONE) result = draw_pair(set, set->values[OPTION_OUTPUT].text, o.pictures, o.features, &o.table);
  cli_input_free(&o.input);
  for (int side = 0; side < 2; side++) {
    drawing_free(&o.pictures[side]);
    hs_features_free(&o.features[side]);
  }
  match_table_free(&o.table);
  hs_destroy(o.context);
  return result;
}
