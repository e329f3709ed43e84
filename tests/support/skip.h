/*
 * Skipping a cmocka test with its reason on the output, where the summary of all tests looks for it.
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

#endif
