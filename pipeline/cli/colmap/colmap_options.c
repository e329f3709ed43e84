/*
 * Options of COLMAP's commands: parsing of the command line and of project files; see colmap_program.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "pipeline/cli/colmap/colmap_program.h"
#include "pipeline/formats/common/text_cursor.h"
#include "pipeline/lifetime/engines.h"

const colmap_option colmap_table[COLMAP_OPTIONS] = {
#define OPTION(id, names_, takes_, ignores_, refuses_, kind_, initial_, note_)                                         \
  [COLMAP_##id] = {.names = names_,                                                                                    \
                   .takes = takes_,                                                                                    \
                   .ignores = ignores_,                                                                                \
                   .refuses = refuses_,                                                                                \
                   .kind = COLMAP_KIND_##kind_,                                                                        \
                   .initial = initial_,                                                                                \
                   .note = note_},
#include "pipeline/cli/colmap/colmap_options.inc"
};

static const struct {
  const char *name, *summary;
} commands[COLMAP_COMMANDS] = {
    [COLMAP_FEATURE_EXTRACTOR] = {"feature_extractor", "SIFT features of the images of a folder, into the database"},
    [COLMAP_FEATURE_IMPORTER] = {"feature_importer", "features of text files, into the database"},
    [COLMAP_EXHAUSTIVE_MATCHER] = {"exhaustive_matcher", "verified matches of all pairs"},
    [COLMAP_SEQUENTIAL_MATCHER] = {"sequential_matcher", "verified matches of neighbours in the order of names"},
    [COLMAP_SPATIAL_MATCHER] = {"spatial_matcher", "verified matches of neighbours by position"},
    [COLMAP_VOCAB_TREE_MATCHER] = {"vocab_tree_matcher", "verified matches of images that look alike"},
    [COLMAP_TRANSITIVE_MATCHER] = {"transitive_matcher", "verified matches of images with a common partner"},
    [COLMAP_MATCHES_IMPORTER] = {"matches_importer", "a list of pairs to match, or of matches"},
    [COLMAP_DATABASE_CREATOR] = {"database_creator", "an empty database"},
};

const char *colmap_command_name(colmap_command command) { return commands[command].name; }
const char *colmap_command_summary(colmap_command command) { return commands[command].summary; }

colmap_command colmap_command_find(const char *name) {
  int command = 0;
  while (command < COLMAP_COMMANDS && strcmp(commands[command].name, name) != 0) command++;
  return (colmap_command)command;
}

colmap_effect colmap_effect_of(colmap_option_id id, colmap_command command) {
  const colmap_option *option = &colmap_table[id];
  if ((option->takes >> command & 1u) != 0) return COLMAP_EFFECT_TAKEN;
  if ((option->ignores >> command & 1u) != 0) return COLMAP_EFFECT_NONE;
  return (option->refuses >> command & 1u) != 0 ? COLMAP_EFFECT_REFUSED : COLMAP_EFFECT_UNKNOWN;
}

/* ------------------------------------------------------------------ names */

/* Returns whether `name`, of `length` bytes, is one of an option's names. */
static bool has_name(const colmap_option *option, const char *name, size_t length) {
  for (const char *at = option->names;;) {
    const size_t span = strcspn(at, "|");
    const bool is_family = at[span - 1] == '*';
    if (is_family ? length >= span - 1 && strncmp(at, name, span - 1) == 0
                  : length == span && strncmp(at, name, length) == 0)
      return true;
    if (at[span] == '\0') return false;
    at += span + 1;
  }
}

/* Returns the option of that name in a command; COLMAP_OPTIONS if there is none. */
static colmap_option_id find_option(colmap_command command, const char *name, size_t length) {
  for (int id = 0; id < COLMAP_OPTIONS; id++)
    if (colmap_effect_of((colmap_option_id)id, command) != COLMAP_EFFECT_UNKNOWN &&
        has_name(&colmap_table[id], name, length))
      return (colmap_option_id)id;
  return COLMAP_OPTIONS;
}

/* ------------------------------------------------------------------ values */

static bool read_flag(const char *text, bool *flag) {
  static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (os_compare_caseless(text, words[i]) != 0) continue;
    *flag = i % 2 == 1;
    return true;
  }
  return false;
}

/* Sets a value from text. Returns false if the text is no value of this kind. */
static bool set_value(colmap_value *value, colmap_kind kind, const char *text) {
  const size_t length = strlen(text);
  char *copy = strdup(text);
  if (!copy) return false;
  free(value->text);
  value->text = copy;
  if (kind == COLMAP_KIND_FLAG) return read_flag(text, &value->flag);
  if (kind == COLMAP_KIND_INTEGER) return length == 0 || number_to_int(text, length, &value->integer);
  return kind == COLMAP_KIND_TEXT || length == 0 || number_to_double(text, length, &value->number);
}

static bool is_initial(colmap_option_id id, const colmap_value *value) {
  const colmap_option *option = &colmap_table[id];
  colmap_value initial = {0};
  bool same = set_value(&initial, option->kind, option->initial);
  switch (option->kind) {
  case COLMAP_KIND_FLAG:
    same = same && initial.flag == value->flag;
    break;
  case COLMAP_KIND_INTEGER:
    same = same && option->initial[0] != '\0' && initial.integer == value->integer;
    break;
  case COLMAP_KIND_NUMBER:
    same = same && initial.number >= value->number && initial.number <= value->number;
    break;
  case COLMAP_KIND_TEXT:
    same = same && os_compare_caseless(initial.text, value->text) == 0;
    break;
  }
  free(initial.text);
  return same;
}

static const char *expected_of(colmap_kind kind) {
  static const char *const texts[] = {[COLMAP_KIND_FLAG] = "0, 1, false or true",
                                      [COLMAP_KIND_INTEGER] = "a whole number",
                                      [COLMAP_KIND_NUMBER] = "a number",
                                      [COLMAP_KIND_TEXT] = "a text"};
  return texts[kind];
}

/* Names of given options that have no effect, for one message. */
typedef struct idle_names {
  char text[1024];
  size_t used;
} idle_names;

static void note_idle(idle_names *idle, const char *name, size_t length) {
  const size_t left = sizeof idle->text - idle->used;
  const int bytes = snprintf(idle->text + idle->used, left, "%s--%.*s", idle->used > 0 ? ", " : "", (int)length, name);
  if (bytes > 0 && (size_t)bytes < left)
    idle->used += (size_t)bytes;
  else
    idle->text[idle->used] = '\0';
}

/* Stores an option's value. COLMAP refuses a repeated option too. An option without effect here can stand for several
   of COLMAP. from: "", or the project file and line of the value, for messages. */
static bool store(colmap_options *options, colmap_option_id id, const char *name, size_t length, const char *text,
                  const char *from, idle_names *idle) {
  colmap_value *value = &options->values[id];
  const colmap_option *option = &colmap_table[id];
  const colmap_effect effect = colmap_effect_of(id, options->command);
  const colmap_setter setter = from[0] != '\0' ? COLMAP_SET_BY_FILE : COLMAP_SET_BY_ARGUMENT;
  const bool same_name = strlen(value->name) == length && strncmp(value->name, name, length) == 0;
  if (value->set_by == setter && (same_name || effect == COLMAP_EFFECT_TAKEN)) {
    cli_error(COMMAND_TOP, "%s--%.*s '%s': the option was given before, as --%s '%s': expected it once", from,
              (int)length, name, text, value->name, value->text);
    return false;
  }
  if (!set_value(value, option->kind, text)) {
    cli_error(COMMAND_TOP, "%s--%.*s '%s': expected %s", from, (int)length, name, text, expected_of(option->kind));
    return false;
  }
  value->set_by = setter;
  snprintf(value->name, sizeof value->name, "%.*s", (int)length, name);
  if (effect == COLMAP_EFFECT_TAKEN || is_initial(id, value)) return true;
  if (effect == COLMAP_EFFECT_NONE) {
    note_idle(idle, name, length);
    return true;
  }
  cli_error(COMMAND_TOP, "%s--%.*s '%s' is not supported: %s; expected %s, or COLMAP itself for this command", from,
            (int)length, name, text, option->note, option->initial[0] != '\0' ? option->initial : "none");
  return false;
}

/* ------------------------------------------------------------------ the command line */

static bool fail_unknown(colmap_command command, const char *name, size_t length) {
  cli_error(COMMAND_TOP, "unknown option --%.*s: '%s -h' lists all", (int)length, name, colmap_command_name(command));
  return false;
}

/* Reads "--NAME=VALUE", or "--NAME" and the next argument. */
static bool read_argument(colmap_options *options, char **argv, int argc, int *at, idle_names *idle) {
  const char *argument = argv[*at];
  const char *name = argument + 2, *equals = strchr(name, '=');
  const size_t length = equals ? (size_t)(equals - name) : strlen(name);
  const colmap_option_id id = find_option(options->command, name, length);
  if (id == COLMAP_OPTIONS) return fail_unknown(options->command, name, length);
  if (!equals && *at + 1 == argc) {
    cli_error(COMMAND_TOP, "--%s needs a value: expected %s", name, expected_of(colmap_table[id].kind));
    return false;
  }
  return store(options, id, name, length, equals ? equals + 1 : argv[++*at], "", idle);
}

static bool read_command_line(colmap_options *options, int argc, char **argv, idle_names *idle) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
      options->wants_help = true;
    } else if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0') {
      cli_error(COMMAND_TOP, "'%s' is no option: expected --NAME VALUE or --NAME=VALUE", argv[i]);
      return false;
    } else if (!read_argument(options, argv, argc, &i, idle)) {
      return false;
    }
  }
  return true;
}

/* ------------------------------------------------------------------ project files */

enum { PROJECT_LINE_BYTES = 8192 };

/* Removes white space at both ends, in place. */
static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
  text[length] = '\0';
  return text;
}

/* Returns whether another command has this option: a project file has the options of all commands. */
static bool is_of_another(const char *name, size_t length) {
  static const char *const groups[] = {"Mapper.",
                                       "BundleAdjustment",
                                       "PatchMatchStereo.",
                                       "StereoFusion.",
                                       "PoissonMeshing.",
                                       "DelaunayMeshing.",
                                       "Render.",
                                       "GlobalMapper.",
                                       "Thread.",
                                       "AdvancingFront",
                                       "MeshTexture",
                                       "MeshSimplification",
                                       "RotationAveraging",
                                       "ViewGraph",
                                       "Caspar",
                                       "Gravity"};
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    if (strncmp(name, groups[i], strlen(groups[i])) == 0) return true;
  for (int command = 0; command < COLMAP_COMMANDS; command++)
    if (find_option((colmap_command)command, name, length) != COLMAP_OPTIONS) return true;
  return strcmp(name, "output_path") == 0 || strcmp(name, "input_path") == 0;
}

/* Reads "NAME = VALUE" of a section. Options of the command line keep their values. */
static bool read_setting(colmap_options *options, const char *section, char *line, const char *from, idle_names *idle) {
  char name[PROJECT_LINE_BYTES];
  char *equals = strchr(line, '=');
  if (!equals) {
    cli_error(COMMAND_TOP, "%s'%.80s': expected NAME=VALUE or [SECTION]", from, line);
    return false;
  }
  *equals = '\0';
  snprintf(name, sizeof name, "%.256s%s%.256s", section, section[0] != '\0' ? "." : "", trim(line));
  const size_t length = strlen(name);
  const colmap_option_id id = find_option(options->command, name, length);
  if (id == COLMAP_OPTIONS && is_of_another(name, length)) return true;
  if (id == COLMAP_OPTIONS) {
    cli_error(COMMAND_TOP, "%s'%s' is no option of COLMAP that hartsift-colmap knows", from, name);
    return false;
  }
  if (options->values[id].set_by == COLMAP_SET_BY_ARGUMENT || id == COLMAP_PROJECT_PATH) return true;
  return store(options, id, name, length, trim(equals + 1), from, idle);
}

static bool read_project_lines(colmap_options *options, FILE *file, const char *path, idle_names *idle) {
  char line[PROJECT_LINE_BYTES], section[PROJECT_LINE_BYTES] = "", from[PROJECT_LINE_BYTES];
  bool done = true;
  for (size_t number = 1; done && fgets(line, sizeof line, file); number++) {
    snprintf(from, sizeof from, "%.4000s:%zu: ", path, number);
    line[strcspn(line, "#")] = '\0'; /* as Boost reads COLMAP's files, a comment may follow a value */
    char *text = trim(line);
    const size_t length = strlen(text);
    if (length == 0 || text[0] == ';') continue;
    if (text[0] == '[' && text[length - 1] == ']') {
      text[length - 1] = '\0';
      snprintf(section, sizeof section, "%s", trim(text + 1));
    } else {
      done = read_setting(options, section, text, from, idle);
    }
  }
  if (done && ferror(file)) {
    cli_error(COMMAND_TOP, "--project_path '%s': cannot be read: %s", path, strerror(errno));
    return false;
  }
  return done;
}

static bool read_project(colmap_options *options, idle_names *idle) {
  const char *path = options->values[COLMAP_PROJECT_PATH].text;
  if (path[0] == '\0') return true;
  FILE *file = os_open_stream(path, "r");
  if (!file) {
    cli_error(COMMAND_TOP, "--project_path '%s': cannot be opened: %s", path, strerror(errno));
    return false;
  }
  const bool done = read_project_lines(options, file, path, idle);
  (void)fclose(file);
  return done;
}

/* ------------------------------------------------------------------ checks of values */

bool colmap_expect(const colmap_value *value, bool is_right, const char *what) {
  if (!is_right) cli_error(COMMAND_TOP, "--%s '%s': expected %s", value->name, value->text, what);
  return is_right;
}

bool colmap_expect_integer(const colmap_value *value, int64_t least, int64_t most, int32_t *result) {
  char what[96];
  snprintf(what, sizeof what, "a whole number from %" PRId64 " to %" PRId64, least, most);
  if (!colmap_expect(value, value->integer >= least && value->integer <= most, what)) return false;
  *result = (int32_t)value->integer;
  return true;
}

bool colmap_expect_number(const colmap_value *value, double least, double most) {
  char what[96];
  snprintf(what, sizeof what, "a number from %.4g to %.4g", least, most);
  return colmap_expect(value, value->number >= least && value->number <= most, what);
}

/* ------------------------------------------------------------------ the whole */

static bool has_required(const colmap_options *options) {
  static const colmap_option_id required[] = {COLMAP_DATABASE_PATH, COLMAP_IMAGE_PATH, COLMAP_IMPORT_PATH,
                                              COLMAP_MATCH_LIST};
  for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
    const colmap_option_id id = required[i];
    if (colmap_effect_of(id, options->command) != COLMAP_EFFECT_TAKEN || options->values[id].text[0] != '\0') continue;
    cli_error(COMMAND_TOP, "the option '--%s' is required but missing: expected %s", colmap_table[id].names,
              colmap_table[id].note);
    return false;
  }
  return true;
}

bool colmap_options_parse(colmap_options *options, colmap_command command, int argc, char **argv) {
  idle_names idle = {.used = 0};
  *options = (colmap_options){.command = command};
  for (int id = 0; id < COLMAP_OPTIONS; id++) {
    const colmap_option *option = &colmap_table[id];
    colmap_value *value = &options->values[id];
    snprintf(value->name, sizeof value->name, "%.*s", (int)strcspn(option->names, "|"), option->names);
    if (set_value(value, option->kind, option->initial)) continue;
    cli_error(COMMAND_TOP, "out of memory for the options");
    return false;
  }
  if (!read_command_line(options, argc, argv, &idle)) return false;
  if (options->wants_help) return true;
  if (!read_project(options, &idle) || !has_required(options)) return false;
  if (idle.used > 0) cli_note("without effect here: %s", idle.text);
  return true;
}

void colmap_options_free(colmap_options *options) {
  for (int id = 0; id < COLMAP_OPTIONS; id++) free(options->values[id].text);
}

/* ------------------------------------------------------------------ GPUs */

/* Reads GPU numbers, "0,1"; "-1" and an empty text mean all GPUs, a count of 0. Each number must be below `end`. A
   number that is there already is left out: COLMAP starts one more thread for it. */
static bool read_gpus(const char *text, int64_t end, colmap_gpus *gpus) {
  if (strcmp(text, "-1") == 0 || text[0] == '\0') return true;
  for (;;) {
    const size_t span = strcspn(text, ",");
    int64_t number;
    if (!number_to_int(text, span, &number) || number < 0 || number >= end) return false;
    int32_t at = 0;
    while (at < gpus->count && gpus->each[at] != number) at++;
    if (at == COLMAP_GPUS_MAX) return false;
    if (at == gpus->count) gpus->each[gpus->count++] = (int32_t)number;
    if (text[span] == '\0') return true;
    text += span + 1;
  }
}

bool colmap_choose_gpus(const colmap_value *use_gpu, const colmap_value *gpu_index, colmap_gpus *gpus) {
  char reason[512] = "";
  *gpus = (colmap_gpus){.count = 0};
  if (!use_gpu->flag) return true;
  if (!colmap_expect(gpu_index, read_gpus(gpu_index->text, INT32_MAX, gpus),
                     "-1, or numbers of GPUs with commas between"))
    return false;
  if (gpus->count == 1) cli_hide_other_gpus(gpus->each[0]);
  const int32_t usable = engine_count_devices(reason, sizeof reason);
  *gpus = (colmap_gpus){.count = 0};
  if (usable == 0) {
    cli_note("no GPU is usable (%s): the CPU does the work", reason);
    return true;
  }
  char what[96];
  snprintf(what, sizeof what, "-1, or numbers of GPUs below %d with commas between", (int)usable);
  if (!colmap_expect(gpu_index, read_gpus(gpu_index->text, usable, gpus), what)) return false;
  const bool is_all = gpus->count == 0;
  for (int32_t i = 0; is_all && i < usable && i < COLMAP_GPUS_MAX; i++) gpus->each[gpus->count++] = i;
  return true;
}
