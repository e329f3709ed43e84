/*
 * The command hartsift: calls the subcommand that the command line names.
 */

#include <string.h>

#include "os/os_process.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/colmap/colmap_program.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/options/option_table.h"

typedef cli_exit (*command_function)(const option_set *set);

static const command_function command_functions[COMMAND_COUNT] = {
    [COMMAND_EXTRACT] = cmd_extract,   [COMMAND_MATCH] = cmd_match,       [COMMAND_BATCH] = cmd_batch,
    [COMMAND_MERGE] = cmd_merge,       [COMMAND_DRAW] = cmd_draw,         [COMMAND_STATS] = cmd_stats,
    [COMMAND_HIST] = cmd_hist,         [COMMAND_CONVOLVE] = cmd_convolve, [COMMAND_INFO] = cmd_info,
    [COMMAND_SELFTEST] = cmd_selftest, [COMMAND_BENCH] = cmd_bench,
};

static cli_exit fail_unknown_command(const char *name) {
  if (strcmp(name, "reconstruct") == 0) {
    cli_error(COMMAND_TOP, "reconstruct is a command of the Python package: python -m hartsift reconstruct");
    return CLI_USAGE;
  }
  char suggestion[OPTION_EXPECTED_BYTES];
  suggest_command(name, suggestion, sizeof suggestion);
  return cli_fail(CLI_USAGE, COMMAND_TOP, "unknown command '%s'%s 'hartsift help' lists all", name,
                  suggestion[0] != '\0' ? suggestion : ":");
}

static bool is_word(const char *name) { return strcmp(name, "help") == 0 || strcmp(name, "version") == 0; }

/* Handles "hartsift help [COMMAND]" and "hartsift version". */
static cli_exit run_word(const option_set *set, bool *handled) {
  const char *word = set->operands[0];
  command_id command = COMMAND_TOP;
  *handled = is_word(word);
  if (strcmp(word, "version") == 0) {
    printf("hartsift %s\n", hs_version_string());
  } else if (*handled) {
    if (set->operand_count > 1 && !is_word(set->operands[1])) command = command_find(set->operands[1]);
    if (command == COMMAND_COUNT) return fail_unknown_command(set->operands[1]);
    option_write_help(stdout, command);
  }
  return CLI_DONE;
}

/* Writers of completions, in the order of the choices of --completion. */
static void (*const completion_writers[])(FILE *out) = {option_write_bash_completion, option_write_zsh_completion,
                                                        option_write_fish_completion};

/* Handles the options of hartsift itself. *handled: nothing else needs to be done. */
static cli_exit run_top(const option_set *set, bool *handled) {
  const option_value *values = set->values;
  *handled = true;
  if (values[OPTION_HELP].is_set) {
    option_write_help(stdout, COMMAND_TOP);
  } else if (values[OPTION_VERSION].is_set) {
    printf("hartsift %s\n", hs_version_string());
  } else if (values[OPTION_MAN].is_set) {
    option_write_man(stdout, COMMAND_TOP);
  } else if (values[OPTION_COMPLETION].is_set) {
    completion_writers[values[OPTION_COMPLETION].integer](stdout);
  } else if (set->operand_count == 0) {
    cli_error(COMMAND_TOP, "a command is missing: expected one of these; see 'hartsift help'");
    option_write_commands(stderr);
    return CLI_USAGE;
  } else {
    return run_word(set, handled);
  }
  return CLI_DONE;
}

static cli_exit run_command(command_id command, int argc, char **argv) {
  char message[OPTION_MESSAGE_BYTES] = "";
  option_set set;
  if (!option_parse(&set, command, argc, argv, message, sizeof message))
    return cli_fail(CLI_USAGE, command, "%s", message);
  if (set.values[OPTION_HELP].is_set) {
    option_write_help(stdout, command);
    return CLI_DONE;
  }
  if (set.values[OPTION_MAN].is_set) {
    option_write_man(stdout, command);
    return CLI_DONE;
  }
  atomic_file file;
  if (set.values[OPTION_OUTPUT].is_set && !atomic_file_check_descriptor(&file, set.values[OPTION_OUTPUT].text))
    return cli_fail(CLI_FAILED, command, "%s", file.message);
  return command_functions[command](&set);
}

static cli_exit run(int argc, char **argv, command_id *command) {
  char message[OPTION_MESSAGE_BYTES] = "";
  option_set set;
  bool handled = true;
  if (!option_parse(&set, COMMAND_TOP, argc, argv, message, sizeof message))
    return cli_fail(CLI_USAGE, COMMAND_TOP, "%s", message);
  const cli_exit result = run_top(&set, &handled);
  if (handled) return result;
  *command = command_find(set.operands[0]);
  if (*command == COMMAND_COUNT) {
    *command = COMMAND_TOP;
    return fail_unknown_command(set.operands[0]);
  }
  return run_command(*command, set.operand_count, set.operands);
}

static bool begin_program(int *argc, char ***argv) {
  if (!os_begin_program(argc, argv)) return false;
  os_on_end(unfinished_files_remove);
  return true;
}

int hs_colmap_main(int argc, char **argv) {
  if (!begin_program(&argc, &argv)) return CLI_FAILED;
  return (int)cli_finish_stdout(COMMAND_TOP, colmap_program_run(argc, argv) == 0 ? CLI_DONE : CLI_FAILED);
}

int hs_command_main(int argc, char **argv) {
  if (!begin_program(&argc, &argv)) return CLI_FAILED;
  command_id command = COMMAND_TOP;
  const cli_exit result = run(argc, argv, &command);
  return (int)cli_finish_stdout(command, result);
}
