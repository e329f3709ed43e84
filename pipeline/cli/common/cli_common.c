/*
 * Helpers of all subcommands; see cli_common.h.
 */
#include "os/os_process.h"
#include "os/os_files.h"
#include "os/os_threads.h"
#include "pipeline/cli/common/cli_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/formats/common/json_text.h"
#include "pipeline/formats/formats.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/lifetime/engines.h"

enum { CLI_LINE_BYTES = 16384 }; /* size of a message: two paths of maximum length, and the text around them */

/* Prefix of the names of hs_options' fields in the library's messages. */
static const char options_prefix[] = "options.";

/* Returns the option that sets a field of hs_options; OPTION_COUNT: this command has none. */
static option_id option_of_field(command_id command, const char *field, size_t length) {
  char name[64];
  const bool is_memory = length == strlen("max_memory_bytes") && strncmp(field, "max_memory_bytes", length) == 0;
  snprintf(name, sizeof name, "%.*s", is_memory ? 10 : (int)(length < sizeof name ? length : 0), field);
  for (char *letter = strchr(name, '_'); letter; letter = strchr(letter, '_')) *letter = '-';
  for (int id = 0; id < OPTION_COUNT; id++)
    if (strcmp(option_get((option_id)id)->name, name) == 0 && option_belongs_to((option_id)id, command))
      return (option_id)id;
  return OPTION_COUNT;
}

void cli_name_options(command_id command, char *message, size_t bytes) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  static const char advice[] = "; max_memory_bytes sets another limit";
  char text[CLI_LINE_BYTES];
  size_t used = 0;
  for (const char *at = message; *at != '\0' && used + 1 < sizeof text;) {
    const size_t prefix = strncmp(at, options_prefix, sizeof options_prefix - 1) == 0 ? sizeof options_prefix - 1 : 0;
    const size_t length = strspn(at + prefix, letters);
    const char end = at[prefix + length];
    const bool is_word = length > 0 && (prefix > 0 || memchr(at, '_', length)) &&
                         (at == message || strchr(" (", at[-1])) && (end == '\0' || strchr(" ;,)", end));
    const option_id id = is_word ? option_of_field(command, at + prefix, length) : OPTION_COUNT;
    if (id != OPTION_COUNT) {
      used += (size_t)snprintf(text + used, sizeof text - used, "--%s", option_get(id)->name);
      at += prefix + length;
    } else if (strncmp(at, advice, sizeof advice - 1) == 0 &&
               option_of_field(command, advice + 2, strlen("max_memory_bytes")) == OPTION_COUNT) {
      at += sizeof advice - 1;
    } else {
      const size_t span = prefix > 0 ? prefix : length > 0 ? length : 1;
      used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)span, at);
      at += span;
    }
  }
  text[used < sizeof text ? used : sizeof text - 1] = '\0';
  snprintf(message, bytes, "%s", text);
}

static const char *other_program; /* name of the program in messages; null: hartsift */
static char other_program_name[64];

void cli_name_program(const char *name) {
  snprintf(other_program_name, sizeof other_program_name, "%s", name);
  other_program = other_program_name;
}

const char *cli_hint(const char *text) { return other_program ? "" : text; }

void cli_error(command_id command, const char *format, ...) {
  char program[64], line[CLI_LINE_BYTES];
  const char *name = command_get(command)->name;
  va_list arguments;
  va_start(arguments, format);
  snprintf(program, sizeof program, "hartsift%s%s", name[0] != '\0' ? " " : "", name);
  if (other_program) snprintf(program, sizeof program, "%s", other_program);
  hs_message_set_about(line, sizeof line, program, format, arguments);
  va_end(arguments);
  if (!other_program) cli_name_options(command, line, sizeof line);
  fflush(stdout); /* keeps the order of output if both streams go to the same place */
  fprintf(stderr, "%s\n", line);
}

void cli_error_about(command_id command, const char *name, const char *message) {
  char prefix[CLI_LINE_BYTES];
  hs_message_set(prefix, sizeof prefix, "%s:", name); /* replaces control characters, as in the message itself */
  if (strstr(message, prefix))
    cli_error(command, "%s", message);
  else
    cli_error(command, "%s: %s", name, message);
}

void cli_note(const char *format, ...) {
  char text[CLI_LINE_BYTES], line[CLI_LINE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  hs_message_set(line, sizeof line, "%s", text);
  fprintf(stderr, "%s\n", line);
}

/* Stores an option's value in its field of hs_options. */
static void store_field(const option_spec *spec, const option_value *value, hs_options *options) {
  char *field = (char *)options + spec->field;
  if (spec->kind == OPTION_KIND_NUMBER) {
    const float number = (float)value->number;
    memcpy(field, &number, sizeof number);
  } else if (spec->kind == OPTION_KIND_COUNT || spec->kind == OPTION_KIND_BYTES) {
    memcpy(field, &value->count, sizeof value->count);
  } else {
    const int32_t integer = (int32_t)value->integer;
    memcpy(field, &integer, sizeof integer);
  }
}

_Static_assert(sizeof(hs_norm) == sizeof(int32_t), "enumerations of hs_options are stored as 32-bit integers");

void cli_fill_options(const option_set *set, hs_options *options, hs_expert_options *expert) {
  const option_value *values = set->values;
  hs_options_init(options,
                  values[OPTION_PROFILE].is_set ? (hs_profile)values[OPTION_PROFILE].integer : HS_PROFILE_LOWE);
  for (int id = 0; id < OPTION_COUNT; id++) {
    const option_spec *spec = option_get((option_id)id);
    if (values[id].is_set && spec->field != OPTION_NO_FIELD) store_field(spec, &values[id], options);
  }
  if (options->max_pixels == 0)
    options->max_pixels = UINT64_MAX; /* 0 means no limit in the command, but the default in the library */
  /* selection by levels cannot give the exact number that was requested */
  if (values[OPTION_MAX_FEATURES].is_set && !values[OPTION_SELECTION].is_set && options->selection == HS_SELECT_LEVELS)
    options->selection = HS_SELECT_SCALE;
  if (values[OPTION_DEVICE].is_set) {
    options->device = (hs_device)values[OPTION_DEVICE].integer;
    options->device_index = values[OPTION_DEVICE].numbers[0];
  }
  if (values[OPTION_REGION].is_set) {
    options->region_x = values[OPTION_REGION].numbers[0];
    options->region_y = values[OPTION_REGION].numbers[1];
    options->region_width = values[OPTION_REGION].numbers[2];
    options->region_height = values[OPTION_REGION].numbers[3];
  }
  if (values[OPTION_GRID].is_set) {
    options->grid_columns = values[OPTION_GRID].numbers[0];
    options->grid_rows = values[OPTION_GRID].numbers[1];
  }
  if (set->pairs[0] != '\0') {
    hs_expert_options_init(expert, options->profile);
    expert->variant = set->pairs;
    options->expert = expert;
  }
}

cli_exit cli_exit_of_create(hs_status status) {
  switch (status) {
  case HS_OK:
    return CLI_DONE;
  case HS_ERR_OPTION:
    return CLI_USAGE;
  case HS_ERR_NO_DEVICE:
    return CLI_NO_DEVICE;
  default:
    return CLI_FAILED;
  }
}

void cli_print_create_error(command_id command, const char *message) {
  const size_t prefix_length = sizeof options_prefix - 1;
  if (strncmp(message, options_prefix, prefix_length) == 0) {
    const char *field = message + prefix_length;
    const size_t length = strcspn(field, " ");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, field);
    for (char *letter = strchr(name, '_'); letter; letter = strchr(letter, '_')) *letter = '-';
    for (int id = 0; id < OPTION_COUNT; id++) {
      if (strcmp(option_get((option_id)id)->name, name) == 0) {
        cli_error(command, "--%s%s", name, field + length);
        return;
      }
    }
  }
  cli_error(command, "%s", message);
}

void cli_hide_other_gpus(int32_t wanted) {
  const char *narrowed = getenv("HARTSIFT_DEVICE");
  if (!(narrowed && strchr(narrowed, ':'))) engine_show_only(wanted);
}

void cli_shorten_gpu_start(const hs_options *options) {
  os_set_variable("CUDA_DEVICE_MAX_CONNECTIONS", "2", false);
  cli_hide_other_gpus(options->device_index);
}

/* Numbers of images from which eight and 16 queues are faster, on an H100 (bench/results/batches.md). */
enum { IMAGES_OF_8_QUEUES = 500, IMAGES_OF_16_QUEUES = 3500 };

void cli_choose_gpu_queues(size_t images) {
  const char *queues = images < IMAGES_OF_8_QUEUES ? "2" : images < IMAGES_OF_16_QUEUES ? "8" : "16";
  os_set_variable("CUDA_DEVICE_MAX_CONNECTIONS", queues, false);
}

static cli_exit make_context(const option_set *set, hs_options *options, hs_context **context) {
  char message[CLI_MESSAGE_BYTES] = "";
  cli_shorten_gpu_start(options);
  const hs_status status = hs_create_explained(context, options, message, sizeof message);
  options->expert = NULL; /* the rules are no longer needed */
  if (status != HS_OK)
    cli_print_create_error(set->command, message[0] != '\0' ? message : hs_status_string(status));
  else if (message[0] != '\0')
    cli_error(set->command, "%s", message);
  return cli_exit_of_create(status);
}

cli_exit cli_make_context(const option_set *set, hs_options *options, hs_context **context) {
  hs_expert_options expert;
  cli_fill_options(set, options, &expert);
  return make_context(set, options, context);
}

cli_exit cli_make_array_context(const option_set *set, hs_context **context) {
  hs_options options;
  hs_expert_options expert;
  cli_fill_options(set, &options, &expert);
  if (!set->values[OPTION_DEVICE].is_set) options.device = HS_DEVICE_CPU;
  return make_context(set, &options, context);
}

hs_status cli_memory_make(hs_context *context, size_t bytes, cli_memory *memory) {
  *memory = (cli_memory){.context = context};
  const hs_status status = hs_cuda_alloc_host(context, bytes, &memory->data);
  memory->on_device = status == HS_OK;
  if (status != HS_ERR_NO_DEVICE) return status;
  memory->data = malloc(bytes);
  return memory->data ? HS_OK : HS_ERR_MEMORY;
}

void cli_memory_free(cli_memory *memory) {
  if (memory->on_device)
    hs_cuda_free_host(memory->context, memory->data);
  else
    free(memory->data);
  *memory = (cli_memory){0};
}

const char *cli_fallback_of(const hs_context *context) {
  static const char line[] = "\nfallback: ";
  const char *at = strstr(hs_backend_report(context), line);
  return at ? at + sizeof line - 1 : NULL;
}

void cli_explain(const hs_context *context, hs_status status, char *message, size_t message_bytes) {
  const char *reason = context ? hs_last_error(context) : "";
  snprintf(message, message_bytes, "%s", reason[0] != '\0' ? reason : hs_status_string(status));
}

bool cli_is_same_file(const char *one, const char *other) {
  os_info a, b;
  return os_info_of(one, &a) && os_info_of(other, &b) && a.kind == OS_REGULAR && os_is_same(&a, &b);
}

void cli_write_json_string(FILE *out, const char *text) {
  feature_sink sink;
  sink_begin(&sink, out, NULL);
  json_put_string(&sink, text);
  sink_flush(&sink);
}

bool cli_stdout_is_gone(void) { return os_stdout_is_gone(); }

bool cli_refuses_terminal(command_id command, const char *what) {
  if (!os_is_terminal(stdout)) return false;
  cli_error(command, "%s is not text, and standard output is a terminal: expected -o FILE, or a pipe", what);
  return true;
}

cli_exit cli_finish_stdout(command_id command, cli_exit result) {
  const bool failed_before = ferror(stdout) != 0;
  errno = 0;
  if (fflush(stdout) == 0 && !failed_before) return result;
  const int error = errno;
  if (result == CLI_DONE && !cli_stdout_is_gone()) { /* if the result is a failure, its message was already printed */
    cli_error(command, "cannot write to standard output%s%s", error != 0 ? ": " : "",
              error != 0 ? strerror(error) : "");
  }
  return result == CLI_DONE ? CLI_FAILED : result;
}

double cli_milliseconds(void) { return clock_s(CLOCK_MONOTONIC) * 1e3; }

/* ---- names of outputs */

char *cli_join(const char *first, const char *middle, const char *last) {
  const size_t a = strlen(first), b = strlen(middle), c = strlen(last);
  char *text = malloc(a + b + c + 1);
  if (text) {
    memcpy(text, first, a);
    memcpy(text + a, middle, b);
    memcpy(text + a + b, last, c + 1);
  }
  return text;
}

/* Converts a scene's name to a file name: "@scene:64x48" becomes "scene_64x48". */
static void clean_scene_name(char *name) {
  memmove(name, name + 1, strlen(name));
  for (; *name != '\0'; name++)
    if (*name == ':' || *name == '/') *name = '_';
}

bool output_is_scene(const char *image) {
  int32_t width, height;
  uint32_t seed;
  return scene_parse_name(image, &width, &height, &seed) == 1;
}

char *output_name(const char *image, hs_format format) {
  const bool is_scene = output_is_scene(image);
  const char *slash = is_scene ? NULL : strrchr(image, '/');
  const char *last_part = strcmp(image, "-") == 0 ? "stdin" : slash != NULL ? slash + 1 : image;
  char *base = cli_join(last_part, "", "");
  if (!base) return NULL;
  if (is_scene) {
    clean_scene_name(base);
  } else if (format != HS_FORMAT_COLMAP && format != HS_FORMAT_COLMAP_DB) {
    char *dot = strrchr(base, '.');
    if (dot && dot != base) *dot = '\0';
  }
  char *name = cli_join(base, format != HS_FORMAT_COLMAP_DB ? format_by_id(format)->endings[0] : "", "");
  free(base);
  return name;
}

/* ---- devices */

static bool add_device(cli_devices *devices, cli_device device, char *message, size_t message_bytes) {
  char name[32];
  cli_device_name(&device, name, sizeof name);
  for (int32_t i = 0; i < devices->count; i++) {
    if (devices->each[i].kind == device.kind && devices->each[i].index == device.index) {
      snprintf(message, message_bytes, "--devices: %s is given twice", name);
      return false;
    }
  }
  if (devices->count == HS_BATCH_DEVICES_MAX) {
    snprintf(message, message_bytes, "--devices: expected at most %d devices", HS_BATCH_DEVICES_MAX);
    return false;
  }
  devices->each[devices->count++] = device;
  return true;
}

static cli_exit add_all_gpus(cli_devices *devices, char *message, size_t message_bytes) {
  char reason[512] = "";
  const int32_t count = engine_count_devices(reason, sizeof reason);
  if (count == 0) {
    snprintf(message, message_bytes, "--devices all: no GPU is usable: %s", reason);
    return CLI_NO_DEVICE;
  }
  for (int32_t i = 0; i < count; i++)
    if (!add_device(devices, (cli_device){HS_DEVICE_CUDA, i}, message, message_bytes)) return CLI_USAGE;
  return CLI_DONE;
}

/* Adds one device of the list. `options` is set as by --device with this name. */
static cli_exit add_named(cli_devices *devices, command_id command, const char *name, char *message,
                          size_t message_bytes) {
  option_set parsed = {.command = command};
  char ignored[OPTION_MESSAGE_BYTES];
  if (strcmp(name, "all") == 0) return add_all_gpus(devices, message, message_bytes);
  if (name[0] == '\0') {
    snprintf(message, message_bytes, "--devices: a name between commas, or before or after one, is empty");
    return CLI_USAGE;
  }
  if (!option_store(&parsed, OPTION_DEVICE, name, ignored, sizeof ignored)) {
    char expected[OPTION_EXPECTED_BYTES];
    option_describe_expected(option_get(OPTION_DEVICE), expected, sizeof expected);
    snprintf(message, message_bytes, "--devices '%s': expected 'all', or a list with commas of %s", name, expected);
    return CLI_USAGE;
  }
  const option_value *value = &parsed.values[OPTION_DEVICE];
  const cli_device device = {(hs_device)value->integer, value->numbers[0]};
  return add_device(devices, device, message, message_bytes) ? CLI_DONE : CLI_USAGE;
}

/* Hides GPUs outside the list if it has only one. */
static void hide_unlisted_gpus(const cli_devices *devices) {
  int32_t gpus = 0, gpu = 0;
  for (int32_t i = 0; i < devices->count; i++) {
    if (devices->each[i].kind == HS_DEVICE_CPU) continue;
    gpus++;
    gpu = devices->each[i].index;
  }
  if (gpus == 1) cli_hide_other_gpus(gpu);
}

cli_exit cli_parse_devices(const option_set *set, cli_devices *devices, char *message, size_t message_bytes) {
  const option_value *list = &set->values[OPTION_DEVICES];
  const option_value *single = &set->values[OPTION_DEVICE];
  devices->count = 0;
  if (list->is_set && single->is_set) {
    snprintf(message, message_bytes, "--device and --devices: expected one of them");
    return CLI_USAGE;
  }
  if (!list->is_set) {
    const cli_device device = {single->is_set ? (hs_device)single->integer : HS_DEVICE_AUTO, single->numbers[0]};
    devices->each[devices->count++] = device;
    cli_hide_other_gpus(device.index);
    return CLI_DONE;
  }
  cli_exit result = CLI_DONE;
  const char *text = list->text;
  do {
    char name[64];
    const size_t length = strcspn(text, ",");
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    result = add_named(devices, set->command, name, message, message_bytes);
    text += length;
  } while (result == CLI_DONE && *text++ == ',');
  if (result == CLI_DONE) hide_unlisted_gpus(devices);
  return result;
}

void cli_device_name(const cli_device *device, char *name, size_t bytes) {
  static const char *const kinds[] = {
      [HS_DEVICE_AUTO] = "auto", [HS_DEVICE_CPU] = "cpu", [HS_DEVICE_CUDA] = "cuda", [HS_DEVICE_HYBRID] = "hybrid"};
  if (device->kind == HS_DEVICE_AUTO || device->kind == HS_DEVICE_CPU)
    snprintf(name, bytes, "%s", kinds[device->kind]);
  else
    snprintf(name, bytes, "%s:%" PRId32, kinds[device->kind], device->index);
}

void cli_device_resolve(cli_device *device, const char *backend_report) {
  int index = 0;
  const bool is_gpu = sscanf(backend_report, "device: CUDA %d", &index) == 1;
  if (device->kind == HS_DEVICE_AUTO) *device = (cli_device){is_gpu ? HS_DEVICE_CUDA : HS_DEVICE_CPU, index};
}

cli_exit cli_check_devices(command_id command, const cli_devices *devices) {
  char first[32], second[32];
  for (int32_t i = 0; i < devices->count; i++) {
    const cli_device *const a = &devices->each[i];
    for (int32_t k = i + 1; k < devices->count; k++) {
      const cli_device *const b = &devices->each[k];
      if (a->kind == HS_DEVICE_CPU || b->kind == HS_DEVICE_CPU || a->index != b->index) continue;
      cli_device_name(a, first, sizeof first);
      cli_device_name(b, second, sizeof second);
      return cli_fail(CLI_USAGE, command, "--devices: devices %d (%s) and %d (%s) are the same GPU", (int)i + 1, first,
                      (int)k + 1, second);
    }
  }
  return CLI_DONE;
}

/* The creation of one context, in its own thread unless it is the only one. */
typedef struct context_job {
  hs_options options;
  hs_context *context;
  pthread_t thread;
  bool has_thread;
  hs_status status;
  char message[CLI_MESSAGE_BYTES];
} context_job;

static void *open_context(void *argument) {
  context_job *job = argument;
  job->status = hs_create_explained(&job->context, &job->options, job->message, sizeof job->message);
  return NULL;
}

cli_exit cli_make_contexts(const option_set *set, const cli_devices *devices, hs_options *options,
                           hs_context **contexts) {
  hs_expert_options expert;
  cli_exit result = CLI_DONE;
  context_job *jobs = calloc((size_t)devices->count, sizeof *jobs);
  if (!jobs) return cli_fail(CLI_FAILED, set->command, "out of memory for the devices");
  cli_fill_options(set, options, &expert);
  options->device = devices->each[0].kind;
  options->device_index = devices->each[0].index;
  for (int32_t i = 0; i < devices->count; i++) {
    context_job *job = &jobs[i];
    job->options = *options;
    job->options.device = devices->each[i].kind;
    job->options.device_index = devices->each[i].index;
    if (i > 0) job->options.threads = 1;
    job->has_thread = devices->count > 1 && os_thread_start(&job->thread, open_context, job);
    if (!job->has_thread) (void)open_context(job);
  }
  for (int32_t i = 0; i < devices->count; i++) {
    const context_job *job = &jobs[i];
    if (job->has_thread) pthread_join(job->thread, NULL);
    contexts[i] = job->context;
    if (job->status == HS_OK && job->message[0] != '\0') cli_error(set->command, "%s", job->message);
    if (job->status == HS_OK || result != CLI_DONE) continue;
    cli_print_create_error(set->command, job->message[0] != '\0' ? job->message : hs_status_string(job->status));
    result = cli_exit_of_create(job->status);
  }
  options->expert = NULL; /* the rules are no longer needed */
  free(jobs);
  return result;
}
