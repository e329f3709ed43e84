/*
 * The programs hartsift and hartsift-colmap. Their code is in command_line.c, which a Python wheel has in the shared
 * library.
 */
#include "pipeline/cli/common/cli_common.h"

int main(int argc, char **argv) { return HARTSIFT_PROGRAM_MAIN(argc, argv); }
