/*
 * SIGINT and SIGTERM for commands that end in order: blocked while they work, and looked for in between.
 */
#ifndef HARTSIFT_CLI_COMMON_STOP_SIGNALS_H
#define HARTSIFT_CLI_COMMON_STOP_SIGNALS_H

#include <signal.h>

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
