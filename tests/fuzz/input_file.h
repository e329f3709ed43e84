/*
 * A file for targets whose readers take a path. The file is in a folder of this process, in TMPDIR or /tmp. The folder
 * is removed at exit; a target that crashes leaves it there, so run.sh sets TMPDIR.
 */
#ifndef HARTSIFT_TESTS_FUZZ_INPUT_FILE_H
#define HARTSIFT_TESTS_FUZZ_INPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Writes the content to a file and returns its path. The next call overwrites the file. Ends the process if the file
 * cannot be written. */
const char *input_file(const uint8_t *bytes, size_t size);

#endif
