/* Outputs of subcommands: where features go, names, temporary files. */
#ifndef HARTSIFT_CLI_COMMON_CLI_OUTPUT_H
#define HARTSIFT_CLI_COMMON_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"

/* ---- Where `extract` puts the features of each image: decided for all images before any is read, so that wrong usage
   shows at once and no result overwrites another. */

typedef struct output_target {
  char *path;        /* "-": standard output */
  char *name;        /* of the image in a database; else null */
  bool is_duplicate; /* an earlier image has the same path, in a database the same name */
} output_target;

typedef struct output_plan {
  hs_format format;
  bool to_stdout;
  bool to_database;       /* all images go to one file */
  const char *directory;  /* of all targets, null for one file or standard output */
  output_target *targets; /* one for each image */
  int count;
} output_plan;

/* output: the text of -o or null. format: HS_FORMAT_AUTO when not given. On failure (CLI_USAGE, CLI_FAILED) there is
   nothing to free, and message says why. */
cli_exit output_plan_make(output_plan *plan, const option_set *set, char *message, size_t message_bytes);

/* Makes the folder of the targets and those above it where absent. */
cli_exit output_plan_make_directory(const output_plan *plan, char *message, size_t message_bytes);

void output_plan_free(output_plan *plan);

/* Makes a folder and those above it where absent; false with errno. */
bool output_make_directories(const char *path);

/* ---- The temporary files that are being written now, for a handler of signals. */

/* Removes the temporary files of all threads. Only for a handler of a signal that then ends the process; everything in
   it may be called there (POSIX: async-signal-safe). */
void unfinished_files_remove(void);

#endif
