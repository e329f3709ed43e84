/* Drawings on pictures: keypoints and matches; see drawing.h. */
#include "pipeline/cli/draw/drawing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/cli/common/match_file.h"
#include "pipeline/formats/formats.h"
#include "pipeline/image_io/image_io.h"

/* ---- Anti-aliased shapes. A pixel's coverage depends on the distance of its centre to the line's middle, linear
   over one pixel at the edge. */

enum { DRAWING_CHANNELS = 3, DRAWING_BETWEEN = 4 };

/* Returns sample number `index` of a row as 0..255. */
static uint8_t sample_as_u8(const hs_image *image, const void *row, size_t index) {
  if (image->type == HS_U8) return ((const uint8_t *)row)[index];
  if (image->type == HS_U16) return (uint8_t)((((const uint16_t *)row)[index] + 128u) / 257u);
  const float low = image->range_low;
  const float high = image->range_low == image->range_high ? low + 1.0f : image->range_high;
  const float share = (((const float *)row)[index] - low) / (high - low);
  if (!(share > 0.0f)) return 0; /* this test is true for NaN too, which becomes black */
  return (uint8_t)((share < 1.0f ? share : 1.0f) * 255.0f + 0.5f);
}

static void copy_row(const hs_image *image, const void *row, uint8_t *target) {
  const size_t channels = image_channels(image->layout);
  const bool is_colour = channels >= DRAWING_CHANNELS;
  const bool is_reversed = image->layout == HS_BGR || image->layout == HS_BGRA;
  for (size_t x = 0; x < (size_t)image->width; x++) {
    for (size_t c = 0; c < DRAWING_CHANNELS; c++) {
      const size_t channel = !is_colour ? 0 : is_reversed ? DRAWING_CHANNELS - 1 - c : c;
      target[DRAWING_CHANNELS * x + c] = sample_as_u8(image, row, channels * x + channel);
    }
  }
}

hs_status drawing_from_image(drawing *picture, const hs_image *image) {
  const size_t channels = image_channels(image->layout);
  memset(picture, 0, sizeof *picture);
  if (!image->data || image->width < 1 || image->height < 1 || channels == 0) return HS_ERR_IMAGE;
  if ((size_t)image->width > SIZE_MAX / DRAWING_CHANNELS / (size_t)image->height) return HS_ERR_MEMORY;
  const size_t row_bytes = DRAWING_CHANNELS * (size_t)image->width;
  picture->pixels = malloc(row_bytes * (size_t)image->height);
  if (!picture->pixels) return HS_ERR_MEMORY;
  picture->width = image->width;
  picture->height = image->height;
  const size_t stride = image->stride_bytes != 0 ? image->stride_bytes
                                                 : (size_t)image->width * channels * image_sample_bytes(image->type);
  for (int32_t y = 0; y < image->height; y++)
    copy_row(image, (const uint8_t *)image->data + (size_t)y * stride, picture->pixels + (size_t)y * row_bytes);
  return HS_OK;
}

void drawing_free(drawing *picture) {
  free(picture->pixels);
  memset(picture, 0, sizeof *picture);
}

static void copy_picture(drawing *both, const drawing *part, int32_t shift) {
  const size_t row_bytes = DRAWING_CHANNELS * (size_t)part->width;
  for (size_t y = 0; y < (size_t)part->height; y++) {
    memcpy(both->pixels + DRAWING_CHANNELS * (y * (size_t)both->width + (size_t)shift), part->pixels + y * row_bytes,
           row_bytes);
  }
}

hs_status drawing_side_by_side(drawing *both, const drawing *left, const drawing *right, int32_t *shift) {
  const int64_t between = DRAWING_BETWEEN, width = left->width + between + right->width;
  memset(both, 0, sizeof *both);
  if (width > INT32_MAX) return HS_ERR_LIMIT;
  const int32_t height = left->height > right->height ? left->height : right->height;
  if ((size_t)width > SIZE_MAX / DRAWING_CHANNELS / (size_t)height) return HS_ERR_MEMORY;
  both->pixels = calloc((size_t)width * (size_t)height, DRAWING_CHANNELS);
  if (!both->pixels) return HS_ERR_MEMORY;
  both->width = (int32_t)width;
  both->height = height;
  *shift = left->width + DRAWING_BETWEEN;
  copy_picture(both, left, 0);
  copy_picture(both, right, *shift);
  return HS_OK;
}

hs_image drawing_view(const drawing *picture) {
  const hs_image view = {.data = picture->pixels,
                         .width = picture->width,
                         .height = picture->height,
                         .stride_bytes = DRAWING_CHANNELS * (size_t)picture->width,
                         .type = HS_U8,
                         .layout = HS_RGB};
  return view;
}

static void blend_channel(uint8_t *channel, uint8_t colour, double share) {
  *channel = (uint8_t)(*channel + share * ((double)colour - *channel) + 0.5);
}

/* Blends a pixel with the pen. distance: from the pixel's centre to the middle of the line. */
static void blend_pixel(drawing *picture, int32_t x, int32_t y, double distance, drawing_pen pen) {
  const double covered = fmin(fmax(0.5 * pen.width + 0.5 - distance, 0.0), fmin(pen.width, 1.0));
  if (covered > 0.0) {
    uint8_t *pixel = picture->pixels + ((size_t)y * (size_t)picture->width + (size_t)x) * DRAWING_CHANNELS;
    blend_channel(pixel, pen.red, covered * pen.opacity);
    blend_channel(pixel + 1, pen.green, covered * pen.opacity);
    blend_channel(pixel + 2, pen.blue, covered * pen.opacity);
  }
}

/* The integers from ceil(low) to floor(high), clipped to 0..count - 1; the range is empty if first > last. */
typedef struct pixel_range {
  int32_t first, last;
} pixel_range;

static pixel_range clip_range(double low, double high, int32_t count) {
  const double first = fmax(ceil(low), 0.0);
  const double last = fmin(floor(high), (double)count - 1.0);
  const pixel_range range = {first <= last ? (int32_t)first : 1, first <= last ? (int32_t)last : 0};
  return range;
}

/* Returns half the length of a circle's chord at distance dy from its centre; 0 outside. */
static double half_chord(double radius, double dy) { return radius > fabs(dy) ? sqrt(radius * radius - dy * dy) : 0.0; }

void drawing_circle(drawing *picture, double x, double y, double radius, drawing_pen pen) {
  if (!isfinite(x) || !isfinite(y) || !isfinite(radius) || radius < 0.0) return;
  const double half_width = 0.5 * pen.width + 0.5;
  const double outer = radius + half_width;
  const pixel_range rows = clip_range(y - outer, y + outer, picture->height);
  for (int32_t row = rows.first; row <= rows.last; row++) {
    const double dy = row - y;
    const double outer_half = half_chord(outer, dy);
    /* pixels inside this chord are not covered and are skipped, so that the cost depends on the line, not on the
       area */
    const double inner_half = half_chord(radius - half_width, dy);
    pixel_range left = clip_range(x - outer_half, x - inner_half, picture->width);
    pixel_range right = clip_range(x + inner_half, x + outer_half, picture->width);
    if (left.first <= left.last && right.first <= left.last) right.first = left.last + 1;
    for (int32_t column = left.first; column <= left.last; column++)
      blend_pixel(picture, column, row, fabs(hypot(column - x, dy) - radius), pen);
    for (int32_t column = right.first; column <= right.last; column++)
      blend_pixel(picture, column, row, fabs(hypot(column - x, dy) - radius), pen);
  }
}

/* Returns the distance of a point from the segment (0, 0) to (dx, dy). */
static double segment_distance(double px, double py, double dx, double dy) {
  const double square = dx * dx + dy * dy;
  const double along = square > 0.0 ? fmin(fmax((px * dx + py * dy) / square, 0.0), 1.0) : 0.0;
  return hypot(px - along * dx, py - along * dy);
}

void drawing_line(drawing *picture, double x0, double y0, double x1, double y1, drawing_pen pen) {
  if (!isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1)) return;
  const double dx = x1 - x0;
  const double dy = y1 - y0;
  const double half_width = 0.5 * pen.width + 0.5;
  const double slant = fabs(dy) > 0.0 ? dx / dy : 0.0;
  /* half width of the line along a row; infinite for a horizontal line */
  const double half_breadth = fabs(dy) > 0.0 ? half_width * hypot(dx, dy) / fabs(dy) : HUGE_VAL;
  const pixel_range rows = clip_range(fmin(y0, y1) - half_width, fmax(y0, y1) + half_width, picture->height);
  for (int32_t row = rows.first; row <= rows.last; row++) {
    const double middle = x0 + (row - y0) * slant;
    const double low = fmax(fmin(x0, x1) - half_width, middle - half_breadth);
    const double high = fmin(fmax(x0, x1) + half_width, middle + half_breadth);
    const pixel_range columns = clip_range(low, high, picture->width);
    for (int32_t column = columns.first; column <= columns.last; column++)
      blend_pixel(picture, column, row, segment_distance(column - x0, row - y0, dx, dy), pen);
  }
}

/* ---- pictures and features read, extracted and checked, and the result written */

const draw_colour draw_palette[DRAW_COLOURS] = {
    {230, 159, 0},   /* orange */
    {86, 180, 233},  /* sky blue */
    {0, 158, 115},   /* bluish green */
    {240, 228, 66},  /* yellow */
    {204, 121, 167}, /* reddish purple */
    {213, 94, 0},    /* vermilion */
    {0, 114, 178},   /* blue */
};

double draw_line_width(const drawing *picture) {
  const double longest = picture->width > picture->height ? picture->width : picture->height;
  return fmin(fmax(longest / 1200.0, 1.2), 12.0);
}

cli_exit draw_fail(command_id command, const char *name, const char *message) {
  cli_error_about(command, name, message);
  return CLI_FAILED;
}

cli_exit draw_load_picture(cli_input *input, const char *path, drawing *picture) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image image = {0};
  hs_status status = cli_load_image(input, path, true, &image, message, sizeof message);
  if (status == HS_OK) {
    status = drawing_from_image(picture, &image);
    if (status != HS_OK) snprintf(message, sizeof message, "%s", hs_status_string(status));
  }
  hs_image_free(&image);
  return status == HS_OK ? CLI_DONE : draw_fail(input->command, path, message);
}

/* Extracts features. The image is decoded again in gray, because the luma of a JPEG differs from the gray of its RGB
   pixels. */
cli_exit draw_extract_features(cli_input *input, hs_context *context, const char *path, const char *mask_path,
                               hs_features *features) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_source gray = hs_source_of(HS_SOURCE_PIXELS);
  hs_image mask = {0};
  hs_status status = cli_load_source(input, path, &gray, message, sizeof message);
  if (status == HS_OK && mask_path) {
    status = cli_load_mask(input, mask_path, &mask, message, sizeof message);
    if (status == HS_OK && (mask.width != gray.image.width || mask.height != gray.image.height)) {
      cli_explain_size(input, "the mask is", mask.width, mask.height, &gray.image, message);
      status = HS_ERR_ARGUMENT;
    }
  }
  gray.mask = mask_path ? &mask : NULL;
  if (status == HS_OK) {
    status = hs_extract_source(context, &gray, features);
    if (status != HS_OK) cli_explain(context, status, message, sizeof message);
  }
  hs_image_free(&mask);
  hs_source_free(&gray);
  return status == HS_OK ? CLI_DONE : draw_fail(input->command, path, message);
}

cli_exit draw_load_features(const cli_input *input, const char *path, const char *image, const drawing *picture,
                            hs_features *features) {
  char message[CLI_MESSAGE_BYTES];
  if (cli_load_features_of(input, path, image, features, message, sizeof message) != HS_OK)
    return draw_fail(input->command, path, message);
  const bool fits = features->image_width == 0 ||
                    (features->image_width == picture->width && features->image_height == picture->height);
  if (!fits) {
    const hs_image size = {.width = picture->width, .height = picture->height};
    cli_explain_size(input, "these features belong to an image of", features->image_width, features->image_height,
                     &size, message);
    return draw_fail(input->command, path, message);
  }
  return CLI_DONE;
}

bool draw_is_as_stored(const char *path) {
  const feature_format *format = format_of_file(path);
  return format != NULL && format->as_stored;
}

bool draw_can_write(const char *path) {
  static const char *const endings[] = {".png", ".jpg", ".jpeg", ".ppm", ".pnm"};
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    if (path_ends_with(path, endings[i])) return true;
  return strcmp(path, "-") == 0;
}

cli_exit draw_save_picture(const option_set *set, const char *path, const drawing *picture, const char *summary) {
  const bool to_stdout = strcmp(path, "-") == 0;
  const char *name = to_stdout ? "standard output" : path;
  if (to_stdout && cli_refuses_terminal(set->command, "a picture")) return CLI_USAGE;
  char message[CLI_MESSAGE_BYTES] = "";
  for (int i = 0; i < set->operand_count; i++)
    if (cli_is_same_file(set->operands[i], path))
      return draw_fail(set->command, path, "the output would overwrite an input");
  const hs_image view = drawing_view(picture);
  const hs_status status = image_save(path, &view, message, sizeof message);
  if (status != HS_OK) {
    return to_stdout && cli_stdout_is_gone()
               ? CLI_FAILED
               : draw_fail(set->command, name, message[0] != '\0' ? message : hs_status_string(status));
  }
  if (!set->values[OPTION_QUIET].is_set) cli_note("%s -> %s", summary, name);
  return CLI_DONE;
}

/* ---- two images and their matches: both pictures side by side, a line per match */

/* Indices in draw_palette. */
enum { COLOUR_INLIER = 1, COLOUR_OUTLIER = 5 };

/* Two pictures side by side, with features and matches. */
typedef struct match_picture {
  const drawing *pictures; /* the two pictures */
  drawing both;
  const hs_features *features; /* [2]: features of both pictures */
  const match_table *table;
  int32_t shift; /* x of the second picture */
} match_picture;

/* Contents of the operands. */
typedef struct match_operands {
  const option_set *set;
  hs_context *context; /* context for extraction; null: features are read from files */
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

/* Draws the matches: wrong ones first and fainter, so that correct ones are on top. Without verification, adjacent
   matches have different colours. */
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
    return draw_fail(set->command, names[1],
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
  /* extracted as by match, because the indices of the matches refer to that list */
  const bool as_stored = o->context ? match_format_of_file(o->set->operands[2]) == MATCH_FORMAT_COLMAP
                                    : draw_is_as_stored(o->set->operands[3 + side]);
  cli_input_for(&o->input, o->set, as_stored);
  const cli_exit result = draw_load_picture(&o->input, path, &o->pictures[side]);
  if (result != CLI_DONE) return result;
  if (o->context) return draw_extract_features(&o->input, o->context, path, NULL, &o->features[side]);
  return draw_load_features(&o->input, o->set->operands[3 + side], path, &o->pictures[side], &o->features[side]);
}

/* Returns the distance of two descriptors, in units of bytes. */
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

/* True if a distance equals the one in the file, within the rounding of 128 entries: floats of unit norm may have been
   matched and bytes be drawn, or the reverse. */
static bool is_distance(double found, double written) {
  static const double scales[] = {1.0, 512.0, 1.0 / 512.0};
  for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
    const double unit = scales[i] < 1.0 ? 1.0 / 512.0 : 1.0;
    if (fabs(found - scales[i] * written) <= 0.01 * found + (i == 0 ? 0.001 : 8.0) * unit) return true;
  }
  return false;
}

/* Checks the distances of the matches. If they differ, the matches belong to other features. */
static cli_exit check_distances(const match_operands *o) {
  const hs_features *a = &o->features[0], *b = &o->features[1];
  const hs_matches *matches = &o->table.matches;
  bool has_distances = a->descriptor_type == b->descriptor_type && a->descriptor_type != HS_DESCRIPTOR_NONE;
  bool any = false;
  for (size_t i = 0; i < matches->count; i++) any = any || matches->pairs[i].distance > 0.0f;
  has_distances = has_distances && any; /* a missing column is read as zeros */
  for (size_t i = 0; has_distances && i < matches->count; i++) {
    const hs_match_pair *pair = &matches->pairs[i];
    const double found = byte_distance(a, pair->first, b, pair->second);
    if (is_distance(found, (double)pair->distance)) continue;
    char message[CLI_MESSAGE_BYTES];
    snprintf(message, sizeof message,
             "these are not the features that were matched: match %zu of features %" PRIu32 " and %" PRIu32
             " has the distance %g in the file, but %g here: expected %s",
             i + 1, pair->first, pair->second, (double)pair->distance, found,
             o->context ? "the options of that 'match', or the files of features after MATCHES"
                        : "the files of features of that 'match'");
    return draw_fail(o->set->command, o->set->operands[2], message);
  }
  return CLI_DONE;
}

static cli_exit load_matches(match_operands *o) {
  char message[CLI_MESSAGE_BYTES] = "";
  const char *path = o->set->operands[2];
  const hs_status status = match_table_load(path, o->features[0].count, o->features[1].count,
                                            o->input.load.max_memory_bytes, NULL, &o->table, message, sizeof message);
  if (status != HS_OK) return draw_fail(o->set->command, path, message[0] != '\0' ? message : hs_status_string(status));
  return check_distances(o);
}

cli_exit draw_matches(const option_set *set) {
  match_operands o = {.set = set};
  hs_options options;
  hs_expert_options expert;
  const bool extracts = set->operand_count == 3;
  if (strcmp(set->operands[0], "-") == 0 && strcmp(set->operands[1], "-") == 0)
    return cli_fail(CLI_USAGE, COMMAND_DRAW, "'-' is given twice: standard input holds one image");
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
