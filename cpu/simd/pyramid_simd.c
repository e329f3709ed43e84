/* The base, level step and halving with vectors.
 *
 * Base: picture -> gray -> doubled -> blurred, line by line, so that neither the gray picture nor the doubled one is
 * stored. A strip keeps two gray lines doubled along x; lines doubled along y are computed from them. */
#include "cpu/simd/blur_lines_simd.h"
#include "cpu/simd/stages_simd.h"

/* Indices of the lines in a strip's scratch memory. */
enum { LINE_RESULT, LINE_GRAY, LINE_WIDE_0, LINE_WIDE_1 };

/* A run of pixels in one row: every step-th pixel from `first` on. */
typedef struct pixel_run {
  const unsigned char *first;
  int32_t count;
  size_t step_bytes;
  size_t red_bytes, green_bytes, blue_bytes; /* offsets from the pixel's first byte, bytes */
} pixel_run;

static float u8_at(const unsigned char *p) { return (float)*p / 255.0f; }
static float u16_at(const unsigned char *p) { return (float)*(const uint16_t *)(const void *)p / 65535.0f; }
static float f32_at(const unsigned char *p, const source_view *s) {
  return unit_of_float(*(const float *)(const void *)p, s->range_low, s->range_high);
}

static void gray_run_u8(const pixel_run *r, float *out) {
  int32_t i = 0;
  /* the end is processed sample by sample, because a vector that reads past the run would leave the row */
  if (r->step_bytes == 1)
    for (; i + SIMD_WIDTH <= r->count; i += SIMD_WIDTH)
      simd_store(out + i, simd_div(simd_from_i32(simd_i32_load_u8(r->first + i)), simd_set1(255.0f)));
  for (; i < r->count; i++) out[i] = u8_at(r->first + (size_t)i * r->step_bytes);
}

static void gray_run_u16(const pixel_run *r, float *out) {
  int32_t i = 0;
  if (r->step_bytes == 2)
    for (; i + SIMD_WIDTH <= r->count; i += SIMD_WIDTH) {
      const uint16_t *at = (const uint16_t *)(const void *)r->first + i;
      simd_store(out + i, simd_div(simd_from_i32(simd_i32_load_u16(at)), simd_set1(65535.0f)));
    }
  for (; i < r->count; i++) out[i] = u16_at(r->first + (size_t)i * r->step_bytes);
}

/* The clamp is made of two selections, as in unit_of_float: NaN becomes `low`. */
static void gray_run_f32(const source_view *s, const pixel_run *r, float *out) {
  int32_t i = 0;
  if (r->step_bytes == sizeof(float)) {
    const simd_f32 low = simd_set1(s->range_low), high = simd_set1(s->range_high);
    const simd_f32 range = simd_set1(s->range_high - s->range_low);
    for (; i + SIMD_WIDTH <= r->count; i += SIMD_WIDTH) {
      const simd_f32 v = simd_load((const float *)(const void *)r->first + i);
      const simd_f32 c = simd_select(simd_gt(v, low), v, low);
      simd_store(out + i, simd_div(simd_sub(simd_select(simd_lt(c, high), c, high), low), range));
    }
  }
  for (; i < r->count; i++) out[i] = f32_at(r->first + (size_t)i * r->step_bytes, s);
}

/* Colour is converted by plain loops, which compilers vectorise if profitable. The weighted sum of 16-bit channels
 * stays below 2^32, so 32-bit arithmetic gives the result of the reference's 64-bit arithmetic. */
static inline uint32_t weigh(uint32_t r, uint32_t g, uint32_t b) {
  return (9798u * r + 19235u * g + 3735u * b + 16384u) >> 15;
}

static inline void colour_run_u8(const pixel_run *r, size_t step_bytes, float *out) {
  const uint8_t *red = r->first + r->red_bytes, *green = r->first + r->green_bytes, *blue = r->first + r->blue_bytes;
  for (int32_t i = 0; i < r->count; i++) {
    const size_t at = (size_t)i * step_bytes;
    out[i] = (float)(int32_t)weigh(red[at], green[at], blue[at]) / 255.0f;
  }
}

static void colour_run_u16(const pixel_run *r, float *out) {
  for (int32_t i = 0; i < r->count; i++) {
    const unsigned char *at = r->first + (size_t)i * r->step_bytes;
    const uint32_t red = *(const uint16_t *)(const void *)(at + r->red_bytes);
    const uint32_t green = *(const uint16_t *)(const void *)(at + r->green_bytes);
    const uint32_t blue = *(const uint16_t *)(const void *)(at + r->blue_bytes);
    out[i] = (float)(int32_t)weigh(red, green, blue) / 65535.0f;
  }
}

static void colour_run_f32(const source_view *s, const pixel_run *r, float *out) {
  for (int32_t i = 0; i < r->count; i++) {
    const unsigned char *at = r->first + (size_t)i * r->step_bytes;
    out[i] =
        gray_of_rgb_float(f32_at(at + r->red_bytes, s), f32_at(at + r->green_bytes, s), f32_at(at + r->blue_bytes, s));
  }
}

/* Writes the gray of pixels ((x + i) step, y step), i < count, to out[i]. */
static void gray_line(const source_view *s, int32_t step, int32_t y, int32_t x, int32_t count, float *out) {
  static const uint8_t channels[] = {1, 2, 3, 3, 4, 4};
  const size_t size = s->type == SOURCE_U8 ? 1 : (s->type == SOURCE_U16 ? 2 : 4), pixel = channels[s->layout] * size;
  const bool blue_first = s->layout == SOURCE_BGR || s->layout == SOURCE_BGRA;
  pixel_run r = {.count = count, .step_bytes = pixel * (size_t)step};
  r.first = (const unsigned char *)s->data + (size_t)y * (size_t)step * s->stride_bytes + (size_t)x * r.step_bytes;
  r.red_bytes = blue_first ? 2 * size : 0;
  r.green_bytes = size;
  r.blue_bytes = blue_first ? 0 : 2 * size;
  if (s->layout == SOURCE_GRAY || s->layout == SOURCE_GRAY_ALPHA) {
    if (s->type == SOURCE_U8)
      gray_run_u8(&r, out);
    else if (s->type == SOURCE_U16)
      gray_run_u16(&r, out);
    else
      gray_run_f32(s, &r, out);
  } else if (s->type == SOURCE_U8) {
    if (r.step_bytes == 3)
      colour_run_u8(&r, 3, out);
    else if (r.step_bytes == 4)
      colour_run_u8(&r, 4, out);
    else
      colour_run_u8(&r, r.step_bytes, out);
  } else if (s->type == SOURCE_U16) {
    colour_run_u16(&r, out);
  } else {
    colour_run_f32(s, &r, out);
  }
}

/* Computes out[2i] and out[2i+1] from gray[i] and its neighbours, i < count. */
static void double_line(const float *gray, int32_t count, upsample_grid grid, float *out) {
  int32_t i = 0;
  const simd_f32 half = simd_set1(0.5f), near_weight = simd_set1(0.75f), far_weight = simd_set1(0.25f);
  for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) {
    const simd_f32 c = simd_load(gray + i), right = simd_load(gray + i + 1);
    if (grid == GRID_ALIGNED) {
      simd_store_interleaved(out + 2 * i, c, simd_mul(half, simd_add(c, right)));
    } else {
      const simd_f32 left = simd_load(gray + i - 1);
      simd_store_interleaved(out + 2 * i, simd_fma(near_weight, c, simd_mul(far_weight, left)),
                             simd_fma(near_weight, c, simd_mul(far_weight, right)));
    }
  }
  for (; i < count; i++) {
    const float c = gray[i];
    out[2 * i] = grid == GRID_ALIGNED ? c : double_half_pixel(c, gray[i - 1]);
    out[2 * i + 1] = grid == GRID_ALIGNED ? double_mean(c, gray[i + 1]) : double_half_pixel(c, gray[i + 1]);
  }
}

/* Computes out[i] from a[i] and its neighbour b[i] along y, i < count. */
static void double_pair(const float *a, const float *b, int32_t count, upsample_grid grid, float *out) {
  int32_t i = 0;
  const simd_f32 half = simd_set1(0.5f), near_weight = simd_set1(0.75f), far_weight = simd_set1(0.25f);
  for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) {
    const simd_f32 va = simd_load(a + i), vb = simd_load(b + i);
    simd_store(out + i, grid == GRID_ALIGNED ? simd_mul(half, simd_add(va, vb))
                                             : simd_fma(near_weight, va, simd_mul(far_weight, vb)));
  }
  for (; i < count; i++) out[i] = grid == GRID_ALIGNED ? double_mean(a[i], b[i]) : double_half_pixel(a[i], b[i]);
}

/* Returns row y of the picture doubled along x, for the strip: a pointer to sample 2 * floor(first / 2) of the samples
 * up to `end`, not included. */
static const float *wide_line(const base_args *args, line_strip *s, int32_t y) {
  const int32_t slot = y & 1;
  float *wide = s->memory + (size_t)(LINE_WIDE_0 + slot) * s->line_floats;
  if (s->kept[slot] == y) return wide;
  s->kept[slot] = y;
  /* reads one more gray sample on either side; at the picture's sides the outermost sample is repeated */
  const int32_t w = args->source.width, x0 = s->first / 2, x1 = (s->end + 1) / 2;
  const int32_t g0 = x0 > 0 ? x0 - 1 : 0, g1 = x1 < w ? x1 + 1 : w;
  float *gray = s->memory + (size_t)LINE_GRAY * s->line_floats + 1; /* gray[0] is sample x0 */
  gray_line(&args->source, 1, y, g0, g1 - g0, gray + (g0 - x0));
  if (x0 == 0) gray[-1] = gray[0];
  if (x1 == w) gray[x1 - x0] = gray[x1 - x0 - 1];
  double_line(gray, x1 - x0, args->grid, wide);
  return wide;
}

static const float *read_doubled_line(const void *source, line_strip *s, int32_t y) {
  const base_args *args = source;
  const int32_t row = y / 2, odd = y & 1, skip = s->first & 1;
  const int32_t toward = args->grid == GRID_ALIGNED || odd ? row + 1 : row - 1;
  const int32_t other = toward < 0 ? 0 : (toward < args->source.height ? toward : row);
  float *line = line_of_strip(s, LINE_RESULT), *at = line + (s->first - s->x0);
  const int32_t count = s->end - s->first;
  /* reads the row with the smaller y first, so that the two stored lines are the two needed ones */
  const float *a, *b;
  if (other < row) {
    b = wide_line(args, s, other) + skip;
    a = wide_line(args, s, row) + skip;
  } else {
    a = wide_line(args, s, row) + skip;
    b = args->grid == GRID_ALIGNED && !odd ? a : wide_line(args, s, other) + skip;
  }
  if (args->grid == GRID_ALIGNED && !odd)
    memcpy(at, a, sizeof(float) * (size_t)count);
  else
    double_pair(a, b, count, args->grid, at);
  line_continue(s, line);
  return line;
}

/* Returns a line of every 2^first_octave-th pixel. */
static const float *read_thinned_line(const void *source, line_strip *s, int32_t y) {
  const base_args *args = source;
  float *line = line_of_strip(s, LINE_RESULT);
  gray_line(&args->source, 1 << args->first_octave, y, s->first, s->end - s->first, line + (s->first - s->x0));
  line_continue(s, line);
  return line;
}

void SIMD_NAME(begin_base)(blur_job *job, const base_args *args, int32_t threads) {
  *job = (blur_job){.base = *args,
                    .source = &job->base,
                    .read = args->first_octave < 0 ? read_doubled_line : read_thinned_line,
                    .out = args->out,
                    .region = region_or_all(args->region, &args->out),
                    .scratch = args->work.data,
                    .border = args->border,
                    .filter = args->filter};
  blur_begin(job, threads);
}

stage_status SIMD_NAME(base)(stage_queue *queue, const base_args *args) {
  blur_job job;
  SIMD_NAME(begin_base)(&job, args, queue_threads(queue));
  return blur_run(queue, &job);
}

/* The level step and the halving with vectors.
 *
 * A strip of columns is processed from top to bottom, 16 rows at a time: rows not yet filtered along x are filtered
 * into the thread's ring. Then the ring is filtered along y, several rows at once, because neighbouring rows share
 * all but one of the samples on either side. Each lane is one output, computed in the reference's order of
 * operations. */

/* Number of rows between the line that is filtered and the line that is prefetched. */
enum { ROWS_AHEAD = 4 };

/* Copies samples [from, end) of a row into the strip's line. */
static void copy_samples(const line_strip *s, const float *row, int32_t from, int32_t end, float *line) {
  memcpy(line + (from - s->x0), row + from, sizeof(float) * (size_t)(end - from));
}

/* Returns a line of the level in place if the strip and its halo are inside the plane. Otherwise returns a copy with
 * the border extended; for a wide strip, only the ends are copied. */
static const float *read_plane_line(const void *source, line_strip *s, int32_t y) {
  const plane_view *in = source;
  const float *row = in->data + (size_t)y * in->stride;
  s->prefetch =
      s->rows_ahead > 0 && y + s->rows_ahead < s->height ? row + (size_t)s->rows_ahead * in->stride + s->x0 : NULL;
  if (s->x0 - s->radius - WORK_OVERREAD >= 0 && s->x1 + s->radius + WORK_OVERREAD <= in->width) return row + s->x0;
  float *line = line_of_strip(s, 0);
  const int32_t columns = s->x1 - s->x0;
  const bool wide = columns >= 4 * (LINE_END + LINE_END_HALO) && s->radius + WORK_OVERREAD <= LINE_END_HALO;
  s->inner = wide ? row + s->x0 : NULL;
  if (wide) {
    copy_samples(s, row, s->first, s->x0 + LINE_END + LINE_END_HALO, line);
    copy_samples(s, row, s->x1 - line_tail(columns) - LINE_END_HALO, s->end, line);
  } else {
    copy_samples(s, row, s->first, s->end, line);
  }
  line_continue(s, line);
  return line;
}

void SIMD_NAME(begin_blur)(blur_job *job, const blur_args *args, int32_t threads) {
  assert(args->in.data != args->out.data);
  *job = (blur_job){.in = args->in,
                    .source = &job->in,
                    .read = read_plane_line,
                    .out = args->out,
                    .region = region_or_all(args->region, &args->out),
                    .scratch = args->work.data,
                    .border = args->border,
                    .filter = args->filter,
                    .rows_ahead = ROWS_AHEAD};
  blur_begin(job, threads);
}

stage_status SIMD_NAME(blur)(stage_queue *queue, const blur_args *args) {
  blur_job job;
  SIMD_NAME(begin_blur)(&job, args, queue_threads(queue));
  return blur_run(queue, &job);
}

static void halve_chunk(void *argument, int32_t chunk, int32_t worker) {
  const halve_job *job = argument;
  const plane_view in = job->args.in, out = job->args.out;
  const plane_region *r = &job->region;
  (void)worker;
  const int32_t first = r->y0 + chunk * job->rows, end = r->y1 - first > job->rows ? first + job->rows : r->y1;
  for (int32_t y = first; y < end; y++) {
    const float *from = in.data + (size_t)(2 * y) * in.stride;
    float *to = out.data + (size_t)y * out.stride;
    halve_row(from + 2 * r->x0, r->x1 - r->x0, to + r->x0);
  }
}

void SIMD_NAME(begin_halve)(halve_job *job, const halve_args *args) {
  *job = (halve_job){.args = *args, .region = region_or_all(args->region, &args->out), .rows = WORK_BAND_MIN};
  const int32_t rows = job->region.y1 - job->region.y0;
  job->run = (stage_chunks){halve_chunk, rows > 0 ? (rows - 1) / job->rows + 1 : 0};
}

stage_status SIMD_NAME(halve)(stage_queue *queue, const halve_args *args) {
  halve_job job;
  SIMD_NAME(begin_halve)(&job, args);
  queue_run(queue, job.run.chunks, job.run.task, &job);
  return STAGE_OK;
}
