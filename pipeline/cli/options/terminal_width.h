/*
 * How wide the terminal is that a text goes to.
 */
#ifndef HARTSIFT_CLI_OPTIONS_TERMINAL_WIDTH_H
#define HARTSIFT_CLI_OPTIONS_TERMINAL_WIDTH_H

#include <stdio.h>

enum { TERMINAL_COLUMNS_USUAL = 80 };

/* Columns of the terminal that a stream leads to; 0: it is no terminal, or the width is not known. */
int terminal_columns(FILE *stream);

/* Columns for running text: the variable COLUMNS, else the terminal's, but at most the usual number. */
int terminal_text_columns(FILE *stream);

#endif
