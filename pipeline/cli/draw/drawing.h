/* Drawings over pictures: shapes, keypoints, matches. */
#ifndef HARTSIFT_CLI_DRAW_DRAWING_H
#define HARTSIFT_CLI_DRAW_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/match_file.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/include/hartsift.h"

/* ---- Anti-aliased circles and lines on an RGB picture. Pixel centres have integer coordinates, as in hartsift.h;
   shapes are clipped to the picture. */

typedef struct drawing {
  int32_t width, height;
  uint8_t *pixels; /* RGB, 3 * width bytes a row */
} drawing;

typedef struct drawing_pen {
  uint8_t red, green, blue;
  double opacity; /* 0..1 */
  double width;   /* pixels, more than 0 */
} drawing_pen;

/* Copies an image of any type and layout to 8-bit RGB. HS_ERR_IMAGE, HS_ERR_MEMORY: nothing needs to be freed. */
hs_status drawing_from_image(drawing *picture, const hs_image *image);
void drawing_free(drawing *picture);

/* Both pictures side by side, aligned at the top, with a black line between, and black below the lower one. *shift:
   x of the second. HS_ERR_LIMIT (wider than 2^31 - 1), HS_ERR_MEMORY. */
hs_status drawing_side_by_side(drawing *both, const drawing *left, const drawing *right, int32_t *shift);

/* Draws a circle. Nothing is drawn for non-finite values. */
void drawing_circle(drawing *picture, double x, double y, double radius, drawing_pen pen);

/* Draws a line with round ends. */
void drawing_line(drawing *picture, double x0, double y0, double x1, double y1, drawing_pen pen);

/* The picture as an image view. */
hs_image drawing_view(const drawing *picture);

/* ---- loading pictures and features, and saving the result */

typedef struct draw_colour {
  uint8_t red, green, blue;
} draw_colour;

/* Okabe and Ito's palette without black, distinguishable with common colour blindness. */
enum { DRAW_COLOURS = 7 };
extern const draw_colour draw_palette[DRAW_COLOURS];

/* Line width grows with the picture, so that lines are visible when it is scaled to a screen. */
double draw_line_width(const drawing *picture);

/* Prints "hartsift draw: name: message", the name once. Returns CLI_FAILED. */
cli_exit draw_fail(const char *name, const char *message);

/* Loads the image in colour. */
cli_exit draw_load_picture(cli_input *input, const char *path, drawing *picture);

/* Extracts features of the gray image, as `extract` does. mask_path: or null. */
cli_exit draw_extract_features(cli_input *input, hs_context *context, const char *path, const char *mask_path,
                               hs_features *features);

/* Loads features from a file (of a database those of `image`), which must belong to an image of the same size. */
cli_exit draw_load_features(const cli_input *input, const char *path, const char *image, const drawing *picture,
                            hs_features *features);

/* True if a feature file's program reads JPEGs as stored: then the picture is loaded so too. */
bool draw_is_as_stored(const char *path);

/* True if a picture can be written to this name (or "-"). */
bool draw_can_write(const char *path);

/* Writes the picture to `path`, which must not be an operand; then the summary, unless --quiet. */
cli_exit draw_save_picture(const option_set *set, const char *path, const drawing *picture, const char *summary);

/* The pictures of the first two operands side by side, with the matches of their features; written to `path`. */
cli_exit draw_pair(const option_set *set, const char *path, const drawing pictures[2], const hs_features features[2],
                   const match_table *table);

/* hartsift draw with two images and a file of matches. */
cli_exit draw_matches(const option_set *set);

/* ------------------------------------------------------------------ pictures to files (save_picture.c) */

/* Writes an 8-bit gray or RGB picture, whole or not at all; the name's ending tells the format: .png,
   .jpg, .jpeg, .pgm, .ppm, .pnm. "-": standard output, PNG where the build has it, else PNM.
   message: null, or where the reason of a failure goes.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_IMAGE, HS_ERR_UNSUPPORTED, HS_ERR_IO, HS_ERR_MEMORY. */
hs_status image_save(const char *path, const hs_image *image, char *message, size_t message_bytes);

/* The encoders of image_save. image: HS_U8, HS_GRAY or HS_RGB, stride filled in. reason: what went
   wrong, "" when it was the stream. */
hs_status image_write_png(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
hs_status image_write_jpeg(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
/* colour: P6, gray pixels repeated; else P5. */
hs_status image_write_pnm(FILE *stream, const hs_image *image, bool colour);

#endif
