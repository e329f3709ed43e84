/* User keypoints: their position in the pyramid, and their lists. */
#include "pipeline/frame/run_frame.h"

#include <math.h>

/* Finds the octave (0: samples are original pixels) and level nearest to sigma. t = S log2(sigma / sigma0), rounded,
   counts the levels of all octaves, S per octave. A sigma finer than the first octave gets level 1 of that octave; a
   sigma coarser than the last octave gets level S of that octave. */
static void nearest_level(const sift_params *p, int32_t first_octave, int32_t last_octave, float sigma, int32_t *octave,
                          int32_t *level) {
  const float t = (float)p->scales * hs_log2(sigma / p->sigma0);
  const int32_t step = hs_floor_int(t + 0.5f) - 1; /* step 0: level 1 of octave 0 */
  int32_t o = step >= 0 ? step / p->scales : -((p->scales - 1 - step) / p->scales);
  *level = step - o * p->scales + 1;
  if (o < first_octave) {
    o = first_octave;
    *level = 1;
  }
  if (o > last_octave) {
    o = last_octave;
    *level = p->scales;
  }
  *octave = o;
}

/* Range of sigmas with a valid window, in samples of an octave. */
typedef struct sigma_range {
  float least, most;
} sigma_range;

/* Returns the range of sigmas with a valid window.

   Minimum: with a smaller sigma, a window at the corner of the picture may have no sample that votes, because the last
   voting column and row can be 3 samples away.

   Maximum: the patch's four middle cells cover the octave from any of its samples. The radius of the descriptor's
   window, which is larger, must be within WINDOW_RADIUS_MAX, because a larger one leaves too few bits for votes
   (fixed_point.h).

   Detected keypoints are in the range: sigma0 = 0.8 gives more than the minimum; sigma0 = 4 and S = 1 give 22.6. */
static sigma_range sigmas_described(const domain_sizes *d, int32_t width, int32_t height) {
  const float largest = d->count > 0 && d->size[d->count - 1] > 1.0f ? d->size[d->count - 1] : 1.0f;
  const float windows = (float)WINDOW_RADIUS_MAX / (DESCRIBE_CELL_SIGMA * DESCRIBE_WINDOW_CELLS * largest);
  const float half = 0.5f * (float)(width > height ? width : height), covering = half > 24.0f ? half : 24.0f;
  return (sigma_range){0.6f, covering < windows ? covering : windows};
}

/* Returns whether the keypoint is within the picture; false for NaN. The area of the outermost pixels extends half a
   pixel beyond their centres. */
static bool within_picture(const source_view *picture, const hs_keypoint *k) {
  return k->x >= -0.5f && k->y >= -0.5f && k->x <= (float)picture->width - 0.5f &&
         k->y <= (float)picture->height - 0.5f;
}

/* Returns whether the keypoint's sigma is a valid size; false for NaN. */
static bool has_size(const hs_keypoint *k) { return k->sigma > 0.0f && k->sigma <= 1.0e9f; }

user_position user_position_of(const pyramid_geometry *g, const sift_params *p, const source_view *picture,
                               const hs_keypoint *k) {
  int32_t octave = k->octave, level = k->level;
  if (g->octave_count < 1 || !within_picture(picture, k) || !has_size(k) || isinf(k->orientation))
    return (user_position){-1, 0, 0.0f};
  const int32_t first = g->first_octave, last = first + g->octave_count - 1;
  bool fits = level >= 1 && level <= p->scales && octave >= first && octave <= last;
  sigma_range range = {0.0f, 0.0f};
  if (fits) {
    const float sigma = k->sigma * hs_power_of_two(-octave);
    range = sigmas_described(&p->domain, g->width[octave - first], g->height[octave - first]);
    fits = sigma >= range.least && sigma <= range.most;
  }
  if (!fits) {
    nearest_level(p, first, last, k->sigma > 1.0e-6f ? k->sigma : 1.0e-6f, &octave, &level);
    range = sigmas_described(&p->domain, g->width[octave - first], g->height[octave - first]);
  }
  const float sigma = k->sigma * hs_power_of_two(-octave);
  user_position at = {octave - first, level, k->sigma};
  if (sigma < range.least) at.sigma = range.least * hs_power_of_two(octave);
  if (sigma > range.most) at.sigma = range.most * hs_power_of_two(octave);
  return at;
}

int32_t user_octaves_needed(const pyramid_geometry *g, const hs_context *c, const frame_request *r) {
  int32_t needed = 0;
  for (uint32_t i = 0; i < r->user_count; i++) {
    const user_position at = user_position_of(g, &c->params, &r->source, &r->user_keypoints[i]);
    r->user_statuses[i] = at.octave_index < 0 ? HS_ERR_KEYPOINT : HS_OK;
    if (at.octave_index + 1 > needed) needed = at.octave_index + 1;
  }
  if (needed > 0) needed += domain_octaves(&c->params.domain, c->params.scales);
  return needed < g->octave_count ? needed : g->octave_count;
}

float user_angle(float a) {
  if (a >= 0.0f && a < TWO_PI_FLOAT) return a;
  const double two_pi = 6.283185307179586476925;
  const double turns = (double)a / two_pi;
  const float wrapped = (float)((turns - floor(turns)) * two_pi);
  return wrapped < TWO_PI_FLOAT && wrapped >= 0.0f ? wrapped : 0.0f;
}

/* Appends a user keypoint with its octave, level and sigma in the pyramid. */
static void append(const workspace *w, float shift, const hs_keypoint *k, uint32_t source, int32_t octave,
                   const user_position *at) {
  const keypoint_list *list = &w->keypoints;
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = k->x;
  list->y[n] = k->y;
  list->sigma[n] = at->sigma;
  list->response[n] = k->response;
  list->column[n] = hs_floor_int(sample_of_position(k->x, octave, shift) + 0.5f);
  list->row[n] = hs_floor_int(sample_of_position(k->y, octave, shift) + 0.5f);
  list->octave[n] = (int16_t)octave;
  list->level[n] = (int16_t)at->level;
  w->sources[n] = source;
  if (isnan(k->orientation)) return;
  const uint32_t m = (*w->features.count)++;
  if (m >= w->features.capacity) return;
  w->features.keypoint[m] = n;
  w->features.orientation[m] = user_angle(k->orientation);
}

void user_append(const pyramid_geometry *g, const hs_context *c, const frame_request *r, int32_t o, bool oriented,
                 workspace *w) {
  for (uint32_t i = 0; i < r->user_count; i++) {
    const hs_keypoint *k = &r->user_keypoints[i];
    if (isnan(k->orientation) == oriented) continue;
    const user_position at = user_position_of(g, &c->params, &r->source, k);
    if (at.octave_index < 0 || (o != EVERY_OCTAVE && at.octave_index != o)) continue;
    append(w, c->params.grid_shift, k, i, g->first_octave + at.octave_index, &at);
  }
}
