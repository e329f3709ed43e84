/*
 * Anti-aliased circles and lines on an RGB picture. A pixel's centre has whole coordinates, as in
 * hartsift.h; what lies outside the picture is left out.
 */
#ifndef HARTSIFT_CLI_DRAW_DRAWING_H
#define HARTSIFT_CLI_DRAW_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

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

#endif
