/*
 * As much of cmocka's interface as the agreement tests use, for the test programs that are built for another processor and
 * run under an emulator: cmocka itself is packaged for the building machine only. The first failure ends the program.
 */
#ifndef HARTSIFT_TESTS_CROSS_CMOCKA_H
#define HARTSIFT_TESTS_CROSS_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
  const char *name;
  void (*test)(void **state);
};

#define cmocka_unit_test(FUNCTION)                                                                                     \
  { #FUNCTION, FUNCTION }

#define fail_msg(...)                                                                                                  \
  do {                                                                                                                 \
    fprintf(stderr, "%s:%d: error: ", __FILE__, __LINE__);                                                             \
    fprintf(stderr, __VA_ARGS__);                                                                                      \
    fputc('\n', stderr);                                                                                               \
    exit(1);                                                                                                           \
  } while (0)

/* No test that runs under the emulator skips: what does is support code for others, which only has to build. */
#define skip() fail_msg("skipped")

#define assert_true(CONDITION)                                                                                         \
  do {                                                                                                                 \
    if (!(CONDITION)) fail_msg("%s", #CONDITION);                                                                      \
  } while (0)

#define assert_non_null(POINTER) assert_true((POINTER) != NULL)

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
  for (size_t i = 0; i < count; i++) {
    printf("[ RUN      ] %s\n", tests[i].name);
    fflush(stdout);
    tests[i].test(&state);
    printf("[       OK ] %s\n", tests[i].name);
  }
  if (teardown && teardown(&state) != 0) fail_msg("group teardown failed");
  return 0;
}

#define cmocka_run_group_tests(TESTS, SETUP, TEARDOWN)                                                                 \
  cross_run_tests(TESTS, sizeof(TESTS) / sizeof(TESTS)[0], SETUP, TEARDOWN)
#define cmocka_run_group_tests_name(NAME, TESTS, SETUP, TEARDOWN) cmocka_run_group_tests(TESTS, SETUP, TEARDOWN)

#endif
