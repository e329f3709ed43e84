/*
 * A picture made smaller by exact area averaging, and features found in it put back into the pixels of the original.
 *
 * In units of 1 / (W w) of the side, W and w the widths before and after, an original pixel has w of them and one of the
 * smaller picture W: how much of the first lies in the second is a whole number, and so is every weighted sum.
 */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

/* Sums of a row of the smaller picture: every channel of every column. */
typedef struct shrink_sums {
  uint64_t *line, *total; /* of one original row; of all so far */
  size_t count;
} shrink_sums;

static uint32_t sample_of(const hs_image *image, const uint8_t *row, size_t i) {
  uint16_t wide;
  if (image->type == HS_U8) return row[i];
  memcpy(&wide, row + 2 * i, sizeof wide);
  return wide;
}

/* The sums of one original row; each below 2^16 W. */
static void sum_line(const hs_image *from, int32_t y, int32_t width, const shrink_sums *sums) {
  const uint8_t *row = (const uint8_t *)from->data + (size_t)y * from->stride_bytes;
  const size_t channels = image_channels(from->layout);
  const uint64_t before = (uint64_t)from->width, after = (uint64_t)width;
  memset(sums->line, 0, sums->count * sizeof *sums->line);
  uint64_t left = before; /* of the column at work, units of 1 / w */
  size_t column = 0;
  for (size_t x = 0; x < before; x++) {
    /* A pixel ends in its column or reaches into the next: columns are no narrower than pixels. */
    const uint64_t inside = left < after ? left : after;
    for (size_t k = 0; k < channels; k++) {
      const uint64_t value = sample_of(from, row, x * channels + k);
      sums->line[column * channels + k] += inside * value;
      if (inside < after) sums->line[(column + 1) * channels + k] += (after - inside) * value;
    }
    left -= inside;
    if (left > 0) continue;
    column++;
    left = before - (after - inside);
  }
}

/* The means, rounded to nearest with halves up. */
static void put_row(const shrink_sums *sums, uint64_t weight, const hs_image *to, int32_t y) {
  uint8_t *row = (uint8_t *)(uintptr_t)to->data + (size_t)y * to->stride_bytes;
  for (size_t i = 0; i < sums->count; i++) {
    const uint64_t mean = (sums->total[i] + weight / 2) / weight;
    const uint16_t wide = (uint16_t)mean;
    if (to->type == HS_U8)
      row[i] = (uint8_t)mean;
    else
      memcpy(row + 2 * i, &wide, sizeof wide);
  }
}

static void add_line(const shrink_sums *sums, uint64_t times) {
  for (size_t i = 0; i < sums->count; i++) sums->total[i] += times * sums->line[i];
}

/* Totals are below 2^16 W H, which image_shrink has checked. */
static void average(const hs_image *from, const hs_image *to, const shrink_sums *sums) {
  const uint64_t before = (uint64_t)from->height, after = (uint64_t)to->height;
  const uint64_t weight = (uint64_t)from->width * before;
  uint64_t left = before;
  int32_t row = 0;
  memset(sums->total, 0, sums->count * sizeof *sums->total);
  for (int32_t y = 0; y < from->height; y++) {
    const uint64_t inside = left < after ? left : after;
    sum_line(from, y, to->width, sums);
    add_line(sums, inside);
    left -= inside;
    if (left > 0) continue;
    put_row(sums, weight, to, row++);
    memset(sums->total, 0, sums->count * sizeof *sums->total);
    add_line(sums, after - inside);
    left = before - (after - inside);
  }
}

/* The smaller side, rounded down as COLMAP does, at least 1. */
static int32_t shrunk_side(int32_t side, int32_t largest, int32_t wanted) {
  const int32_t shrunk = (int32_t)((int64_t)side * wanted / largest);
  return shrunk < 1 ? 1 : shrunk;
}

hs_status image_shrink(const image_request *request, int32_t largest_wanted, hs_image *image) {
  const int32_t largest = image->width > image->height ? image->width : image->height;
  if (largest_wanted == 0 || largest <= largest_wanted) return HS_OK;
  if (image->type == HS_F32)
    return image_fail(request, HS_ERR_UNSUPPORTED, "floats and signed samples cannot be made smaller exactly");
  const int32_t width = shrunk_side(image->width, largest, largest_wanted);
  const int32_t height = shrunk_side(image->height, largest, largest_wanted);
  if ((uint64_t)image->width * (uint64_t)image->height >= (uint64_t)1 << 47)
    return image_fail(request, HS_ERR_LIMIT, "the picture is too large to be made smaller");
  hs_image small;
  shrink_sums sums = {.count = (size_t)width * image_channels(image->layout)};
  const uint64_t working = (uint64_t)image->stride_bytes * (uint64_t)image->height + 2 * sizeof(uint64_t) * sums.count;
  hs_status status = image_allocate(request, width, height, image->type, image->layout, working, &small);
  if (status != HS_OK) return status;
  uint64_t *room = hs_memory_alloc(request->allocator, 2 * sizeof *room * sums.count);
  if (!room) {
    hs_image_free(&small);
    return image_fail(request, HS_ERR_MEMORY, "no memory for rows of sums");
  }
  sums.line = room;
  sums.total = room + sums.count;
  average(image, &small, &sums);
  hs_memory_release(request->allocator, room);
  small.exif_orientation = image->exif_orientation;
  small.original_width = image->width;
  small.original_height = image->height;
  hs_image_free(image);
  *image = small;
  return HS_OK;
}

void mask_shrink(const hs_image *mask, const hs_image *picture, uint8_t *pixels) {
  const size_t width = (size_t)picture->width, height = (size_t)picture->height;
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : (size_t)mask->width;
  for (size_t y = 0; y < height; y++) {
    const uint8_t *row = (const uint8_t *)mask->data + (2 * y + 1) * (size_t)mask->height / (2 * height) * stride;
    for (size_t x = 0; x < width; x++) pixels[y * width + x] = row[(2 * x + 1) * (size_t)mask->width / (2 * width)];
  }
}

/* A place along a side whose pixels are `scale` of the original wide; centres of pixels are whole numbers. */
static float original_place(float place, double scale) { return (float)(((double)place + 0.5) * scale - 0.5); }

static void stretch_frame(hs_frame *f, double x_scale, double y_scale) {
  f->a11 = (float)((double)f->a11 * x_scale);
  f->a12 = (float)((double)f->a12 * x_scale);
  f->a21 = (float)((double)f->a21 * y_scale);
  f->a22 = (float)((double)f->a22 * y_scale);
}

hs_status hs_features_to_original(hs_features *features, const hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!features || !image || (features->count > 0 && !features->keypoints)) return HS_ERR_ARGUMENT;
  if (image->original_width == 0 && image->original_height == 0) return HS_OK;
  if (image->original_width < 1 || image->original_height < 1 || features->image_width != image->width ||
      features->image_height != image->height)
    return HS_ERR_ARGUMENT;
  const double x_scale = (double)image->original_width / (double)image->width;
  const double y_scale = (double)image->original_height / (double)image->height;
  const double scale = sqrt(x_scale * y_scale);
  for (size_t i = 0; i < features->count; i++) {
    hs_keypoint *k = &features->keypoints[i];
    k->x = original_place(k->x, x_scale);
    k->y = original_place(k->y, y_scale);
    k->sigma = (float)((double)k->sigma * scale);
    if (features->frames) stretch_frame(&features->frames[i], x_scale, y_scale);
  }
  features->image_width = image->original_width;
  features->image_height = image->original_height;
  return HS_OK;
}
