/*
 * The command line as one table: every subcommand and every option with its argument, range and help. Parsing, error
 * messages, --help, manual pages and shell completions use it. Options that set fields of hs_options come from
 * pipeline/context/options_table.inc. Any other option needs an entry in option_table.c, its OPTION_ID here, and the
 * code that uses its value.
 */
#ifndef HARTSIFT_CLI_OPTIONS_OPTION_TABLE_H
#define HARTSIFT_CLI_OPTIONS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"

typedef enum command_id {
  COMMAND_TOP = 0, /* hartsift itself, before the subcommand */
  COMMAND_EXTRACT,
  COMMAND_MATCH,
  COMMAND_BATCH,
  COMMAND_MERGE,
  COMMAND_DRAW,
  COMMAND_STATS,
  COMMAND_HIST,
  COMMAND_CONVOLVE,
  COMMAND_INFO,
  COMMAND_SELFTEST,
  COMMAND_BENCH,
  COMMAND_COUNT
} command_id;

typedef struct command_spec {
  const char *name;     /* "" for COMMAND_TOP */
  const char *operands; /* operands as in the synopsis; "" for none */
  int least_operands, most_operands;
  const char *summary;        /* summary in one line */
  const char *const *details; /* paragraphs of help and manual page; ends with null */
  const char *const *more;    /* further paragraphs, only in the manual page */
  const char *instead;        /* sentence that says which command takes more operands, or null */
} command_spec;

typedef enum option_kind {
  OPTION_KIND_FLAG,    /* the option has no value */
  OPTION_KIND_TEXT,    /* a file name or other text */
  OPTION_KIND_CHOICE,  /* one of the choices; stored as its index */
  OPTION_KIND_INTEGER, /* integer, low..high */
  OPTION_KIND_NUMBER,  /* real number, low..high */
  OPTION_KIND_COUNT,   /* integer, 0..2^64 - 1 */
  OPTION_KIND_BYTES,   /* bytes, with optional suffix K, M or G (powers of 1024) */
  OPTION_KIND_DEVICE,  /* auto, cpu, cuda, cuda:N, hybrid */
  OPTION_KIND_AUTO,    /* auto (stored as 0) or an integer, low..high */
  OPTION_KIND_REGION,  /* X,Y,W,H */
  OPTION_KIND_SIZE,    /* WxH, each 1..high */
  OPTION_KIND_RANGE,   /* LOW:HIGH, two real numbers within low..high, LOW below HIGH */
  OPTION_KIND_PAIRS    /* NAME=VALUE[,...]; several occurrences are joined by commas */
} option_kind;

/* Index of an option in the table. */
typedef enum option_id {
  OPTION_HELP = 0,
  OPTION_VERSION,
  OPTION_MAN,
  OPTION_COMPLETION,
  OPTION_OUTPUT,
  OPTION_FORMAT,
  OPTION_IMAGE_PATH,
  OPTION_SINGLE_CAMERA,
  OPTION_SINGLE_CAMERA_PER_FOLDER,
  OPTION_CAMERA_ID,
  OPTION_CAMERA_MODEL,
  OPTION_CAMERA_PARAMS,
  OPTION_REPLACE,
  OPTION_DATABASE,
  OPTION_PAIRS,
  OPTION_MATCH_FORMAT,
  OPTION_PROFILE,
  OPTION_DEVICE,
  OPTION_SPLIT,
  OPTION_DEVICES,
  OPTION_THREADS,
  OPTION_JOBS,
  OPTION_MAX_FEATURES,
  OPTION_SELECTION,
  OPTION_CONTRAST,
  OPTION_EDGE,
  OPTION_FIRST_OCTAVE,
  OPTION_OCTAVES,
  OPTION_SCALES,
  OPTION_MAX_ORIENTATIONS,
  OPTION_UPRIGHT,
  OPTION_NORM,
  OPTION_DESCRIPTOR,
  OPTION_DSP,
  OPTION_DSP_SIZES,
  OPTION_DSP_SMALLEST,
  OPTION_DSP_LARGEST,
  OPTION_AFFINE,
  OPTION_RESUME,
  OPTION_SHARD,
  OPTION_NULL,
  OPTION_GRID,
  OPTION_EQUALIZE,
  OPTION_EQUALIZED_FILE,
  OPTION_TILE,
  OPTION_THRESHOLD,
  OPTION_TAPS,
  OPTION_ENDS,
  OPTION_MASK,
  OPTION_MASKS,
  OPTION_REGION,
  OPTION_KEYPOINTS,
  OPTION_UPSAMPLE,
  OPTION_SIGMA,
  OPTION_INPUT_BLUR,
  OPTION_EXIF,
  OPTION_NO_EXIF,
  OPTION_DECODE_SCALE,
  OPTION_MAX_IMAGE_SIZE,
  OPTION_VALUE_RANGE,
  OPTION_STRICT,
  OPTION_DECODER,
  OPTION_VARIANT,
  OPTION_MAX_MEMORY,
  OPTION_MAX_PIXELS,
  OPTION_RATIO,
  OPTION_MUTUAL,
  OPTION_NO_MUTUAL,
  OPTION_MAX_DISTANCE,
  OPTION_NEAREST,
  OPTION_RADIUS,
  OPTION_VERIFY,
  OPTION_NO_VERIFY,
  OPTION_GUIDED,
  OPTION_DOUBTFUL,
  OPTION_TRACKS,
  OPTION_TOLERANCE,
  OPTION_CAMERA,
  OPTION_DRAW,
  OPTION_CIRCLE_SCALE,
  OPTION_JSON,
  OPTION_REPEATS,
  OPTION_AGAINST,
  OPTION_PRINT_DIGESTS,
  OPTION_QUIET,
  OPTION_COUNT
} option_id;

/* Bit of option_spec.commands for options of extraction. The help of extract explains them; that of other commands that
   extract lists only their names; all manual pages explain them. */
#define OPTION_OF_EXTRACTION (1u << COMMAND_COUNT)

/* Value of option_spec.field for options that do not directly set a field of hs_options. */
#define OPTION_NO_FIELD ((size_t)-1)

typedef struct option_spec {
  const char *name; /* name without the dashes */
  char letter;      /* letter of the short form, or 0 */
  option_kind kind;
  const char *argument;  /* placeholder of the value in help; null: the option is a flag */
  const char *choices;   /* values of an OPTION_KIND_CHOICE: "a|b|c" */
  double low, high;      /* range of an OPTION_KIND_INTEGER or OPTION_KIND_NUMBER, ends included */
  unsigned commands;     /* bits 1 << command_id of the commands that accept it, and OPTION_OF_EXTRACTION */
  size_t field;          /* offset of the field in hs_options, or OPTION_NO_FIELD */
  hs_option_group group; /* group of that field */
  const char *help;      /* a sentence without full stop */
} option_spec;

typedef struct option_value {
  bool is_set;
  const char *text;   /* value as typed, of the last occurrence */
  int64_t integer;    /* value of INTEGER and AUTO; 1 of FLAG; index of CHOICE; hs_device of DEVICE */
  double number;      /* value of NUMBER; LOW of RANGE */
  double high;        /* HIGH of RANGE */
  uint64_t count;     /* value of COUNT and BYTES */
  int32_t numbers[4]; /* X, Y, W, H of REGION; W, H of SIZE; index of DEVICE */
} option_value;

enum { OPTION_PAIRS_BYTES = 1024, OPTION_EXPECTED_BYTES = 256, OPTION_MESSAGE_BYTES = 1024 };

/* A parsed command line. Texts and operands point into argv. */
typedef struct option_set {
  command_id command;
  option_value values[OPTION_COUNT];
  char pairs[OPTION_PAIRS_BYTES]; /* value of the option of kind OPTION_KIND_PAIRS, "" if not given */
  char **operands;
  int operand_count;
} option_set;

const option_spec *option_get(option_id id);
const command_spec *command_get(command_id id);
bool option_belongs_to(option_id id, command_id command);
/* True if an option belongs to extraction and the command, other than extract, extracts features. */
bool option_is_of_extraction(option_id id, command_id command);
/* Returns the option's help text for that command; option_get(id)->help is the general text. */
const char *option_help(option_id id, command_id command);

/* Replaces "{formats}" and "{formats as stored}" (formats whose programs ignore EXIF orientations) in a text of the
   table. Returns `text` itself if it contains neither. */
enum { OPTION_TEXT_BYTES = 2048 };
const char *option_expand(const char *text, char expanded[OPTION_TEXT_BYTES]);
/* Returns the command with this name; COMMAND_COUNT: none. */
command_id command_find(const char *name);

/* Describes the expected value for the end of a sentence: "a whole number from -1 to 3". */
void option_describe_expected(const option_spec *spec, char *text, size_t bytes);

/* Checks a value and stores it in *set. False, with a message that names the option and the expected value. */
bool option_store(option_set *set, option_id id, const char *text, char *message, size_t message_bytes);

/* Parses argv[1..argc-1] with getopt_long (which permutes argv; for COMMAND_TOP it stops at the first operand), and
   checks the number of operands unless --help or --man is given. False with a message. Not re-entrant, because
   getopt_long has global state. */
bool option_parse(option_set *set, command_id command, int argc, char **argv, char *message, size_t message_bytes);

/* ---- Texts from the table: --help and manual page of every subcommand, shell completions. */

typedef struct text_pair {
  const char *name, *text;
} text_pair;

/* ends with a null name */
extern const text_pair text_exit_statuses[];
extern const text_pair text_environment[];

/* Returns the command's next example from *next on (for COMMAND_TOP of all commands); null after the last. */
const text_pair *text_next_example(command_id command, size_t *next);

/* Writes help, wrapped to the terminal's width or to COLUMNS. */
void option_write_help(FILE *out, command_id command);

/* Writes all commands, with one line of text each. */
void option_write_commands(FILE *out);

/* Writes hartsift(1) or hartsift-COMMAND(1) as roff (man macros). */
void option_write_man(FILE *out, command_id command);

/* Write a completion script. In all shells it completes subcommands, options, choices and file names. */
void option_write_bash_completion(FILE *out);
void option_write_zsh_completion(FILE *out);
void option_write_fish_completion(FILE *out);

/* ---- Suggestions for mistyped names. */

/* Writes ", did you mean 'NAME'?", or "" if no name is close enough. */
void suggest_command(const char *typed, char *text, size_t bytes);
/* As suggest_command, for an option of that command. typed: `length` bytes, without "--". */
void suggest_option(command_id command, const char *typed, size_t length, char *text, size_t bytes);

/* ---- Width of the terminal. */

enum { TERMINAL_COLUMNS_USUAL = 80 };

/* Returns the width of a stream's terminal in columns; 0: it is no terminal, or the width is unknown. */
int terminal_columns(FILE *stream);

/* Returns the number of columns for running text: COLUMNS, else the terminal's width, up to the usual maximum. */
int terminal_text_columns(FILE *stream);

#endif
