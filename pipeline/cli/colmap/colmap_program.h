/*
 * The program hartsift-colmap: COLMAP's command line, whose commands for features and matches run hartsift. Other
 * commands are passed to COLMAP.
 */
#ifndef HARTSIFT_CLI_COLMAP_COLMAP_PROGRAM_H
#define HARTSIFT_CLI_COLMAP_COLMAP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"

/* Runs the program. Returns its exit status, 0 or 1 as COLMAP's. A command that is passed on does not return. */
int colmap_program_run(int argc, char **argv);

/* ------------------------------------------------------------------ commands and options */

/* The commands that hartsift replaces. */
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

/* Returns the command of this name; COLMAP_COMMANDS if there is none. */
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
  const char *names; /* names separated by |, the latest first; NAME* stands for all names that begin with NAME */
  unsigned takes, ignores, refuses; /* sets of commands: bits 1 << colmap_command */
  colmap_kind kind;
  const char *initial; /* COLMAP's default; "": none */
  const char *note;    /* one sentence without full stop */
} colmap_option;

extern const colmap_option colmap_table[COLMAP_OPTIONS];

typedef enum colmap_effect {
  COLMAP_EFFECT_TAKEN,
  COLMAP_EFFECT_NONE,    /* accepted */
  COLMAP_EFFECT_REFUSED, /* refused, unless the value is the initial one */
  COLMAP_EFFECT_UNKNOWN  /* the command has no such option */
} colmap_effect;

colmap_effect colmap_effect_of(colmap_option_id id, colmap_command command);

typedef enum colmap_setter { COLMAP_SET_BY_DEFAULT, COLMAP_SET_BY_FILE, COLMAP_SET_BY_ARGUMENT } colmap_setter;

typedef struct colmap_value {
  colmap_setter set_by;
  char name[80]; /* its name as the user wrote it, else the latest one */
  char *text;    /* value; "" if the option is not given and has no default */
  bool flag;
  int64_t integer;
  double number;
} colmap_value;

typedef struct colmap_options {
  colmap_command command;
  bool wants_help;
  colmap_value values[COLMAP_OPTIONS];
} colmap_options;

/* Parses argv[1..argc-1] and the file of --project_path. Prints once which options have no effect. Returns false with a
   message printed. The caller always calls colmap_options_free. */
bool colmap_options_parse(colmap_options *options, colmap_command command, int argc, char **argv);
void colmap_options_free(colmap_options *options);

/* Check a value, and print "--NAME 'VALUE': expected WHAT" if it is wrong. Return whether it is right. Of an integer,
 *result receives the value. */
bool colmap_expect(const colmap_value *value, bool is_right, const char *what);
bool colmap_expect_integer(const colmap_value *value, int64_t least, int64_t most, int32_t *result);
bool colmap_expect_number(const colmap_value *value, double least, double most);

/* Write the help of a command, the table of all options of all commands with their effects, and the manual page in
   roff. */
void colmap_write_help(FILE *out, colmap_command command);
void colmap_write_options(FILE *out);
void colmap_write_man(FILE *out);

/* ------------------------------------------------------------------ the commands */

/* The GPUs to use; none: the CPU. If a GPU was wanted and is not
   used, this is reported once. */
enum { COLMAP_GPUS_MAX = 64 };
typedef struct colmap_gpus {
  int32_t each[COLMAP_GPUS_MAX];
  int32_t count; /* number of GPUs; 0: the CPU is used */
} colmap_gpus;

/* Reads use_gpu and gpu_index. Returns false with a message printed if gpu_index is no list of usable GPUs. */
bool colmap_choose_gpus(const colmap_value *use_gpu, const colmap_value *gpu_index, colmap_gpus *gpus);

cli_exit colmap_extract(const colmap_options *options);
cli_exit colmap_import_features(const colmap_options *options);
cli_exit colmap_create_database(const colmap_options *options);
cli_exit colmap_match(const colmap_options *options);

/* ------------------------------------------------------------------ other commands */

/* Replaces this process by COLMAP, or by Python with pycolmap. argv[1]: the command. If there is neither, returns 1
   with a message printed. */
int colmap_pass_on(char **argv);

/* Returns the version of the COLMAP to which other commands are passed, such as "3.8", and a phrase that names it. */
void colmap_backend(char *version, size_t version_bytes, char *phrase, size_t phrase_bytes);

#endif
