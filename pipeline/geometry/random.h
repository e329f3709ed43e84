/*
 * Random numbers of the search: splitmix64, the same sequence everywhere.
 */
#ifndef HARTSIFT_GEOMETRY_RANDOM_H
#define HARTSIFT_GEOMETRY_RANDOM_H

#include <stdint.h>

#include "pipeline/base/splitmix64.h"

typedef struct random_state {
  uint64_t counter;
} random_state;

static inline uint64_t random_next(random_state *state) {
  state->counter += SPLITMIX64_STEP;
  return splitmix64_mix(state->counter);
}

/* 0..limit-1; uniform to 2^-32 * limit. */
static inline uint32_t random_below(random_state *state, uint32_t limit) {
  return (uint32_t)(((random_next(state) >> 32) * limit) >> 32);
}

/* `count` different numbers below limit (count <= limit). */
static inline void random_sample(random_state *state, uint32_t limit, int count, uint32_t *out) {
  for (int i = 0; i < count;) {
    out[i] = random_below(state, limit);
    int j = 0;
    while (j < i && out[j] != out[i]) j++;
    i += j == i;
  }
}

#endif
