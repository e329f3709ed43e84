/*
 * Texts made from the option table: --help and the manual page of every subcommand, shell completions.
 */
#ifndef HARTSIFT_CLI_OPTIONS_OPTION_TEXT_H
#define HARTSIFT_CLI_OPTIONS_OPTION_TEXT_H

#include <stdio.h>

#include "pipeline/cli/options/option_table.h"

typedef struct text_pair {
  const char *name, *text;
} text_pair;

/* Ended by a null name. */
extern const text_pair text_exit_statuses[];
extern const text_pair text_environment[];

/* The next example of command from *place on, all of them for COMMAND_TOP; null after the last. */
const text_pair *text_next_example(command_id command, size_t *place);

/* Wrapped at words to the width of the terminal, or to COLUMNS. */
void option_write_help(FILE *out, command_id command);

/* The names of all commands, each with a line of text. */
void option_write_commands(FILE *out);

/* hartsift(1), or hartsift-COMMAND(1), as roff (man macros). */
void option_write_man(FILE *out, command_id command);

/* A completion script; all shells complete subcommands, options, choices and file names. */
void option_write_bash_completion(FILE *out);
void option_write_zsh_completion(FILE *out);
void option_write_fish_completion(FILE *out);

#endif
