/* Writes --help from the option table; see option_table.h. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "pipeline/cli/options/option_table.h"

/* ---- width of a terminal */

enum { COLUMNS_MIN = 10, COLUMNS_MAX = 1000 };

int terminal_columns(FILE *stream) { return os_terminal_columns(stream); }

int terminal_text_columns(FILE *stream) {
  const char *named = getenv("COLUMNS");
  const long wanted = named ? strtol(named, NULL, 10) : 0;
  if (wanted > 0 && wanted <= COLUMNS_MAX) return wanted < COLUMNS_MIN ? COLUMNS_MIN : (int)wanted;
  const int columns = terminal_columns(stream);
  if (columns <= 0 || columns > TERMINAL_COLUMNS_USUAL) return TERMINAL_COLUMNS_USUAL;
  return columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
}

/* ---- pages */

enum { HELP_INDENT = 28, HELP_NARROW_INDENT = 4, HELP_LEFT_BYTES = 256, HELP_NAMES_BYTES = 1024 };

/* Stream and width of a help page. */
typedef struct help_page {
  FILE *out;
  int columns;
  int indent; /* indent of the texts about options and commands; on a narrow terminal they begin on a new line */
} help_page;

static help_page page_of(FILE *out) {
  const int columns = terminal_text_columns(out);
  return (help_page){out, columns, columns < 2 * HELP_INDENT ? HELP_NARROW_INDENT : HELP_INDENT};
}

/* Writes a text wrapped at words. column: current column; indent: column of the following lines. */
static void write_wrapped(const help_page *page, const char *text, int column, int indent) {
  FILE *out = page->out;
  bool first = true;
  while (*text != '\0') {
    const int length = (int)strcspn(text, " ");
    if (!first && column + 1 + length > page->columns) {
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

/* Formats "-o, --output FILE|DIR"; separators vary. */
static int format_option(char *text, size_t bytes, const option_spec *spec) {
  const bool has_letter = spec->letter != 0;
  const bool has_value = spec->argument != NULL;
  const char letter = has_letter ? spec->letter : ' ';
  return snprintf(text, bytes, "%c%c%s --%s%s%s", has_letter ? '-' : ' ', letter, has_letter ? "," : " ", spec->name,
                  has_value ? " " : "", has_value ? spec->argument : "");
}

static void write_help_entry(const help_page *page, const char *left, const char *text) {
  char expanded[OPTION_TEXT_BYTES];
  const int width = (int)strlen(left) + 2;
  fputs("  ", page->out);
  if (width <= page->indent - 2) {
    fprintf(page->out, "%-*s", page->indent - 2, left);
  } else if (width <= page->columns) {
    fprintf(page->out, "%s\n%*s", left, page->indent, "");
  } else {
    write_wrapped(page, left + strspn(left, " "), 2, 2 + HELP_NARROW_INDENT);
    fprintf(page->out, "%*s", page->indent, "");
  }
  write_wrapped(page, option_expand(text, expanded), page->indent, page->indent);
}

static void write_paragraph(const help_page *page, const char *text) {
  char expanded[OPTION_TEXT_BYTES];
  fputc('\n', page->out);
  write_wrapped(page, option_expand(text, expanded), 0, 0);
}

static void write_commands(const help_page *page) {
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    write_help_entry(page, command_get((command_id)id)->name, command_get((command_id)id)->summary);
}

void option_write_commands(FILE *out) {
  const help_page page = page_of(out);
  write_commands(&page);
}

static void write_options(const help_page *page, command_id command) {
  write_paragraph(page, "Options:");
  for (int id = 0; id < OPTION_COUNT; id++) {
    if (!option_belongs_to((option_id)id, command) || option_is_of_extraction((option_id)id, command)) continue;
    char left[HELP_LEFT_BYTES];
    format_option(left, sizeof left, option_get((option_id)id));
    write_help_entry(page, left, option_help((option_id)id, command));
  }
}

/* Lists the options of extraction by their names only. */
static void write_options_of_extraction(const help_page *page, command_id command) {
  char names[HELP_NAMES_BYTES] = "";
  size_t used = 0;
  for (int id = 0; id < OPTION_COUNT; id++)
    if (option_is_of_extraction((option_id)id, command) && used < sizeof names)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", used > 0 ? " " : "",
                               option_get((option_id)id)->name);
  if (used == 0) return;
  write_paragraph(page, "Also the options of extraction ('hartsift help extract' explains them):");
  fputs("  ", page->out);
  write_wrapped(page, names, 2, 2);
}

static void write_examples(const help_page *page, command_id command) {
  size_t next = 0;
  const text_pair *pair = text_next_example(command, &next);
  if (pair) write_paragraph(page, "Examples:");
  for (; pair; pair = text_next_example(command, &next)) write_help_entry(page, pair->name, pair->text);
}

static void write_pairs(const help_page *page, const char *title, const text_pair *pair) {
  write_paragraph(page, title);
  for (; pair->name; pair++) write_help_entry(page, pair->name, pair->text);
}

void option_write_help(FILE *out, command_id command) {
  const command_spec *spec = command_get(command);
  const bool is_top = command == COMMAND_TOP;
  const help_page page = page_of(out);
  char usage[HELP_LEFT_BYTES];
  snprintf(usage, sizeof usage, "Usage: hartsift%s%s%s%s [OPTION...]", is_top ? "" : " ", spec->name,
           spec->operands[0] != '\0' ? " " : "", spec->operands);
  write_wrapped(&page, usage, 0, HELP_NARROW_INDENT);
  for (const char *const *detail = spec->details; *detail; detail++) write_paragraph(&page, *detail);
  if (spec->more[0]) {
    char text[HELP_NAMES_BYTES];
    snprintf(text, sizeof text, "The manual page has the rest: 'man hartsift-%s', or 'hartsift %s --man | man -l -'.",
             spec->name, spec->name);
    write_paragraph(&page, text);
  }
  if (is_top) {
    write_paragraph(&page, "Commands:");
    write_commands(&page);
  }
  write_options(&page, command);
  write_options_of_extraction(&page, command);
  write_examples(&page, command);
  if (!is_top) return;
  write_pairs(&page, "Exit status:", text_exit_statuses);
  write_pairs(&page, "Environment:", text_environment);
}
