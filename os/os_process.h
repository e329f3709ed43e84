/*
 * What a process gets from its system: memory, random numbers, environment, libraries, terminals, signals that end a
 * program, and other programs.
 */
#ifndef HARTSIFT_OS_OS_PROCESS_H
#define HARTSIFT_OS_OS_PROCESS_H

#include <getopt.h> /* getopt_long */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "os/os_threads.h"

/* ---- memory */

/* Returns memory aligned to `alignment`, a power of two; null if there is none. huge: with huge pages where the system
   has them. Freed by os_memory_free alone. */
void *os_memory_alloc(size_t bytes, size_t alignment, bool huge);
void os_memory_free(void *pointer);

/* Return the bytes of the machine's memory, and of the address space that this process may use; UINT64_MAX: unknown,
   or unlimited. */
uint64_t os_memory_bytes(void);
uint64_t os_address_bytes(void);

/* ---- processor */

/* Return whether an AArch64 processor has the instructions for CRC-32, and for dot products of bytes. */
bool os_has_crc_instructions(void);
bool os_has_dot_instructions(void);

/* ---- texts and numbers */

/* Fills `bytes` with numbers that nobody can predict. False: the system has no source of them. */
bool os_random(void *bytes, size_t size);

/* Nanoseconds of the clock of the day. */
uint64_t os_time_ns(void);

/* Writes the system's sentence for an errno value; "" if there is none. */
void os_error_text(int error, char *text, size_t bytes);

/* Compares texts in ASCII letters of either case, whatever the locale: 0 if they are equal. */
int os_compare_caseless(const char *one, const char *other);

/* Returns a variable of the environment in UTF-8; null: there is none. getenv has the code page of Windows. On Windows
   for one thread of a program; valid until the program ends. */
const char *os_variable(const char *name);

/* Sets a variable of the environment; value null: removes it. replaces false: an existing variable stays. */
void os_set_variable(const char *name, const char *value, bool replaces);

/* ---- libraries */

/* Loads a shared library, or finds a function in it; null if there is none. */
void *os_library_open(const char *name);
void *os_library_function(void *library, const char *name);

/* ---- terminals and standard streams */

/* Prepares the standard streams of a program: bytes are not converted, numbers 0..2 are in use, and writing to a closed
   pipe or beyond the limit of a file's size fails. On Windows also sets argv to the arguments in UTF-8, with patterns
   of file names expanded. False: the system refused. */
bool os_begin_program(int *argc, char ***argv);

bool os_is_terminal(FILE *stream);
/* Returns the columns of a terminal; 0: the stream is none. */
int os_terminal_columns(FILE *stream);
/* True if nobody can read what is written to standard output. */
bool os_stdout_is_gone(void);

/* ---- signals that end a program */

/* Calls `clean` before a signal ends the program. The function may only use atomic variables and os_remove. A signal
   that was ignored at the start (nohup, background jobs) stays ignored. */
void os_on_end(void (*clean)(void));

/* Keeps the next signal that would end the program until os_end_release, so that `clean` finds a complete list of
   files. A second signal ends the program at once. Does not nest. */
void os_end_hold(void);
/* Raises the signal that was kept. Without os_end_hold it does nothing. */
void os_end_release(void);

/* SIGINT and SIGTERM, for programs that finish their output before they end: the signals are blocked during the work,
   and polled. On Windows: Ctrl-C and Ctrl-Break. */
typedef struct os_stop_signals {
#ifdef _WIN32
  int unused;
#else
  sigset_t watched, before;
#endif
} os_stop_signals;

/* Blocks the signals on this thread and on all threads that it starts afterwards. A signal that was ignored at the
   start stays ignored. */
void os_stop_block(os_stop_signals *signals);
/* Returns the pending signal, SIGINT or SIGTERM; 0: none. After the first signal, the next one ends the process at
   once. */
int os_stop_take(const os_stop_signals *signals);
void os_stop_restore(const os_stop_signals *signals);

/* ---- programs */

/* Character between the folders of PATH, the ending of programs, and the name of Python. */
#ifdef _WIN32
#  define OS_PATH_SEPARATOR ";"
#  define OS_PROGRAM_ENDING ".exe"
#  define OS_PYTHON         "python"
#else
#  define OS_PATH_SEPARATOR ":"
#  define OS_PROGRAM_ENDING ""
#  define OS_PYTHON         "python3"
#endif

/* Gets the path of this process's program. */
bool os_program_path(char *path, size_t bytes);
/* True if a path is the program of this process. */
bool os_is_this_program(const char *path);

/* Runs a program instead of this one; searches a name without folders in PATH. Returns on failure only. */
void os_replace_program(const char *path, char **argv);

/* Runs a program and reads the beginning of its standard output; its messages are dropped. False if it failed. */
bool os_read_program(char **argv, char *text, size_t bytes);

#endif
