/*
 * Texts made from the option table: --help of every subcommand, the man page, shell completions.
 */
#ifndef HARTSIFT_CLI_OPTIONS_OPTION_TEXT_H
#define HARTSIFT_CLI_OPTIONS_OPTION_TEXT_H

#include <stdio.h>

#include "pipeline/cli/options/option_table.h"

void option_write_help(FILE *out, command_id command);

/* The whole manual as roff (man macros). */
void option_write_man(FILE *out);

/* A completion script; both shells complete subcommands, options, choices and file names. */
void option_write_bash_completion(FILE *out);
void option_write_zsh_completion(FILE *out);

#endif
