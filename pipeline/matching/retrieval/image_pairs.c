/* Lists of image pairs; see image_pairs.h. */
#include "pipeline/matching/retrieval/image_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "stages/table_math.h"

enum { FIRST_CAPACITY = 64 };

void hs_image_pairs_free(hs_image_pairs *pairs) {
  if (!pairs) return;
  hs_memory_release(pairs->allocator, pairs->pairs);
  memset(pairs, 0, sizeof *pairs);
}

static bool grow(hs_image_pairs *pairs) {
  size_t capacity, bytes;
  if (pairs->capacity < FIRST_CAPACITY)
    capacity = FIRST_CAPACITY;
  else if (!hs_size_mul(pairs->capacity, 2, &capacity))
    return false;
  hs_image_pair *larger =
      hs_size_mul(capacity, sizeof *larger, &bytes) ? hs_memory_alloc(pairs->allocator, bytes) : NULL;
  if (!larger) return false;
  if (pairs->count > 0) memcpy(larger, pairs->pairs, pairs->count * sizeof *larger);
  hs_memory_release(pairs->allocator, pairs->pairs);
  pairs->pairs = larger;
  pairs->capacity = capacity;
  return true;
}

bool image_pairs_add(hs_image_pairs *pairs, uint32_t one, uint32_t other) {
  if (pairs->count >= pairs->capacity && !grow(pairs)) return false;
  pairs->pairs[pairs->count++] = one < other ? (hs_image_pair){one, other} : (hs_image_pair){other, one};
  return true;
}

static int compare_pairs(const void *left, const void *right) {
  const hs_image_pair *a = left, *b = right;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a->second < b->second ? -1 : a->second > b->second;
}

void image_pairs_settle(hs_image_pairs *pairs) {
  size_t kept = 0;
  if (pairs->count > 1) qsort(pairs->pairs, pairs->count, sizeof *pairs->pairs, compare_pairs);
  for (size_t i = 0; i < pairs->count; i++)
    if (kept == 0 || compare_pairs(&pairs->pairs[kept - 1], &pairs->pairs[i]) != 0)
      pairs->pairs[kept++] = pairs->pairs[i];
  pairs->count = kept;
}

/* ---- nearest neighbours */

static bool is_farther(const neighbor *a, const neighbor *b) {
  return a->distance > b->distance || (a->distance == b->distance && a->image > b->image);
}

static void sift_down(neighbor *near, uint32_t count) {
  const neighbor moved = near[0];
  uint32_t at = 0;
  for (uint32_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_farther(&near[child + 1], &near[child])) child++;
    if (!is_farther(&near[child], &moved)) break;
    near[at] = near[child];
    at = child;
  }
  near[at] = moved;
}

void neighbor_offer(neighbor *near, uint32_t *count, uint32_t capacity, neighbor offered) {
  if (*count == capacity) {
    if (capacity == 0 || !is_farther(&near[0], &offered)) return;
    near[0] = offered;
    sift_down(near, capacity);
    return;
  }
  uint32_t at = (*count)++;
  for (; at > 0 && is_farther(&offered, &near[(at - 1) / 2]); at = (at - 1) / 2) near[at] = near[(at - 1) / 2];
  near[at] = offered;
}

/* ---- Pairs of images that are consecutive in the order of their names. */

typedef struct numbered_name {
  const char *name;
  uint32_t image;
} numbered_name;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares the numbers at the beginning of both strings by value, and skips them. */
static int compare_numbers(const char **left, const char **right) {
  const char *a = *left, *b = *right;
  while (*a == '0') a++;
  while (*b == '0') b++;
  size_t length_a = 0, length_b = 0;
  while (is_digit(a[length_a])) length_a++;
  while (is_digit(b[length_b])) length_b++;
  *left = a + length_a;
  *right = b + length_b;
  if (length_a != length_b) return length_a < length_b ? -1 : 1;
  return memcmp(a, b, length_a);
}

/* Compares names in natural order: byte by byte, but runs of digits as numbers. */
static int compare_natural(const char *a, const char *b) {
  while (*a != '\0' && *b != '\0') {
    if (is_digit(*a) && is_digit(*b)) {
      const int order = compare_numbers(&a, &b);
      if (order != 0) return order;
    } else if (*a != *b) {
      break;
    } else {
      a++;
      b++;
    }
  }
  return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

static int compare_names(const void *left, const void *right) {
  const numbered_name *a = left, *b = right;
  int order = compare_natural(a->name, b->name);
  if (order == 0) order = strcmp(a->name, b->name);
  if (order != 0) return order;
  return a->image < b->image ? -1 : a->image > b->image;
}

static bool add_distance(const numbered_name *order, size_t count, size_t distance, hs_image_pairs *pairs) {
  for (size_t i = 0; i + distance < count; i++)
    if (!image_pairs_add(pairs, order[i].image, order[i + distance].image)) return false;
  return true;
}

static bool add_neighbors(const numbered_name *order, size_t count, uint32_t neighbors, bool quadratic,
                          hs_image_pairs *pairs) {
  for (size_t distance = 1; distance <= neighbors && distance < count; distance++)
    if (!add_distance(order, count, distance, pairs)) return false;
  size_t distance = 1;
  for (uint32_t step = 0; quadratic && step < neighbors && distance < count; step++, distance *= 2)
    if (distance > neighbors && !add_distance(order, count, distance, pairs)) return false;
  return true;
}

hs_status hs_pair_sequence(const char *const *names, size_t count, uint32_t neighbors, int32_t quadratic,
                           hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  size_t bytes;
  if (!pairs || (!names && count > 0) || (quadratic != 0 && quadratic != 1)) return HS_ERR_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    if (!names[i]) return HS_ERR_ARGUMENT;
  if (count > UINT32_MAX || !hs_size_mul(count, sizeof(numbered_name), &bytes)) return HS_ERR_LIMIT;
  pairs->count = 0;
  numbered_name *order = hs_memory_alloc(pairs->allocator, bytes);
  if (!order) return HS_ERR_MEMORY;
  for (size_t i = 0; i < count; i++) order[i] = (numbered_name){names[i], (uint32_t)i};
  if (count > 1) qsort(order, count, sizeof *order, compare_names);
  const bool added = add_neighbors(order, count, neighbors, quadratic != 0, pairs);
  hs_memory_release(pairs->allocator, order);
  if (added)
    image_pairs_settle(pairs);
  else
    pairs->count = 0;
  return added ? HS_OK : HS_ERR_MEMORY;
}

/* ---- Pairs of images taken close to each other. */

/* Constants of WGS 84: semi-major axis in metres, and square of the first eccentricity. */
static const double earth_radius_m = 6378137.0, earth_eccentricity_squared = 6.69437999014131699614e-3;
static const double radians_a_degree = 0.017453292519943295769;

hs_status hs_earth_place(double latitude, double longitude, double altitude, double position[3]) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  double sin_north, cos_north, sin_east, cos_east;
  if (!position || !(fabs(latitude) <= 90.0) || !(fabs(longitude) <= 360.0) || !isfinite(altitude))
    return HS_ERR_ARGUMENT;
  table_sincos(latitude * radians_a_degree, &sin_north, &cos_north);
  table_sincos(longitude * radians_a_degree, &sin_east, &cos_east);
  const double normal = earth_radius_m / sqrt(1.0 - earth_eccentricity_squared * sin_north * sin_north);
  position[0] = (normal + altitude) * cos_north * cos_east;
  position[1] = (normal + altitude) * cos_north * sin_east;
  position[2] = (normal * (1.0 - earth_eccentricity_squared) + altitude) * sin_north;
  return HS_OK;
}

/* Position of an image. The list is sorted along one axis. */
typedef struct located {
  double position[3];
  uint32_t image;
} located;

typedef struct position_search {
  const located *sorted; /* sorted by the position's first coordinate */
  size_t count;
  double metres;
  uint32_t at_most; /* maximum number of neighbours; 0: no limit */
  neighbor *near;   /* [at_most] */
  hs_image_pairs *pairs;
} position_search;

static int compare_located(const void *left, const void *right) {
  const located *a = left, *b = right;
  if (a->position[0] != b->position[0]) return a->position[0] < b->position[0] ? -1 : 1;
  return a->image < b->image ? -1 : a->image > b->image;
}

static double distance_of(const located *a, const located *b) {
  const double x = a->position[0] - b->position[0], y = a->position[1] - b->position[1],
               z = a->position[2] - b->position[2];
  return sqrt(x * x + y * y + z * z);
}

/* Pairs the image at `at` with later images within the distance. Without a limit on neighbours, each pair is found
 * once. */
static bool pair_with_later(const position_search *s, size_t at) {
  for (size_t i = at + 1; i < s->count && s->sorted[i].position[0] - s->sorted[at].position[0] <= s->metres; i++)
    if (distance_of(&s->sorted[at], &s->sorted[i]) <= s->metres &&
        !image_pairs_add(s->pairs, s->sorted[at].image, s->sorted[i].image))
      return false;
  return true;
}

static void offer(const position_search *s, size_t at, size_t other, uint32_t *found) {
  const double distance = distance_of(&s->sorted[at], &s->sorted[other]);
  if (distance <= s->metres) neighbor_offer(s->near, found, s->at_most, (neighbor){distance, s->sorted[other].image});
}

static bool pair_with_nearest(const position_search *s, size_t at) {
  const double here = s->sorted[at].position[0];
  uint32_t found = 0;
  for (size_t i = at; i > 0 && here - s->sorted[i - 1].position[0] <= s->metres; i--) offer(s, at, i - 1, &found);
  for (size_t i = at + 1; i < s->count && s->sorted[i].position[0] - here <= s->metres; i++) offer(s, at, i, &found);
  for (uint32_t i = 0; i < found; i++)
    if (!image_pairs_add(s->pairs, s->sorted[at].image, s->near[i].image)) return false;
  return true;
}

/* Fills sorted[] with the images that have a position, in the order along the axis of largest extent. */
static size_t sort_positions(const double *positions, size_t count, located *sorted) {
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  size_t known = 0;
  for (size_t i = 0; i < count; i++) {
    const double *p = positions + 3 * i;
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
    const double first = sorted[i].position[0];
    sorted[i].position[0] = sorted[i].position[axis];
    sorted[i].position[axis] = first;
  }
  if (known > 1) qsort(sorted, known, sizeof *sorted, compare_located);
  return known;
}

static bool pair_all(position_search *s) {
  for (size_t i = 0; i < s->count; i++)
    if (!(s->at_most == 0 ? pair_with_later(s, i) : pair_with_nearest(s, i))) return false;
  return true;
}

hs_status hs_pair_nearby(const double *positions, size_t count, double metres, uint32_t at_most,
                         hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  size_t bytes;
  if (!pairs || (!positions && count > 0) || !(metres >= 0.0)) return HS_ERR_ARGUMENT;
  if (count > UINT32_MAX || !hs_size_mul(count, sizeof(located), &bytes)) return HS_ERR_LIMIT;
  pairs->count = 0;
  if (at_most >= count) at_most = 0;
  located *sorted = hs_memory_alloc(pairs->allocator, bytes);
  neighbor *near = hs_memory_alloc(pairs->allocator, (size_t)at_most * sizeof *near);
  bool done = sorted && near;
  if (done) {
    position_search s = {.sorted = sorted, .metres = metres, .at_most = at_most, .near = near, .pairs = pairs};
    s.count = sort_positions(positions, count, sorted);
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
