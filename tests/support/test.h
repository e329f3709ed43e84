/*
 * Common includes of every test program in C, and how it declares its tests, which then run in the order of the file:
 *
 *   TEST(test_sum) { assert_int_equal(1 + 1, 2); }
 */
#ifndef HARTSIFT_TESTS_SUPPORT_TEST_H
#define HARTSIFT_TESTS_SUPPORT_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Needs some of the headers above. In C++ test.h comes last, because cmocka's macro fail is a name of the library. */
#include <cmocka.h>

typedef struct test_entry {
  const char *name;
  void (*function)(void **state);
  CMFixtureFunction set_up, tear_down; /* null: none */
  int line, engines;                   /* engines: engine_tests.h; 0: runs once */
  struct test_entry *next;
} test_entry;

/* Adds a test to the program's list. */
void test_add(test_entry *entry);
/* Functions around all tests of the program; null: none. */
void test_set_up_by(CMFixtureFunction set_up);
void test_tear_down_by(CMFixtureFunction tear_down);
/* Whether tests have one of these bits in their engines; 0: whether tests have none. */
bool test_any(int engines);
/* Runs them; returns the number of failures. */
int test_run(const char *group, int engines);

/* What main calls, unless a program has its own; a main's only argument names tests, with * for any text. */
extern int (*test_main)(const char *program);

#ifdef __cplusplus
}
#endif

#define NEEDS_GPU         "needs a GPU"
#define NEEDS_PHOTOGRAPHS "needs photographs beside the repository (HARTSIFT_DATA)"

/* Skips the running test and prints the reason, which the summary of all tests reads. */
#define skip_because(reason)                                                                                           \
  do {                                                                                                                 \
    print_message("skipped: %s\n", reason);                                                                            \
    skip();                                                                                                            \
  } while (0)

/* A test program that has nothing to test in this build. */
#define SKIPPED_PROGRAM(reason)                                                                                        \
  TEST(test_skipped) { skip_because(reason); }

/* Types of local variables that are released at the end of their block; SCOPED_MEMORY precedes a pointer to memory from
 * malloc. Not for variables that a block may leave before they are set. */
#define SCOPED_BY(FUNCTION) __attribute__((cleanup(FUNCTION)))
#define scoped_context      SCOPED_BY(test_destroy_context) hs_context
#define scoped_features     SCOPED_BY(hs_features_free) hs_features
#define scoped_image        SCOPED_BY(hs_image_free) hs_image
#define scoped_run          SCOPED_BY(test_end_pairs) hs_pairs
#define scoped_database     SCOPED_BY(test_close_database) hs_colmap_database
#define scoped_matches      SCOPED_BY(hs_matches_free) hs_matches
#define scoped_source       SCOPED_BY(hs_source_free) hs_source
#define scoped_pairs        SCOPED_BY(hs_image_pairs_free) hs_image_pairs
#define scoped_lists        SCOPED_BY(hs_neighbour_lists_free) hs_neighbour_lists
#define scoped_file         SCOPED_BY(image_file_free) image_file
#define SCOPED_MEMORY       SCOPED_BY(test_free_memory)
static inline void test_end_pairs(hs_pairs **run) { hs_pairs_end(*run); }
static inline void test_close_database(hs_colmap_database **database) { hs_colmap_close(*database); }
static inline void test_destroy_context(hs_context **context) { hs_destroy(*context); }
static inline void test_free_memory(const void *pointer) { free(*(void *const *)pointer); }

/* Runs its block before main. */
#define TEST_AT_START(NAME) __attribute__((constructor)) static void NAME(void)

#define TEST_ENTRY(NAME, FUNCTION, SET_UP, TEAR_DOWN, ENGINES)                                                         \
  TEST_AT_START(add_##NAME) {                                                                                          \
    static test_entry entry = {#NAME, FUNCTION, SET_UP, TEAR_DOWN, __LINE__, ENGINES, NULL};                           \
    test_add(&entry);                                                                                                  \
  }

/* A test without state. */
#define TEST(NAME)                                                                                                     \
  static void NAME(void **state);                                                                                      \
  TEST_ENTRY(NAME, NAME, NULL, NULL, 0)                                                                                \
  static void NAME(__attribute__((unused)) void **state)

/* A test that is skipped for this reason where the condition does not hold. */
#define TEST_WHERE(CONDITION, REASON, NAME)                                                                            \
  static void NAME(void);                                                                                              \
  static void run_##NAME(__attribute__((unused)) void **state) {                                                       \
    if (!(CONDITION)) skip_because(REASON);                                                                            \
    NAME();                                                                                                            \
  }                                                                                                                    \
  TEST_ENTRY(NAME, run_##NAME, NULL, NULL, 0)                                                                          \
  static void NAME(void)

/* A test between two functions of its own. */
#define TEST_BETWEEN(NAME, SET_UP, TEAR_DOWN)                                                                          \
  static void NAME(void **state);                                                                                      \
  TEST_ENTRY(NAME, NAME, SET_UP, TEAR_DOWN, 0)                                                                         \
  static void NAME(__attribute__((unused)) void **state)

/* The same; its block sees *state as `TYPE *VARIABLE`. */
#define TEST_GIVEN(NAME, TYPE, VARIABLE, SET_UP, TEAR_DOWN)                                                            \
  static void NAME(TYPE *VARIABLE);                                                                                    \
  static void run_##NAME(void **state) { NAME((TYPE *)*state); }                                                       \
  TEST_ENTRY(NAME, run_##NAME, SET_UP, TEAR_DOWN, 0)                                                                   \
  static void NAME(__attribute__((unused)) TYPE *VARIABLE)

/* Functions around all tests of a program: existing ones, or blocks. What the first allocate for static variables may
 * stay until the program ends. */
#define TESTS_BETWEEN(SET_UP, TEAR_DOWN)                                                                               \
  TEST_AT_START(set_fixtures) {                                                                                        \
    test_set_up_by(SET_UP);                                                                                            \
    test_tear_down_by(TEAR_DOWN);                                                                                      \
  }
#define BEFORE_TESTS() TEST_FIXTURE(before_tests, test_set_up_by)
#define AFTER_TESTS()  TEST_FIXTURE(after_tests, test_tear_down_by)
#define TEST_FIXTURE(NAME, SETTER)                                                                                     \
  static void NAME(void);                                                                                              \
  static int run_##NAME(__attribute__((unused)) void **state) {                                                        \
    NAME();                                                                                                            \
    return 0;                                                                                                          \
  }                                                                                                                    \
  TEST_AT_START(set_##NAME) { SETTER(run_##NAME); }                                                                    \
  static void NAME(void)

#ifndef __cplusplus
#  include "tests/support/counted_allocator.h"
#  include "tests/support/extraction.h"
#  include "tests/support/feature_maker.h"
#  include "tests/support/image_maker.h"
#  include "tests/support/scratch_folder.h"
#endif

#endif
