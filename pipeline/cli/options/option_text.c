/*
 * Help, man page and shell completions out of the option table; see option_text.h.
 */
#include "pipeline/cli/options/option_text.h"

#include <stdbool.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 28, HELP_LEFT_BYTES = 128 };

typedef struct text_pair {
  const char *name, *text;
} text_pair;

static const text_pair exit_statuses[] = {
    {"0", "all done"},
    {"1", "some input failed: each is named with its reason, the others are done"},
    {"2", "wrong usage: the message says which option and what was expected"},
    {"3", "the device asked for is not usable: the message says why"},
};

static const text_pair environment[] = {
    {"HARTSIFT_CPU", "ref, sse2, avx2, avx512, avx512vnni or neon: use no better instruction set than this"},
    {"HARTSIFT_DEVICE", "auto, cpu, cuda:N or hybrid: what --device auto may use"},
};

static const text_pair examples[] = {
    {"hartsift extract photo.jpg > photo.csv", "the features of one photo as CSV"},
    {"hartsift extract *.jpg -o features/ --format colmap", "one text file an image for COLMAP"},
    {"hartsift match one.jpg two.jpg --verify homography", "matches of two photos, and which of them agree"},
    {"hartsift extract *.jpg -o database.db --profile colmap", "all photos into a database of COLMAP"},
    {"hartsift match --database database.db", "match and verify them there: colmap mapper runs next"},
    {"hartsift draw photo.jpg --max-features 500 -o keypoints.png", "a picture of the 500 strongest"},
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

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

static void write_help_pairs(FILE *out, const char *title, const text_pair *pairs, size_t count) {
  fprintf(out, "\n%s:\n", title);
  for (size_t i = 0; i < count; i++) write_help_entry(out, pairs[i].name, pairs[i].text);
}

static void write_usage_line(FILE *out, command_id id) {
  const command_spec *command = command_get(id);
  fprintf(out, "hartsift%s%s%s%s [OPTION...]\n", command->name[0] != '\0' ? " " : "", command->name,
          command->operands[0] != '\0' ? " " : "", command->operands);
}

void option_write_help(FILE *out, command_id command) {
  fprintf(out, "Usage: ");
  write_usage_line(out, command);
  for (const char *const *detail = command_get(command)->details; *detail; detail++) {
    fputc('\n', out);
    write_wrapped(out, *detail, 0, 0);
  }
  if (command == COMMAND_TOP) {
    fprintf(out, "\nCommands:\n");
    for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
      write_help_entry(out, command_get((command_id)id)->name, command_get((command_id)id)->summary);
  }
  fprintf(out, "\nOptions:\n");
  for (int id = 0; id < OPTION_COUNT; id++) {
    if (option_belongs_to((option_id)id, command)) {
      char left[HELP_LEFT_BYTES];
      format_option(left, sizeof left, option_get((option_id)id));
      write_help_entry(out, left, option_help((option_id)id, command));
    }
  }
  if (command == COMMAND_TOP) write_help_pairs(out, "Examples", examples, LENGTH(examples));
  write_help_pairs(out, "Exit status", exit_statuses, LENGTH(exit_statuses));
}

/* roff: a backslash and a dash are escaped, a dot or quote at the start of a line is hidden. */
static void write_roff(FILE *out, const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", out);
  for (; *text != '\0'; text++)
    if (*text == '\\')
      fputs("\\e", out);
    else if (*text == '-')
      fputs("\\-", out);
    else
      fputc(*text, out);
}

static void write_roff_pairs(FILE *out, const char *title, const text_pair *pairs, size_t count) {
  fprintf(out, ".SH %s\n", title);
  for (size_t i = 0; i < count; i++) {
    fprintf(out, ".TP\n.B ");
    write_roff(out, pairs[i].name);
    fputc('\n', out);
    write_roff(out, pairs[i].text);
    fputs(".\n", out);
  }
}

static void write_roff_commands_of(FILE *out, option_id id) {
  bool first = true;
  fprintf(out, " (");
  for (int command = COMMAND_TOP; command < COMMAND_COUNT; command++) {
    if (option_belongs_to(id, (command_id)command)) {
      const char *name = command_get((command_id)command)->name;
      fprintf(out, "%s%s", first ? "" : ", ", command == COMMAND_TOP ? "hartsift" : name);
      first = false;
    }
  }
  fprintf(out, ").\n");
}

static void write_roff_options(FILE *out) {
  fprintf(out, ".SH OPTIONS\nIn parentheses: the commands that accept the option.\n");
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
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
    write_roff(out, spec->help);
    write_roff_commands_of(out, (option_id)id);
  }
}

void option_write_man(FILE *out) {
  fprintf(out, ".TH HARTSIFT 1 \"\" \"hartsift %s\" \"User Commands\"\n.SH NAME\nhartsift \\- ", hs_version_string());
  write_roff(out, command_get(COMMAND_TOP)->summary);
  fprintf(out, "\n.SH SYNOPSIS\n.nf\n");
  for (int id = COMMAND_TOP; id < COMMAND_COUNT; id++) write_usage_line(out, (command_id)id);
  fprintf(out, ".fi\n.SH DESCRIPTION\n");
  for (const char *const *detail = command_get(COMMAND_TOP)->details; *detail; detail++) {
    fprintf(out, ".PP\n");
    write_roff(out, *detail);
    fputc('\n', out);
  }
  fprintf(out, ".SH COMMANDS\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    const command_spec *command = command_get((command_id)id);
    fprintf(out, ".SS %s %s\n", command->name, command->operands);
    for (const char *const *detail = command->details; *detail; detail++) {
      fprintf(out, ".PP\n");
      write_roff(out, *detail);
      fputc('\n', out);
    }
  }
  write_roff_options(out);
  write_roff_pairs(out, "EXIT STATUS", exit_statuses, LENGTH(exit_statuses));
  write_roff_pairs(out, "ENVIRONMENT", environment, LENGTH(environment));
  write_roff_pairs(out, "EXAMPLES", examples, LENGTH(examples));
}

static void write_command_names(FILE *out) {
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    fprintf(out, "%s%s", id > COMMAND_TOP + 1 ? " " : "", command_get((command_id)id)->name);
}

/* "auto|cpu" as "auto cpu". */
static void write_choices(FILE *out, const char *choices) {
  for (; *choices != '\0'; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

/* What may be completed for an option's value; null where file names are. */
static const char *completion_choices(const option_spec *spec) {
  switch (spec->kind) {
  case OPTION_KIND_CHOICE:
    return spec->choices;
  case OPTION_KIND_DEVICE:
    return "auto|cpu|cuda";
  case OPTION_KIND_TEXT:
    return NULL;
  default:
    return "";
  }
}

static void write_bash_option_names(FILE *out, command_id command) {
  bool first = true;
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (option_belongs_to((option_id)id, command)) {
      fprintf(out, "%s--%s", first ? "" : " ", spec->name);
      if (spec->letter != 0) fprintf(out, " -%c", spec->letter);
      first = false;
    }
  }
}

void option_write_bash_completion(FILE *out) {
  fprintf(out, "# bash completion for hartsift, made by: hartsift --completion bash\n"
               "_hartsift() {\n"
               "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" "
               "command=\"${COMP_WORDS[1]}\"\n"
               "  COMPREPLY=()\n"
               "  case \"$previous\" in\n");
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (spec->kind == OPTION_KIND_FLAG) continue;
    const char *choices = completion_choices(spec);
    fprintf(out, "    --%s", spec->name);
    if (spec->letter != 0) fprintf(out, "|-%c", spec->letter);
    if (!choices) {
      fprintf(out, ") COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n");
    } else {
      fprintf(out, ") COMPREPLY=($(compgen -W \"");
      write_choices(out, choices);
      fprintf(out, "\" -- \"$current\")); return ;;\n");
    }
  }
  fprintf(out, "  esac\n  local options=\"\"\n  case \"$command\" in\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    fprintf(out, "    %s) options=\"", command_get((command_id)id)->name);
    write_bash_option_names(out, (command_id)id);
    fprintf(out, "\" ;;\n");
  }
  fprintf(out, "    *) options=\"");
  write_command_names(out);
  fprintf(out, " ");
  write_bash_option_names(out, COMMAND_TOP);
  fprintf(out, "\" ;;\n  esac\n"
               "  if [[ $current == -* || $COMP_CWORD -eq 1 ]]; then\n"
               "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
               "  else\n"
               "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
               "  fi\n"
               "}\n"
               "complete -o filenames -F _hartsift hartsift\n");
}

/* Text inside '...[...]' of _arguments: no quotes, brackets and colons escaped. */
static void write_zsh_text(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '\'') {
      fputs("'\\''", out);
    } else {
      if (strchr("[]:\\", *text)) fputc('\\', out);
      fputc(*text, out);
    }
  }
}

static void write_zsh_option(FILE *out, option_id id, command_id command, bool letter) {
  const option_spec *spec = option_get(id);
  fprintf(out, " \\\n        '");
  if (letter)
    fprintf(out, "-%c[", spec->letter);
  else
    fprintf(out, "--%s[", spec->name);
  write_zsh_text(out, option_help(id, command));
  fputc(']', out);
  if (spec->kind != OPTION_KIND_FLAG) {
    const char *choices = completion_choices(spec);
    fputc(':', out);
    write_zsh_text(out, spec->argument);
    if (!choices) {
      fputs(":_files", out);
    } else if (choices[0] == '\0') {
      fputs(": ", out);
    } else {
      fputs(":(", out);
      write_choices(out, choices);
      fputc(')', out);
    }
  }
  fputc('\'', out);
}

static void write_zsh_options(FILE *out, command_id command) {
  fprintf(out, "      _arguments -S");
  for (int id = 0; id < OPTION_COUNT; id++) {
    if (option_belongs_to((option_id)id, command)) {
      write_zsh_option(out, (option_id)id, command, false);
      if (option_get((option_id)id)->letter != 0) write_zsh_option(out, (option_id)id, command, true);
    }
  }
}

void option_write_zsh_completion(FILE *out) {
  fprintf(out, "#compdef hartsift\n# zsh completion for hartsift, made by: hartsift --completion zsh\n"
               "_hartsift() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    const command_spec *command = command_get((command_id)id);
    fprintf(out, " '%s:", command->name);
    write_zsh_text(out, command->summary);
    fputc('\'', out);
  }
  fprintf(out, " )\n    _describe command commands\n");
  write_zsh_options(out, COMMAND_TOP);
  fprintf(
      out,
      "\n    return\n  fi\n  local command=\"$words[2]\"\n  shift words\n  (( CURRENT-- ))\n  case \"$command\" in\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    fprintf(out, "    %s)\n", command_get((command_id)id)->name);
    write_zsh_options(out, (command_id)id);
    if (command_get((command_id)id)->operands[0] != '\0') fprintf(out, " \\\n        '*:file:_files'");
    fprintf(out, "\n      ;;\n");
  }
  fprintf(out, "  esac\n}\n_hartsift \"$@\"\n");
}
