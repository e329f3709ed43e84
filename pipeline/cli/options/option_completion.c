/*
 * Shell completions (bash, zsh, fish) from the option table; see option_table.h.
 */
#include <string.h>

#include "pipeline/cli/options/option_table.h"

static void write_command_names(FILE *out) {
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++)
    fprintf(out, "%s%s", id > COMMAND_TOP + 1 ? " " : "", command_get((command_id)id)->name);
}

/* Writes "auto|cpu" as "auto cpu". */
static void write_choices(FILE *out, const char *choices) {
  for (; *choices != '\0'; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Returns the choices for an option's value; null: file names. */
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

/* Writes a text inside '...[...]' of _arguments: removes quotes, and escapes brackets and colons. */
static void write_zsh_text(FILE *out, const char *text) {
  char expanded[OPTION_TEXT_BYTES];
  text = option_expand(text, expanded);
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

/* Writes a text inside '...' of fish. */
static void write_fish_text(FILE *out, const char *text) {
  char expanded[OPTION_TEXT_BYTES];
  text = option_expand(text, expanded);
  for (; *text != '\0'; text++) {
    if (*text == '\'' || *text == '\\') fputc('\\', out);
    fputc(*text, out);
  }
}

static void write_fish_option(FILE *out, option_id id, command_id command) {
  const option_spec *spec = option_get(id);
  if (command == COMMAND_TOP)
    fprintf(out, "complete -c hartsift -n __fish_use_subcommand");
  else
    fprintf(out, "complete -c hartsift -n '__fish_seen_subcommand_from %s'", command_get(command)->name);
  fprintf(out, " -l %s", spec->name);
  if (spec->letter != 0) fprintf(out, " -s %c", spec->letter);
  if (spec->kind != OPTION_KIND_FLAG) {
    const char *choices = completion_choices(spec);
    fprintf(out, choices ? " -x" : " -r -F");
    if (choices && choices[0] != '\0') {
      fprintf(out, " -a '");
      write_choices(out, choices);
      fputc('\'', out);
    }
  }
  fprintf(out, " -d '");
  write_fish_text(out, option_help(id, command));
  fprintf(out, "'\n");
}

void option_write_fish_completion(FILE *out) {
  fprintf(out, "# fish completion for hartsift, made by: hartsift --completion fish\n");
  for (int id = COMMAND_TOP + 1; id < COMMAND_COUNT; id++) {
    const command_spec *spec = command_get((command_id)id);
    fprintf(out, "complete -c hartsift -n __fish_use_subcommand -f -a %s -d '", spec->name);
    write_fish_text(out, spec->summary);
    fprintf(out, "'\n");
  }
  for (int command = COMMAND_TOP; command < COMMAND_COUNT; command++)
    for (int id = 0; id < OPTION_COUNT; id++)
      if (option_belongs_to((option_id)id, (command_id)command))
        write_fish_option(out, (option_id)id, (command_id)command);
}
