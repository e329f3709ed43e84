/*
 * A file for targets whose readers take a path. It is in a folder of this process, in TMPDIR or /tmp, which is removed
 * at exit; a crashing target leaves it, so run.sh sets TMPDIR.
 */
#ifndef HARTSIFT_TESTS_FUZZ_INPUT_FILE_H
#define HARTSIFT_TESTS_FUZZ_INPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The path of a file with this content, which replaces the previous call's; ends the process if it cannot be
 * written. */
const char *input_file(const uint8_t *bytes, size_t size);

#endif
