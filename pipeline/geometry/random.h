/*
 * Random numbers of the search: splitmix64 (Steele, Lea, Flood 2014), the same sequence everywhere.
 */
#ifndef HS_PIPELINE_GEOMETRY_RANDOM_H
#define HS_PIPELINE_GEOMETRY_RANDOM_H

#include <stdint.h>

typedef struct random_state {
  uint64_t counter;
} random_state;

static inline uint64_t random_next(random_state *state) {
  state->counter += 0x9e3779b97f4a7c15u;
  uint64_t z = state->counter;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
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
