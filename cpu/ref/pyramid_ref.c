/*
 * Reference of the pyramid's steps: base, level step, halving. Plain C, one sample at a time, never tuned.
 */
#include "cpu/ref/stages_ref.h"

/* Returns one channel of the source as a float in [0, 1]. */
static float source_unit(const source_view *s, const unsigned char *sample) {
  if (s->type == SOURCE_U8) return (float)*sample / 255.0f;
  if (s->type == SOURCE_U16) return (float)*(const uint16_t *)(const void *)sample / 65535.0f;
  return unit_of_float(*(const float *)(const void *)sample, s->range_low, s->range_high);
}

static uint32_t source_int(const source_view *s, const unsigned char *sample) {
  return s->type == SOURCE_U8 ? *sample : *(const uint16_t *)(const void *)sample;
}

/* Returns the gray of pixel (x, y) in [0, 1]. */
static float source_gray(const source_view *s, int32_t x, int32_t y) {
  const size_t size = source_sample_bytes(s->type);
  const unsigned char *pixel =
      (const unsigned char *)s->data + (size_t)y * s->stride_bytes + (size_t)x * source_pixel_bytes(s->type, s->layout);
  if (s->layout == SOURCE_GRAY || s->layout == SOURCE_GRAY_ALPHA) return source_unit(s, pixel);
  const bool blue_first = s->layout == SOURCE_BGR || s->layout == SOURCE_BGRA;
  const unsigned char *r = pixel + (blue_first ? 2 * size : 0), *g = pixel + size,
                      *b = pixel + (blue_first ? 0 : 2 * size);
  if (s->type == SOURCE_F32) return gray_of_rgb_float(source_unit(s, r), source_unit(s, g), source_unit(s, b));
  const uint32_t gray = gray_of_rgb_int(source_int(s, r), source_int(s, g), source_int(s, b));
  return s->type == SOURCE_U8 ? (float)gray / 255.0f : (float)gray / 65535.0f;
}

/* Returns sample x of a row that is doubled along x. The last sample repeats. */
static float doubled_in_row(const float *row, int32_t width, int32_t x, upsample_grid grid) {
  const int32_t i = x / 2;
  const float c = row[i], left = row[i > 0 ? i - 1 : 0], right = row[i + 1 < width ? i + 1 : i];
  if (grid == GRID_ALIGNED) return x % 2 == 0 ? c : double_mean(c, right);
  return double_half_pixel(c, x % 2 == 0 ? left : right);
}

/* Returns sample y of a column that is doubled along y. row: the source row of sample y, at this column. */
static float doubled_in_column(const float *row, size_t stride, int32_t height, int32_t y, upsample_grid grid) {
  const int32_t i = y / 2;
  const float *up = i > 0 ? row - stride : row, *down = i + 1 < height ? row + stride : row;
  if (grid == GRID_ALIGNED) return y % 2 == 0 ? *row : double_mean(*row, *down);
  return double_half_pixel(*row, y % 2 == 0 ? *up : *down);
}

/* Returns the source pixels that a region of the doubled picture reads. */
static plane_region pixels_of(const plane_region *doubled, const plane_view *gray) {
  const plane_region r = {doubled->x0 / 2, doubled->y0 / 2, (doubled->x1 + 1) / 2, (doubled->y1 + 1) / 2};
  return region_about(r, 1, gray);
}

/* Makes a region of the doubled picture: converts pixels to gray, doubles rows (into the work plane), then columns. */
static void make_doubled(const base_args *args, const plane_region *region) {
  const plane_view gray = args->gray, wide = args->work, out = args->doubled;
  const plane_region p = pixels_of(region, &gray);
  for (int32_t y = p.y0; y < p.y1; y++) {
    float *row = gray.data + (size_t)(y - p.y0) * gray.stride, *doubled = wide.data + (size_t)(y - p.y0) * wide.stride;
    for (int32_t x = p.x0; x < p.x1; x++) row[x - p.x0] = source_gray(&args->source, x, y);
    for (int32_t x = region->x0; x < region->x1; x++)
      doubled[x - region->x0] = doubled_in_row(row - p.x0, gray.width, x, args->grid);
  }
  for (int32_t y = region->y0; y < region->y1; y++)
    for (int32_t x = region->x0; x < region->x1; x++) {
      const float *at = wide.data + (size_t)(y / 2 - p.y0) * wide.stride + (x - region->x0);
      out.data[(size_t)y * out.stride + (size_t)x] = doubled_in_column(at, wide.stride, gray.height, y, args->grid);
    }
}

/* Makes a region of the decimated picture, which keeps every 2^first_octave-th pixel. */
static void make_thinned(const base_args *args, const plane_region *region) {
  const plane_view out = args->doubled;
  const int32_t step = 1 << args->first_octave;
  assert(out.width <= args->source.width && out.height <= args->source.height);
  for (int32_t y = region->y0; y < region->y1; y++)
    for (int32_t x = region->x0; x < region->x1; x++)
      out.data[(size_t)y * out.stride + (size_t)x] = source_gray(&args->source, x * step, y * step);
}

stage_status base_ref(stage_queue *queue, const base_args *args) {
  const plane_region needed =
      region_about(region_or_all(args->region, &args->out), args->filter->radius, &args->doubled);
  if (args->first_octave < 0)
    make_doubled(args, &needed);
  else
    make_thinned(args, &needed);
  const blur_args blur = {args->doubled, args->out, args->work, args->border, args->filter, args->region};
  return blur_ref(queue, &blur);
}

/* Computes one output: acc = c0 x0, then acc = fma(cj, x[-j] + x[+j], acc) for ascending j. */
static float convolve_at(const gaussian_filter *f, const float *line, ptrdiff_t step, int32_t i, int32_t n,
                         border_mode b) {
  float acc = f->taps[0] * line[(ptrdiff_t)i * step];
  for (int32_t j = 1; j <= f->radius; j++) {
    const float lower = line[(ptrdiff_t)border_index(i - j, n, b) * step];
    const float upper = line[(ptrdiff_t)border_index(i + j, n, b) * step];
    acc = hs_fmaf(f->taps[j], lower + upper, acc);
  }
  return acc;
}

stage_status blur_ref(stage_queue *queue, const blur_args *args) {
  (void)queue;
  const plane_view in = args->in, work = args->work, out = args->out;
  const plane_region r = region_or_all(args->region, &out), rows = region_about(r, args->filter->radius, &in);
  assert(in.data != out.data && work.data != in.data && work.data != out.data);
  for (int32_t y = rows.y0; y < rows.y1; y++)
    for (int32_t x = r.x0; x < r.x1; x++)
      work.data[(size_t)(y - rows.y0) * work.stride + (size_t)(x - r.x0)] =
          convolve_at(args->filter, in.data + (size_t)y * in.stride, 1, x, in.width, args->border);
  /* address that row 0 of the plane would have */
  const float *first = work.data - (ptrdiff_t)rows.y0 * (ptrdiff_t)work.stride;
  for (int32_t y = r.y0; y < r.y1; y++)
    for (int32_t x = r.x0; x < r.x1; x++)
      out.data[(size_t)y * out.stride + (size_t)x] =
          convolve_at(args->filter, first + (x - r.x0), (ptrdiff_t)work.stride, y, in.height, args->border);
  return STAGE_OK;
}

stage_status halve_ref(stage_queue *queue, const halve_args *args) {
  (void)queue;
  const plane_region r = region_or_all(args->region, &args->out);
  for (int32_t y = r.y0; y < r.y1; y++)
    for (int32_t x = r.x0; x < r.x1; x++)
      args->out.data[(size_t)y * args->out.stride + (size_t)x] =
          args->in.data[(size_t)(2 * y) * args->in.stride + (size_t)(2 * x)];
  return STAGE_OK;
}
