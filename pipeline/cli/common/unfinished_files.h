/*
 * The temporary files that are being written now, for a handler of signals.
 */
#ifndef HARTSIFT_CLI_COMMON_UNFINISHED_FILES_H
#define HARTSIFT_CLI_COMMON_UNFINISHED_FILES_H

/* Removes the temporary files of all threads. Only for a handler of a signal that then ends the process; everything in
   it may be called there (POSIX: async-signal-safe). */
void unfinished_files_remove(void);

#endif
