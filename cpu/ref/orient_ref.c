/* Reference of orientation assignment: a histogram, its smoothing, its peaks. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

/* A feature's angle and the height of its peak. */
typedef struct peak {
  int64_t height;
  int32_t bin;
  float angle;
} peak;

/* Adds the votes of all samples of the window. */
static void fill_histogram(const plane_view *level, const orient_window *w, const orient_args *args,
                           int32_t histogram[ORIENT_BINS]) {
  const author_rule rule = args->params.orientation_rule;
  const float scale = args->scales->orient[w->radius];
  memset(histogram, 0, sizeof(int32_t) * ORIENT_BINS);
  for (int32_t j = w->cy - w->radius; j <= w->cy + w->radius; j++)
    for (int32_t i = w->cx - w->radius; i <= w->cx + w->radius; i++) {
      if (i < w->margin || i >= level->width - w->margin || j < w->margin || j >= level->height - w->margin) continue;
      const float dx = (float)i - w->x, dy = (float)j - w->y;
      if (!(dx * dx + dy * dy < w->limit)) continue;
      float gx, gy;
      if (w->margin == 0)
        gradient_at_edge(level, i, j, &gx, &gy);
      else
        gradient_at(level, i, j, &gx, &gy);
      const float weight = window_weight(dx, w->falloff) * (window_weight(dy, w->falloff) * scale);
      const orient_vote v = orient_vote_of(gx, gy, weight, rule);
      histogram[v.bin0] += v.v0;
      histogram[v.bin1] += v.v1;
    }
}

/* Finds the peaks, in the order of bins. */
static int32_t find_peaks(const int32_t histogram[ORIENT_BINS], author_rule rule, peak peaks[ORIENT_PEAKS_MAX]) {
  int64_t h[ORIENT_BINS], largest = 0;
  for (int32_t b = 0; b < ORIENT_BINS; b++) {
    h[b] = orient_smooth_bin(histogram, b, rule);
    if (h[b] > largest) largest = h[b];
  }
  int32_t n = 0;
  for (int32_t b = 0; b < ORIENT_BINS; b++) {
    const int64_t left = h[orient_wrap_bin(b - 1)], right = h[orient_wrap_bin(b + 1)];
    if (!orient_is_peak(left, h[b], right, largest, rule)) continue;
    peaks[n++] = (peak){h[b], b, orient_peak_angle(b, left, h[b], right, rule)};
  }
  return n;
}

/* Keeps the `most` highest peaks (lower bins first on ties), in place. */
static int32_t keep_highest(peak *peaks, int32_t n, int32_t most) {
  while (most > 0 && n > most) {
    int32_t lowest = 0;
    for (int32_t i = 1; i < n; i++)
      if (peaks[i].height <= peaks[lowest].height) lowest = i;
    n--;
    for (int32_t i = lowest; i < n; i++) peaks[i] = peaks[i + 1];
  }
  return n;
}

static void sort_by_angle(peak *peaks, int32_t n) {
  for (int32_t i = 1; i < n; i++)
    for (int32_t j = i; j > 0 && peaks[j].angle < peaks[j - 1].angle; j--) {
      const peak t = peaks[j];
      peaks[j] = peaks[j - 1];
      peaks[j - 1] = t;
    }
}

static void append_feature(const feature_list *list, uint32_t keypoint, float angle) {
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->keypoint[n] = keypoint;
  list->orientation[n] = angle;
}

stage_status orient_ref(stage_queue *queue, const orient_args *args) {
  (void)queue;
  const keypoint_list *k = &args->keypoints;
  const uint32_t end = *k->count < k->capacity ? *k->count : k->capacity;
  for (uint32_t n = args->first_keypoint; n < end; n++) {
    if (args->params.upright) {
      append_feature(&args->features, n, 0.0f);
      continue;
    }
    const octave_view *o = &args->octaves[k->octave[n] - args->first_octave];
    const plane_view level = octave_level(o, k->level[n]);
    const octave_keypoint at = keypoint_in_octave(k, n, args->params.grid_shift);
    const orient_window w =
        orient_window_of(at.x, at.y, at.sigma, k->column[n], k->row[n], args->params.orientation_rule);
    int32_t histogram[ORIENT_BINS];
    peak peaks[ORIENT_PEAKS_MAX];
    assert(w.radius <= WINDOW_RADIUS_MAX);
    fill_histogram(&level, &w, args, histogram);
    int32_t count = find_peaks(histogram, args->params.orientation_rule, peaks);
    count = keep_highest(peaks, count, args->params.max_orientations);
    sort_by_angle(peaks, count);
    for (int32_t i = 0; i < count; i++) append_feature(&args->features, n, peaks[i].angle);
  }
  return STAGE_OK;
}

/* Reference of affine shapes: a shape's patch, and the moments of its gradients. */

void affine_patch_ref(const plane_view *level, const patch_map *m, const patch_rows *read, int32_t side, size_t stride,
                      float *out, struct window_prefetch *prefetch) {
  (void)prefetch;
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

affine_moments affine_moments_ref(const float *patch, size_t stride) {
  const int32_t middle = AFFINE_SHAPE_SIDE / 2;
  affine_moments m = {0, 0, 0};
  for (int32_t j = -AFFINE_SHAPE_RADIUS; j <= AFFINE_SHAPE_RADIUS; j++)
    for (int32_t i = -AFFINE_SHAPE_RADIUS; i <= AFFINE_SHAPE_RADIUS; i++) {
      if (i * i + j * j > AFFINE_SHAPE_DISC) continue;
      const float *p = patch + (size_t)(middle + j) * stride + (size_t)(middle + i);
      const float weight = affine_weight(i) * affine_weight(j);
      const float gx = p[1] - p[-1], gy = p[stride] - *(p - stride), wx = gx * weight, wy = gy * weight;
      m.xx += hs_rounded_product(wx, gx);
      m.xy += hs_rounded_product(wx, gy);
      m.yy += hs_rounded_product(wy, gy);
    }
  return m;
}
