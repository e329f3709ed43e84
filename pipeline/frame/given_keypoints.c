/* Given keypoints: their place in the pyramid, and their lists. */
#include "pipeline/frame/given_keypoints.h"

#include <math.h>

/* Octave (relative to original pixels) and level nearest to sigma: t = S log2(sigma / sigma0) rounds to a level of the
   endless ladder, which the octaves cut in pieces of S. Finer than the first octave: its level 1. */
static void nearest_level(const sift_params *p, int32_t first_octave, float sigma, int32_t *octave, int32_t *level) {
  const float t = (float)p->scales * hs_log2(sigma / p->sigma0);
  const int32_t step = hs_floor_int(t + 0.5f) - 1; /* 0: level 1 of octave 0 */
  int32_t o = step >= 0 ? step / p->scales : -((p->scales - 1 - step) / p->scales);
  *level = step - o * p->scales + 1;
  if (o < first_octave) {
    o = first_octave;
    *level = 1;
  }
  *octave = o;
}

static bool windows_fit(const sift_params *p, float octave_sigma) {
  const domain_sizes *d = &p->domain;
  const float largest = d->count > 0 && d->size[d->count - 1] > 1.0f ? d->size[d->count - 1] : 1.0f;
  return octave_sigma < 0.4f * (float)WINDOW_RADIUS_MAX &&
         describe_radius(largest * octave_sigma) <= WINDOW_RADIUS_MAX &&
         orient_radius(octave_sigma, p->orientation_rule) <= WINDOW_RADIUS_MAX;
}

given_place given_place_of(const pyramid_geometry *g, const sift_params *p, const hs_keypoint *k) {
  const given_place nowhere = {-1, 0};
  if (!isfinite(k->x) || !isfinite(k->y) || !(k->sigma > 0.0f) || !isfinite(k->sigma) || isinf(k->orientation))
    return nowhere;
  if (k->sigma < 1.0e-6f || k->sigma > 1.0e9f || k->level < 0 || k->level > p->scales) return nowhere;
  int32_t octave = k->octave, level = k->level;
  if (level == 0) nearest_level(p, g->first_octave, k->sigma, &octave, &level);
  const int32_t o = octave - g->first_octave;
  if (o < 0 || o >= g->octave_count) return nowhere;
  const float x = sample_of_place(k->x, octave, p->grid_shift), y = sample_of_place(k->y, octave, p->grid_shift);
  if (x < 0.0f || y < 0.0f || x > (float)(g->width[o] - 1) || y > (float)(g->height[o] - 1)) return nowhere;
  if (!windows_fit(p, k->sigma * hs_power_of_two(-octave))) return nowhere;
  return (given_place){o, level};
}

int32_t given_octaves_needed(const pyramid_geometry *g, const hs_context *c, const frame_request *r) {
  int32_t needed = 0;
  for (uint32_t i = 0; i < r->given_count; i++) {
    const given_place place = given_place_of(g, &c->params, &r->given[i]);
    r->given_statuses[i] = place.octave_index < 0 ? HS_ERR_KEYPOINT : HS_OK;
    if (place.octave_index + 1 > needed) needed = place.octave_index + 1;
  }
  if (needed > 0) needed += domain_octaves(&c->params.domain, c->params.scales);
  return needed < g->octave_count ? needed : g->octave_count;
}

float given_angle(float a) {
  if (a >= 0.0f && a < TWO_PI_FLOAT) return a;
  const double two_pi = 6.283185307179586476925;
  const double turns = (double)a / two_pi;
  const float wrapped = (float)((turns - floor(turns)) * two_pi);
  return wrapped < TWO_PI_FLOAT && wrapped >= 0.0f ? wrapped : 0.0f;
}

static void append(const workspace *w, float shift, const hs_keypoint *k, uint32_t source, int32_t octave,
                   int32_t level) {
  const keypoint_list *list = &w->keypoints;
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = k->x;
  list->y[n] = k->y;
  list->sigma[n] = k->sigma;
  list->response[n] = k->response;
  list->column[n] = hs_floor_int(sample_of_place(k->x, octave, shift) + 0.5f);
  list->row[n] = hs_floor_int(sample_of_place(k->y, octave, shift) + 0.5f);
  list->octave[n] = (int16_t)octave;
  list->level[n] = (int16_t)level;
  w->sources[n] = source;
  if (isnan(k->orientation)) return;
  const uint32_t m = (*w->features.count)++;
  if (m >= w->features.capacity) return;
  w->features.keypoint[m] = n;
  w->features.orientation[m] = given_angle(k->orientation);
}

void given_append(const pyramid_geometry *g, const hs_context *c, const frame_request *r, int32_t o, bool oriented,
                  workspace *w) {
  for (uint32_t i = 0; i < r->given_count; i++) {
    const hs_keypoint *k = &r->given[i];
    if (isnan(k->orientation) == oriented) continue;
    const given_place place = given_place_of(g, &c->params, k);
    if (place.octave_index < 0 || (o != GIVEN_EVERY_OCTAVE && place.octave_index != o)) continue;
    append(w, c->params.grid_shift, k, i, g->first_octave + place.octave_index, place.level);
  }
}
