/*
 * The part of cmocka's interface that tests use, for systems without cmocka: under an emulator of another processor,
 * and on GPU hosts (tests/gpu_report.sh). The first failure ends the program.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_CROSS_CMOCKA_H
#define HARTSIFT_TESTS_SUPPORT_CROSS_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Target of skip(), shared by all files of a program. */
__attribute__((weak)) jmp_buf cross_next_test;
/* The one test to run; null or *: all. */
__attribute__((weak)) const char *cross_filter;
#define cmocka_set_test_filter(NAME) (cross_filter = (NAME))
#define cmocka_set_skip_filter(NAME) ((void)(NAME)) /* this macro does nothing: all tests run */

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
  const char *name;
  void (*test_func)(void **state);
  CMFixtureFunction setup_func, teardown_func;
  void *initial_state;
};

#define fail_msg(...)                                                                                                  \
  do {                                                                                                                 \
    fprintf(stderr, "%s:%d: error: ", __FILE__, __LINE__);                                                             \
    fprintf(stderr, __VA_ARGS__);                                                                                      \
    fputc('\n', stderr);                                                                                               \
    exit(1);                                                                                                           \
  } while (0)

#define print_message(...) printf(__VA_ARGS__)
#define print_error(...)   fprintf(stderr, __VA_ARGS__)

/* Leaves the test. Under the emulator no test may skip, so tests/agree/test_neon_qemu.sh searches for the word. */
#define skip() longjmp(cross_next_test, 1)

#define assert_true(CONDITION)                                                                                         \
  do {                                                                                                                 \
    if (!(CONDITION)) fail_msg("%s", #CONDITION);                                                                      \
  } while (0)

#define fail()                                 fail_msg("failed")
#define assert_false(CONDITION)                assert_true(!(CONDITION))
#define assert_non_null(POINTER)               assert_true((POINTER) != NULL)
#define assert_null(POINTER)                   assert_true((POINTER) == NULL)
#define assert_ptr_equal(A, B)                 assert_true((const void *)(A) == (const void *)(B))
#define assert_ptr_not_equal(A, B)             assert_true((const void *)(A) != (const void *)(B))
#define assert_int_not_equal(A, B)             assert_true((A) != (B))
#define assert_string_not_equal(A, B)          assert_true(strcmp((A), (B)) != 0)
#define assert_memory_not_equal(A, B, BYTES)   assert_true(memcmp((A), (B), (BYTES)) != 0)
#define assert_in_range(VALUE, LEAST, LARGEST) assert_true((VALUE) >= (LEAST) && (VALUE) <= (LARGEST))

#define assert_memory_equal(A, B, BYTES)                                                                               \
  do {                                                                                                                 \
    const unsigned char *cross_p = (const unsigned char *)(A), *cross_q = (const unsigned char *)(B);                  \
    const size_t cross_n = (BYTES);                                                                                    \
    for (size_t cross_i = 0; cross_i < cross_n; cross_i++)                                                             \
      if (cross_p[cross_i] != cross_q[cross_i]) fail_msg("%s and %s differ at byte %zu", #A, #B, cross_i);             \
  } while (0)

#define assert_string_equal(A, B)                                                                                      \
  do {                                                                                                                 \
    const char *cross_s = (A), *cross_t = (B);                                                                         \
    if (strcmp(cross_s, cross_t) != 0) fail_msg("%s is \"%s\", %s is \"%s\"", #A, cross_s, #B, cross_t);               \
  } while (0)

#define assert_int_equal(A, B)                                                                                         \
  do {                                                                                                                 \
    const unsigned long long cross_a = (unsigned long long)(A), cross_b = (unsigned long long)(B);                     \
    if (cross_a != cross_b) fail_msg("%s is %#llx, %s is %#llx", #A, cross_a, #B, cross_b);                            \
  } while (0)

/* Runs the tests in order, between setup and teardown, which may be null. */
static inline int cross_run_tests(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                                  CMFixtureFunction teardown) {
  void *state = NULL;
  if (setup && setup(&state) != 0) fail_msg("group setup failed");
  for (volatile size_t i = 0; i < count; i++) {
    if (cross_filter && strcmp(cross_filter, "*") != 0 && strcmp(cross_filter, tests[i].name) != 0) continue;
    printf("[ RUN      ] %s\n", tests[i].name);
    fflush(stdout);
    if (setjmp(cross_next_test) == 0) {
      if (tests[i].setup_func && tests[i].setup_func(&state) != 0) fail_msg("setup failed");
      tests[i].test_func(&state);
      if (tests[i].teardown_func && tests[i].teardown_func(&state) != 0) fail_msg("teardown failed");
      printf("[       OK ] %s\n", tests[i].name);
    } else {
      printf("[  SKIPPED ] %s\n", tests[i].name);
    }
  }
  if (teardown && teardown(&state) != 0) fail_msg("group teardown failed");
  return 0;
}

#define _cmocka_run_group_tests(NAME, TESTS, COUNT, SETUP, TEARDOWN)                                                   \
  ((void)(NAME), cross_run_tests(TESTS, COUNT, SETUP, TEARDOWN))

#endif
