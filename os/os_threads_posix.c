/* Threads and clocks of POSIX systems; see os_threads.h. */
#define _GNU_SOURCE        /* sched_getaffinity */
#define _DARWIN_C_SOURCE 1 /* macOS: thread_info, pthread_cond_timedwait_relative_np */
#include "os/os_threads.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>
#ifdef __APPLE__
#  include <mach/mach.h>
#endif

enum { CORES_MAX = 1024 };

/* ---- threads */

bool os_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
#ifdef __APPLE__ /* threads other than the first have 512 KiB by default */
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const bool started = pthread_attr_setstacksize(&attributes, OS_STACK_BYTES) == 0 &&
                       pthread_create(thread, &attributes, run, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
#else
  return pthread_create(thread, NULL, run, argument) == 0;
#endif
}

double os_thread_cpu_s(pthread_t thread) {
#ifdef __APPLE__
  thread_basic_info_data_t info;
  mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
  if (thread_info(pthread_mach_thread_np(thread), THREAD_BASIC_INFO, (thread_info_t)&info, &count) != KERN_SUCCESS)
    return 0;
  return (double)(info.user_time.seconds + info.system_time.seconds) +
         (double)(info.user_time.microseconds + info.system_time.microseconds) * 1e-6;
#else
  clockid_t clock;
  struct timespec t;
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
#endif
}

static int32_t online_cores(void) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < CORES_MAX ? (int32_t)online : CORES_MAX;
}

int32_t os_usable_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  /* the call fails on a machine with more cores than the set can hold */
  if (sched_getaffinity(0, sizeof set, &set) != 0) return online_cores();
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
#else
  return online_cores();
#endif
}

void os_yield(void) { (void)sched_yield(); }

void os_sleep_ns(int64_t nanoseconds) {
  const struct timespec pause = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                                 .tv_nsec = (long)(nanoseconds % 1000000000)};
  (void)nanosleep(&pause, NULL);
}

/* ---- signals */

bool os_signals_block(os_signal_mask *saved) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  sigset_t blocked;
  sigfillset(&blocked);
  for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&blocked, faults[i]);
  return pthread_sigmask(SIG_SETMASK, &blocked, &saved->signals) == 0;
}

void os_signals_restore(const os_signal_mask *saved) { (void)pthread_sigmask(SIG_SETMASK, &saved->signals, NULL); }

/* ---- clocks */

bool os_condition_make(pthread_cond_t *condition) {
#ifdef __APPLE__
  return pthread_cond_init(condition, NULL) == 0;
#else
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  const bool made =
      pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(condition, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return made;
#endif
}

struct timespec os_deadline(int32_t milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + (int64_t)milliseconds * 1000000;
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  return until;
}

int os_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
#ifdef __APPLE__ /* no clock can be chosen, but a relative time */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t left = (int64_t)(deadline->tv_sec - now.tv_sec) * 1000000000 + deadline->tv_nsec - now.tv_nsec;
  const struct timespec rest = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
  return left <= 0 ? ETIMEDOUT : pthread_cond_timedwait_relative_np(condition, mutex, &rest);
#else
  return pthread_cond_timedwait(condition, mutex, deadline);
#endif
}

/* ---- processes */

int64_t os_process_id(void) { return getpid(); }

bool os_call_in_forked_children(void (*function)(void)) { return pthread_atfork(NULL, NULL, function) == 0; }
