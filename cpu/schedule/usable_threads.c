/* The cores that the process's affinity leaves it. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cpu/schedule/usable_threads.h"

#include <sched.h>
#include <unistd.h>

int32_t cpu_usable_threads(void) {
  cpu_set_t set;
  /* A machine of more cores than the set holds refuses the call. */
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < CPU_SETSIZE ? (int32_t)online : CPU_SETSIZE;
  }
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}
