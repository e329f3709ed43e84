/* Drawings over pictures: shapes, keypoints, matches. */
#ifndef HARTSIFT_CLI_DRAW_DRAWING_H
#define HARTSIFT_CLI_DRAW_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/match_file.h"
#include "pipeline/include/hartsift.h"

/* ---- Anti-aliased circles and lines on an RGB picture. A pixel's centre has whole coordinates, as in hartsift.h; what
   is outside of the picture is left out. */

typedef struct drawing {
  int32_t width, height;
  uint8_t *pixels; /* RGB, 3 * width bytes a row */
} drawing;

typedef struct drawing_pen {
  uint8_t red, green, blue;
  double opacity; /* 0..1 */
  double width;   /* pixels, more than 0 */
} drawing_pen;

/* Copies an image of any type and layout as 8-bit RGB. HS_ERR_IMAGE, HS_ERR_MEMORY; then nothing is left to free. */
hs_status drawing_from_image(drawing *picture, const hs_image *image);
void drawing_free(drawing *picture);

/* Both pictures beside each other, tops level, a black line of a few pixels between them and black where one is lower.
   *shift: the x of the second one. HS_ERR_LIMIT (wider than 2^31 - 1), HS_ERR_MEMORY. */
hs_status drawing_side_by_side(drawing *both, const drawing *left, const drawing *right, int32_t *shift);

/* A circle of the pen's width about its radius. Nothing is drawn for values that are not finite. */
void drawing_circle(drawing *picture, double x, double y, double radius, drawing_pen pen);

/* A line with round ends. */
void drawing_line(drawing *picture, double x0, double y0, double x1, double y1, drawing_pen pen);

/* The picture as the library sees it. */
hs_image drawing_view(const drawing *picture);

/* ---- pictures and features read, extracted and checked against each other, and the result written */

typedef struct draw_colour {
  uint8_t red, green, blue;
} draw_colour;

/* Okabe and Ito's palette without black, told apart with every common colour blindness. */
enum { DRAW_COLOURS = 7 };
extern const draw_colour draw_palette[DRAW_COLOURS];

/* Lines grow with the picture so that they show when all of it fits on a screen. */
double draw_line_width(const drawing *picture);

/* Prints "hartsift draw: name: message", the name once. Returns CLI_FAILED. */
cli_exit draw_fail(const char *name, const char *message);

/* The image in colour. */
cli_exit draw_load_picture(cli_input *input, const char *path, drawing *picture);

/* Features of the gray image, as `extract` finds them. mask_path: null for none. */
cli_exit draw_extract_features(cli_input *input, hs_context *context, const char *path, const char *mask_path,
                               hs_features *features);

/* Features from a file (of a database those of `image`), which must not be of an image of another size. */
cli_exit draw_load_features(const cli_input *input, const char *path, const char *image, const drawing *picture,
                            hs_features *features);

/* Whether a file of features is of a program that reads JPEGs as stored: then so is the picture drawn on. */
bool draw_is_as_stored(const char *path);

/* Whether a name's ending, or "-", is that of a picture that can be written. */
bool draw_can_write(const char *path);

/* Writes the picture to `path`, which must be none of the operands; then the summary, unless --quiet. */
cli_exit draw_save_picture(const option_set *set, const char *path, const drawing *picture, const char *summary);

/* The pictures of the first two operands side by side, with the matches of their features; written to `path`. */
cli_exit draw_pair(const option_set *set, const char *path, const drawing pictures[2], const hs_features features[2],
                   const match_table *table);

/* hartsift draw with two images and a file of matches. */
cli_exit draw_matches(const option_set *set);

#endif
