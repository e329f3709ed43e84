/* Support for long runs: a progress line, and signals that stop the run. */
#ifndef HARTSIFT_CLI_COMMON_PROGRESS_H
#define HARTSIFT_CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "os/os_process.h"

/* ---- Progress line on a terminal: images done, rate, and remaining time. */

typedef struct progress_line {
  const char *what; /* name of the step, before the numbers; null: none */
  bool on_terminal, is_drawn;
  double start_ms;
} progress_line;

/* Starts the clock. is_quiet: no line is drawn. */
void progress_line_begin(progress_line *line, bool is_quiet);

/* Draws the line on standard error, within the width of the terminal; not if it is no terminal. ended: number of
   finished items out of `total`; worked: number of those that this run processed; failed: shown if not 0. */
void progress_line_draw(progress_line *line, size_t ended, size_t total, size_t worked, size_t failed);

/* Removes the line. Required before other output. */
void progress_line_clear(progress_line *line);

/* Return the seconds since the start, and `worked` per second (0 until some time has passed). */
double progress_line_seconds(const progress_line *line);
double progress_line_rate(const progress_line *line, size_t worked);

/* ---- SIGINT and SIGTERM, for commands that finish their output before they end: the signals are blocked during the
   work, and polled. */

typedef os_stop_signals stop_signals;

/* Blocks the signals on this thread and on all threads that it starts afterwards. A signal that was ignored at the
   start (nohup, background jobs) stays ignored. */
void stop_signals_block(stop_signals *signals);

/* Returns the pending signal; 0: none. After the first signal, the next one ends the process at once. */
int stop_signals_take(const stop_signals *signals);

void stop_signals_restore(const stop_signals *signals);

/* Returns "SIGINT" or "SIGTERM". */
const char *stop_signal_name(int number);

#endif
