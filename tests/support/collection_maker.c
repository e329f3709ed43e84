/* Makes collections of views; see collection_maker.h. */
#include "tests/support/collection_maker.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "tests/support/feature_maker.h"

enum { SCENE_POINTS = 400 };

static double unit(uint32_t *state) { return (double)feature_maker_random(state) / 16777216.0; }

/* Returns the seed from which a point's descriptor is made. */
static uint32_t point_seed(uint32_t seed, size_t point) { return seed * 7919u + (uint32_t)point * 104729u + 1u; }

static void put_value(hs_features *f, size_t i, int k, uint32_t value) {
  const size_t at = i * HS_DESCRIPTOR_LENGTH + (size_t)k;
  if (f->descriptor_type == HS_DESCRIPTOR_U8)
    ((uint8_t *)f->descriptors)[at] = (uint8_t)value;
  else
    ((float *)f->descriptors)[at] = (float)value / 512.0f;
}

/* Writes a feature that shows a point of the scene. If `point` is beyond the scene's points, no other image has this
 * feature. */
static void put_feature(hs_features *f, size_t i, size_t point, double camera_x, uint32_t seed, uint32_t *state) {
  uint32_t own = point_seed(seed, point);
  const double x = 8.0 * unit(&own) - 2.0, y = 3.0 * unit(&own) - 1.5, z = 4.0 + 3.0 * unit(&own);
  hs_keypoint *k = &f->keypoints[i];
  memset(k, 0, sizeof *k);
  k->x = (float)(400.0 * (x - camera_x) / z + 320.0 + 0.4 * unit(state));
  k->y = (float)(400.0 * (y + 0.1 * camera_x) / z + 240.0 + 0.4 * unit(state));
  k->sigma = 2.0f;
  k->level = 1;
  for (int n = 0; n < HS_DESCRIPTOR_LENGTH; n++)
    put_value(f, i, n, feature_maker_random(&own) % 120u + feature_maker_random(state) % 12u);
}

static void fill_image(test_collection *c, size_t image, size_t count, hs_descriptor_type type, uint32_t seed) {
  hs_features *f = &c->features[image];
  uint32_t state = seed + 31u * (uint32_t)image + 1u;
  const double camera_x = 0.35 * (double)image;
  if (features_reserve(f, count > 0 ? count : 1, type, NULL) != HS_OK) abort();
  f->count = count;
  f->image_width = 640;
  f->image_height = 480;
  for (size_t i = 0; i < count; i++) {
    const bool own = unit(&state) < 0.3;
    const size_t point = own ? SCENE_POINTS + 1000 * image + i : feature_maker_random(&state) % SCENE_POINTS;
    put_feature(f, i, point, camera_x, seed, &state);
  }
  c->cameras[image] = (hs_camera){400.0, 400.0, 320.0, 240.0};
}

void collection_maker_fill(test_collection *c, size_t images, size_t features_allowed, hs_descriptor_type type,
                           uint32_t seed) {
  memset(c, 0, sizeof *c);
  if (images > COLLECTION_IMAGES_MAX) abort();
  uint32_t state = seed;
  c->count = images;
  for (size_t i = 0; i < images; i++) {
    size_t count = features_allowed / 2 + feature_maker_random(&state) % (features_allowed / 2 + 1);
    if (images >= 4 && (i == 1 || i == 2)) count = i - 1;
    fill_image(c, i, count, type, seed);
  }
  c->pairs = malloc((images * images / 2 + 1) * sizeof *c->pairs);
  if (!c->pairs) abort();
  for (uint32_t i = 0; i < images; i++)
    for (uint32_t k = i + 1; k < images; k++) c->pairs[c->pair_count++] = (hs_image_pair){i, k};
}

void collection_maker_free(test_collection *c) {
  for (size_t i = 0; i < c->count; i++) hs_features_free(&c->features[i]);
  free(c->pairs);
  memset(c, 0, sizeof *c);
}

void collection_maker_shuffle(test_collection *c, uint32_t seed) {
  for (size_t i = c->pair_count; i > 1; i--) {
    const size_t k = feature_maker_random(&seed) % i;
    const hs_image_pair kept = c->pairs[i - 1];
    c->pairs[i - 1] = c->pairs[k];
    c->pairs[k] = kept;
    if (feature_maker_random(&seed) & 256u)
      c->pairs[i - 1] = (hs_image_pair){c->pairs[i - 1].second, c->pairs[i - 1].first};
  }
}
