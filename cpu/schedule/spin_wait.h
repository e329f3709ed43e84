/*
 * Waiting for a word that another device or thread is about to write, on a core that others may want meanwhile.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_SPIN_WAIT_H
#define HARTSIFT_CPU_SCHEDULE_SPIN_WAIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Begun with zeros. */
typedef struct spin_wait {
  uint32_t rounds;
} spin_wait;

/* A round of pauses lasts 1, 2, 4, ... of them, so that a short wait is answered at once. */
enum { SPIN_PAUSES_MOST = 64, SPIN_ROUNDS_BEFORE_YIELD = 200, SPIN_ROUNDS_PER_QUESTION = 64 };

/* Tells the core that a loop waits: the other thread of the core gets its units, and the loop ends without a flush. */
static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* One round. After the first ones (some ten microseconds) it also yields the core to other threads. True now and then:
   the caller should check whether the event can still happen. */
static inline bool spin_wait_pause(spin_wait *wait) {
  const uint32_t round = wait->rounds++, pauses = round < 6 ? 1u << round : (uint32_t)SPIN_PAUSES_MOST;
  if (round >= SPIN_ROUNDS_BEFORE_YIELD)
    (void)sched_yield();
  else
    for (uint32_t i = 0; i < pauses; i++) spin_pause();
  return round % SPIN_ROUNDS_PER_QUESTION == SPIN_ROUNDS_PER_QUESTION - 1;
}

#endif
