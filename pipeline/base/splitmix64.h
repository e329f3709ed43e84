/*
 * The generator splitmix64 (Steele, Lea, Flood 2014): number n of a stream is splitmix64_mix(seed + (n + 1) * STEP).
 */
#ifndef HARTSIFT_BASE_SPLITMIX64_H
#define HARTSIFT_BASE_SPLITMIX64_H

#include <stdint.h>

#define SPLITMIX64_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The finaliser: a bijection that mixes all bits. */
static inline uint64_t splitmix64_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

#endif
