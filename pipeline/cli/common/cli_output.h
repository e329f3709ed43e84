/* Outputs of subcommands: targets of features, their names, temporary files. */
#ifndef HARTSIFT_CLI_COMMON_CLI_OUTPUT_H
#define HARTSIFT_CLI_COMMON_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"

/* ---- Targets of `extract`. They are chosen for all images before any image is read, so that usage errors appear at
   once and no result overwrites another. */

typedef struct output_target {
  char *path;        /* path; "-": standard output */
  char *name;        /* name of the image in a database; else null */
  bool is_duplicate; /* an earlier image has the same path, or in a database the same name */
} output_target;

typedef struct output_plan {
  hs_format format;
  bool to_stdout;
  bool to_database;       /* the features of all images go to one database */
  const char *directory;  /* folder of all targets; null: one file, or standard output */
  output_target *targets; /* one target for each image */
  int count;
} output_plan;

/* Plans the outputs. output: the text of -o, or null. format: HS_FORMAT_AUTO if it is not given. On failure (CLI_USAGE,
   CLI_FAILED) message is set and nothing needs to be freed. */
cli_exit output_plan_make(output_plan *plan, const option_set *set, char *message, size_t message_bytes);

/* Creates the folder of the targets, and missing parent folders. */
cli_exit output_plan_make_directory(const output_plan *plan, char *message, size_t message_bytes);

void output_plan_free(output_plan *plan);

/* Creates a folder and its missing parents. False with errno. */
bool output_make_directories(const char *path);

/* ---- List of temporary files in use, for a signal handler. */

/* Deletes the temporary files of all threads. Only for the handler of a signal that ends the process; it calls only
   async-signal-safe functions (POSIX). */
void unfinished_files_remove(void);

/* A signal which ends the program deletes a database that the program has created, with its journal. One at a time.
   Signals are kept (os_end_hold) where the list does not say what is in the folder: from database_list_begin, before
   opening, to database_list_new, after opening (null: opening failed), and from database_unlist, before the commit, to
   database_list_end, after closing. Nothing is kept for a database that existed before; opening may wait for its lock.
 */
void database_list_begin(const char *path);
void database_list_new(const hs_colmap_database *database);
void database_unlist(void);
void database_list_end(void);

#endif
