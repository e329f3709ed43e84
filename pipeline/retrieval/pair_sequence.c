/* Pairs of images that follow each other in the order of their names. */
#include <stdlib.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/retrieval/image_pairs.h"

typedef struct numbered_name {
  const char *name;
  uint32_t image;
} numbered_name;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares the numbers that both strings begin with by value and passes them. */
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

/* Natural order: bytes, but runs of digits by the number they are. */
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
