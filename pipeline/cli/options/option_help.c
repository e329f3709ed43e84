/*
 * --help out of the option table; see option_text.h.
 */
#include "pipeline/cli/options/option_text.h"

#include <stdbool.h>
#include <string.h>

enum { HELP_COLUMNS = 80, HELP_INDENT = 28, HELP_LEFT_BYTES = 128, HELP_NAMES_BYTES = 1024 };

/* Writes text wrapped at HELP_COLUMNS; column: of the output so far, indent: of the following lines. */
static void write_wrapped(FILE *out, const char *text, int column, int indent) {
  bool first = true;
  while (*text != '\0') {
    const int length = (int)strcspn(text, " ");
    if (!first && column + 1 + length > HELP_COLUMNS) {
      fprintf(out, "\n%*s", indent, "");
      column = indent;
    } else if (!first) {
      fputc(' ', out);
      column++;
    }
    fprintf(out, "%.*s", length, text);
    column += length;
    text += length;
    text += strspn(text, " ");
    first = false;
  }
  fputc('\n', out);
}

/* "-o, --output FILE|DIR"; the separator between short and long form, and before the argument, vary. */
static int format_option(char *text, size_t bytes, const option_spec *spec) {
  const bool has_letter = spec->letter != 0;
  const bool has_value = spec->argument != NULL;
  const char letter = has_letter ? spec->letter : ' ';
  return snprintf(text, bytes, "%c%c%s --%s%s%s", has_letter ? '-' : ' ', letter, has_letter ? "," : " ", spec->name,
                  has_value ? " " : "", has_value ? spec->argument : "");
}

static void write_help_entry(FILE *out, const char *left, const char *text) {
  int column = fprintf(out, "  %s", left);
  if (column > HELP_INDENT - 2) {
    fputc('\n', out);
    column = 0;
  }
  fprintf(out, "%*s", HELP_INDENT - column, "");
  write_wrapped(out, text, HELP_INDENT, HELP_INDENT);
}

static void write_paragraph(FILE *out, const char *text) {
  fputc('\n', out);
  write_wrapped(out, text, 0, 0);
}

static void write_commands(FILE *out) {
  fprintf(out, "\nCommands:\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    write_help_entry(out, command_get((command_id)id)->name, command_get((command_id)id)->summary);
}

static void write_options(FILE *out, command_id command) {
  fprintf(out, "\nOptions:\n");
  for (int id = 0; id < OPTION_COUNT; id++) {
    if (!option_belongs_to((option_id)id, command) || option_is_of_extraction((option_id)id, command)) continue;
    char left[HELP_LEFT_BYTES];
    format_option(left, sizeof left, option_get((option_id)id));
    write_help_entry(out, left, option_help((option_id)id, command));
  }
}

/* By name only. */
static void write_options_of_extraction(FILE *out, command_id command) {
  char names[HELP_NAMES_BYTES] = "";
  size_t used = 0;
  for (int id = 0; id < OPTION_COUNT; id++)
    if (option_is_of_extraction((option_id)id, command) && used < sizeof names)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", used > 0 ? " " : "",
                               option_get((option_id)id)->name);
  if (used == 0) return;
  fprintf(out, "\nAlso those of extraction ('hartsift help extract' explains them):\n  ");
  write_wrapped(out, names, 2, 2);
}

static void write_examples(FILE *out, command_id command) {
  size_t place = 0;
  const text_pair *pair = text_next_example(command, &place);
  if (pair) fprintf(out, "\nExamples:\n");
  for (; pair; pair = text_next_example(command, &place)) write_help_entry(out, pair->name, pair->text);
}

static void write_pairs(FILE *out, const char *title, const text_pair *pair) {
  fprintf(out, "\n%s:\n", title);
  for (; pair->name; pair++) write_help_entry(out, pair->name, pair->text);
}

void option_write_help(FILE *out, command_id command) {
  const command_spec *spec = command_get(command);
  const bool is_top = command == COMMAND_TOP;
  fprintf(out, "Usage: hartsift%s%s%s%s [OPTION...]\n", is_top ? "" : " ", spec->name,
          spec->operands[0] != '\0' ? " " : "", spec->operands);
  for (const char *const *detail = spec->details; *detail; detail++) write_paragraph(out, *detail);
  if (spec->more[0]) {
    char text[HELP_NAMES_BYTES];
    snprintf(text, sizeof text, "The manual page has the rest: 'man hartsift-%s', or 'hartsift %s --man | man -l -'.",
             spec->name, spec->name);
    write_paragraph(out, text);
  }
  if (is_top) write_commands(out);
  write_options(out, command);
  write_options_of_extraction(out, command);
  write_examples(out, command);
  if (!is_top) return;
  write_pairs(out, "Exit status", text_exit_statuses);
  write_pairs(out, "Environment", text_environment);
}
