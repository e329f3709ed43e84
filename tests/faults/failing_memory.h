/*
 * Replaces the C library's allocation functions. Counts all calls, by this project and by every library it uses, and
 * makes chosen calls fail.
 *
 * Linked into a program or preloaded, these functions take precedence over the C library's (glibc).
 */
#ifndef HARTSIFT_TESTS_FAULTS_FAILING_MEMORY_H
#define HARTSIFT_TESTS_FAULTS_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct failing_memory {
  atomic_long made;    /* allocations requested while `counts` */
  atomic_long alive;   /* blocks not freed since the program began */
  atomic_long fail_at; /* number of the allocation that fails, from 1; 0: none */
  atomic_bool goes_on; /* whether all later ones fail too */
  atomic_bool counts;
} failing_memory;

extern failing_memory failing_memory_state;

#endif
