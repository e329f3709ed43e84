/*
 * Anti-aliased drawing; see drawing.h. The share of a pixel that a line covers is taken from the distance
 * of its centre to the line's middle, linear over the pixel at the edge.
 */
#include "pipeline/cli/draw/drawing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/image_io/image_io.h"

enum { DRAWING_CHANNELS = 3, DRAWING_BETWEEN = 4 };

/* Sample `index` of a row as 0..255. */
static uint8_t sample_as_u8(const hs_image *image, const void *row, size_t index) {
  if (image->type == HS_U8) return ((const uint8_t *)row)[index];
  if (image->type == HS_U16) return (uint8_t)((((const uint16_t *)row)[index] + 128u) / 257u);
  const float low = image->range_low;
  const float high = image->range_low == image->range_high ? low + 1.0f : image->range_high;
  const float share = (((const float *)row)[index] - low) / (high - low);
  if (!(share > 0.0f)) return 0; /* NaN too: black */
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

/* distance: of the pixel's centre to the middle of the line. */
static void blend_pixel(drawing *picture, int32_t x, int32_t y, double distance, drawing_pen pen) {
  const double covered = fmin(fmax(0.5 * pen.width + 0.5 - distance, 0.0), fmin(pen.width, 1.0));
  if (covered > 0.0) {
    uint8_t *pixel = picture->pixels + ((size_t)y * (size_t)picture->width + (size_t)x) * DRAWING_CHANNELS;
    blend_channel(pixel, pen.red, covered * pen.opacity);
    blend_channel(pixel + 1, pen.green, covered * pen.opacity);
    blend_channel(pixel + 2, pen.blue, covered * pen.opacity);
  }
}

/* Whole numbers from ceil(low) to floor(high), cut to 0..count - 1; empty when first > last. */
typedef struct pixel_range {
  int32_t first, last;
} pixel_range;

static pixel_range clip_range(double low, double high, int32_t count) {
  const double first = fmax(ceil(low), 0.0);
  const double last = fmin(floor(high), (double)count - 1.0);
  const pixel_range range = {first <= last ? (int32_t)first : 1, first <= last ? (int32_t)last : 0};
  return range;
}

/* Half the chord of a circle at distance dy from its centre, 0 where it does not reach. */
static double half_chord(double radius, double dy) { return radius > fabs(dy) ? sqrt(radius * radius - dy * dy) : 0.0; }

void drawing_circle(drawing *picture, double x, double y, double radius, drawing_pen pen) {
  if (!isfinite(x) || !isfinite(y) || !isfinite(radius) || radius < 0.0) return;
  const double reach = 0.5 * pen.width + 0.5;
  const double outer = radius + reach;
  const pixel_range rows = clip_range(y - outer, y + outer, picture->height);
  for (int32_t row = rows.first; row <= rows.last; row++) {
    const double dy = row - y;
    const double outer_half = half_chord(outer, dy);
    /* Inside this chord nothing is covered: a large circle costs its line, not its area. */
    const double inner_half = half_chord(radius - reach, dy);
    pixel_range left = clip_range(x - outer_half, x - inner_half, picture->width);
    pixel_range right = clip_range(x + inner_half, x + outer_half, picture->width);
    if (left.first <= left.last && right.first <= left.last) right.first = left.last + 1;
    for (int32_t column = left.first; column <= left.last; column++)
      blend_pixel(picture, column, row, fabs(hypot(column - x, dy) - radius), pen);
    for (int32_t column = right.first; column <= right.last; column++)
      blend_pixel(picture, column, row, fabs(hypot(column - x, dy) - radius), pen);
  }
}

/* Distance of a point from the piece of a line that starts at (0, 0) and ends at (dx, dy). */
static double segment_distance(double px, double py, double dx, double dy) {
  const double square = dx * dx + dy * dy;
  const double along = square > 0.0 ? fmin(fmax((px * dx + py * dy) / square, 0.0), 1.0) : 0.0;
  return hypot(px - along * dx, py - along * dy);
}

void drawing_line(drawing *picture, double x0, double y0, double x1, double y1, drawing_pen pen) {
  if (!isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1)) return;
  const double dx = x1 - x0;
  const double dy = y1 - y0;
  const double reach = 0.5 * pen.width + 0.5;
  const double slant = fabs(dy) > 0.0 ? dx / dy : 0.0;
  /* Half the line's breadth along a row; a level line reaches everywhere. */
  const double half_breadth = fabs(dy) > 0.0 ? reach * hypot(dx, dy) / fabs(dy) : HUGE_VAL;
  const pixel_range rows = clip_range(fmin(y0, y1) - reach, fmax(y0, y1) + reach, picture->height);
  for (int32_t row = rows.first; row <= rows.last; row++) {
    const double middle = x0 + (row - y0) * slant;
    const double low = fmax(fmin(x0, x1) - reach, middle - half_breadth);
    const double high = fmin(fmax(x0, x1) + reach, middle + half_breadth);
    const pixel_range columns = clip_range(low, high, picture->width);
    for (int32_t column = columns.first; column <= columns.last; column++)
      blend_pixel(picture, column, row, segment_distance(column - x0, row - y0, dx, dy), pen);
  }
}
