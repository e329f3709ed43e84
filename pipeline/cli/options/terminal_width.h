/*
 * How wide the terminal is that a text goes to.
 */
#ifndef HARTSIFT_CLI_OPTIONS_TERMINAL_WIDTH_H
#define HARTSIFT_CLI_OPTIONS_TERMINAL_WIDTH_H

#include <stdio.h>

enum { TERMINAL_COLUMNS_USUAL = 80 };

/* Columns of the terminal that a stream leads to; 0: it is none, or does not know. */
int terminal_columns(FILE *stream);

/* Columns for running text: what the variable COLUMNS says, else those of the terminal, but at most the usual ones. */
int terminal_text_columns(FILE *stream);

#endif
