/*
 * The program hartsift; its code is in command_line.c, which a wheel has in the shared library.
 */
#include "pipeline/cli/command_line.h"

int main(int argc, char **argv) { return hs_command_main(argc, argv); }
