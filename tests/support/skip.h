/*
 * Skips a cmocka test and prints the reason, which the summary of all tests reads.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_SKIP_H
#define HARTSIFT_TESTS_SUPPORT_SKIP_H

#define NEEDS_GPU         "needs a GPU"
#define NEEDS_PHOTOGRAPHS "needs photographs beside the repository (HARTSIFT_DATA)"

#define skip_because(reason)                                                                                           \
  do {                                                                                                                 \
    print_message("skipped: %s\n", reason);                                                                            \
    skip();                                                                                                            \
  } while (0)

/* Defines a test program that has nothing to test in this build: its only test, and its main function. */
#define SKIPPED_PROGRAM(reason)                                                                                        \
  static void test_skipped(void **state) {                                                                             \
    (void)state;                                                                                                       \
    skip_because(reason);                                                                                              \
  }                                                                                                                    \
  int main(void) {                                                                                                     \
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_skipped)};                                                \
    return cmocka_run_group_tests(tests, NULL, NULL);                                                                  \
  }

#endif
