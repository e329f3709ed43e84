/*
 * Signals that stop a command; see stop_signals.h.
 */
#include "pipeline/cli/common/stop_signals.h"

#include <time.h>

/* An ignored signal, once blocked, would be kept, and sigtimedwait would find it. */
static void add_unless_ignored(sigset_t *signals, int number) {
  struct sigaction before;
  if (sigaction(number, NULL, &before) != 0 || before.sa_handler != SIG_IGN) sigaddset(signals, number);
}

void stop_signals_block(stop_signals *signals) {
  sigemptyset(&signals->watched);
  add_unless_ignored(&signals->watched, SIGINT);
  add_unless_ignored(&signals->watched, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals->watched, &signals->before);
}

int stop_signals_take(const stop_signals *signals) {
  const struct timespec no_time = {0};
  const int number = sigtimedwait(&signals->watched, NULL, &no_time);
  if (number <= 0) return 0;
  pthread_sigmask(SIG_UNBLOCK, &signals->watched, NULL);
  return number;
}

void stop_signals_restore(const stop_signals *signals) { pthread_sigmask(SIG_SETMASK, &signals->before, NULL); }

const char *stop_signal_name(int number) { return number == SIGTERM ? "SIGTERM" : "SIGINT"; }
