/*
 * The C library's allocations, of which chosen ones fail and all are counted: those of this project and of every library it
 * uses. In a program, or in a library that is loaded before all others, its functions stand before the C library's (glibc).
 */
#ifndef HARTSIFT_TESTS_FAULTS_FAILING_MEMORY_H
#define HARTSIFT_TESTS_FAULTS_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct failing_memory {
  atomic_long made;    /* allocations asked for while `counts` */
  atomic_long alive;   /* blocks not freed, since the program began */
  atomic_long fail_at; /* this one fails, counted from 1; 0: none */
  atomic_bool goes_on; /* and all after it */
  atomic_bool counts;
} failing_memory;

extern failing_memory failing_memory_state;

#endif
