/*
 * The program hartsift, whose work is in command_line.c: in a wheel that is part of the shared library.
 */
#include "pipeline/cli/command_line.h"

int main(int argc, char **argv) { return hs_command_main(argc, argv); }
