/*
 * Threads, clocks and processes. Mutexes, condition variables and thread handles are those of POSIX threads on every
 * system; on Windows winpthreads has them, linked statically.
 */
#ifndef HARTSIFT_OS_OS_THREADS_H
#define HARTSIFT_OS_OS_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* ---- threads */

/* Starts a thread with a stack of at least OS_STACK_BYTES, also where the system's default is smaller. */
enum { OS_STACK_BYTES = 8 << 20 };
bool os_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* Returns the processor time of a thread that has not been joined, seconds; 0: unknown. */
double os_thread_cpu_s(pthread_t thread);

/* Returns the number of cores that this process may use, 1..1024. */
int32_t os_usable_cores(void);

/* Lets other threads run on this core. */
void os_yield(void);

void os_sleep_ns(int64_t nanoseconds);

/* ---- signals of threads. Windows has none; the functions do nothing there. */

typedef struct os_signal_mask {
#ifdef _WIN32
  int unused;
#else
  sigset_t signals;
#endif
} os_signal_mask;

/* Blocks all signals except those that a fault of a thread raises, for threads that this thread starts: a signal
   handler of the caller must run on a thread of the caller. A fault can be handled only on the thread that caused it;
   if it were blocked, it would end the process without the caller's crash handler. *saved: the mask before. */
bool os_signals_block(os_signal_mask *saved);
void os_signals_restore(const os_signal_mask *saved);

/* ---- clocks */

/* Seconds of a clock: CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID. */
static inline double clock_s(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Creates a condition variable for os_condition_wait. */
bool os_condition_make(pthread_cond_t *condition);

/* Returns the time of the monotonic clock in `milliseconds`. */
struct timespec os_deadline(int32_t milliseconds);

/* Waits for a condition of os_condition_make until the deadline. Returns 0, ETIMEDOUT or another error number. */
int os_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline);

/* ---- processes */

/* Returns this process's number. A forked child has another one than its parent. */
int64_t os_process_id(void);

/* Lets every later forked child call a function when it starts. False: no memory. Without forks nothing happens. */
bool os_call_in_forked_children(void (*function)(void));

#endif
