/* Pairs of images that were taken near each other. */
#include <math.h>
#include <stdlib.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/retrieval/image_pairs.h"
#include "stages/table_math.h"

/* WGS 84: semi-major axis, metres, and the square of the first eccentricity. */
static const double earth_radius_m = 6378137.0, earth_eccentricity_squared = 6.69437999014131699614e-3;
static const double radians_a_degree = 0.017453292519943295769;

hs_status hs_earth_place(double latitude, double longitude, double altitude, double place[3]) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  double sin_north, cos_north, sin_east, cos_east;
  if (!place || !(fabs(latitude) <= 90.0) || !(fabs(longitude) <= 360.0) || !isfinite(altitude)) return HS_ERR_ARGUMENT;
  table_sincos(latitude * radians_a_degree, &sin_north, &cos_north);
  table_sincos(longitude * radians_a_degree, &sin_east, &cos_east);
  const double normal = earth_radius_m / sqrt(1.0 - earth_eccentricity_squared * sin_north * sin_north);
  place[0] = (normal + altitude) * cos_north * cos_east;
  place[1] = (normal + altitude) * cos_north * sin_east;
  place[2] = (normal * (1.0 - earth_eccentricity_squared) + altitude) * sin_north;
  return HS_OK;
}

/* The images that have a place, along one axis. */
typedef struct located {
  double place[3];
  uint32_t image;
} located;

typedef struct place_search {
  const located *sorted; /* by the place's first number */
  size_t count;
  double metres;
  uint32_t at_most; /* 0: any number */
  neighbor *near;   /* [at_most] */
  hs_image_pairs *pairs;
} place_search;

static int compare_located(const void *left, const void *right) {
  const located *a = left, *b = right;
  if (a->place[0] != b->place[0]) return a->place[0] < b->place[0] ? -1 : 1;
  return a->image < b->image ? -1 : a->image > b->image;
}

static double distance_of(const located *a, const located *b) {
  const double x = a->place[0] - b->place[0], y = a->place[1] - b->place[1], z = a->place[2] - b->place[2];
  return sqrt(x * x + y * y + z * z);
}

/* Those behind image `at` that are within reach: without a limit each pair is met from one side. */
static bool pair_with_later(const place_search *s, size_t at) {
  for (size_t i = at + 1; i < s->count && s->sorted[i].place[0] - s->sorted[at].place[0] <= s->metres; i++)
    if (distance_of(&s->sorted[at], &s->sorted[i]) <= s->metres &&
        !image_pairs_add(s->pairs, s->sorted[at].image, s->sorted[i].image))
      return false;
  return true;
}

static void offer(const place_search *s, size_t at, size_t other, uint32_t *found) {
  const double distance = distance_of(&s->sorted[at], &s->sorted[other]);
  if (distance <= s->metres) neighbor_offer(s->near, found, s->at_most, (neighbor){distance, s->sorted[other].image});
}

static bool pair_with_nearest(const place_search *s, size_t at) {
  const double here = s->sorted[at].place[0];
  uint32_t found = 0;
  for (size_t i = at; i > 0 && here - s->sorted[i - 1].place[0] <= s->metres; i--) offer(s, at, i - 1, &found);
  for (size_t i = at + 1; i < s->count && s->sorted[i].place[0] - here <= s->metres; i++) offer(s, at, i, &found);
  for (uint32_t i = 0; i < found; i++)
    if (!image_pairs_add(s->pairs, s->sorted[at].image, s->near[i].image)) return false;
  return true;
}

/* Fills sorted[] with the images that have a place, along the axis in which they spread most. */
static size_t sort_places(const double *places, size_t count, located *sorted) {
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  size_t known = 0;
  for (size_t i = 0; i < count; i++) {
    const double *p = places + 3 * i;
    if (!isfinite(p[0]) || !isfinite(p[1]) || !isfinite(p[2])) continue;
    sorted[known++] = (located){{p[0], p[1], p[2]}, (uint32_t)i};
    for (int k = 0; k < 3; k++) {
      low[k] = fmin(low[k], p[k]);
      high[k] = fmax(high[k], p[k]);
    }
  }
  int axis = 0;
  for (int k = 1; k < 3; k++)
    if (high[k] - low[k] > high[axis] - low[axis]) axis = k;
  for (size_t i = 0; i < known; i++) {
    const double first = sorted[i].place[0];
    sorted[i].place[0] = sorted[i].place[axis];
    sorted[i].place[axis] = first;
  }
  if (known > 1) qsort(sorted, known, sizeof *sorted, compare_located);
  return known;
}

static bool pair_all(place_search *s) {
  for (size_t i = 0; i < s->count; i++)
    if (!(s->at_most == 0 ? pair_with_later(s, i) : pair_with_nearest(s, i))) return false;
  return true;
}

hs_status hs_pair_nearby(const double *places, size_t count, double metres, uint32_t at_most, hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  size_t bytes;
  if (!pairs || (!places && count > 0) || !(metres >= 0.0)) return HS_ERR_ARGUMENT;
  if (count > UINT32_MAX || !hs_size_mul(count, sizeof(located), &bytes)) return HS_ERR_LIMIT;
  pairs->count = 0;
  if (at_most >= count) at_most = 0;
  located *sorted = hs_memory_alloc(pairs->allocator, bytes);
  neighbor *near = hs_memory_alloc(pairs->allocator, (size_t)at_most * sizeof *near);
  bool done = sorted && near;
  if (done) {
    place_search s = {.sorted = sorted, .metres = metres, .at_most = at_most, .near = near, .pairs = pairs};
    s.count = sort_places(places, count, sorted);
    done = pair_all(&s);
  }
  hs_memory_release(pairs->allocator, near);
  hs_memory_release(pairs->allocator, sorted);
  if (done)
    image_pairs_settle(pairs);
  else
    pairs->count = 0;
  return done ? HS_OK : HS_ERR_MEMORY;
}
