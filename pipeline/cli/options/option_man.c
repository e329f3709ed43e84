/*
 * Manual pages from the option table; see option_table.h.
 */
#include <ctype.h>
#include <stdbool.h>

#include "pipeline/cli/options/option_table.h"
#include "pipeline/include/hartsift.h"

/* Writes text for roff: escapes backslash and dash, and protects a dot or quote at the beginning of a line. */
static void write_roff(FILE *out, const char *text) {
  char expanded[OPTION_TEXT_BYTES];
  text = option_expand(text, expanded);
  if (*text == '.' || *text == '\'') fputs("\\&", out);
  for (; *text != '\0'; text++)
    if (*text == '\\')
      fputs("\\e", out);
    else if (*text == '-')
      fputs("\\-", out);
    else
      fputc(*text, out);
}

static void write_roff_line(FILE *out, const char *text) {
  write_roff(out, text);
  fputc('\n', out);
}

static void write_roff_paragraphs(FILE *out, const char *const *paragraphs) {
  for (; *paragraphs; paragraphs++) {
    fprintf(out, ".PP\n");
    write_roff_line(out, *paragraphs);
  }
}

static void write_roff_pair(FILE *out, const text_pair *pair) {
  fprintf(out, ".TP\n.B ");
  write_roff_line(out, pair->name);
  write_roff(out, pair->text);
  fputs(".\n", out);
}

static void write_roff_pairs(FILE *out, const char *title, const text_pair *pairs) {
  fprintf(out, ".SH %s\n", title);
  for (; pairs->name; pairs++) write_roff_pair(out, pairs);
}

static void write_roff_examples(FILE *out, command_id command) {
  size_t next = 0;
  const text_pair *pair = text_next_example(command, &next);
  if (pair) fprintf(out, ".SH EXAMPLES\n");
  for (; pair; pair = text_next_example(command, &next)) write_roff_pair(out, pair);
}

static void write_roff_option(FILE *out, option_id id, command_id command) {
  const option_spec *spec = option_get(id);
  fprintf(out, ".TP\n");
  if (spec->letter != 0) fprintf(out, "\\fB\\-%c\\fR, ", spec->letter);
  fprintf(out, "\\fB\\-\\-");
  write_roff(out, spec->name);
  fprintf(out, "\\fR");
  if (spec->argument) {
    fprintf(out, " \\fI");
    write_roff(out, spec->argument);
    fprintf(out, "\\fR");
  }
  fputc('\n', out);
  write_roff(out, option_help(id, command));
  fputs(".\n", out);
}

/* Writes the options of a command that do not belong to extraction, or those that do. */
static void write_roff_options(FILE *out, command_id command, bool of_extraction) {
  bool first = true;
  for (int id = 0; id < OPTION_COUNT; id++) {
    if (!option_belongs_to((option_id)id, command)) continue;
    if (option_is_of_extraction((option_id)id, command) != of_extraction) continue;
    if (first) fprintf(out, of_extraction ? ".SH OPTIONS OF EXTRACTION\n" : ".SH OPTIONS\n");
    first = false;
    write_roff_option(out, (option_id)id, command);
  }
}

static void write_roff_usage(FILE *out, command_id id) {
  const command_spec *spec = command_get(id);
  fprintf(out, ".B hartsift%s%s\n", id == COMMAND_TOP ? "" : " ", spec->name);
  if (spec->operands[0] != '\0') write_roff_line(out, spec->operands);
  fprintf(out, "[\\fIOPTION\\fR...]\n");
}

static void write_roff_commands(FILE *out) {
  fprintf(out, ".SH COMMANDS\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    const command_spec *spec = command_get((command_id)id);
    fprintf(out, ".TP\n.BR hartsift\\-%s (1)\n", spec->name);
    write_roff(out, spec->summary);
    fputs(".\n", out);
  }
}

static void write_roff_see_also(FILE *out, command_id command) {
  fprintf(out, ".SH SEE ALSO\n.BR hartsift (1)");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    if (id != (int)command) fprintf(out, ",\n.BR hartsift\\-%s (1)", command_get((command_id)id)->name);
  fputc('\n', out);
}

/* Writes "hartsift" or "HARTSIFT\-BATCH". */
static void write_roff_title(FILE *out, command_id command, bool capitals) {
  const char *name = command_get(command)->name;
  fputs(capitals ? "HARTSIFT" : "hartsift", out);
  if (name[0] != '\0') fputs("\\-", out);
  for (; *name != '\0'; name++) fputc(capitals ? toupper((unsigned char)*name) : *name, out);
}

void option_write_man(FILE *out, command_id command) {
  const command_spec *spec = command_get(command);
  const bool is_top = command == COMMAND_TOP;
  fprintf(out, ".TH ");
  write_roff_title(out, command, true);
  fprintf(out, " 1 \"\" \"hartsift %s\" \"User Commands\"\n.SH NAME\n", hs_version_string());
  write_roff_title(out, command, false);
  fprintf(out, " \\- ");
  write_roff_line(out, spec->summary);
  fprintf(out, ".SH SYNOPSIS\n");
  write_roff_usage(out, command);
  fprintf(out, ".SH DESCRIPTION\n");
  write_roff_paragraphs(out, spec->details);
  write_roff_paragraphs(out, spec->more);
  if (is_top) write_roff_commands(out);
  write_roff_options(out, command, false);
  write_roff_options(out, command, true);
  write_roff_pairs(out, "EXIT STATUS", text_exit_statuses);
  write_roff_pairs(out, "ENVIRONMENT", text_environment);
  write_roff_examples(out, command);
  if (!is_top) write_roff_see_also(out, command);
}
