/*
 * hartsift draw with two images and a file of matches: both pictures side by side, a line for each match.
 */
#include <inttypes.h>
#include <string.h>

#include "pipeline/cli/draw/draw_common.h"
#include "pipeline/cli/common/match_file.h"

/* Places in draw_palette. */
enum { COLOUR_INLIER = 1, COLOUR_OUTLIER = 5 };

typedef struct match_picture {
  const option_set *set;
  hs_context *context; /* null: features come from files */
  cli_input input;
  drawing pictures[2], both;
  hs_features features[2];
  match_table table;
  int32_t shift; /* of the second picture to the right */
} match_picture;

static cli_exit load_image_and_features(match_picture *p, int side) {
  const char *path = p->set->operands[side];
  /* Extracted as match does it, which the indices count in. */
  const bool as_stored = p->context ? match_format_of_file(p->set->operands[2]) == MATCH_FORMAT_COLMAP
                                    : draw_is_as_stored(p->set->operands[3 + side]);
  cli_input_for(&p->input, p->set, as_stored);
  const cli_exit result = draw_load_picture(&p->input, path, &p->pictures[side]);
  if (result != CLI_DONE) return result;
  if (p->context) return draw_extract_features(&p->input, p->context, path, NULL, &p->features[side]);
  return draw_load_features(&p->input, p->set->operands[3 + side], path, &p->pictures[side], &p->features[side]);
}

static cli_exit load_matches(match_picture *p) {
  char message[CLI_MESSAGE_BYTES] = "";
  const char *path = p->set->operands[2];
  const hs_status status =
      match_table_load(path, p->features[0].count, p->features[1].count, NULL, &p->table, message, sizeof message);
  return status == HS_OK ? CLI_DONE : draw_fail(path, message[0] != '\0' ? message : hs_status_string(status));
}

static void draw_end(drawing *picture, const hs_keypoint *keypoint, int32_t shift, draw_colour colour, double width) {
  const drawing_pen rim = {.opacity = 0.5, .width = 2.0 * width};
  const drawing_pen pen = {colour.red, colour.green, colour.blue, .opacity = 1.0, .width = width};
  const double x = (double)keypoint->x + shift, y = (double)keypoint->y;
  drawing_circle(picture, x, y, 2.0 * width, rim);
  drawing_circle(picture, x, y, 2.0 * width, pen);
}

static void draw_match(match_picture *p, size_t index, draw_colour colour, double opacity, double width) {
  const hs_match_pair *pair = &p->table.matches.pairs[index];
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
  const match_table *table = &p->table;
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

static cli_exit draw_and_save(match_picture *p) {
  char summary[CLI_MESSAGE_BYTES], verified[64] = "";
  char *const *names = p->set->operands;
  const hs_status status = drawing_side_by_side(&p->both, &p->pictures[0], &p->pictures[1], &p->shift);
  if (status != HS_OK) {
    return draw_fail(names[1],
                     status == HS_ERR_LIMIT ? "side by side the pictures are too large" : hs_status_string(status));
  }
  const size_t inliers = draw_all(p);
  if (p->table.inliers) snprintf(verified, sizeof verified, ", %zu inliers", inliers);
  snprintf(summary, sizeof summary, "%s, %s: %" PRId32 "x%" PRId32 ", %zu matches%s", names[0], names[1], p->both.width,
           p->both.height, p->table.matches.count, verified);
  return draw_save_picture(p->set, &p->both, summary);
}

cli_exit draw_matches(const option_set *set) {
  match_picture p = {.set = set};
  hs_options options;
  hs_expert_options expert;
  const bool extracts = set->operand_count == 3;
  if (strcmp(set->operands[0], "-") == 0 && strcmp(set->operands[1], "-") == 0) {
    cli_error(COMMAND_DRAW, "'-' is given twice: standard input holds one image");
    return CLI_USAGE;
  }
  cli_exit result = extracts ? cli_make_context(set, &options, &p.context) : CLI_DONE;
  if (result == CLI_DONE) {
    cli_fill_options(set, &options, &expert);
    cli_input_init(&p.input, set, &options);
    p.input.keeps_stdin = extracts;
    result = load_image_and_features(&p, 0);
  }
  if (result == CLI_DONE) result = load_image_and_features(&p, 1);
  if (result == CLI_DONE) result = load_matches(&p);
  if (result == CLI_DONE) result = draw_and_save(&p);
  cli_input_free(&p.input);
  for (int side = 0; side < 2; side++) {
    drawing_free(&p.pictures[side]);
    hs_features_free(&p.features[side]);
  }
  drawing_free(&p.both);
  match_table_free(&p.table);
  hs_destroy(p.context);
  return result;
}
