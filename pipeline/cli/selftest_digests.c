/*
 * Digests of the features of selftest's scenes. Made by: hartsift selftest --print-digests
 */
#include "pipeline/cli/selftest_digests.h"

#include <stddef.h>

const int selftest_digests_method_version = 1;

const selftest_digest selftest_digests[] = {
    {NULL, 0},
};
