/* Long runs: a line that says how far they are, and signals that stop them. */
#ifndef HARTSIFT_CLI_COMMON_PROGRESS_H
#define HARTSIFT_CLI_COMMON_PROGRESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- One line on a terminal that says how far a long run has come, at what rate, and how long it will still take. */

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

/* ---- SIGINT and SIGTERM for commands that end in order: blocked while they work, and looked for in between. */

typedef struct stop_signals {
  sigset_t watched, before;
} stop_signals;

/* Blocks them on this thread and on those that it starts from here on, which inherit that. One that was ignored when the
   command began (nohup, a script's background) stays so. */
void stop_signals_block(stop_signals *signals);

/* The signal that has come, 0: none. After the first one the next ends the process at once. */
int stop_signals_take(const stop_signals *signals);

void stop_signals_restore(const stop_signals *signals);

/* "SIGINT" or "SIGTERM". */
const char *stop_signal_name(int number);

#endif
