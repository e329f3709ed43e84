/*
 * The signals that threads of the library block.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_WORKER_SIGNALS_H
#define HARTSIFT_CPU_SCHEDULE_WORKER_SIGNALS_H

#include <signal.h>

/* All but those that a thread raises itself by a fault. A handler of the caller's for any other signal must run on a
   thread of the caller's, but a fault can be handled only on the thread that has it: blocked there, it would end the
   process without the caller's crash handler. */
static inline void worker_signals_blocked(sigset_t *signals) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  sigfillset(signals);
  for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(signals, faults[i]);
}

#endif
