/* Affine shapes with vectors: samples patches row by row, and computes moments of gradients under a window, one vector
 * of a row's samples at a time. */
#include "cpu/simd/elementary_simd.h"
#include "cpu/ref/stages_ref.h"
#include "cpu/simd/stages_simd.h"
#include "cpu/schedule/window_prefetch.h"

enum { VECTORS = (AFFINE_DESCRIBE_SIDE + SIMD_WIDTH - 1) / SIMD_WIDTH, ROW_CAPACITY = VECTORS * SIMD_WIDTH };

/* A row of samples. For each sample: the offset of its upper left neighbour, counted from the first row that the
 * patch may read, and the distance from that neighbour. */
typedef struct patch_row {
  int32_t at[ROW_CAPACITY];
  float fx[ROW_CAPACITY], fy[ROW_CAPACITY];
} patch_row;

/* Offsets below this are exact as floats. The patch of a user keypoint may have larger offsets. */
#define OFFSETS_EXACT 16777216.0f

/* The level, and the row from which offsets are counted, chosen so that they are exact as floats. */
typedef struct patch_source {
  const plane_view *level;
  const patch_map *map;
  const float *first;
  float top, middle;
} patch_source;

/* The range of samples in a row of the patch. */
typedef struct patch_columns {
  int32_t first, count;
} patch_columns;

static inline patch_columns columns_of(const patch_rows *read, int32_t j, int32_t side) {
  return read ? (patch_columns){read->first[j], read->end[j] - read->first[j]} : (patch_columns){0, side};
}

static simd_f32 within(simd_f32 v, float last) { return simd_min(simd_max(v, simd_zero()), simd_set1(last)); }

static inline void locate_row(const patch_source *s, int32_t j, patch_columns c, patch_row *r) {
  const plane_view *p = s->level;
  const patch_map *m = s->map;
  const float v = (float)j - s->middle;
  const simd_f32 x0 = simd_set1(hs_fmaf(m->a12, v, m->x)), y0 = simd_set1(hs_fmaf(m->a22, v, m->y));
  const simd_f32 a = simd_set1(m->a11), b = simd_set1(m->a21);
  const simd_f32 last_column = simd_set1((float)(p->width > 1 ? p->width - 2 : 0));
  const simd_f32 last_line = simd_set1((float)(p->height > 1 ? p->height - 2 : 0));
  const simd_f32 stride = simd_set1((float)p->stride), top = simd_set1(s->top);
  for (int32_t i = 0; i < c.count; i += SIMD_WIDTH) {
    const simd_f32 u = simd_add(simd_set1((float)(c.first + i) - s->middle), simd_lane_numbers());
    const simd_f32 x = within(simd_fma(a, u, x0), (float)(p->width - 1));
    const simd_f32 y = within(simd_fma(b, u, y0), (float)(p->height - 1));
    const simd_f32 column = simd_min(simd_floor(x), last_column), line = simd_min(simd_floor(y), last_line);
    simd_store(r->fx + i, simd_sub(x, column));
    simd_store(r->fy + i, simd_sub(y, line));
    simd_i32_store(r->at + i, simd_trunc_i32(simd_fma(simd_sub(line, top), stride, column)));
  }
}

static inline void value_row(const patch_source *s, patch_columns columns, const patch_row *r, float *out) {
  const size_t below = s->level->height > 1 ? s->level->stride : 0;
  for (int32_t i = 0; i < columns.count; i += SIMD_WIDTH) {
    const simd_f32 fx = simd_load(r->fx + i), fy = simd_load(r->fy + i);
    simd_f32 a, b, c, d;
    simd_load_pairs(s->first, r->at + i, &a, &b);
    simd_load_pairs(s->first + below, r->at + i, &c, &d);
    if (s->level->width == 1) b = a, d = c;
    const simd_f32 upper = simd_fma(fx, simd_sub(b, a), a), lower = simd_fma(fx, simd_sub(d, c), c);
    const simd_f32 value = simd_fma(fy, simd_sub(lower, upper), upper);
    const int32_t left = columns.count - i;
    simd_store_first(out + columns.first + i, value, left < SIMD_WIDTH ? left : SIMD_WIDTH);
  }
}

void SIMD_NAME(affine_patch)(const plane_view *level, const patch_map *m, const patch_rows *read, int32_t side,
                             size_t stride, float *out, window_prefetch *prefetch) {
  patch_row rows[2]; /* two rows, because positions of one row are computed while the other row is interpolated */
  const float middle = 0.5f * (float)(side - 1), radius = (hs_fabsf(m->a21) + hs_fabsf(m->a22)) * middle + 2.0f;
  if ((2.0f * radius + 2.0f) * (float)level->stride + (float)level->width >= OFFSETS_EXACT) {
    affine_patch_ref(level, m, read, side, stride, out, prefetch);
    return;
  }
  const float bottom = (float)(level->height - 1);
  float top = m->y - radius;
  top = top > 0.0f ? top : 0.0f;
  top = top < bottom ? (float)(int32_t)top : bottom;
  const patch_source s = {level, m, level->data + (size_t)top * level->stride, top, middle};
  patch_columns columns = columns_of(read, 0, side);
  const int32_t ahead_rows = (prefetch->rows + side - 1) / side;
  locate_row(&s, 0, columns, &rows[0]);
  for (int32_t j = 0; j < side; j++, out += stride) {
    const int32_t next = j + 1 < side ? j + 1 : j;
    const patch_columns next_columns = columns_of(read, next, side);
    for (int32_t n = 0; n < ahead_rows; n++) window_prefetch_row(prefetch);
    locate_row(&s, next, next_columns, &rows[(j + 1) & 1]);
    value_row(&s, columns, &rows[j & 1], out);
    columns = next_columns;
  }
}

/* ------------------------------------------------------------------ moments */

typedef struct moment_sums {
  simd_i32 xx, xy, yy; /* sums of products, each with ROUNDED_BIAS added */
  uint32_t vectors;
} moment_sums;

/* Loads p[0], p[step], ... Vectors may read past the `count` samples: levels have enough readable memory after them for
 * steps of 2. */
static inline simd_f32 load_stepped(const float *p, int32_t step, int32_t count) {
  if (step == 1) return simd_load(p);
  if (step == 2) return simd_load_even(p);
  float value[SIMD_WIDTH] = {0};
  for (int32_t i = 0; i < SIMD_WIDTH && i < count; i++) value[i] = p[(size_t)i * (size_t)step];
  return simd_load(value);
}

/* Adds the moments of the row j steps below the middle, over columns r->first to r->last. */
static inline void add_row(const plane_view *level, const affine_window *w, const affine_row *r, int32_t j,
                           int32_t step, moment_sums *m) {
  const float *row = level->data + (size_t)(w->cy + step * j) * level->stride;
  const simd_f32 slope = simd_set1(r->slope), top = simd_set1(r->level), xx = simd_set1(w->xx);
  const simd_f32 lanes = simd_mul(simd_lane_numbers(), simd_set1((float)step));
  const simd_f32 end = simd_set1(w->x + (float)(step * r->last));
  for (int32_t i = r->first; i <= r->last; i += SIMD_WIDTH) {
    const simd_f32 dx = simd_add(simd_set1(w->x), simd_add(simd_set1((float)(step * i)), lanes));
    const simd_f32 exponent = simd_fma(simd_fma(xx, dx, slope), dx, top);
    const simd_mask weighs = simd_mask_and(simd_gt(exponent, simd_set1(w->lowest)), simd_le(dx, end));
    const float *p = row + (w->cx + step * i), *above = p - level->stride, *below = p + level->stride;
    const int32_t left = r->last - i + 1;
    const simd_f32 across = simd_sub(load_stepped(p + 1, step, left), load_stepped(p - 1, step, left));
    const simd_f32 down = simd_sub(load_stepped(below, step, left), load_stepped(above, step, left));
    const simd_f32 gx = simd_select(weighs, across, simd_zero()), gy = simd_select(weighs, down, simd_zero());
    const simd_f32 weight = simd_exp2(exponent), wx = simd_mul(gx, weight), wy = simd_mul(gy, weight);
    m->xx = simd_i32_add(m->xx, simd_biased_product(wx, gx));
    m->xy = simd_i32_add(m->xy, simd_biased_product(wx, gy));
    m->yy = simd_i32_add(m->yy, simd_biased_product(wy, gy));
    m->vectors++;
  }
}

static inline moment_sums add_rows(const plane_view *level, const affine_window *w, int32_t step,
                                   window_prefetch *prefetch) {
  moment_sums m = {simd_i32_set1(0), simd_i32_set1(0), simd_i32_set1(0), 0};
  for (int32_t j = -w->rows; j <= w->rows; j++) {
    const int32_t line = w->cy + step * j;
    window_prefetch_row(prefetch);
    if (line < 1 || line > level->height - 2) continue;
    affine_row r = affine_row_of(w, w->y + (float)(step * j));
    while (r.first <= r.last && w->cx + step * r.first < 1) r.first++;
    while (r.first <= r.last && w->cx + step * r.last > level->width - 2) r.last--;
    add_row(level, w, &r, j, step, &m);
  }
  return m;
}

static int32_t sum_of(simd_i32 sums, uint32_t vectors) {
  int32_t lane[SIMD_WIDTH];
  uint32_t sum = 0;
  simd_i32_store(lane, sums);
  for (int32_t i = 0; i < SIMD_WIDTH; i++) sum += (uint32_t)lane[i] - vectors * (uint32_t)ROUNDED_BIAS;
  return (int32_t)sum;
}

affine_moments SIMD_NAME(affine_moments)(const plane_view *level, const affine_window *w, window_prefetch *prefetch) {
  const moment_sums m = w->step == 1   ? add_rows(level, w, 1, prefetch)
                        : w->step == 2 ? add_rows(level, w, 2, prefetch)
                                       : add_rows(level, w, w->step, prefetch);
  return (affine_moments){sum_of(m.xx, m.vectors), sum_of(m.xy, m.vectors), sum_of(m.yy, m.vectors)};
}
