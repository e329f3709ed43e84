/*
 * The program hartsift-colmap: COLMAP's command line for features and matches by hartsift; other commands are passed
 * on.
 */
#ifndef HARTSIFT_CLI_COLMAP_COLMAP_PROGRAM_H
#define HARTSIFT_CLI_COLMAP_COLMAP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"

/* Runs the program; returns its exit status, 0 or 1, as COLMAP's. Commands that are passed on do not return. */
int colmap_program_run(int argc, char **argv);

/* ------------------------------------------------------------------ commands and options */

/* The commands that hartsift does. */
typedef enum colmap_command {
  COLMAP_FEATURE_EXTRACTOR = 0,
  COLMAP_FEATURE_IMPORTER,
  COLMAP_EXHAUSTIVE_MATCHER,
  COLMAP_SEQUENTIAL_MATCHER,
  COLMAP_SPATIAL_MATCHER,
  COLMAP_VOCAB_TREE_MATCHER,
  COLMAP_TRANSITIVE_MATCHER,
  COLMAP_MATCHES_IMPORTER,
  COLMAP_DATABASE_CREATOR,
  COLMAP_COMMANDS
} colmap_command;

/* The command of this name; COLMAP_COMMANDS: none. */
colmap_command colmap_command_find(const char *name);
const char *colmap_command_name(colmap_command command);
const char *colmap_command_summary(colmap_command command);

typedef enum colmap_option_id {
#define OPTION(id, names, takes, ignores, refuses, kind, initial, note) COLMAP_##id,
#include "pipeline/cli/colmap/colmap_options.inc"
  COLMAP_OPTIONS
} colmap_option_id;

typedef enum colmap_kind { COLMAP_KIND_FLAG, COLMAP_KIND_INTEGER, COLMAP_KIND_NUMBER, COLMAP_KIND_TEXT } colmap_kind;

typedef struct colmap_option {
  const char *names;                /* with | between, the latest first; NAME* stands for all that begin so */
  unsigned takes, ignores, refuses; /* bits 1 << colmap_command */
  colmap_kind kind;
  const char *initial; /* COLMAP's default; "": none */
  const char *note;    /* one sentence without full stop */
} colmap_option;

extern const colmap_option colmap_table[COLMAP_OPTIONS];

typedef enum colmap_effect {
  COLMAP_EFFECT_TAKEN,
  COLMAP_EFFECT_NONE,    /* accepted */
  COLMAP_EFFECT_REFUSED, /* unless it is the initial value */
  COLMAP_EFFECT_UNKNOWN  /* no option of this command */
} colmap_effect;

colmap_effect colmap_effect_of(colmap_option_id id, colmap_command command);

typedef struct colmap_value {
  bool is_set; /* on the command line or in the project file */
  char *text;  /* "" if not given and without default */
  bool flag;
  int64_t integer;
  double number;
} colmap_value;

typedef struct colmap_options {
  colmap_command command;
  bool wants_help;
  colmap_value values[COLMAP_OPTIONS];
} colmap_options;

/* Parses argv[1..argc-1], and the file of --project_path. Names options without effect once. False with a message.
   colmap_options_free is needed in any case. */
bool colmap_options_parse(colmap_options *options, colmap_command command, int argc, char **argv);
void colmap_options_free(colmap_options *options);

/* Help of a command; the table of all options of all commands, with their effects; the manual page as roff. */
void colmap_write_help(FILE *out, colmap_command command);
void colmap_write_options(FILE *out);
void colmap_write_man(FILE *out);

/* ------------------------------------------------------------------ the commands */

/* Which GPU to use: true, with its number or numbers, or false for the CPU, reported once if a GPU was wanted. */
enum { COLMAP_GPUS_MAX = 64 };
typedef struct colmap_gpus {
  int32_t each[COLMAP_GPUS_MAX];
  int32_t count; /* 0: the CPU */
} colmap_gpus;

/* Reads use_gpu and gpu_index. False with a message: gpu_index is no list of usable GPUs. */
bool colmap_choose_gpus(const colmap_value *use_gpu, const colmap_value *gpu_index, colmap_gpus *gpus);

cli_exit colmap_extract(const colmap_options *options);
cli_exit colmap_import_features(const colmap_options *options);
cli_exit colmap_create_database(const colmap_options *options);
cli_exit colmap_match(const colmap_options *options);

/* ------------------------------------------------------------------ other commands */

/* Replaces this process by COLMAP, or by Python with pycolmap; argv[1]: the command. Returns 1, with a message, if
   there is neither. */
int colmap_pass_on(char **argv);

/* The version of the COLMAP that gets other commands, "3.8"; and a phrase that names it. */
void colmap_backend(char *version, size_t version_bytes, char *phrase, size_t phrase_bytes);

#endif
