/*
 * Planes with guard values around them, and patterns to fill them with, for tests that compare variants of a stage.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_STAGE_PLANES_H
#define HARTSIFT_TESTS_SUPPORT_STAGE_PLANES_H

#include "stages/image.h"

/* A plane in a separate block: guard floats before it, after it, and between the rows if stride > width. */
typedef struct guarded_plane {
  plane_view view;
  float *block;
  size_t block_floats;
} guarded_plane;

typedef enum plane_pattern {
  PATTERN_CONSTANT,
  PATTERN_NOISE,
  PATTERN_CHECKERBOARD,
  PATTERN_RAMP,
  PATTERN_COUNT
} plane_pattern;

/* Makes a plane whose samples are guard values. Fails the test when out of memory. */
guarded_plane plane_make(int32_t width, int32_t height, size_t stride);
void plane_free(guarded_plane *plane);
/* Fills the plane with samples in [0, 1]. */
void plane_fill(guarded_plane *plane, plane_pattern pattern, uint32_t seed);
/* Fails the test if a guard value has changed. */
void plane_check_guards(const guarded_plane *plane, const char *what);
/* Fails the test if samples differ in any bit. */
void plane_check_equal(const guarded_plane *expected, const guarded_plane *got, const char *what);

/* Returns the next number of a repeatable sequence. */
uint32_t stage_random(uint32_t *state);

/* Names of the variants to compare with the reference; null after the last. */
extern const char *const stage_variant_names[];
/* Returns the number of variants that this machine can run. */
int stage_variants_usable(void);

enum { STAGE_THREAD_COUNTS = 4 };
/* Numbers of threads: 1, 3, 2, 7. */
extern const int32_t stage_thread_counts[STAGE_THREAD_COUNTS];
/* Returns how many entries of stage_thread_counts each variant is run with: all, or the first two in the short form
 * (extent.h). */
int stage_threads(void);
/* Set-up and tear-down of a group of tests: *state is an array of pools, one for each of stage_thread_counts, null for
 * 1 thread. Fails if this machine can run no variant, because nothing would be compared. */
int stage_queues_make(void **state);
int stage_queues_free(void **state);

#endif
