/*
 * Reference of the pyramid's steps: base, level step, halving. Plain C, one sample at a time, never tuned.
 */
#include "cpu/stages_ref.h"

/* One channel of the source as a float in [0, 1]. */
static float source_unit(const source_view *s, const unsigned char *sample) {
  if (s->type == SOURCE_U8) return (float)*sample / 255.0f;
  if (s->type == SOURCE_U16) return (float)*(const uint16_t *)(const void *)sample / 65535.0f;
  return unit_of_float(*(const float *)(const void *)sample, s->range_low, s->range_high);
}

static uint32_t source_int(const source_view *s, const unsigned char *sample) {
  return s->type == SOURCE_U8 ? *sample : *(const uint16_t *)(const void *)sample;
}

/* Gray of pixel (x, y) in [0, 1]. */
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

/* Doubling along rows: in (w x h) -> out (2w x h). The last column repeats. */
static void double_rows(const plane_view *in, plane_view out, upsample_grid grid) {
  for (int32_t y = 0; y < in->height; y++) {
    const float *a = in->data + (size_t)y * in->stride;
    float *o = out.data + (size_t)y * out.stride;
    for (int32_t x = 0; x < in->width; x++) {
      const float c = a[x], left = a[x > 0 ? x - 1 : 0], right = a[x + 1 < in->width ? x + 1 : x];
      o[2 * x] = grid == GRID_ALIGNED ? c : double_half_pixel(c, left);
      o[2 * x + 1] = grid == GRID_ALIGNED ? double_mean(c, right) : double_half_pixel(c, right);
    }
  }
}

/* Doubling along columns: in (w x h) -> out (w x 2h). The last row repeats. */
static void double_columns(const plane_view *in, plane_view out, upsample_grid grid) {
  for (int32_t y = 0; y < in->height; y++) {
    const float *a = in->data + (size_t)y * in->stride;
    const float *up = y > 0 ? a - in->stride : a, *down = y + 1 < in->height ? a + in->stride : a;
    float *even = out.data + (size_t)(2 * y) * out.stride, *odd = even + out.stride;
    for (int32_t x = 0; x < in->width; x++) {
      even[x] = grid == GRID_ALIGNED ? a[x] : double_half_pixel(a[x], up[x]);
      odd[x] = grid == GRID_ALIGNED ? double_mean(a[x], down[x]) : double_half_pixel(a[x], down[x]);
    }
  }
}

stage_status base_ref(stage_queue *queue, const base_args *args) {
  (void)queue;
  const bool doubled = args->first_octave < 0;
  const int32_t step = doubled ? 1 : 1 << args->first_octave;
  plane_view gray = doubled ? args->gray : args->doubled;
  assert(gray.width <= args->source.width && gray.height <= args->source.height);
  for (int32_t y = 0; y < gray.height; y++)
    for (int32_t x = 0; x < gray.width; x++)
      gray.data[(size_t)y * gray.stride + (size_t)x] = source_gray(&args->source, x * step, y * step);
  if (doubled) {
    plane_view wide = args->work; /* holds the rows doubled: 2w x h */
    wide.height = gray.height;
    double_rows(&gray, wide, args->grid);
    double_columns(&wide, args->doubled, args->grid);
  }
  const blur_args blur = {args->doubled, args->out, args->work, args->border, args->filter};
  return blur_ref(queue, &blur);
}

/* One output: acc = c0 x0, then acc = fma(cj, x[-j] + x[+j], acc) for j upwards. */
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
  assert(in.data != out.data && work.data != in.data && work.data != out.data);
  for (int32_t y = 0; y < in.height; y++)
    for (int32_t x = 0; x < in.width; x++)
      work.data[(size_t)y * work.stride + (size_t)x] =
          convolve_at(args->filter, in.data + (size_t)y * in.stride, 1, x, in.width, args->border);
  for (int32_t y = 0; y < in.height; y++)
    for (int32_t x = 0; x < in.width; x++)
      out.data[(size_t)y * out.stride + (size_t)x] =
          convolve_at(args->filter, work.data + x, (ptrdiff_t)work.stride, y, in.height, args->border);
  return STAGE_OK;
}

stage_status halve_ref(stage_queue *queue, const halve_args *args) {
  (void)queue;
  for (int32_t y = 0; y < args->out.height; y++)
    for (int32_t x = 0; x < args->out.width; x++)
      args->out.data[(size_t)y * args->out.stride + (size_t)x] =
          args->in.data[(size_t)(2 * y) * args->in.stride + (size_t)(2 * x)];
  return STAGE_OK;
}
