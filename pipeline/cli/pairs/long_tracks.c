/*
 * Selects the longest tracks of each image; see pair_states.h.
 */
#include "pipeline/cli/pairs/pair_states.h"

#include <stdlib.h>
#include <string.h>

bool long_tracks_begin(long_tracks *tracks, const size_t *feature_counts, size_t image_count) {
  uint64_t features = 0;
  *tracks = (long_tracks){.feature_counts = feature_counts, .image_count = image_count};
  tracks->first_feature = calloc(image_count + 1, sizeof *tracks->first_feature);
  if (!tracks->first_feature) return false;
  for (size_t i = 0; i < image_count; i++) {
    tracks->first_feature[i] = features;
    if (feature_counts[i] > UINT32_MAX - features) return false;
    features += feature_counts[i];
  }
  tracks->parent = malloc(((size_t)features + 1) * sizeof *tracks->parent);
  tracks->length = calloc((size_t)features + 1, sizeof *tracks->length);
  tracks->last_image = calloc((size_t)features + 1, sizeof *tracks->last_image);
  if (!tracks->parent || !tracks->length || !tracks->last_image) return false;
  for (size_t i = 0; i < features; i++) tracks->parent[i] = (uint32_t)i;
  return true;
}

void long_tracks_end(long_tracks *tracks) {
  free(tracks->first_feature);
  free(tracks->parent);
  free(tracks->length);
  free(tracks->last_image);
  *tracks = (long_tracks){0};
}

static uint32_t root_of(uint32_t *parent, uint32_t feature) {
  while (parent[feature] != feature) {
    parent[feature] = parent[parent[feature]];
    feature = parent[feature];
  }
  return feature;
}

void long_tracks_join(long_tracks *tracks, hs_image_pair images, const uint32_t *inliers, size_t count) {
  const uint32_t first = (uint32_t)tracks->first_feature[images.first];
  const uint32_t second = (uint32_t)tracks->first_feature[images.second];
  for (size_t i = 0; i < count; i++) {
    const uint32_t a = root_of(tracks->parent, first + inliers[2 * i]);
    const uint32_t b = root_of(tracks->parent, second + inliers[2 * i + 1]);
    if (a < b)
      tracks->parent[b] = a;
    else
      tracks->parent[a] = b;
  }
}

/* Compresses the paths to the roots, and counts the images of each track. */
static void measure(long_tracks *tracks) {
  for (size_t image = 0; image < tracks->image_count; image++) {
    const size_t begin = (size_t)tracks->first_feature[image], end = begin + tracks->feature_counts[image];
    for (size_t f = begin; f < end; f++) {
      const uint32_t root = root_of(tracks->parent, (uint32_t)f);
      tracks->parent[f] = root;
      if (tracks->last_image[root] == image + 1) continue;
      tracks->last_image[root] = (uint32_t)(image + 1);
      tracks->length[root]++;
    }
  }
}

/* Returns the sort key of a feature: by length of its track, then pseudo-random. 0: it has no track. */
static uint64_t key_of(const long_tracks *tracks, size_t feature) {
  const uint32_t root = tracks->parent[feature];
  if (tracks->length[root] < 2) return 0;
  uint32_t mixed = (root ^ root >> 16) * 0x7feb352du;
  mixed = (mixed ^ mixed >> 15) * 0x846ca68bu;
  return (uint64_t)tracks->length[root] << 32 | (mixed ^ mixed >> 16);
}

static int descending(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x < y) - (x > y);
}

bool long_tracks_choose(long_tracks *tracks, size_t wanted) {
  size_t most = 0;
  for (size_t i = 0; i < tracks->image_count; i++)
    most = tracks->feature_counts[i] > most ? tracks->feature_counts[i] : most;
  uint64_t *const keys = malloc((most + 1) * sizeof *keys);
  if (!keys) return false;
  measure(tracks);
  uint32_t *const stays = tracks->last_image;
  /* lengths are counted, so the array is reset for its other use */
  for (size_t image = 0; image < tracks->image_count; image++)
    memset(stays + tracks->first_feature[image], 0, tracks->feature_counts[image] * sizeof *stays);
  for (size_t image = 0; image < tracks->image_count; image++) {
    const size_t begin = (size_t)tracks->first_feature[image], count = tracks->feature_counts[image];
    for (size_t f = 0; f < count; f++) keys[f] = key_of(tracks, begin + f);
    qsort(keys, count, sizeof *keys, descending);
    const uint64_t least = wanted < count ? keys[wanted - 1] : 0;
    for (size_t f = begin; f < begin + count; f++)
      if (key_of(tracks, f) >= least) stays[tracks->parent[f]] = 1;
  }
  free(keys);
  return true;
}

size_t long_tracks_filter(const long_tracks *tracks, hs_image_pair images, uint32_t *inliers, size_t count,
                          size_t fewest) {
  const uint64_t first = tracks->first_feature[images.first];
  size_t long_ones = 0, kept = 0;
  for (size_t i = 0; i < count; i++) long_ones += tracks->last_image[tracks->parent[first + inliers[2 * i]]];
  size_t others = long_ones < fewest ? fewest - long_ones : 0;
  for (size_t i = 0; i < count; i++) {
    const bool is_long = tracks->last_image[tracks->parent[first + inliers[2 * i]]] != 0;
    if (!is_long && others == 0) continue;
    others -= !is_long;
    inliers[2 * kept] = inliers[2 * i];
    inliers[2 * kept + 1] = inliers[2 * i + 1];
    kept++;
  }
  return kept;
}
