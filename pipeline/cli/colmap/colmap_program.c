/*
 * The program hartsift-colmap: runs the commands that hartsift replaces, and passes the others to COLMAP; see
 * colmap_program.h.
 */
#include "pipeline/cli/colmap/colmap_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"

/* Newest version of COLMAP whose options the table contains. It is reported if there is no COLMAP. */
static const char newest_known[] = "4.2";

/* Environment variable with the programs by which this process was started, one per line, so that two copies of this
 * program do not start each other. */
static const char tried_variable[] = "HARTSIFT_COLMAP_TRIED";

/* ------------------------------------------------------------------ finding COLMAP */

enum { PATH_BYTES = 4096, LINE_BYTES = 256 };

static bool was_tried(const char *path) {
  const char *tried = os_variable(tried_variable);
  const size_t length = strlen(path);
  for (const char *at = tried; at && *at != '\0';) {
    const size_t span = strcspn(at, "\n");
    if (span == length && strncmp(at, path, span) == 0) return true;
    at += span + (at[span] == '\n');
  }
  return false;
}

static void note_tried(const char *path) {
  const char *tried = os_variable(tried_variable);
  char *text = cli_join(path, "\n", tried ? tried : "");
  if (text) os_set_variable(tried_variable, text, true);
  free(text);
}

/* Returns whether the path is a program that can be started and is neither this one nor the wheel's script that starts
   it. */
static bool is_other_program(const char *path) {
  os_info info;
  const char *script = os_variable("HARTSIFT_COLMAP_SCRIPT");
  if (!os_info_of(path, &info) || info.kind != OS_REGULAR || !os_may(path, OS_MAY_RUN) || was_tried(path)) return false;
  return !os_is_this_program(path) && !(script && cli_is_same_file(path, script));
}

/* Finds a program in PATH. */
static bool find_in_path(const char *name, char path[PATH_BYTES]) {
  const char *folders = os_variable("PATH");
  for (const char *at = folders; at && *at != '\0';) {
    const size_t span = strcspn(at, OS_PATH_SEPARATOR);
    const int length =
        snprintf(path, PATH_BYTES, "%.*s%s%s" OS_PROGRAM_ENDING, (int)span, at, span > 0 ? "/" : "./", name);
    if (length > 0 && length < PATH_BYTES && is_other_program(path)) return true;
    at += span + (at[span] == OS_PATH_SEPARATOR[0]);
  }
  return false;
}

typedef enum backend_kind { BACKEND_NONE, BACKEND_COLMAP, BACKEND_PYCOLMAP, BACKEND_WRONG } backend_kind;

/* Finds COLMAP and the path of its program. */
static backend_kind find_colmap(char path[PATH_BYTES]) {
  const char *named = os_variable("HARTSIFT_COLMAP");
  snprintf(path, PATH_BYTES, "%s", named ? named : "");
  os_normalise_path(path);
  if (path[0] == '\0' || was_tried(path)) return find_in_path("colmap", path) ? BACKEND_COLMAP : BACKEND_NONE;
  if (strcmp(path, "pycolmap") == 0) return BACKEND_PYCOLMAP;
  const bool found = strchr(path, '/') ? is_other_program(path) : find_in_path(named, path);
  return found ? BACKEND_COLMAP : BACKEND_WRONG;
}

/* ------------------------------------------------------------------ pycolmap */

static const char *python_name(void) {
  const char *named = os_variable("HARTSIFT_PYTHON");
  return named && named[0] != '\0' ? named : OS_PYTHON;
}

/* Finds the folder of the package. It is not imported, which takes time, and not searched in the current folder. */
#define FIND_PACKAGES                                                                                                  \
  "import os, sys, importlib.util as u\n"                                                                              \
  "sys.path = [path for path in sys.path if path]\n"                                                                   \
  "package = u.find_spec('hartsift') if u.find_spec('pycolmap') else None\n"

/* Gets pycolmap's version. Returns false if pycolmap or the Python package hartsift is missing. */
static bool find_pycolmap(char *version, size_t bytes) {
  static const char script[] = FIND_PACKAGES "if not package: sys.exit(1)\n"
                                             "import importlib.metadata as m\n"
                                             "for name in ('pycolmap', 'pycolmap-cuda12', 'pycolmap-cuda'):\n"
                                             "  try: sys.exit(print(m.version(name)))\n"
                                             "  except m.PackageNotFoundError: pass\n"
                                             "print('4.2')\n";
  char *argv[] = {(char *)(uintptr_t)python_name(), (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL};
  if (!os_read_program(argv, version, bytes)) return false;
  version[strcspn(version, " \r\n")] = '\0';
  return version[0] != '\0';
}

/* Runs colmap_commands.py of the Python package. Its arguments are the text to print if packages are missing, the
 * command, and the command's options.
 */
static int pass_to_pycolmap(char **argv) {
  static const char script[] = FIND_PACKAGES
      "message = sys.argv.pop(1)\n"
      "if not package or not package.origin: sys.exit(message)\n"
      "import runpy\n"
      "runpy.run_path(os.path.join(os.path.dirname(package.origin), 'colmap_commands.py'), run_name='__main__')\n";
  char message[CLI_MESSAGE_BYTES];
  size_t count = 0;
  while (argv[count]) count++;
  char **all = calloc(count + 4, sizeof *all);
  if (!all) return 1;
  snprintf(
      message, sizeof message,
      "hartsift-colmap: '%.64s' needs COLMAP, and neither a program colmap nor pycolmap was found: install COLMAP (apt "
      "install colmap), or 'pip install hartsift pycolmap', or name COLMAP's program by HARTSIFT_COLMAP",
      argv[1]);
  all[0] = (char *)(uintptr_t)python_name();
  all[1] = (char *)(uintptr_t) "-c";
  all[2] = (char *)(uintptr_t)script;
  all[3] = message;
  memcpy(all + 4, argv + 1, count * sizeof *all); /* copies the null at the end too */
  fflush(stdout);
  os_replace_program(all[0], all);
  if (os_variable("HARTSIFT_PYTHON") && errno != 0)
    cli_error(COMMAND_TOP, "HARTSIFT_PYTHON '%s': cannot be started: %s", all[0], strerror(errno));
  else
    fprintf(stderr, "%s\n", message);
  free(all);
  return 1;
}

int colmap_pass_on(char **argv) {
  char path[PATH_BYTES];
  const backend_kind kind = find_colmap(path);
  if (kind == BACKEND_WRONG) {
    cli_error(COMMAND_TOP, "HARTSIFT_COLMAP '%s': expected another program that can be started, or pycolmap",
              os_variable("HARTSIFT_COLMAP"));
    return 1;
  }
  if (kind != BACKEND_COLMAP) return pass_to_pycolmap(argv);
  note_tried(path);
  argv[0] = path;
  fflush(stdout);
  os_replace_program(path, argv);
  cli_error(COMMAND_TOP, "%s: cannot be started: %s", path, strerror(errno));
  return 1;
}

/* ------------------------------------------------------------------ version and help */

/* Reads the version from the line "COLMAP VERSION ..." that a program colmap prints. */
static bool version_of(char *path, char *version, size_t bytes) {
  char text[8192];
  char *argv[] = {path, "-h", NULL};
  note_tried(path);
  if (!os_read_program(argv, text, sizeof text)) return false;
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, "COLMAP ", 7) != 0) continue;
    const size_t span = strspn(line + 7, "0123456789.");
    snprintf(version, bytes, "%.*s", (int)span, line + 7);
    return span > 0;
  }
  return false;
}

void colmap_backend(char *version, size_t version_bytes, char *phrase, size_t phrase_bytes) {
  char path[PATH_BYTES];
  const backend_kind kind = find_colmap(path);
  if (kind == BACKEND_COLMAP && version_of(path, version, version_bytes)) {
    snprintf(phrase, phrase_bytes, "other commands by %s", path);
    return;
  }
  if (kind != BACKEND_COLMAP && kind != BACKEND_WRONG && find_pycolmap(version, version_bytes)) {
    snprintf(phrase, phrase_bytes, "other commands by pycolmap, as far as it has them");
    return;
  }
  snprintf(version, version_bytes, "%s", newest_known);
  snprintf(phrase, phrase_bytes, "no COLMAP for other commands");
}

/* Scripts read COLMAP's version as the second word of the first line, and choose options and commands by it. */
static void write_version(void) {
  char version[LINE_BYTES], phrase[PATH_BYTES + LINE_BYTES];
  colmap_backend(version, sizeof version, phrase, sizeof phrase);
  printf("COLMAP %s -- command line, by hartsift-colmap %s: features and matches by hartsift, %s\n", version,
         hs_version_string(), phrase);
}

static void write_help(void) {
  write_version();
  printf("\nUsage:\n  hartsift-colmap [command] [options]\n\nBy hartsift ('COMMAND -h' lists the options):\n");
  for (int command = 0; command < COLMAP_COMMANDS; command++)
    printf("  %-20s %s\n", colmap_command_name((colmap_command)command),
           colmap_command_summary((colmap_command)command));
  printf("  %-20s %s\n", "options", "the table of all these options: taken, without effect, refused");
  printf("  %-20s %s\n", "man", "the manual page");
  printf("\nOther commands, such as mapper, bundle_adjuster, image_undistorter and model_converter, go to COLMAP: "
         "HARTSIFT_COLMAP,\nelse colmap in PATH, else pycolmap.\n");
}

/* ------------------------------------------------------------------ commands */

static cli_exit run_own(colmap_command command, const colmap_options *options) {
  switch (command) {
  case COLMAP_FEATURE_EXTRACTOR:
    return colmap_extract(options);
  case COLMAP_FEATURE_IMPORTER:
    return colmap_import_features(options);
  case COLMAP_DATABASE_CREATOR:
    return colmap_create_database(options);
  default:
    return colmap_match(options);
  }
}

static int run_command(colmap_command command, int argc, char **argv) {
  char program[64];
  colmap_options options;
  snprintf(program, sizeof program, "hartsift-colmap %s", colmap_command_name(command));
  cli_name_program(program);
  cli_exit result = colmap_options_parse(&options, command, argc, argv) ? CLI_DONE : CLI_FAILED;
  if (result == CLI_DONE && options.wants_help)
    colmap_write_help(stdout, command);
  else if (result == CLI_DONE)
    result = run_own(command, &options);
  colmap_options_free(&options);
  cli_name_program("hartsift-colmap");
  return result == CLI_DONE ? 0 : 1;
}

int colmap_program_run(int argc, char **argv) {
  static const char *const help_words[] = {"help", "-h", "--help"}, *const version_words[] = {"version", "-v",
                                                                                              "--version"};
  cli_name_program("hartsift-colmap");
  const char *word = argc > 1 ? argv[1] : "help";
  for (size_t i = 0; i < 3; i++) {
    if (strcmp(word, help_words[i]) == 0) {
      write_help();
      return 0;
    }
    if (strcmp(word, version_words[i]) == 0) {
      write_version();
      return 0;
    }
  }
  if (strcmp(word, "options") == 0 || strcmp(word, "man") == 0) {
    (word[0] == 'm' ? colmap_write_man : colmap_write_options)(stdout);
    return 0;
  }
  const colmap_command command = colmap_command_find(word);
  if (command == COLMAP_COMMANDS) return colmap_pass_on(argv);
  return run_command(command, argc - 1, argv + 1);
}
