/*
 * Extent of tests.
 *
 * Under a sanitizer or an emulator, where each sample costs ten times as much, sweeps take a short form: every value of
 * each setting, but not every combination, and smaller pictures. HARTSIFT_TESTS=whole runs all combinations there too,
 * HARTSIFT_TESTS=short uses the short form everywhere.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_EXTENT_H
#define HARTSIFT_TESTS_SUPPORT_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#  define EXTENT_CLANG_SANITIZES (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#  define EXTENT_CLANG_SANITIZES 0
#endif

static inline bool extent_is_short(void) {
  const char *wanted = getenv("HARTSIFT_TESTS");
  if (wanted && strcmp(wanted, "whole") == 0) return false;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || EXTENT_CLANG_SANITIZES
  return true;
#else
  return wanted && strcmp(wanted, "short") == 0;
#endif
}

/* Returns whether value `inner` of `count` values is combined with value `outer` of another setting. In the short form,
 * each `outer` is combined with one `inner`. */
static inline bool extent_pairs(size_t outer, size_t inner, size_t count) {
  return !extent_is_short() || outer % count == inner;
}

#endif
