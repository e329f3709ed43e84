/*
 * The known name that was probably meant by a mistyped one.
 */
#ifndef HARTSIFT_CLI_OPTIONS_SUGGESTION_H
#define HARTSIFT_CLI_OPTIONS_SUGGESTION_H

#include <stddef.h>

#include "pipeline/cli/options/option_table.h"

/* ", did you mean 'NAME'?" or "" where no name is close enough. */
void suggest_command(const char *typed, char *text, size_t bytes);
/* The same for an option of that command; typed: without "--", `length` bytes. */
void suggest_option(command_id command, const char *typed, size_t length, char *text, size_t bytes);

#endif
