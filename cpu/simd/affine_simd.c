/* Affine shapes with vectors: samples patches row by row, and computes the moments of a patch's gradients, one vector
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

enum {
  MOMENT_COLUMNS = 2 * AFFINE_SHAPE_RADIUS + 1,
  MOMENT_VECTORS = (MOMENT_COLUMNS + SIMD_WIDTH - 1) / SIMD_WIDTH,
  MOMENT_WEIGHTS = MOMENT_VECTORS * SIMD_WIDTH
};
_Static_assert((int)MOMENT_WEIGHTS - (int)MOMENT_COLUMNS <= (int)AFFINE_PATCH_SLACK, "vectors read only the slack");

static inline void weigh_columns(float weight[MOMENT_WEIGHTS]) {
  for (int32_t i = 0; i < MOMENT_WEIGHTS; i += SIMD_WIDTH) {
    const simd_f32 d = simd_add(simd_set1((float)(i - AFFINE_SHAPE_RADIUS)), simd_lane_numbers());
    const simd_f32 exponent =
        simd_fma(simd_set1(AFFINE_WEIGHT_FALL), simd_mul(d, d), simd_set1(0.5f * AFFINE_WEIGHT_LOG2));
    simd_store(weight + i, simd_exp2(exponent));
  }
}

static int32_t sum_of(simd_i32 sums, uint32_t vectors) {
  int32_t lane[SIMD_WIDTH];
  uint32_t sum = 0;
  simd_i32_store(lane, sums);
  for (int32_t i = 0; i < SIMD_WIDTH; i++) sum += (uint32_t)lane[i] - vectors * (uint32_t)ROUNDED_BIAS;
  return (int32_t)sum;
}

affine_moments SIMD_NAME(affine_moments)(const float *patch, size_t stride) {
  float weight[MOMENT_WEIGHTS];
  simd_i32 xx = simd_i32_set1(0), xy = xx, yy = xx; /* sums of products, each with ROUNDED_BIAS added */
  weigh_columns(weight);
  for (int32_t j = 0; j < MOMENT_COLUMNS; j++) {
    const float *row = patch + (size_t)(j + 1) * stride + 1;
    const simd_f32 factor = simd_set1(weight[j]);
    const float half_width = (float)affine_reach(j - AFFINE_SHAPE_RADIUS);
    const simd_f32 first = simd_set1((float)AFFINE_SHAPE_RADIUS - half_width);
    const simd_f32 last = simd_set1((float)AFFINE_SHAPE_RADIUS + half_width);
    for (int32_t i = 0; i < MOMENT_WEIGHTS; i += SIMD_WIDTH) {
      const float *p = row + i;
      const simd_f32 column = simd_add(simd_set1((float)i), simd_lane_numbers());
      const simd_mask weighs = simd_mask_and(simd_le(first, column), simd_le(column, last));
      const simd_f32 across = simd_sub(simd_load(p + 1), simd_load(p - 1));
      const simd_f32 down = simd_sub(simd_load(p + stride), simd_load(p - stride));
      const simd_f32 gx = simd_select(weighs, across, simd_zero()), gy = simd_select(weighs, down, simd_zero());
      const simd_f32 w = simd_mul(simd_load(weight + i), factor), wx = simd_mul(gx, w), wy = simd_mul(gy, w);
      xx = simd_i32_add(xx, simd_biased_product(wx, gx));
      xy = simd_i32_add(xy, simd_biased_product(wx, gy));
      yy = simd_i32_add(yy, simd_biased_product(wy, gy));
    }
  }
  const uint32_t vectors = (uint32_t)MOMENT_COLUMNS * (uint32_t)MOMENT_VECTORS;
  return (affine_moments){sum_of(xx, vectors), sum_of(xy, vectors), sum_of(yy, vectors)};
}
