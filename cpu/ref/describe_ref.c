/* Reference of the descriptor: votes into the padded histogram, then the normalisation. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

/* Adds the votes of all samples of the window. The outermost samples of a level do not vote. */
static void fill_padded(const plane_view *level, const describe_window *w, float scale,
                        int32_t padded[DESCRIBE_PADDED_LENGTH]) {
  memset(padded, 0, sizeof(int32_t) * DESCRIBE_PADDED_LENGTH);
  for (int32_t j = w->cy - w->radius; j <= w->cy + w->radius; j++)
    for (int32_t i = w->cx - w->radius; i <= w->cx + w->radius; i++) {
      if (i < 1 || i >= level->width - 1 || j < 1 || j >= level->height - 1) continue;
      const float dx = (float)i - w->x, dy = (float)j - w->y;
      float row, column, gx, gy;
      if (!describe_position(w, dx, dy, &row, &column)) continue;
      gradient_at(level, i, j, &gx, &gy);
      const float weight = window_weight(dx, w->falloff) * (window_weight(dy, w->falloff) * scale);
      const describe_votes v = describe_votes_of(w, gx, gy, weight, row, column);
      int32_t *at = padded + v.index;
      at[0] += v.v[0];
      at[1] += v.v[1];
      at[DESCRIBE_PADDED_BINS] += v.v[2];
      at[DESCRIBE_PADDED_BINS + 1] += v.v[3];
      at[DESCRIBE_ROW] += v.v[4];
      at[DESCRIBE_ROW + 1] += v.v[5];
      at[DESCRIBE_ROW + DESCRIBE_PADDED_BINS] += v.v[6];
      at[DESCRIBE_ROW + DESCRIBE_PADDED_BINS + 1] += v.v[7];
    }
}

/* Computes the cropped histogram of feature n at size `size`. */
static void fill_bins(const describe_args *args, uint32_t n, int32_t size, int32_t h[DESCRIBE_LENGTH]) {
  const feature_list *f = &args->features;
  const describe_site site =
      args->params.domain.count > 0
          ? domain_site_of(&args->keypoints, f->keypoint[n], &args->params, args->first_octave, args->octave_count,
                           size)
          : describe_site_of(&args->keypoints, f->keypoint[n], &args->params, args->first_octave);
  const plane_view level = octave_level(&args->octaves[site.octave_index], site.level);
  const describe_window w =
      describe_window_of(site.x, site.y, site.sigma, f->orientation[n], args->params.descriptor_rule);
  int32_t padded[DESCRIBE_PADDED_LENGTH];
  assert(w.radius <= WINDOW_RADIUS_MAX);
  fill_padded(&level, &w, args->scales->describe[w.radius], padded);
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) h[i] = describe_crop(padded, i);
}

/* Clips at 0.2 of the norm. Returns the factor that gives unit norm. */
static float clip_bins(int32_t h[DESCRIBE_LENGTH], bool root) {
  uint64_t squares = 0, clipped_squares = 0;
  uint32_t clipped_sum = 0;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) squares += (uint64_t)((int64_t)h[i] * h[i]);
  const int32_t clip = describe_clip(squares);
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) {
    if (h[i] > clip) h[i] = clip;
    clipped_squares += (uint64_t)((int64_t)h[i] * h[i]);
    clipped_sum += (uint32_t)h[i];
  }
  return describe_factor(clipped_squares, clipped_sum, root);
}

/* Adds up the descriptors of all sizes. */
static void pool_bins(const describe_args *args, uint32_t n, int32_t pooled[DESCRIBE_LENGTH]) {
  memset(pooled, 0, sizeof(int32_t) * DESCRIBE_LENGTH);
  for (int32_t size = 0; size < args->params.domain.count; size++) {
    int32_t h[DESCRIBE_LENGTH];
    fill_bins(args, n, size, h);
    const float factor = clip_bins(h, false);
    for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) pooled[i] += domain_share(h[i], factor);
  }
}

/* Normalises and writes feature n of the output. */
static void write_descriptor(int32_t h[DESCRIBE_LENGTH], const describe_args *args, uint32_t n) {
  const sift_params *p = &args->params;
  const float factor = clip_bins(h, p->root);
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) {
    const float v = describe_value(h[i], factor, p->root);
    const size_t at = (size_t)n * DESCRIBE_LENGTH + (size_t)(p->vlfeat_layout ? describe_vlfeat_index(i) : i);
    if (!p->descriptor_float)
      ((uint8_t *)args->descriptors)[at] = (uint8_t)describe_byte(v, p->descriptor_rule);
    else
      ((float *)args->descriptors)[at] = p->descriptor_rule == RULE_OPENCV ? (float)describe_byte(v, RULE_OPENCV) : v;
  }
}

stage_status describe_ref(stage_queue *queue, const describe_args *args) {
  (void)queue;
  const feature_list *f = &args->features;
  const uint32_t end = *f->count < f->capacity ? *f->count : f->capacity;
  for (uint32_t n = args->first_feature; n < end; n++) {
    int32_t h[DESCRIBE_LENGTH];
    if (args->params.domain.count > 0)
      pool_bins(args, n, h);
    else
      fill_bins(args, n, 0, h);
    write_descriptor(h, args, n);
  }
  return STAGE_OK;
}
