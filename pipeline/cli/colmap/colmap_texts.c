/*
 * Writes texts of hartsift-colmap from the table of options: help of commands, the list of options, the manual page.
 */
#include <string.h>

#include "pipeline/cli/colmap/colmap_program.h"

static const char *effect_word(colmap_effect effect) {
  static const char *const words[] = {[COLMAP_EFFECT_TAKEN] = "taken",
                                      [COLMAP_EFFECT_NONE] = "without effect",
                                      [COLMAP_EFFECT_REFUSED] = "refused",
                                      [COLMAP_EFFECT_UNKNOWN] = ""};
  return words[effect];
}

/* Writes the names of an option, each after `before`, with ", " between. */
static void write_names(FILE *out, const colmap_option *option, const char *before) {
  for (const char *at = option->names;;) {
    const size_t span = strcspn(at, "|");
    fprintf(out, "%s%.*s", before, (int)span, at);
    if (at[span] == '\0') return;
    fputs(", ", out);
    at += span + 1;
  }
}

/* ------------------------------------------------------------------ help and list */

/* "taken", "without effect", or "refused, but for 1". */
static void write_effect(FILE *out, colmap_option_id id, colmap_command command) {
  const colmap_effect effect = colmap_effect_of(id, command);
  const char *initial = colmap_table[id].initial;
  fputs(effect_word(effect), out);
  if (effect == COLMAP_EFFECT_REFUSED && initial[0] != '\0') fprintf(out, ", but for %s", initial);
}

void colmap_write_help(FILE *out, colmap_command command) {
  fprintf(out, "%s, by hartsift: %s\n\n", colmap_command_name((colmap_command)command),
          colmap_command_summary((colmap_command)command));
  fprintf(out, "Options can be given on the command line or in an .ini file passed to --project_path.\n\n");
  fprintf(out, "  -h [ --help ]\n");
  for (int id = 0; id < COLMAP_OPTIONS; id++) {
    const colmap_option *option = &colmap_table[id];
    const colmap_effect effect = colmap_effect_of((colmap_option_id)id, command);
    if (effect == COLMAP_EFFECT_UNKNOWN) continue;
    fputs("  ", out);
    write_names(out, option, "--");
    if (option->initial[0] != '\0')
      fprintf(out, " arg (=%s)\n", option->initial);
    else
      fputs(" arg\n", out);
    fputs("        ", out);
    if (effect != COLMAP_EFFECT_TAKEN) {
      write_effect(out, (colmap_option_id)id, command);
      fputs(": ", out);
    }
    fprintf(out, "%s\n", option->note);
  }
}

void colmap_write_options(FILE *out) {
  fprintf(out, "command\toptions\tdefault\teffect\tnote\n");
  for (int command = 0; command < COLMAP_COMMANDS; command++) {
    for (int id = 0; id < COLMAP_OPTIONS; id++) {
      const colmap_option *option = &colmap_table[id];
      if (colmap_effect_of((colmap_option_id)id, (colmap_command)command) == COLMAP_EFFECT_UNKNOWN) continue;
      fprintf(out, "%s\t", colmap_command_name((colmap_command)command));
      write_names(out, option, "--");
      fprintf(out, "\t%s\t", option->initial);
      write_effect(out, (colmap_option_id)id, (colmap_command)command);
      fprintf(out, "\t%s\n", option->note);
    }
  }
}

/* ------------------------------------------------------------------ manual page */

static const char *const man_paragraphs[] = {
    "Takes the command line of COLMAP, in the spellings of its versions 3.6 to 4.2, for programs that start a program named "
    "colmap: give them this program's path, or a link to it.",
    "The commands below are done by hartsift, on a GPU if one is usable, and write COLMAP's database. All others, such as "
    "mapper, go to COLMAP: the program that HARTSIFT_COLMAP names, else the first colmap in PATH that is not this "
    "program, else pycolmap (mapper, global_mapper, bundle_adjuster, image_undistorter, model_aligner, model_converter, model_analyzer, "
    "point_triangulator) by HARTSIFT_PYTHON, else python3.",
    "An option that changes results and that hartsift has not is refused; one that cannot change them is accepted and "
    "named on standard error. Images with features in the database, and pairs with geometry, are skipped, so that a "
    "stopped run continues.",
    "Pairs that others contradict (look-alikes) are left out of the geometry, as by hartsift match; "
    "Hartsift.keep_doubtful keeps them.",
};

static void write_roff(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '-' || *text == '\\') fputc('\\', out);
    fputc(*text == '\\' ? 'e' : *text, out);
  }
}

static void write_man_option(FILE *out, const colmap_option *option, colmap_option_id id) {
  fputs(".TP\n\\fB", out);
  for (const char *at = option->names;; at++) {
    if (at == option->names) fputs("\\-\\-", out);
    const char letter[] = {*at, '\0'};
    if (*at == '\0') break;
    if (*at == '|')
      fputs("\\fR, \\fB\\-\\-", out);
    else
      write_roff(out, letter);
  }
  fputs("\\fR\n", out);
  write_roff(out, option->note);
  if (option->initial[0] != '\0') {
    fputs(" [", out);
    write_roff(out, option->initial);
    fputc(']', out);
  }
  fputs(".\n", out);
  for (int command = 0; command < COLMAP_COMMANDS; command++) {
    const colmap_effect effect = colmap_effect_of(id, (colmap_command)command);
    if (effect != COLMAP_EFFECT_UNKNOWN)
      fprintf(out, ".br\n%s: %s\n", colmap_command_name((colmap_command)command), effect_word(effect));
  }
}

void colmap_write_man(FILE *out) {
  fprintf(out, ".TH HARTSIFT\\-COLMAP 1 \"\" \"hartsift %s\" \"User Commands\"\n", hs_version_string());
  fputs(".SH NAME\nhartsift\\-colmap \\- features and matches for COLMAP, by its own command line\n", out);
  fputs(".SH SYNOPSIS\n.B hartsift\\-colmap\n.I COMMAND\n[\\fIOPTION\\fR ...]\n.SH DESCRIPTION\n", out);
  for (size_t i = 0; i < sizeof man_paragraphs / sizeof man_paragraphs[0]; i++) {
    fputs(i > 0 ? ".PP\n" : "", out);
    write_roff(out, man_paragraphs[i]);
    fputc('\n', out);
  }
  fputs(".SH COMMANDS\n", out);
  for (int command = 0; command < COLMAP_COMMANDS; command++)
    fprintf(out, ".TP\n.B %s\n%s.\n", colmap_command_name((colmap_command)command),
            colmap_command_summary((colmap_command)command));
  fputs(".TP\n.B options\nthe table of all options as text, with tabs between the columns.\n", out);
  fputs(".TP\n.B man\nthis page.\n.SH OPTIONS\n", out);
  for (int id = 0; id < COLMAP_OPTIONS; id++) write_man_option(out, &colmap_table[id], (colmap_option_id)id);
  fputs(".SH EXIT STATUS\n0: done, also if single images could not be read; 1: failed.\n", out);
  fputs(".SH SEE ALSO\n.BR hartsift (1)\n", out);
}
