/*
 * How many threads are worth having.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_USABLE_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_USABLE_THREADS_H

#include <stdint.h>

/* Cores this process may use: 1..1024, the most threads that the options allow. */
int32_t cpu_usable_threads(void);

#endif
