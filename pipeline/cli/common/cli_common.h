/*
 * What the subcommands share: exit statuses, messages, hs_options and contexts from the command line,
 * reading of images, JSON text.
 */
#ifndef HARTSIFT_CLI_COMMON_CLI_COMMON_H
#define HARTSIFT_CLI_COMMON_CLI_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/cli/options/option_table.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"

/* Exit statuses of the command: part of its interface. */
typedef enum cli_exit { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DEVICE = 3 } cli_exit;

enum { CLI_MESSAGE_BYTES = 1024 };

/* Prints "hartsift COMMAND: message" as one line on standard error. Names of files may have control characters, which
   could steer the terminal: '?' is printed instead of each, here and in the functions that follow. */
__attribute__((format(printf, 2, 3))) void cli_error(command_id command, const char *format, ...);
/* Names the command's options in a message of the library's: "--max-memory" for "max_memory_bytes". cli_error does so. */
void cli_name_options(command_id command, char *message, size_t bytes);
/* cli_error with "name: message", or the message alone where it names the file already, as messages of readers do. */
void cli_error_about(command_id command, const char *name, const char *message);
/* Prints one line on standard error: what was done. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* hs_options from the profile and the other options given. */
void cli_fill_options(const option_set *set, hs_options *options, hs_expert_options *expert);

/* cli_fill_options and a context from them; prints why when there is none. */
cli_exit cli_make_context(const option_set *set, hs_options *options, hs_context **context);

/* Why the CPU processed images of a GPU context that did not fit the GPU, from its report; null: there were none. */
const char *cli_fallback_of(const hs_context *context);

/* Prints why hs_create failed. Where the library names a field of hs_options, "options.input_blur is 3, ...", the
   message names the command's option. */
void cli_print_create_error(command_id command, const char *message);

/* The exit status after a failed hs_create. */
cli_exit cli_exit_of_create(hs_status status);

/* Copies the context's last error to message, or the status's sentence where it has none. */
void cli_explain(const hs_context *context, hs_status status, char *message, size_t message_bytes);

/* ---- images */

/* Source of images. */
typedef struct cli_input {
  hs_load_options load; /* keep_colour, message and message_bytes are set for each image */
  const char *masks;    /* the folder of --masks, or null */
  command_id command;   /* whose warnings these are */
  const char *warned;   /* the image that warnings were last printed of, so that a second reading repeats none */
  bool keeps_stdin;     /* standard input is decoded more than once: its bytes are kept */
  unsigned char *stdin_bytes;
  size_t stdin_size;
  bool has_stdin;
} cli_input;

/* The N of --decode-scale, 1 when it is not given. */
int32_t cli_decode_scale(const option_set *set);

void cli_input_init(cli_input *input, const option_set *set, const hs_options *options);
void cli_input_free(cli_input *input);

/* Whether the program that the results are for reads JPEGs as stored; they are turned by their EXIF orientation where it
   does not, and before this call. --exif and --no-exif override it. */
void cli_input_for(cli_input *input, const option_set *set, bool as_stored);

/* "WHAT WxH: expected the image's WxH", with the option that turns JPEGs the other way where the sizes lie across. */
void cli_explain_size(const cli_input *input, const char *what, int32_t width, int32_t height, const hs_image *image,
                      char message[CLI_MESSAGE_BYTES]);

/* Loads an image file, a scene or, for "-", standard input, and warns of what was noticed in it. */
hs_status cli_load_image(cli_input *input, const char *path, bool keep_colour, hs_image *image, char *message,
                         size_t message_bytes);

/* The same as a source, which hs_source_free frees: a JPEG stays encoded where the options leave it to the GPU. */
hs_status cli_load_source(cli_input *input, const char *path, hs_source *loaded, char *message, size_t message_bytes);

/* Warns of what was noticed in an image that was read. */
void cli_print_notes(cli_input *input, const char *path, const hs_load_notes *notes);

/* The options for a mask: it is made for the picture as it is decoded, is often no JPEG, and has no range. */
hs_load_options cli_mask_options(const hs_load_options *of_images);

/* Loads the image of --mask as one byte a pixel, 0 where it is black; at full size whatever --decode-scale and
   --max-image-size say. */
hs_status cli_load_mask(cli_input *input, const char *path, hs_image *mask, char *message, size_t message_bytes);

/* Converts a mask of 16 bits or of floats to 8 bits, in place: black only where a sample is 0. */
void cli_narrow_mask(hs_image *mask);

/* Reads a feature file in any format, within the memory that the input allows. *features is an empty struct. */
hs_status cli_load_features(const cli_input *input, const char *path, hs_features *features, char *message,
                            size_t message_bytes);
/* The same; of a database with several images those of `image`, whose folders count as far as they are in its name there. */
hs_status cli_load_features_of(const cli_input *input, const char *path, const char *image, hs_features *features,
                               char *message, size_t message_bytes);

/* True when both paths name one existing file: the output would destroy the input. */
bool cli_is_same_file(const char *one, const char *other);

/* ---- output */

/* Writes text as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. null: null. */
void cli_write_json_string(FILE *out, const char *text);

/* True when nobody reads standard output (a closed pipe or descriptor): then failing to write is no news. */
bool cli_stdout_is_gone(void);

/* Refuses, with a message, to write anything but text to a terminal on standard output. what: "--format npz". */
bool cli_refuses_terminal(command_id command, const char *what);

/* Flushes standard output; turns CLI_DONE into CLI_FAILED when not all of it could be written. */
cli_exit cli_finish_stdout(command_id command, cli_exit result);

/* Milliseconds of a clock that only runs forward. */
double cli_milliseconds(void);

/* ---- names of outputs */

/* Three texts as one; to be freed, null without memory. */
char *cli_join(const char *first, const char *middle, const char *last);

/* Whether this is the whole name of a generated picture, and no file or folder whose name only begins like one. */
bool output_is_scene(const char *image);

/* The file name, without folder, for an image's features in a format; to be freed, null without memory.
   photo.jpg and npz: photo.npz; colmap: photo.jpg.txt;
   colmap-db, in which it is an image's name: photo.jpg; @scene:64x48:7: scene_64x48_7; "-": stdin. */
char *output_name(const char *image, hs_format format);

/* ---- subcommands, each in its own cmd_*.c */

cli_exit cmd_extract(const option_set *set);
cli_exit cmd_match(const option_set *set);
cli_exit cmd_batch(const option_set *set);
cli_exit cmd_merge(const option_set *set);
cli_exit cmd_draw(const option_set *set);
cli_exit cmd_stats(const option_set *set);
cli_exit cmd_hist(const option_set *set);
cli_exit cmd_info(const option_set *set);
cli_exit cmd_selftest(const option_set *set);
cli_exit cmd_bench(const option_set *set);

#endif
