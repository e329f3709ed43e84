/* Threads and clocks of Windows; see os_threads.h. */
#include "os/os_threads.h"

#include <errno.h>
#include <sched.h>
#include <windows.h>

enum { CORES_MAX = 1024 };

/* ---- threads */

bool os_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const bool started = pthread_attr_setstacksize(&attributes, OS_STACK_BYTES) == 0 &&
                       pthread_create(thread, &attributes, run, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

static double seconds_of(FILETIME time) {
  return (double)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * 1e-7;
}

double os_thread_cpu_s(pthread_t thread) {
  FILETIME created, ended, kernel, user;
  if (!GetThreadTimes(pthread_gethandle(thread), &created, &ended, &kernel, &user)) return 0;
  return seconds_of(kernel) + seconds_of(user);
}

/* The mask is 0 for a process with threads in several groups of 64 cores. */
int32_t os_usable_cores(void) {
  DWORD_PTR process = 0, machine = 0;
  int32_t cores = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &machine)) cores = __builtin_popcountll(process);
  if (cores == 0) cores = (int32_t)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
  return cores < 1 ? 1 : cores < CORES_MAX ? cores : CORES_MAX;
}

void os_yield(void) { (void)sched_yield(); }

void os_sleep_ns(int64_t nanoseconds) { Sleep((DWORD)((nanoseconds + 999999) / 1000000)); }

/* ---- signals */

bool os_signals_block(os_signal_mask *saved) {
  saved->unused = 0;
  return true;
}

void os_signals_restore(const os_signal_mask *saved) { (void)saved; }

/* ---- clocks */

bool os_condition_make(pthread_cond_t *condition) { return pthread_cond_init(condition, NULL) == 0; }

static struct timespec time_after(struct timespec from, int64_t nanoseconds) {
  const int64_t sum = from.tv_nsec + nanoseconds;
  from.tv_sec += (time_t)(sum / 1000000000);
  from.tv_nsec = (long)(sum % 1000000000);
  return from;
}

struct timespec os_deadline(int32_t milliseconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return time_after(now, (int64_t)milliseconds * 1000000);
}

/* winpthreads waits by the clock of the day: the rest of the time is added to it. */
int os_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
  struct timespec now, day;
  clock_gettime(CLOCK_MONOTONIC, &now);
  clock_gettime(CLOCK_REALTIME, &day);
  const int64_t left = (int64_t)(deadline->tv_sec - now.tv_sec) * 1000000000 + deadline->tv_nsec - now.tv_nsec;
  if (left <= 0) return ETIMEDOUT;
  const struct timespec until = time_after(day, left);
  return pthread_cond_timedwait(condition, mutex, &until);
}

/* ---- processes */

int64_t os_process_id(void) { return (int64_t)GetCurrentProcessId(); }

bool os_call_in_forked_children(void (*function)(void)) {
  (void)function;
  return true;
}
