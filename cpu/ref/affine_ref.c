/* Reference of affine shapes: a shape's patch, and the moments of gradients under a window. */
#include "cpu/ref/stages_ref.h"

void affine_patch_ref(const plane_view *level, const patch_map *m, const patch_rows *read, int32_t side, size_t stride,
                      float *out, struct window_ahead *ahead) {
  (void)ahead;
  const float middle = 0.5f * (float)(side - 1);
  for (int32_t j = 0; j < side; j++, out += stride) {
    const float v = (float)j - middle, x0 = hs_fmaf(m->a12, v, m->x), y0 = hs_fmaf(m->a22, v, m->y);
    const int32_t first = read ? read->first[j] : 0, end = read ? read->end[j] : side;
    for (int32_t i = first; i < end; i++) {
      const float u = (float)i - middle;
      out[i] = affine_sample(level, hs_fmaf(m->a11, u, x0), hs_fmaf(m->a21, u, y0));
    }
  }
}

/* The share of the row j steps below the middle. */
static void add_row(const plane_view *level, const affine_window *w, int32_t j, affine_moments *m) {
  const affine_row r = affine_row_of(w, w->y + (float)(w->step * j));
  const float *row = level->data + (size_t)(w->cy + w->step * j) * level->stride;
  for (int32_t i = r.first; i <= r.last; i++) {
    const int32_t column = w->cx + w->step * i;
    const float dx = w->x + (float)(w->step * i), exponent = hs_fmaf(hs_fmaf(w->xx, dx, r.slope), dx, r.level);
    if (column < 1 || column > level->width - 2 || !(exponent > w->lowest)) continue;
    const float *p = row + column;
    const float weight = hs_exp2(exponent);
    const float gx = p[1] - p[-1], gy = p[level->stride] - *(p - level->stride), wx = gx * weight, wy = gy * weight;
    m->xx += hs_rounded_product(wx, gx);
    m->xy += hs_rounded_product(wx, gy);
    m->yy += hs_rounded_product(wy, gy);
  }
}

affine_moments affine_moments_ref(const plane_view *level, const affine_window *w, struct window_ahead *ahead) {
  (void)ahead;
  affine_moments m = {0, 0, 0};
  for (int32_t j = -w->rows; j <= w->rows; j++)
    if (w->cy + w->step * j >= 1 && w->cy + w->step * j <= level->height - 2) add_row(level, w, j, &m);
  return m;
}
