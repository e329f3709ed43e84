/* hartsift convolve: filters a signal from a file by a mean, a Gaussian or given taps. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/formats/common/npy_array.h"
#include "pipeline/formats/common/text_cursor.h"
#include "stages/table_math.h"

#define PRODUCTS_MAX 1e12 /* of taps and numbers: some ten minutes on one core */

typedef enum signal_form { SIGNAL_TEXT, SIGNAL_NPY, SIGNAL_BINARY } signal_form;

/* A signal in memory: `array.height` rows of `array.width` numbers, float or double. */
typedef struct signal_data {
  hs_array array;
  size_t rank; /* number of dimensions of a .npy array: 1 or 2; for other files 1 */
  cli_memory memory;
} signal_data;

typedef struct convolve_job {
  const option_set *set;
  hs_context *context;
  double *taps;
  size_t tap_count;
  signal_data in, out;
  char message[CLI_MESSAGE_BYTES];
} convolve_job;

/* Content of a file. */
typedef struct signal_source {
  const char *path;
  uint8_t *bytes;
  size_t size;
} signal_source;

static const char *shown_name(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }

static signal_form form_of(const char *path) {
  if (path_ends_with(path, ".npy")) return SIGNAL_NPY;
  return path_ends_with(path, ".bin") ? SIGNAL_BINARY : SIGNAL_TEXT;
}

static size_t element_bytes(hs_element type) { return type == HS_ELEMENT_F32 ? sizeof(float) : sizeof(double); }

/* Prints "PATH: message" and returns CLI_FAILED. */
static cli_exit fail(const convolve_job *job, const char *path, const char *message) {
  cli_error_about(job->set->command, shown_name(path), message);
  return CLI_FAILED;
}

static cli_exit fail_status(convolve_job *job, const char *path, hs_status status) {
  cli_explain(job->context, status, job->message, sizeof job->message);
  return fail(job, path, job->message);
}

/* ---- reading */

/* Reads a stream to its end, at most `limit` bytes. Returns null, or the reason of a failure. */
static const char *read_stream(FILE *stream, uint64_t limit, signal_source *source) {
  enum { FIRST_BYTES = 1 << 16 };
  size_t capacity = 0;
  for (;;) {
    if (source->size == capacity) {
      const size_t more = capacity == 0 ? FIRST_BYTES : capacity + capacity / 2;
      uint8_t *grown = more > limit ? NULL : realloc(source->bytes, more);
      if (!grown) return more > limit ? "the file needs more memory than --max-memory allows" : "out of memory";
      source->bytes = grown;
      capacity = more;
    }
    const size_t got = fread(source->bytes + source->size, 1, capacity - source->size, stream);
    source->size += got;
    if (got == 0) return ferror(stream) ? strerror(errno) : NULL;
  }
}

/* Reads the file, or standard input for "-". */
static const char *read_source(const char *path, uint64_t limit, signal_source *source) {
  *source = (signal_source){.path = path};
  const bool is_stdin = strcmp(path, "-") == 0;
  errno = 0;
  FILE *stream = is_stdin ? stdin : os_open_stream(path, "rb");
  if (!stream) return strerror(errno);
  const char *fault = read_stream(stream, limit, source);
  if (!is_stdin) fclose(stream);
  return fault;
}

/* Allocates memory for a signal of this size. */
static hs_status make_signal(hs_context *context, size_t width, size_t height, hs_element type, signal_data *signal) {
  size_t count, bytes;
  if (!hs_size_mul(width, height, &count) || !hs_size_mul(count, element_bytes(type), &bytes)) return HS_ERR_LIMIT;
  signal->array = (hs_array){.width = width, .height = height, .type = type};
  const hs_status status = cli_memory_make(context, bytes, &signal->memory);
  signal->array.data = signal->memory.data;
  return status;
}

/* Skips empty lines, and comments ("# ..."). False at the end of the text. */
static bool next_number(text_cursor *cursor) {
  while (!cursor_at_end(cursor) && *cursor->at == '#')
    while (cursor->at < cursor->end && *cursor->at != '\n') cursor->at++;
  return cursor->at < cursor->end;
}

/* Counts the numbers of a text, and the lines that have any. */
static size_t count_numbers(text_cursor cursor, size_t *lines) {
  size_t count = 0, last_line = 0, size;
  const char *word;
  for (*lines = 0; next_number(&cursor); count++) {
    (void)cursor_word(&cursor, true, &word, &size);
    *lines += cursor.line != last_line;
    last_line = cursor.line;
  }
  return count;
}

/* Parses a text with a number per line, or with all numbers in one line, as doubles. Refuses a table: whether a row
   ends a signal is unknown. */
static cli_exit parse_text(convolve_job *job, const signal_source *source, signal_data *signal) {
  const feature_source text = {.path = shown_name(source->path),
                               .bytes = source->bytes,
                               .size = source->size,
                               .message = job->message,
                               .message_bytes = sizeof job->message};
  text_cursor cursor = cursor_make(&text);
  size_t filled = 0, lines;
  const size_t count = count_numbers(cursor, &lines);
  if (count == 0) return fail(job, source->path, "no number: expected one number a line");
  if (lines > 1 && count > lines)
    return cli_fail(CLI_FAILED, job->set->command,
                    "%s: %zu numbers in %zu lines: expected one number a line, or a .npy array of two dimensions",
                    shown_name(source->path), count, lines);
  const hs_status status = make_signal(job->context, count, 1, HS_ELEMENT_F64, signal);
  if (status != HS_OK) return fail_status(job, source->path, status);
  double *values = signal->memory.data;
  while (next_number(&cursor))
    if (cursor_double(&cursor, true, "the number", &values[filled++]) != HS_OK)
      return cli_fail(CLI_FAILED, job->set->command, "%s", job->message);
  return CLI_DONE;
}

/* Parses a .npy array. A float array stays float; other real types become double. */
static cli_exit parse_npy(convolve_job *job, const signal_source *source, signal_data *signal) {
  npy_array array;
  const char *fault = npy_parse(source->bytes, source->size, &array);
  if (!fault && !npy_is_numeric(&array)) fault = "a NumPy array of another type: expected integers or floats";
  if (!fault && (array.rank == 0 || array.shape[0] == 0 || array.shape[1] == 0)) fault = "no numbers";
  if (fault) return fail(job, source->path, fault);
  const bool is_float = array.kind == 'f' && array.item_bytes == sizeof(float);
  const size_t height = array.rank == 2 ? (size_t)array.shape[0] : 1;
  const size_t width = (size_t)array.shape[array.rank - 1];
  const hs_status status = make_signal(job->context, width, height, is_float ? HS_ELEMENT_F32 : HS_ELEMENT_F64, signal);
  if (status != HS_OK) return fail_status(job, source->path, status);
  signal->rank = array.rank;
  for (size_t y = 0; y < height; y++) {
    for (size_t x = 0; x < width; x++) {
      const double value = array.rank == 2 ? npy_value(&array, y, x) : npy_value(&array, x, 0);
      if (is_float)
        ((float *)signal->memory.data)[y * width + x] = (float)value;
      else
        ((double *)signal->memory.data)[y * width + x] = value;
    }
  }
  return CLI_DONE;
}

/* Parses little-endian doubles without a header. */
static cli_exit parse_binary(convolve_job *job, const signal_source *source, signal_data *signal) {
  if (source->size == 0 || source->size % sizeof(double) != 0)
    return fail(job, source->path, "the size is not a multiple of 8 bytes: expected doubles, at least one");
  const hs_status status = make_signal(job->context, source->size / sizeof(double), 1, HS_ELEMENT_F64, signal);
  if (status != HS_OK) return fail_status(job, source->path, status);
  memcpy(signal->memory.data, source->bytes, source->size);
  return CLI_DONE;
}

static cli_exit load_signal(convolve_job *job, const char *path, signal_data *signal) {
  signal_source source;
  *signal = (signal_data){.rank = 1};
  const uint64_t limit = machine_memory_limit(job->set->values[OPTION_MAX_MEMORY].count);
  const char *fault = read_source(path, limit, &source);
  cli_exit done = fault ? fail(job, path, fault) : CLI_DONE;
  if (done == CLI_DONE) {
    const signal_form form = form_of(path);
    done = form == SIGNAL_NPY      ? parse_npy(job, &source, signal)
           : form == SIGNAL_BINARY ? parse_binary(job, &source, signal)
                                   : parse_text(job, &source, signal);
  }
  free(source.bytes);
  return done;
}

/* ---- taps */

static cli_exit wrong_taps(const convolve_job *job, const char *expected) {
  return cli_fail(CLI_USAGE, job->set->command, "--taps '%s': expected %s", job->set->values[OPTION_TAPS].text,
                  expected);
}

static cli_exit alloc_taps(convolve_job *job, size_t count) {
  job->tap_count = count;
  job->taps = calloc(count, sizeof *job->taps);
  if (job->taps) return CLI_DONE;
  return cli_fail(CLI_FAILED, job->set->command, "out of memory");
}

/* mean:N */
static cli_exit make_mean(convolve_job *job, const char *number) {
  int64_t count;
  if (!number_to_int(number, strlen(number), &count) || count < 1 || count % 2 == 0 || count >= 1 << 24)
    return wrong_taps(job, "mean:N with an odd N below 2^24");
  const cli_exit done = alloc_taps(job, (size_t)count);
  for (size_t j = 0; done == CLI_DONE && j < job->tap_count; j++) job->taps[j] = 1.0 / (double)count;
  return done;
}

/* Makes the taps of "gauss:SIGMA": samples of the Gaussian out to four sigmas, scaled to sum 1. */
static cli_exit make_gauss(convolve_job *job, const char *number) {
  double sigma;
  if (!number_to_double(number, strlen(number), &sigma) || sigma < 0.1 || sigma > 1e6)
    return wrong_taps(job, "gauss:SIGMA with a sigma of .1 to 1000000");
  const size_t radius = (size_t)ceil(4.0 * sigma);
  const cli_exit done = alloc_taps(job, 2 * radius + 1);
  if (done != CLI_DONE) return done;
  double sum = 0.0;
  for (size_t j = 0; j < job->tap_count; j++) {
    const double x = (double)j - (double)radius;
    job->taps[j] = table_exp(-(x * x) / (2.0 * sigma * sigma));
    sum += job->taps[j];
  }
  for (size_t j = 0; j < job->tap_count; j++) job->taps[j] /= sum;
  return CLI_DONE;
}

static cli_exit wrong_tap(const convolve_job *job, size_t tap, const char *fault) {
  char expected[96];
  snprintf(expected, sizeof expected, "mean:N, gauss:SIGMA, @FILE or T1,T2,...; tap %zu is %s", tap + 1, fault);
  return wrong_taps(job, expected);
}

/* T1,T2,... */
static cli_exit make_list(convolve_job *job, const char *text) {
  size_t count = 1;
  for (const char *at = text; *at != '\0'; at++) count += *at == ',';
  const cli_exit done = alloc_taps(job, count);
  for (size_t j = 0; done == CLI_DONE && j < count; j++) {
    const size_t size = strcspn(text, ",");
    if (!number_to_double(text, size, &job->taps[j]))
      return wrong_tap(job, j, size == 0 ? "empty" : "no finite number");
    text += size + 1;
  }
  return done != CLI_DONE || count % 2 == 1 ? done : wrong_taps(job, "an odd number of taps");
}

/* Loads the taps of "@FILE". */
static cli_exit load_taps(convolve_job *job, const char *path) {
  signal_data taps;
  cli_exit done = load_signal(job, path, &taps);
  const size_t count = taps.array.width * taps.array.height;
  if (done == CLI_DONE && taps.array.width < count && taps.array.height < count)
    done = fail(job, path, "a table of numbers: expected the taps in one row or column");
  if (done == CLI_DONE && (count % 2 == 0 || count >= 1 << 24)) {
    cli_error(job->set->command, "%s: %zu taps: expected an odd number below 2^24", shown_name(path), count);
    done = CLI_FAILED;
  }
  if (done == CLI_DONE) done = alloc_taps(job, count);
  for (size_t j = 0; done == CLI_DONE && j < count; j++)
    job->taps[j] = taps.array.type == HS_ELEMENT_F32 ? (double)((const float *)taps.memory.data)[j]
                                                     : ((const double *)taps.memory.data)[j];
  cli_memory_free(&taps.memory);
  return done;
}

static cli_exit make_taps(convolve_job *job) {
  const option_value *taps = &job->set->values[OPTION_TAPS];
  if (!taps->is_set)
    return cli_fail(CLI_USAGE, job->set->command,
                    "--taps is missing: expected mean:N, gauss:SIGMA, @FILE or T1,T2,...");
  if (strncmp(taps->text, "mean:", 5) == 0) return make_mean(job, taps->text + 5);
  if (strncmp(taps->text, "gauss:", 6) == 0) return make_gauss(job, taps->text + 6);
  if (taps->text[0] != '@') return make_list(job, taps->text);
  return taps->text[1] != '\0' ? load_taps(job, taps->text + 1) : wrong_taps(job, "@ and the name of a file");
}

/* ---- writing */

static double value_at(const signal_data *signal, size_t index) {
  return signal->array.type == HS_ELEMENT_F32 ? (double)((const float *)signal->memory.data)[index]
                                              : ((const double *)signal->memory.data)[index];
}

/* Writes a number so that no digit is lost when it is read again. JSON has no NaN and no infinity, so these become
 * null. */
static void put_number(feature_sink *sink, const signal_data *signal, size_t index, bool json) {
  const double value = value_at(signal, index);
  char text[NUMBER_TEXT_BYTES];
  if (!isfinite(value))
    sink_text(sink, json ? "null" : isnan(value) ? "nan" : value < 0.0 ? "-inf" : "inf");
  else if (signal->array.type == HS_ELEMENT_F32)
    sink_bytes(sink, text, number_from_float((float)value, text));
  else
    sink_bytes(sink, text, number_from_double_exactly(value, text));
}

/* Writes one number per line, or for a two-dimensional array one row per line. */
static void put_text(feature_sink *sink, const signal_data *signal) {
  const size_t width = signal->array.width, count = width * signal->array.height;
  for (size_t i = 0; i < count; i++) {
    put_number(sink, signal, i, false);
    sink_text(sink, signal->rank == 2 && (i + 1) % width != 0 ? " " : "\n");
  }
}

/* Writes {"values": [...]}; the value of a two-dimensional array has a list for each row. */
static void put_json(feature_sink *sink, const signal_data *signal) {
  const size_t width = signal->array.width, count = width * signal->array.height;
  const bool has_rows = signal->rank == 2;
  sink_text(sink, has_rows ? "{\"values\": [[" : "{\"values\": [");
  for (size_t i = 0; i < count; i++) {
    if (i > 0) sink_text(sink, has_rows && i % width == 0 ? "], [" : ", ");
    put_number(sink, signal, i, true);
  }
  sink_text(sink, has_rows ? "]]}\n" : "]}\n");
}

/* Writes the samples without a header. as_doubles: floats become doubles. */
static void put_samples(feature_sink *sink, const signal_data *signal, bool as_doubles) {
  const size_t count = signal->array.width * signal->array.height;
  for (size_t i = 0; i < count; i++) {
    const double value = value_at(signal, i);
    const float narrow = (float)value;
    if (as_doubles || signal->array.type == HS_ELEMENT_F64)
      sink_bytes(sink, &value, sizeof value);
    else
      sink_bytes(sink, &narrow, sizeof narrow);
  }
}

static void put_signal(FILE *stream, const signal_data *signal, const char *path, bool json) {
  const hs_array *array = &signal->array;
  const bool is_float = array->type == HS_ELEMENT_F32;
  feature_sink sink;
  sink_begin(&sink, stream, NULL);
  if (form_of(path) == SIGNAL_TEXT) {
    (json ? put_json : put_text)(&sink, signal);
  } else {
    if (form_of(path) == SIGNAL_NPY)
      npy_put_header(&sink, is_float ? "<f4" : "<f8", signal->rank, signal->rank == 2 ? array->height : array->width,
                     array->width);
    put_samples(&sink, signal, form_of(path) == SIGNAL_BINARY);
  }
  sink_flush(&sink);
}

static cli_exit write_signal(convolve_job *job) {
  const option_set *set = job->set;
  const option_value *output = &set->values[OPTION_OUTPUT];
  const char *path = output->is_set ? output->text : "-";
  const bool json = set->values[OPTION_JSON].is_set || path_ends_with(path, ".json");
  if (strcmp(path, "-") == 0) {
    put_signal(stdout, &job->out, path, json);
    return CLI_DONE; /* main checks that everything was written */
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  if (stream) put_signal(stream, &job->out, path, json);
  if (stream && atomic_file_commit(&file) == HS_OK) return CLI_DONE;
  return cli_fail(CLI_FAILED, set->command, "%s", file.message);
}

/* ---- the command */

/* Refuses a convolution that takes many minutes: the time grows with the product of taps and numbers. */
static cli_exit check_work(const convolve_job *job) {
  const double count = (double)job->in.array.width * (double)job->in.array.height;
  if (count * (double)job->tap_count <= PRODUCTS_MAX) return CLI_DONE;
  return cli_fail(
      CLI_FAILED, job->set->command,
      "%s: %zu taps for %.0f numbers are %.2g products: expected at most %.2g; use fewer taps, or split the "
      "signal",
      shown_name(job->set->operands[0]), job->tap_count, count, count * (double)job->tap_count, PRODUCTS_MAX);
}

static cli_exit convolve(convolve_job *job) {
  const char *path = job->set->operands[0];
  const option_value *ends_value = &job->set->values[OPTION_ENDS];
  const hs_ends ends = ends_value->is_set ? (hs_ends)ends_value->integer : HS_ENDS_ZERO;
  const hs_array *in = &job->in.array;
  hs_status status = make_signal(job->context, in->width, in->height, in->type, &job->out);
  job->out.rank = job->in.rank;
  if (status == HS_OK)
    status = job->out.memory.on_device
                 ? hs_cuda_convolve1d(job->context, in, job->taps, job->tap_count, ends, NULL, job->out.memory.data, 0)
                 : hs_convolve1d(job->context, in, job->taps, job->tap_count, ends, job->out.memory.data, 0);
  return status == HS_OK ? CLI_DONE : fail_status(job, path, status);
}

cli_exit cmd_convolve(const option_set *set) {
  convolve_job job = {.set = set};
  const option_value *output = &set->values[OPTION_OUTPUT];
  const char *taps = set->values[OPTION_TAPS].is_set ? set->values[OPTION_TAPS].text : "";
  const bool is_taps = output->is_set && taps[0] == '@' && cli_is_same_file(taps + 1, output->text);
  if (strcmp(set->operands[0], "-") == 0 && strcmp(taps, "@-") == 0)
    return cli_fail(CLI_USAGE, set->command, "signal and taps cannot both be standard input");
  if (is_taps || (output->is_set && cli_is_same_file(set->operands[0], output->text)))
    return cli_fail(CLI_FAILED, set->command, "%s: the output would overwrite the input", output->text);
  if (output->is_set && set->values[OPTION_JSON].is_set && form_of(output->text) != SIGNAL_TEXT)
    return cli_fail(CLI_USAGE, set->command, "--json and --output '%s' name two formats: expected one of them",
                    output->text);
  cli_exit done = cli_make_array_context(set, &job.context);
  if (done == CLI_DONE) done = make_taps(&job);
  if (done == CLI_DONE) done = load_signal(&job, set->operands[0], &job.in);
  if (done == CLI_DONE) done = check_work(&job);
  if (done == CLI_DONE) done = convolve(&job);
  if (done == CLI_DONE) done = write_signal(&job);
  cli_memory_free(&job.in.memory);
  cli_memory_free(&job.out.memory);
  free(job.taps);
  hs_destroy(job.context);
  return done;
}
