/*
 * One line on a terminal that says how far a long run has come, at what rate, and how long it will take yet.
 */
#ifndef HARTSIFT_CLI_COMMON_PROGRESS_LINE_H
#define HARTSIFT_CLI_COMMON_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress_line {
  bool on_terminal, is_drawn;
  double start_ms;
} progress_line;

/* Begins the clock. is_quiet: nothing is ever drawn. */
void progress_line_begin(progress_line *line, bool is_quiet);

/* Draws the line on standard error, if that is a terminal, within its width. ended: how many of total; worked: how many
   of them took this run's time; failed: mentioned if there are any. */
void progress_line_draw(progress_line *line, size_t ended, size_t total, size_t worked, size_t failed);

/* Takes the line away, before anything else is printed. */
void progress_line_clear(progress_line *line);

/* Seconds since the beginning, and `worked` by them, 0 until time has passed. */
double progress_line_seconds(const progress_line *line);
double progress_line_rate(const progress_line *line, size_t worked);

#endif
