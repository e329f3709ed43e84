/*
 * Files of a bench; see bench_output.h.
 */
#include "pipeline/cli/bench/bench_output.h"

#include <string.h>

#include "pipeline/base/message.h"

static bool is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

/* The input that a file at path would overwrite, or null. */
static const char *overwritten_input(const bench_paths *paths, const char *path) {
  if (path == NULL) {
    return NULL;
  }
  if (paths->accuracy != NULL && cli_is_same_file(paths->accuracy, path)) {
    return paths->accuracy;
  }
  for (int i = 0; i < paths->input_count; ++i) {
    if (cli_is_same_file(paths->inputs[i], path)) {
      return paths->inputs[i];
    }
  }
  return NULL;
}

static cli_exit check_paths(const bench_paths *paths, char *message, size_t message_bytes) {
  const bool both = paths->json != NULL && paths->html != NULL;
  if (paths->accuracy != NULL && paths->html == NULL) {
    hs_message_set(message, message_bytes, "--accuracy needs --html, on whose page the tables are shown");
    return CLI_USAGE;
  }
  if (both && (strcmp(paths->json, paths->html) == 0 || cli_is_same_file(paths->json, paths->html))) {
    hs_message_set(message, message_bytes, "--json and --html both name %s: expected two files",
                   is_stdout(paths->json) ? "standard output" : paths->json);
    return CLI_USAGE;
  }
  const char *input = overwritten_input(paths, paths->json);
  input = input != NULL ? input : overwritten_input(paths, paths->html);
  if (input != NULL) {
    hs_message_set(message, message_bytes, "%s: the output would overwrite the input", input);
    return CLI_FAILED;
  }
  return CLI_DONE;
}

/* Leaves nothing behind. */
static void drop(bench_output *output) {
  atomic_file_abandon(&output->json);
  atomic_file_abandon(&output->html);
  bench_page_free(&output->page);
  accuracy_text_free(&output->accuracy);
}

static bool open_file(atomic_file *file, const char *path, char *message, size_t message_bytes) {
  if (path == NULL || atomic_file_open(file, path) != NULL) {
    return true;
  }
  hs_message_set(message, message_bytes, "%s", file->message);
  return false;
}

cli_exit bench_output_open(bench_output *output, const bench_paths *paths, bool with_ratio, char *message,
                           size_t message_bytes) {
  memset(output, 0, sizeof *output);
  const cli_exit checked = check_paths(paths, message, message_bytes);
  if (checked != CLI_DONE) {
    return checked;
  }
  const bool has_accuracy = paths->accuracy != NULL;
  output->has_json = paths->json != NULL;
  output->has_html = paths->html != NULL;
  if ((has_accuracy && !accuracy_text_read(&output->accuracy, paths->accuracy, message, message_bytes)) ||
      !open_file(&output->json, paths->json, message, message_bytes) ||
      !open_file(&output->html, paths->html, message, message_bytes)) {
    drop(output);
    return CLI_FAILED;
  }
  output->page.accuracy = has_accuracy ? &output->accuracy : NULL;
  output->report = (bench_report){.table = is_stdout(paths->json) || is_stdout(paths->html) ? NULL : stdout,
                                  .json = output->json.stream,
                                  .page = output->has_html ? &output->page : NULL,
                                  .with_ratio = with_ratio};
  return CLI_DONE;
}

static bool commit(atomic_file *file, char *message, size_t message_bytes) {
  if (atomic_file_commit(file) == HS_OK) {
    return true;
  }
  hs_message_set(message, message_bytes, "%s", file->message);
  return false;
}

bool bench_output_close(bench_output *output, char *message, size_t message_bytes) {
  bool done = true;
  if (output->report.has_records) {
    if (output->has_json) {
      done = commit(&output->json, message, message_bytes);
    }
    if (output->has_html && !bench_page_write(&output->page, output->html.stream)) {
      hs_message_set(message, message_bytes, "no memory for the page of --html");
      done = false;
    } else if (output->has_html) {
      done = commit(&output->html, message, message_bytes) && done;
    }
  }
  drop(output); /* what has been committed stays */
  return done;
}
