/*
 * Where the results of a bench go: a table on standard output, records in a JSON file, a page in an HTML file. Shared
 * by the subcommand bench and the comparison with other programs' libraries.
 */
#ifndef HARTSIFT_PIPELINE_CLI_BENCH_OUTPUT_H
#define HARTSIFT_PIPELINE_CLI_BENCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/bench/accuracy_text.h"
#include "pipeline/cli/bench/bench_html.h"
#include "pipeline/cli/bench/bench_rounds.h"
#include "pipeline/cli/common/cli_common.h"

/* Names of files, null where not asked for; "-" as json or html is standard output, which then has no table. */
typedef struct bench_paths {
  const char *json, *html;
  const char *accuracy;      /* tables to be shown on the page */
  const char *const *inputs; /* that no output may overwrite */
  int input_count;
} bench_paths;

typedef struct bench_output {
  bench_report report; /* to be started, filled and ended between open and close */
  bench_page page;
  accuracy_text accuracy;
  bool has_json, has_html;
  atomic_file json, html;
} bench_output;

/* Opens the files, so that a path that cannot be written shows before anything is timed. On failure (CLI_USAGE,
   CLI_FAILED) message says why and nothing is left to close. The struct must stay where it is until it is closed. */
cli_exit bench_output_open(bench_output *output, const bench_paths *paths, bool with_ratio, char *message,
                           size_t message_bytes);

/* Makes the files appear, those without a record excepted, and frees all. False with a message. */
bool bench_output_close(bench_output *output, char *message, size_t message_bytes);

#endif
