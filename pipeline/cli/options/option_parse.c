/*
 * Parsing of the command line with getopt_long, driven by the option table; see option_table.h. Messages name the
 * option as the user typed it, and the expected value.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "pipeline/cli/options/option_table.h"
#include "pipeline/include/hartsift.h"

/* ---- suggestions for unknown names */

enum { NAME_BYTES = 32 };

static size_t min2(size_t a, size_t b) { return a < b ? a : b; }

/* Returns the edit distance: insertions, deletions, replacements and transpositions (Damerau 1964). Names that are too
   long count as far apart. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  size_t rows[3][NAME_BYTES + 1];
  if (a_length > NAME_BYTES || b_length > NAME_BYTES) return NAME_BYTES;
  for (size_t k = 0; k <= b_length; k++) rows[0][k] = k;
  for (size_t i = 1; i <= a_length; i++) {
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t k = 1; k <= b_length; k++) {
      row[k] = min2(min2(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) row[k] = min2(row[k], above_that[k - 2] + 1);
    }
  }
  return rows[a_length % 3][b_length];
}

/* Replaces *best by `name` if that is closer to the typed word. */
static void compare(const char *typed, size_t length, const char *name, const char **best, size_t *best_distance) {
  const size_t distance = edit_distance(typed, length, name, strlen(name));
  /* if more than a third of the letters differ, it is another word */
  if (distance < *best_distance && 3 * distance <= length + 1) {
    *best = name;
    *best_distance = distance;
  }
}

static void write_suggestion(const char *best, const char *dashes, char *text, size_t bytes) {
  text[0] = '\0';
  if (best) snprintf(text, bytes, ", did you mean '%s%s'?", dashes, best);
}

void suggest_command(const char *typed, char *text, size_t bytes) {
  const char *best = NULL;
  size_t distance = NAME_BYTES;
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    compare(typed, strlen(typed), command_get((command_id)id)->name, &best, &distance);
  compare(typed, strlen(typed), "help", &best, &distance);
  compare(typed, strlen(typed), "version", &best, &distance);
  write_suggestion(best, "", text, bytes);
}

void suggest_option(command_id command, const char *typed, size_t length, char *text, size_t bytes) {
  const char *best = NULL;
  size_t distance = NAME_BYTES;
  for (int id = 0; id < OPTION_COUNT; id++)
    if (option_belongs_to((option_id)id, command))
      compare(typed, length, option_get((option_id)id)->name, &best, &distance);
  write_suggestion(best, "--", text, bytes);
}

/* Values that getopt_long returns for long options, beyond the range of letters. */
enum { OPTION_FIRST_CODE = 256 };

__attribute__((format(printf, 3, 4))) static bool option_fail(char *message, size_t bytes, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, bytes, format, arguments);
  va_end(arguments);
  return false;
}

/* Parses decimal digits with an optional sign. strtoll would also accept leading blanks and an empty text. */
static bool parse_whole(const char *text, int64_t low, int64_t high, int64_t *value) {
  const char *digits = text[0] == '-' || text[0] == '+' ? text + 1 : text;
  if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0') return false;
  errno = 0;
  *value = strtoll(text, NULL, 10);
  return errno == 0 && *value >= low && *value <= high;
}

/* Parses a decimal number. strtod would also accept "nan", "inf" and hexadecimal numbers. */
static bool parse_real(const char *text, double low, double high, double *value) {
  if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') return false;
  char *end = NULL;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value >= low && *value <= high;
}

static bool parse_unsigned(const char *text, bool suffix_allowed, uint64_t *value) {
  const size_t digits = strspn(text, "0123456789");
  if (digits == 0) return false;
  errno = 0;
  *value = strtoull(text, NULL, 10);
  if (errno != 0) return false;
  const char *suffix = text + digits;
  if (suffix[0] == '\0') return true;
  static const char suffixes[] = "KkMmGg";
  const char *found = suffix_allowed && suffix[1] == '\0' ? strchr(suffixes, suffix[0]) : NULL;
  if (!found) return false;
  const unsigned shift = 10u * ((unsigned)(found - suffixes) / 2u + 1u);
  if (*value > UINT64_MAX >> shift) return false;
  *value <<= shift;
  return true;
}

static bool parse_choice(const char *text, const char *choices, int64_t *index) {
  const size_t length = strlen(text);
  *index = 0;
  for (const char *choice = choices; length > 0; (*index)++) {
    const size_t span = strcspn(choice, "|");
    if (span == length && strncmp(choice, text, length) == 0) return true;
    if (choice[span] == '\0') break;
    choice += span + 1;
  }
  return false;
}

static bool parse_device(const char *text, option_value *value) {
  static const char gpu_prefix[] = "cuda:";
  int64_t index = 0;
  value->numbers[0] = 0;
  if (strncmp(text, gpu_prefix, sizeof gpu_prefix - 1) == 0) {
    const char *number = text + sizeof gpu_prefix - 1;
    if (number[0] == '+' || !parse_whole(number, 0, INT32_MAX, &index)) return false;
    value->integer = HS_DEVICE_CUDA;
    value->numbers[0] = (int32_t)index;
    return true;
  }
  return parse_choice(text, "auto|cpu|cuda|hybrid", &value->integer);
}

static bool parse_region(const char *text, int32_t numbers[4]) {
  for (int i = 0; i < 4; i++) {
    char part[16];
    const size_t span = strcspn(text, ",");
    int64_t number = 0;
    if (span >= sizeof part || text[span] != (i < 3 ? ',' : '\0')) return false;
    memcpy(part, text, span);
    part[span] = '\0';
    if (!parse_whole(part, i < 2 ? 0 : 1, INT32_MAX, &number)) return false;
    numbers[i] = (int32_t)number;
    text += span + 1;
  }
  return true;
}

/* Parses WxH. */
static bool parse_size(const char *text, int64_t high, int32_t numbers[4]) {
  char first[16];
  int64_t width = 0;
  int64_t height = 0;
  const size_t span = strspn(text, "0123456789");
  if (span >= sizeof first || text[span] != 'x' || text[span + 1] == '+') return false;
  memcpy(first, text, span);
  first[span] = '\0';
  if (!parse_whole(first, 1, high, &width) || !parse_whole(text + span + 1, 1, high, &height)) return false;
  numbers[0] = (int32_t)width;
  numbers[1] = (int32_t)height;
  return true;
}

/* Parses LOW:HIGH. */
static bool parse_range(const char *text, const option_spec *spec, option_value *value) {
  char first[32];
  const size_t span = strcspn(text, ":");
  if (span >= sizeof first || text[span] != ':') return false;
  memcpy(first, text, span);
  first[span] = '\0';
  return parse_real(first, spec->low, spec->high, &value->number) &&
         parse_real(text + span + 1, spec->low, spec->high, &value->high) && value->number < value->high &&
         (float)value->number < (float)value->high;
}

/* True if every part between commas has the form NAME=VALUE. */
static bool pairs_are_valid(const char *text) {
  for (;;) {
    const size_t span = strcspn(text, ",");
    const size_t name = strcspn(text, "=,");
    const size_t value = name < span ? strcspn(text + name + 1, "=,") : 0;
    if (name == 0 || value == 0 || name + 1 + value != span) return false;
    if (text[span] == '\0') return true;
    text += span + 1;
  }
}

static bool append_pairs(option_set *set, const char *text) {
  const size_t used = strlen(set->pairs);
  const size_t bytes = sizeof set->pairs - used;
  const int length = snprintf(set->pairs + used, bytes, "%s%s", used > 0 ? "," : "", text);
  return length >= 0 && (size_t)length < bytes;
}

static bool parse_value(option_set *set, const option_spec *spec, const char *text, option_value *value) {
  switch (spec->kind) {
  case OPTION_KIND_FLAG:
    value->integer = 1;
    return true;
  case OPTION_KIND_TEXT:
    return text[0] != '\0';
  case OPTION_KIND_CHOICE:
    return parse_choice(text, spec->choices, &value->integer);
  case OPTION_KIND_INTEGER:
    return parse_whole(text, (int64_t)spec->low, (int64_t)spec->high, &value->integer);
  case OPTION_KIND_AUTO:
    value->integer = 0;
    return strcmp(text, "auto") == 0 || parse_whole(text, (int64_t)spec->low, (int64_t)spec->high, &value->integer);
  case OPTION_KIND_NUMBER:
    return parse_real(text, spec->low, spec->high, &value->number);
  case OPTION_KIND_COUNT:
    return parse_unsigned(text, false, &value->count);
  case OPTION_KIND_BYTES:
    return parse_unsigned(text, true, &value->count);
  case OPTION_KIND_DEVICE:
    return parse_device(text, value);
  case OPTION_KIND_SIZE:
    return parse_size(text, (int64_t)spec->high, value->numbers);
  case OPTION_KIND_REGION:
    return parse_region(text, value->numbers);
  case OPTION_KIND_RANGE:
    return parse_range(text, spec, value);
  case OPTION_KIND_PAIRS:
    return pairs_are_valid(text) && append_pairs(set, text);
  }
  return false;
}

bool option_store(option_set *set, option_id id, const char *text, char *message, size_t message_bytes) {
  const option_spec *spec = option_get(id);
  option_value value = set->values[id];
  if (!parse_value(set, spec, text, &value)) {
    char expected[OPTION_EXPECTED_BYTES];
    option_describe_expected(spec, expected, sizeof expected);
    return option_fail(message, message_bytes, "--%s '%s': expected %s", spec->name, text, expected);
  }
  value.is_set = true;
  value.text = text;
  set->values[id] = value;
  return true;
}

/* The two tables of getopt_long for a command. */
typedef struct getopt_tables {
  struct option longs[OPTION_COUNT + 1];
  char letters[2 * OPTION_COUNT + 3];
} getopt_tables;

static void make_getopt_tables(command_id command, getopt_tables *tables) {
  size_t longs = 0;
  size_t letters = 0;
  memset(tables, 0, sizeof *tables);
  /* '+': stop at the subcommand, whose options follow. ':': report missing values separately */
  if (command == COMMAND_TOP) tables->letters[letters++] = '+';
  tables->letters[letters++] = ':';
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (!option_belongs_to((option_id)id, command)) continue;
    const bool has_value = spec->kind != OPTION_KIND_FLAG;
    tables->longs[longs++] = (struct option){
        .name = spec->name, .has_arg = has_value ? required_argument : no_argument, .val = OPTION_FIRST_CODE + id};
    if (spec->letter != 0) {
      tables->letters[letters++] = spec->letter;
      if (has_value) tables->letters[letters++] = ':';
    }
  }
}

static int option_of_code(int code) {
  if (code >= OPTION_FIRST_CODE) return code - OPTION_FIRST_CODE;
  for (int id = 0; id < OPTION_COUNT; id++)
    if (option_get((option_id)id)->letter == code && code != 0) return id;
  return OPTION_COUNT;
}

/* Writes the message for an unknown option. typed: the argument at which getopt_long stopped. */
static bool fail_unknown(command_id command, const char *typed, char *message, size_t bytes) {
  const size_t length = strcspn(typed, "=");
  int matches = 0;
  char names[OPTION_EXPECTED_BYTES] = "";
  for (int id = 0; id < OPTION_COUNT && length > 2 && typed[1] == '-'; id++) {
    const char *name = option_get((option_id)id)->name;
    if (option_belongs_to((option_id)id, command) && strncmp(name, typed + 2, length - 2) == 0) {
      const size_t used = strlen(names);
      snprintf(names + used, sizeof names - used, "%s--%s", matches > 0 ? ", " : "", name);
      matches++;
    }
  }
  if (matches > 1)
    return option_fail(message, bytes, "%.*s is ambiguous: expected one of %s", (int)length, typed, names);
  const char *name = command_get(command)->name;
  char suggestion[OPTION_EXPECTED_BYTES] = "";
  if (length > 2) suggest_option(command, typed + 2, length - 2, suggestion, sizeof suggestion);
  return option_fail(message, bytes, "unknown option %.*s%s 'hartsift %s%s--help' lists all", (int)length, typed,
                     suggestion[0] != '\0' ? suggestion : ":", name, name[0] != '\0' ? " " : "");
}

static bool fail_getopt(command_id command, int code, char *const *argv, char *message, size_t bytes) {
  const int id = option_of_code(optopt);
  const bool known = id < OPTION_COUNT && option_belongs_to((option_id)id, command);
  /* some C libraries return ':' for a value that is not expected, too */
  if (known && code == ':' && option_get((option_id)id)->kind != OPTION_KIND_FLAG) {
    char expected[OPTION_EXPECTED_BYTES];
    option_describe_expected(option_get((option_id)id), expected, sizeof expected);
    return option_fail(message, bytes, "--%s needs a value: expected %s", option_get((option_id)id)->name, expected);
  }
  if (known) return option_fail(message, bytes, "--%s takes no value", option_get((option_id)id)->name);
  if (optopt != 0) {
    const char letter[] = {'-', (char)optopt, '\0'};
    return fail_unknown(command, letter, message, bytes);
  }
  return fail_unknown(command, argv[optind - 1], message, bytes);
}

static bool check_operands(const option_set *set, char *message, size_t bytes) {
  const command_spec *command = command_get(set->command);
  if (set->values[OPTION_HELP].is_set || set->values[OPTION_MAN].is_set || set->command == COMMAND_TOP) return true;
  if (set->operand_count < command->least_operands)
    return option_fail(message, bytes, "an operand is missing: expected %s", command->operands);
  if (command->most_operands >= 0 && set->operand_count > command->most_operands) {
    const char *first_extra = set->operands[command->most_operands];
    return option_fail(message, bytes, "'%s' is one operand too many: expected %s%s%s", first_extra,
                       command->most_operands > 0 ? command->operands : "none", command->instead ? "; " : "",
                       command->instead != NULL ? command->instead : "");
  }
  for (int i = 0; i < set->operand_count; i++)
    if (set->operands[i][0] == '\0')
      return option_fail(message, bytes, "an operand is empty: expected %s", command->operands);
  return true;
}

/* Refuses options that exclude each other. */
static bool check_opposites(const option_set *set, char *message, size_t bytes) {
  static const option_id opposites[][2] = {{OPTION_EXIF, OPTION_NO_EXIF},
                                           {OPTION_MASK, OPTION_MASKS},
                                           {OPTION_MUTUAL, OPTION_NO_MUTUAL},
                                           {OPTION_VERIFY, OPTION_NO_VERIFY}};
  for (size_t i = 0; i < sizeof opposites / sizeof opposites[0]; i++) {
    const option_id one = opposites[i][0], other = opposites[i][1];
    if (set->values[one].is_set && set->values[other].is_set) {
      return option_fail(message, bytes, "--%s and --%s: expected one of them", option_get(one)->name,
                         option_get(other)->name);
    }
  }
  return true;
}

/* Refuses options that need another one. */
static bool check_companions(const option_set *set, char *message, size_t bytes) {
  static const option_id companions[][2] = {
      {OPTION_DSP_SIZES, OPTION_DSP}, {OPTION_DSP_SMALLEST, OPTION_DSP}, {OPTION_DSP_LARGEST, OPTION_DSP}};
  for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
    const option_id one = companions[i][0], other = companions[i][1];
    if (set->values[one].is_set && !set->values[other].is_set)
      return option_fail(message, bytes, "--%s needs --%s", option_get(one)->name, option_get(other)->name);
  }
  return true;
}

bool option_parse(option_set *set, command_id command, int argc, char **argv, char *message, size_t message_bytes) {
  getopt_tables tables;
  make_getopt_tables(command, &tables);
  memset(set, 0, sizeof *set);
  set->command = command;
  opterr = 0;
  optind = 0; /* 0 instead of 1 also resets the state of an earlier scan in the C library */
  for (;;) {
    const int code = getopt_long(argc, argv, tables.letters, tables.longs, NULL);
    if (code == -1) break;
    if (code == '?' || code == ':') return fail_getopt(command, code, argv, message, message_bytes);
    if (!option_store(set, (option_id)option_of_code(code), optarg ? optarg : "", message, message_bytes)) return false;
  }
  set->operands = argv + optind;
  set->operand_count = argc - optind;
  return check_operands(set, message, message_bytes) && check_opposites(set, message, message_bytes) &&
         check_companions(set, message, message_bytes);
}
