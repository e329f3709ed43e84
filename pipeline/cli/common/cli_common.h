/*
 * Functions for all subcommands: exit statuses, messages, hs_options and contexts from the command line, reading of
 * images, JSON text.
 */
#ifndef HARTSIFT_CLI_COMMON_CLI_COMMON_H
#define HARTSIFT_CLI_COMMON_CLI_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/cli/options/option_table.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_batch.h"
#include "pipeline/include/hartsift_cuda.h"
#include "pipeline/include/hartsift_expert.h"

/* Exit statuses of the command, which are part of its interface. */
typedef enum cli_exit { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DEVICE = 3 } cli_exit;

enum { CLI_MESSAGE_BYTES = 1024 };

/* Prints "hartsift COMMAND: message" as one line on standard error. Here and in the functions below, control characters
   are printed as '?', because those in file names could control the terminal. */
__attribute__((format(printf, 2, 3))) void cli_error(command_id command, const char *format, ...);
/* The same, as an expression of this exit status. */
#define cli_fail(RESULT, ...) (cli_error(__VA_ARGS__), (RESULT))
/* Replaces names of fields in the library's messages by options: "--max-memory" for "max_memory_bytes". cli_error does
   this too. */
void cli_name_options(command_id command, char *message, size_t bytes);
/* Makes messages begin with the name of another program than hartsift, whose options have other names. Keeps the text.
 */
void cli_name_program(const char *name);
/* Returns a part of a message about options of hartsift; "" in messages of another program. */
const char *cli_hint(const char *text);
/* Prints "name: message" as cli_error does, or only the message if it already names the file. */
void cli_error_about(command_id command, const char *name, const char *message);
/* Prints one line about the work done on standard error. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* Sets hs_options from the profile and the given options. */
void cli_fill_options(const option_set *set, hs_options *options, hs_expert_options *expert);

/* Sets hs_options and creates a context from them. Prints the reason of a failure. */
cli_exit cli_make_context(const option_set *set, hs_options *options, hs_context **context);

/* Lets a GPU start with two hardware queues instead of CUDA's eight. Frames one after another are as fast, and the
   process ends 130 ms earlier (H100). Hides GPUs other than the one in the options. Settings of the user stay.
   Call it before the first context is made; cli_make_context does. */
void cli_shorten_gpu_start(const hs_options *options);

/* Hides the other GPUs from CUDA, before a GPU is used or counted, unless HARTSIFT_DEVICE may name another one. */
void cli_hide_other_gpus(int32_t wanted);

/* Sets a GPU's hardware queues for a run over a list of this number of images: 2, 8 or 16. Work in a shared queue waits
   for earlier work, but each queue makes the process some 20 ms longer (bench/results/batches.md), which a short run
   does not earn back. A setting of the user stays. CUDA reads it when the driver starts, as counting GPUs does. */
void cli_choose_gpu_queues(size_t images);

/* Returns the reason why the CPU processed images instead of the context's GPU, from its report; null: it did not. */
const char *cli_fallback_of(const hs_context *context);

/* Prints why hs_create failed. A field of hs_options in the message ("options.input_blur is 3, ...") is replaced by the
   command's option. */
void cli_print_create_error(command_id command, const char *message);

/* Returns the exit status after hs_create failed with this status. */
cli_exit cli_exit_of_create(hs_status status);

/* Copies the context's last error to message; if there is none, the sentence of the status. */
void cli_explain(const hs_context *context, hs_status status, char *message, size_t message_bytes);

/* ---- arrays of the primitives */

/* As cli_make_context, for work on arrays: the CPU is used unless --device is given. */
cli_exit cli_make_array_context(const option_set *set, hs_context **context);

/* Memory for the context's primitives: pinned memory for a context on a GPU, else from the heap. */
typedef struct cli_memory {
  hs_context *context;
  void *data;
  bool on_device; /* the memory is for the functions hs_cuda_... */
} cli_memory;

/* Allocates `bytes`, 1 or more. Statuses: HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cli_memory_make(hs_context *context, size_t bytes, cli_memory *memory);
/* Frees the memory. Call before hs_destroy; an empty struct is allowed. */
void cli_memory_free(cli_memory *memory);

/* ---- images */

/* How a subcommand reads images. */
typedef struct cli_input {
  hs_load_options load; /* keep_colour, message and message_bytes are set for each image */
  const char *masks;    /* folder of --masks, or null */
  command_id command;   /* command name for warnings */
  const char *warned;   /* image of the last warnings, which are not repeated when it is read again */
  bool keeps_stdin;     /* standard input is decoded more than once, so its bytes are kept */
  struct kept_stream *kept;
} cli_input;

/* Returns the N of --decode-scale, by default 1. */
int32_t cli_decode_scale(const option_set *set);

void cli_input_init(cli_input *input, const option_set *set, const hs_options *options);
/* Frees the bytes that are kept of standard input and of pipes; sources from cli_load_source may refer to them. */
void cli_input_free(cli_input *input);

/* Sets whether JPEGs are read as stored, because the program that uses the results does so; otherwise they are rotated
   by their EXIF orientation. --exif and --no-exif override this. */
void cli_input_for(cli_input *input, const option_set *set, bool as_stored);

/* Writes "WHAT WxH: expected the image's WxH". If the sides are swapped, also names the option for EXIF rotation. */
void cli_explain_size(const cli_input *input, const char *what, int32_t width, int32_t height, const hs_image *image,
                      char message[CLI_MESSAGE_BYTES]);

/* Loads an image file, a scene, or standard input for "-", and prints warnings. A pipe is read to its end once, also if
   its writer opens it later. */
hs_status cli_load_image(cli_input *input, const char *path, bool keep_colour, hs_image *image, char *message,
                         size_t message_bytes);

/* As cli_load_image, to a source, which hs_source_free frees. A JPEG stays encoded if the options allow the GPU to
   decode it. */
hs_status cli_load_source(cli_input *input, const char *path, hs_source *loaded, char *message, size_t message_bytes);

/* Prints warnings about an image. */
void cli_print_notes(cli_input *input, const char *path, const hs_load_notes *notes);

/* Returns the load options for a mask: it belongs to the decoded picture, is often no JPEG, and has no value range. */
hs_load_options cli_mask_options(const hs_load_options *of_images);

/* Loads the image of --mask as one byte per pixel, 0 for black. It is loaded at full size, without --decode-scale and
   --max-image-size. */
hs_status cli_load_mask(cli_input *input, const char *path, hs_image *mask, char *message, size_t message_bytes);

/* Converts a mask of 16 bits or floats to 8 bits in place. Only samples of 0 become black. */
void cli_narrow_mask(hs_image *mask);

/* Reads a feature file of any format, within the memory limit of the input. *features must be an empty struct. */
hs_status cli_load_features(const cli_input *input, const char *path, hs_features *features, char *message,
                            size_t message_bytes);
/* As cli_load_features; from a database with several images, reads those of `image`. Its name is compared with as many
   of the last folders as names in the database have. */
hs_status cli_load_features_of(const cli_input *input, const char *path, const char *image, hs_features *features,
                               char *message, size_t message_bytes);

/* True if both paths lead to the same existing file, so that the output would destroy the input. */
bool cli_is_same_file(const char *one, const char *other);

/* ---- output */

/* Writes a text as a quoted JSON string. Invalid UTF-8 becomes U+FFFD; a null pointer becomes null. */
void cli_write_json_string(FILE *out, const char *text);

/* True if nobody reads standard output (closed pipe or descriptor). Write errors are then not reported. */
bool cli_stdout_is_gone(void);

/* Refuses, with a message, to write binary data to standard output if that is a terminal. what: "--format npz". */
bool cli_refuses_terminal(command_id command, const char *what);

/* Flushes standard output. If writing failed, CLI_DONE becomes CLI_FAILED. */
cli_exit cli_finish_stdout(command_id command, cli_exit result);

/* Returns milliseconds of a monotonic clock. */
double cli_milliseconds(void);

/* ---- names of outputs */

/* Concatenates three strings. The caller frees the result; null: out of memory. */
char *cli_join(const char *first, const char *middle, const char *last);

/* True for the name of a generated picture, but not for a file name that only begins like one. */
bool output_is_scene(const char *image);

/* Returns the file name, without folder, of an image's features in a format. The caller frees it; null: out of memory.
   photo.jpg with npz: photo.npz; with colmap: photo.jpg.txt; with colmap-db (name of the image): photo.jpg;
   @scene:64x48:7: scene_64x48_7; "-": stdin. */
char *output_name(const char *image, hs_format format);

/* ---- subcommands, each in its own cmd_*.c */

cli_exit cmd_extract(const option_set *set);
cli_exit cmd_match(const option_set *set);
cli_exit cmd_batch(const option_set *set);
cli_exit cmd_merge(const option_set *set);
cli_exit cmd_draw(const option_set *set);
cli_exit cmd_stats(const option_set *set);
cli_exit cmd_hist(const option_set *set);
cli_exit cmd_convolve(const option_set *set);
cli_exit cmd_info(const option_set *set);
cli_exit cmd_selftest(const option_set *set);
cli_exit cmd_bench(const option_set *set);

/* ------------------------------------------------------------------ the whole command (command_line.c) */

/* Runs the command with main's arguments; returns the exit status. Call it once in a process. Exported only from a
   library built with HARTSIFT_COMMAND_IN_LIBRARY. */
HS_API int hs_command_main(int argc, char **argv);
/* The same for the program hartsift-colmap. */
HS_API int hs_colmap_main(int argc, char **argv);

/* ------------------------------------------------------------ the devices of --device and --devices */

/* One device to use. */
typedef struct cli_device {
  hs_device kind;
  int32_t index; /* index of the GPU */
} cli_device;

typedef struct cli_devices {
  cli_device each[HS_BATCH_DEVICES_MAX];
  int32_t count;
} cli_devices;

/* Reads --devices, or --device if given, or uses "auto". CLI_USAGE and CLI_NO_DEVICE with a message. If only the first
   GPU is wanted, hides the others from CUDA. */
cli_exit cli_parse_devices(const option_set *set, cli_devices *devices, char *message, size_t message_bytes);

/* Writes the name of a device: "auto", "cpu", "cuda:0", "hybrid:0". */
void cli_device_name(const cli_device *device, char *name, size_t bytes);

/* Replaces "auto" by the device that a context chose, according to its hs_backend_report. */
void cli_device_resolve(cli_device *device, const char *backend_report);

/* Refuses a GPU that is in the list more than once, by whatever names. All devices are resolved. */
cli_exit cli_check_devices(command_id command, const cli_devices *devices);

/* Creates a context on each device, all at once, with the options of the command: contexts[devices->count], null where
   it failed. The first gets the threads; the others are for their devices alone. Prints the reason of a failure.
   *options: the options of the first. */
cli_exit cli_make_contexts(const option_set *set, const cli_devices *devices, hs_options *options,
                           hs_context **contexts);

#endif
