/*
 * A file for targets whose readers take a path. It lies in a folder of this process, in TMPDIR or /tmp, which is removed at
 * exit; a target that crashes leaves it, so run.sh sets TMPDIR.
 */
#ifndef HARTSIFT_TESTS_FUZZ_INPUT_FILE_H
#define HARTSIFT_TESTS_FUZZ_INPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The path of a file with this content, which replaces that of the last call; the process ends where it cannot be
   written. */
const char *input_file(const uint8_t *bytes, size_t size);

#endif
