/*
 * Digests of the features of selftest's scenes, equal on every machine.
 */
#ifndef HARTSIFT_CLI_SELFTEST_DIGESTS_H
#define HARTSIFT_CLI_SELFTEST_DIGESTS_H

#include <stdint.h>

typedef struct selftest_digest {
  const char *scene; /* name of the scene, null at the end of the table */
  uint64_t digest;
} selftest_digest;

/* HS_METHOD_VERSION that the table belongs to; the table of another version counts as empty. */
extern const int selftest_digests_method_version;
extern const selftest_digest selftest_digests[];

#endif
