/*
 * hartsift draw: draws keypoints on a picture, as circles whose radius is proportional to the scale, with a line in the
 * direction of the orientation. Two images with their matches are drawn by draw/drawing.c.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "pipeline/cli/draw/drawing.h"

/* Radius of a circle in units of sigma. The cells of a descriptor are 3 sigma wide; with OpenCV's radius of one sigma
   most keypoints are too small to see. */
static const double draw_circle_scale = 3.0;

enum { DRAW_MIN_OCTAVE = -1 };

/* Operands: IMAGE [FEATURES], or IMAGE1 IMAGE2 MATCHES [FEATURES1 FEATURES2]. */
enum { OPERANDS_KEYPOINTS = 2, OPERANDS_MATCHES = 3, OPERANDS_MATCHES_FEATURES = 5 };

static cli_exit check_usage(const option_set *set) {
  if (!set->values[OPTION_OUTPUT].is_set)
    return cli_fail(CLI_USAGE, COMMAND_DRAW,
                    "--output is missing: expected -o with a name ending in .png, .jpg, .jpeg, .ppm or .pnm");
  const char *output = set->values[OPTION_OUTPUT].text;
  if (!draw_can_write(output))
    return cli_fail(CLI_USAGE, COMMAND_DRAW, "--output '%s': expected a name ending in .png, .jpg, .jpeg, .ppm or .pnm",
                    output);
  if (set->operand_count > OPERANDS_MATCHES && set->operand_count != OPERANDS_MATCHES_FEATURES)
    return cli_fail(CLI_USAGE, COMMAND_DRAW, "expected the features of both images after MATCHES, or of none");
  if (set->operand_count > OPERANDS_KEYPOINTS &&
      (set->values[OPTION_MASK].is_set || set->values[OPTION_CIRCLE_SCALE].is_set))
    return cli_fail(CLI_USAGE, COMMAND_DRAW, "--mask and --circle-scale are for one image: expected without matches");
  return CLI_DONE;
}

/* Returns the keypoint's octave; if the file has none (level 0), computes it from sigma. */
static int octave_of(const hs_keypoint *keypoint) {
  if (keypoint->level != 0 || !(keypoint->sigma > 0.0f)) return keypoint->octave;
  const double lowest_sigma = 1.6; /* sigma of the lowest level of octave 0, with the default options */
  return (int)fmin(fmax(floor(log2((double)keypoint->sigma / lowest_sigma)), DRAW_MIN_OCTAVE), 32.0);
}

static void draw_keypoint(drawing *picture, const hs_keypoint *keypoint, double circle_scale, double width) {
  const int octave = octave_of(keypoint);
  const draw_colour colour = draw_palette[(octave > DRAW_MIN_OCTAVE ? octave - DRAW_MIN_OCTAVE : 0) % DRAW_COLOURS];
  const double radius = fmax((double)keypoint->sigma * circle_scale, 1.5 * width);
  const double x = (double)keypoint->x;
  const double y = (double)keypoint->y;
  const double end_x = x + radius * cos((double)keypoint->orientation);
  const double end_y = y + radius * sin((double)keypoint->orientation);
  /* a dark rim keeps the colours visible on a bright background */
  const drawing_pen rim = {.opacity = 0.5, .width = 2.0 * width};
  const drawing_pen pen = {colour.red, colour.green, colour.blue, .opacity = 1.0, .width = width};
  drawing_circle(picture, x, y, radius, rim);
  drawing_line(picture, x, y, end_x, end_y, rim);
  drawing_circle(picture, x, y, radius, pen);
  drawing_line(picture, x, y, end_x, end_y, pen);
}

/* Sorts by size, the largest first, and is stable, so that small circles are drawn last. */
static int compare_keypoints(const void *one, const void *other) {
  const hs_keypoint *a = *(const hs_keypoint *const *)one;
  const hs_keypoint *b = *(const hs_keypoint *const *)other;
  const int by_scale = (a->sigma < b->sigma) - (a->sigma > b->sigma);
  return by_scale != 0 ? by_scale : (a > b) - (a < b);
}

static bool draw_keypoints(drawing *picture, const hs_features *features, double circle_scale) {
  const hs_keypoint **sorted = malloc((features->count + 1) * sizeof *sorted);
  if (!sorted) return false;
  for (size_t i = 0; i < features->count; i++) sorted[i] = &features->keypoints[i];
  qsort(sorted, features->count, sizeof *sorted, compare_keypoints);
  const double width = draw_line_width(picture);
  for (size_t i = 0; i < features->count; i++) draw_keypoint(picture, sorted[i], circle_scale, width);
  free(sorted);
  return true;
}

static cli_exit draw_and_save(const option_set *set, drawing *picture, const hs_features *features) {
  const option_value *scale = &set->values[OPTION_CIRCLE_SCALE];
  char summary[CLI_MESSAGE_BYTES];
  if (!draw_keypoints(picture, features, scale->is_set ? scale->number : draw_circle_scale))
    return draw_fail(set->command, set->operands[0], hs_status_string(HS_ERR_MEMORY));
  snprintf(summary, sizeof summary, "%s: %" PRId32 "x%" PRId32 ", %zu features", set->operands[0], picture->width,
           picture->height, features->count);
  return draw_save_picture(set, set->values[OPTION_OUTPUT].text, picture, summary);
}

static cli_exit draw_one_image(const option_set *set) {
  hs_options options;
  hs_expert_options expert;
  hs_context *context = NULL;
  cli_input input = {0};
  drawing picture = {0};
  hs_features features = {0};
  const option_value *mask = &set->values[OPTION_MASK];
  const bool extracts = set->operand_count == 1;
  cli_exit result = extracts ? cli_make_context(set, &options, &context) : CLI_DONE;
  if (result == CLI_DONE) {
    cli_fill_options(set, &options, &expert);
    cli_input_init(&input, set, &options);
    input.keeps_stdin = extracts; /* the image is decoded twice: in colour for the picture, in gray for its features */
    cli_input_for(&input, set, !extracts && draw_is_as_stored(set->operands[1]));
    result = draw_load_picture(&input, set->operands[0], &picture);
  }
  if (result == CLI_DONE) {
    result = extracts
                 ? draw_extract_features(&input, context, set->operands[0], mask->is_set ? mask->text : NULL, &features)
                 : draw_load_features(&input, set->operands[1], set->operands[0], &picture, &features);
  }
  if (result == CLI_DONE) result = draw_and_save(set, &picture, &features);
  cli_input_free(&input);
  drawing_free(&picture);
  hs_features_free(&features);
  hs_destroy(context);
  return result;
}

cli_exit cmd_draw(const option_set *set) {
  const cli_exit usage = check_usage(set);
  if (usage != CLI_DONE) return usage;
  return set->operand_count >= OPERANDS_MATCHES ? draw_matches(set) : draw_one_image(set);
}
