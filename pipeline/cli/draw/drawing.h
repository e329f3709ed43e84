/* Drawings on pictures: shapes, keypoints, matches. */
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
  uint8_t *pixels; /* RGB, 3 * width bytes per row */
} drawing;

typedef struct drawing_pen {
  uint8_t red, green, blue;
  double opacity; /* 0..1 */
  double width;   /* width of the line in pixels, above 0 */
} drawing_pen;

/* Copies an image of any type and layout to 8-bit RGB. After HS_ERR_IMAGE and HS_ERR_MEMORY nothing needs to be
   freed. */
hs_status drawing_from_image(drawing *picture, const hs_image *image);
void drawing_free(drawing *picture);

/* Joins two pictures side by side, aligned at the top, with a black line between them, and black below the lower one.
 *shift: x of the second picture. Statuses: HS_ERR_LIMIT (wider than 2^31 - 1), HS_ERR_MEMORY. */
hs_status drawing_side_by_side(drawing *both, const drawing *left, const drawing *right, int32_t *shift);

/* Draws a circle; nothing for values that are not finite. */
void drawing_circle(drawing *picture, double x, double y, double radius, drawing_pen pen);

/* Draws a line with round ends. */
void drawing_line(drawing *picture, double x0, double y0, double x1, double y1, drawing_pen pen);

/* Returns the picture as an image that refers to its pixels. */
hs_image drawing_view(const drawing *picture);

/* ---- loading pictures and features, and saving the result */

typedef struct draw_colour {
  uint8_t red, green, blue;
} draw_colour;

/* The palette of Okabe and Ito without black, whose colours are distinguishable with common colour blindness. */
enum { DRAW_COLOURS = 7 };
extern const draw_colour draw_palette[DRAW_COLOURS];

/* Returns the line width. It grows with the picture, so that lines stay visible when the picture is scaled to a
   screen. */
double draw_line_width(const drawing *picture);

/* Prints "hartsift COMMAND: name: message", with the name only once. Returns CLI_FAILED. */
cli_exit draw_fail(command_id command, const char *name, const char *message);

/* Loads the image in colour. */
cli_exit draw_load_picture(cli_input *input, const char *path, drawing *picture);

/* Extracts features of the gray image as `extract` does. mask_path: may be null. */
cli_exit draw_extract_features(cli_input *input, hs_context *context, const char *path, const char *mask_path,
                               hs_features *features);

/* Loads features from a file (from a database, those of `image`). They must belong to an image of the same size. */
cli_exit draw_load_features(const cli_input *input, const char *path, const char *image, const drawing *picture,
                            hs_features *features);

/* True if the program of a feature file reads JPEGs as stored; the picture is then loaded in the same way. */
bool draw_is_as_stored(const char *path);

/* True if a picture can be written to a file with this name, or to "-". */
bool draw_can_write(const char *path);

/* Writes the picture to `path`, which must not be an operand. Prints the summary, unless --quiet is given. */
cli_exit draw_save_picture(const option_set *set, const char *path, const drawing *picture, const char *summary);

/* Draws the pictures of the first two operands side by side, with the matches of their features, and writes the result
   to `path`. */
cli_exit draw_pair(const option_set *set, const char *path, const drawing pictures[2], const hs_features features[2],
                   const match_table *table);

/* Runs hartsift draw with two images and a file of matches. */
cli_exit draw_matches(const option_set *set);

/* ------------------------------------------------------------------ pictures to files (save_picture.c) */

/* Writes an 8-bit gray or RGB picture atomically. The name's ending determines the format: .png, .jpg, .jpeg, .pgm,
   .ppm, .pnm. "-": standard output, as PNG or, in a build without it, as PNM. message: null, or a buffer for the reason
   of a failure. Statuses: HS_ERR_ARGUMENT, HS_ERR_IMAGE, HS_ERR_UNSUPPORTED, HS_ERR_IO, HS_ERR_MEMORY. */
hs_status image_save(const char *path, const hs_image *image, char *message, size_t message_bytes);

/* The encoders of image_save. image: HS_U8, with HS_GRAY or HS_RGB and the stride set. reason: reason of a failure; ""
   if the stream failed. */
hs_status image_write_png(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
hs_status image_write_jpeg(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
/* Writes PNM. colour true: P6, with gray pixels repeated for each channel; false: P5. */
hs_status image_write_pnm(FILE *stream, const hs_image *image, bool colour);

#endif
