/*
 * The whole command as one function.
 */
#ifndef HARTSIFT_CLI_COMMAND_LINE_H
#define HARTSIFT_CLI_COMMAND_LINE_H

#include "pipeline/include/hartsift.h"

/* The body of main; returns the exit status. To be called once per process. Exported only from a library built with
   HARTSIFT_COMMAND_IN_LIBRARY. */
HS_API int hs_command_main(int argc, char **argv);

#endif
