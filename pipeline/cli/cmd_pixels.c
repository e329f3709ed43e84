/* hartsift stats and hartsift hist: statistics and histogram of one image. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/draw/drawing.h"
#include "pipeline/formats/common/text_cursor.h"

/* ---- image, context and output of both */

enum { HIST_LEVELS = 256 };

typedef struct gray_array_job {
  const option_set *set;
  hs_context *context;
  cli_input input;
  hs_image image; /* gray */
  hs_array array; /* pixels in memory that the context's primitives can read */
  cli_memory copy;
  bool json; /* --json was given, or the output's name ends in .json */
  char message[CLI_MESSAGE_BYTES];
} gray_array_job;

/* Returns the pixels of a gray image as an array. */
static hs_array gray_array_of(const hs_image *image) {
  const hs_array array = {.data = image->data,
                          .width = (size_t)image->width,
                          .height = (size_t)image->height,
                          .stride_bytes = image->stride_bytes,
                          .type = image->type == HS_F32   ? HS_ELEMENT_F32
                                  : image->type == HS_U16 ? HS_ELEMENT_U16
                                                          : HS_ELEMENT_U8};
  return array;
}

/* Prints "NAME: message" and returns CLI_FAILED. */
static cli_exit gray_array_job_fail(const gray_array_job *job, const char *name) {
  const size_t length = strlen(name);
  const bool named = strncmp(job->message, name, length) == 0 && job->message[length] == ':';
  if (named)
    cli_error(job->set->command, "%s", job->message);
  else
    cli_error(job->set->command, "%s: %s", name, job->message);
  return CLI_FAILED;
}

/* If the context is on a GPU, copies the pixels to pinned memory. */
static hs_status move_pixels(hs_context *context, hs_array *array, cli_memory *copy) {
  const size_t sample = array->type == HS_ELEMENT_U8 ? 1 : array->type == HS_ELEMENT_U16 ? 2 : 4;
  const size_t row_bytes = array->width * sample;
  void *pinned;
  const hs_status status = hs_cuda_alloc_host(context, row_bytes * array->height, &pinned);
  if (status != HS_OK) return status == HS_ERR_NO_DEVICE ? HS_OK : status;
  *copy = (cli_memory){context, pinned, true};
  for (size_t y = 0; y < array->height; y++)
    memcpy((unsigned char *)pinned + y * row_bytes,
           (const unsigned char *)array->data + y * (array->stride_bytes > 0 ? array->stride_bytes : row_bytes),
           row_bytes);
  array->data = pinned;
  array->stride_bytes = row_bytes;
  return HS_OK;
}

/* Replaces samples of 16 bits or floats by levels: the index of one of 256 equal bins between LOW and HIGH. NaN gets
   level 0. This works in place, because a level is never longer than its sample. False: a
   sample is outside the range, and the message names it. */
static bool make_levels(gray_array_job *job) {
  const option_value *range = &job->set->values[OPTION_VALUE_RANGE];
  hs_array *array = &job->array;
  const bool is_float = array->type == HS_ELEMENT_F32;
  const double low = range->is_set ? range->number : 0.0;
  const double high = range->is_set ? range->high : is_float ? 1.0 : 65535.0;
  /* a limit with the digits of a float sample must hold that sample */
  const double least = is_float ? (double)(float)low : low, most = is_float ? (double)(float)high : high;
  const size_t tight_bytes = array->width * (is_float ? sizeof(float) : sizeof(uint16_t));
  const size_t row_bytes = array->stride_bytes > 0 ? array->stride_bytes : tight_bytes;
  uint8_t *levels = (uint8_t *)job->image.data;
  for (size_t y = 0; y < array->height; y++) {
    const unsigned char *row = (const unsigned char *)array->data + y * row_bytes;
    for (size_t x = 0; x < array->width; x++) {
      const double value =
          is_float ? (double)((const float *)(const void *)row)[x] : (double)((const uint16_t *)(const void *)row)[x];
      if (value < least || value > most) {
        snprintf(job->message, sizeof job->message,
                 "sample %g is outside %g to %g: expected a --value-range that holds all", value, low, high);
        return false;
      }
      const double level = floor((value - low) / (high - low) * HIST_LEVELS);
      *levels++ = level >= HIST_LEVELS - 1 ? HIST_LEVELS - 1 : level > 0.0 ? (uint8_t)level : 0;
    }
  }
  *array = (hs_array){.data = job->image.data, .width = array->width, .height = array->height};
  return true;
}

/* Loads the image. With any_samples, samples without a known range are loaded as they are. */
static hs_status load_gray(gray_array_job *job, const char *path, bool any_samples) {
  static const float limit = 1.5e38f; /* widest range that the library takes */
  char reason[CLI_MESSAGE_BYTES];
  job->input.keeps_stdin = true;
  const hs_status status = cli_load_image(&job->input, path, false, &job->image, job->message, sizeof job->message);
  if (status != HS_ERR_UNSUPPORTED && status != HS_ERR_ARGUMENT) return status;
  snprintf(reason, sizeof reason, "%s", job->message);
  job->input.load.range_low = -limit;
  job->input.load.range_high = limit;
  const hs_status again = cli_load_image(&job->input, path, false, &job->image, job->message, sizeof job->message);
  if (again == HS_ERR_ARGUMENT)
    snprintf(job->message, sizeof job->message, "samples are NaN, infinite or beyond 3e38: replace them");
  if (any_samples || again != HS_OK) return again;
  hs_image_free(&job->image);
  snprintf(job->message, sizeof job->message, "%s", reason);
  return status;
}

/* Creates the context and loads the image. Prints the reason of a failure; call gray_array_job_free in any case.
   levels: samples that do not have 8 bits are replaced by levels. */
static cli_exit gray_array_job_open(gray_array_job *job, const option_set *set, bool levels) {
  hs_options options;
  hs_expert_options expert;
  const option_value *output = &set->values[OPTION_OUTPUT];
  memset(job, 0, sizeof *job);
  job->set = set;
  job->json = set->values[OPTION_JSON].is_set || (output->is_set && path_ends_with(output->text, ".json"));
  cli_fill_options(set, &options, &expert);
  cli_input_init(&job->input, set, &options);
  const cli_exit created = cli_make_array_context(set, &job->context);
  if (created != CLI_DONE) return created;
  const char *path = set->operands[0];
  if (load_gray(job, path, !levels) != HS_OK)
    return gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard input" : path);
  job->array = gray_array_of(&job->image);
  if (levels && job->image.type != HS_U8) {
    if (set->values[OPTION_EQUALIZED_FILE].is_set) {
      snprintf(job->message, sizeof job->message, "--equalize: the image has 16 bits or floats: expected 8 bits");
      return gray_array_job_fail(job, path);
    }
    if (!make_levels(job)) return gray_array_job_fail(job, path);
  }
  const hs_status placed = move_pixels(job->context, &job->array, &job->copy);
  if (placed == HS_OK) return CLI_DONE;
  cli_explain(job->context, placed, job->message, sizeof job->message);
  return gray_array_job_fail(job, path);
}

static void gray_array_job_free(gray_array_job *job) {
  hs_image_free(&job->image);
  cli_memory_free(&job->copy);
  cli_input_free(&job->input);
  hs_destroy(job->context);
}

/* Returns whether the path is the image or the mask. */
static bool is_input(const option_set *set, const char *path) {
  const option_value *mask = &set->values[OPTION_MASK];
  return cli_is_same_file(set->operands[0], path) || (mask->is_set && cli_is_same_file(mask->text, path));
}

/* Calls `write` with the stream of -o or standard output; the file is written atomically. */
static cli_exit gray_array_job_write(gray_array_job *job, void (*write)(FILE *out, const void *result),
                                     const void *result) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (!output->is_set || strcmp(output->text, "-") == 0) {
    write(stdout, result);
    return CLI_DONE; /* main checks that everything was written */
  }
  if (is_input(job->set, output->text)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, output->text);
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, output->text);
  if (stream) write(stream, result);
  if (!stream || atomic_file_commit(&file) != HS_OK) {
    cli_error(job->set->command, "%s", file.message); /* the message names the file */
    return CLI_FAILED;
  }
  return CLI_DONE;
}

/* ---- hartsift stats: sum, mean, minimum, maximum of an image or its tiles */

typedef struct stats_result {
  hs_array array;
  hs_tiling tiling;
  cli_memory memory; /* hs_tile[count] */
  size_t count;
  bool json;
} stats_result;

static void write_tile(FILE *out, const stats_result *r, size_t index) {
  const hs_tile *tile = (const hs_tile *)r->memory.data + index;
  const size_t columns = (r->array.width - 1) / r->tiling.width + 1;
  const size_t x = index % columns * r->tiling.width;
  const size_t y = index / columns * r->tiling.height;
  const size_t width = r->array.width - x < r->tiling.width ? r->array.width - x : r->tiling.width;
  const size_t height = r->array.height - y < r->tiling.height ? r->array.height - y : r->tiling.height;
  const char *form = r->json ? "{\"x\": %zu, \"y\": %zu, \"width\": %zu, \"height\": %zu, \"sum\": %s, \"mean\": %s, "
                               "\"min\": %s, \"max\": %s, \"above\": %" PRIu64 "}"
                             : "%zu,%zu,%zu,%zu,%s,%s,%s,%s,%" PRIu64 "\n";
  const double numbers[] = {tile->sum, tile->mean, tile->min, tile->max};
  char texts[4][NUMBER_TEXT_BYTES];
  for (int i = 0; i < 4; i++) {
    if (isfinite(numbers[i]))
      number_from_double_exactly(numbers[i], texts[i]);
    else
      snprintf(texts[i], sizeof texts[i], "%s",
               r->json             ? "null"
               : isnan(numbers[i]) ? "nan"
               : numbers[i] < 0.0  ? "-inf"
                                   : "inf");
  }
  fprintf(out, form, x, y, width, height, texts[0], texts[1], texts[2], texts[3], tile->above);
}

static void write_stats(FILE *out, const void *result) {
  const stats_result *r = result;
  fputs(r->json ? "{\"tiles\": [" : "x,y,width,height,sum,mean,min,max,above\n", out);
  for (size_t i = 0; i < r->count; i++) {
    if (r->json) fputs(i > 0 ? ",\n  " : "\n  ", out);
    write_tile(out, r, i);
  }
  if (r->json) fputs("\n]}\n", out);
}

static cli_exit compute(gray_array_job *job, stats_result *r) {
  const option_value *values = job->set->values;
  r->array = job->array;
  r->json = job->json;
  r->tiling = (hs_tiling){r->array.width, r->array.height, 0.0};
  if (values[OPTION_TILE].is_set) {
    r->tiling.width = (size_t)values[OPTION_TILE].numbers[0];
    r->tiling.height = (size_t)values[OPTION_TILE].numbers[1];
  }
  if (values[OPTION_THRESHOLD].is_set) r->tiling.threshold = values[OPTION_THRESHOLD].number;
  hs_status status = hs_tile_stats(job->context, &r->array, &r->tiling, NULL, 0, &r->count);
  if (status == HS_ERR_CAPACITY) status = cli_memory_make(job->context, r->count * sizeof(hs_tile), &r->memory);
  if (status == HS_OK)
    status = r->memory.on_device
                 ? hs_cuda_tile_stats(job->context, &r->array, &r->tiling, NULL, r->memory.data, r->count, &r->count)
                 : hs_tile_stats(job->context, &r->array, &r->tiling, r->memory.data, r->count, &r->count);
  if (status == HS_OK) return CLI_DONE;
  snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
  return gray_array_job_fail(job, job->set->operands[0]);
}

cli_exit cmd_stats(const option_set *set) {
  gray_array_job job;
  stats_result result = {.count = 0};
  cli_exit done = gray_array_job_open(&job, set, false);
  if (done == CLI_DONE) done = compute(&job, &result);
  if (done == CLI_DONE) done = gray_array_job_write(&job, write_stats, &result);
  cli_memory_free(&result.memory);
  gray_array_job_free(&job);
  return done;
}

/* ---- hartsift hist: histogram of an image, and the equalised image */

typedef struct hist_result {
  uint64_t counts[HIST_LEVELS];
  bool json;
} hist_result;

static void write_histogram(FILE *out, const void *result) {
  const hist_result *r = result;
  fputs(r->json ? "{\"histogram\": [" : "level,count\n", out);
  for (int level = 0; level < HIST_LEVELS; level++)
    if (r->json)
      fprintf(out, "%s%" PRIu64, level > 0 ? ", " : "", r->counts[level]);
    else
      fprintf(out, "%d,%" PRIu64 "\n", level, r->counts[level]);
  if (r->json) fputs("]}\n", out);
}

/* Counts on the context's device. mask: in host memory, or null. */
static hs_status count_on_device(gray_array_job *job, hs_array *mask, uint64_t counts[HIST_LEVELS]) {
  cli_memory kept = {0}, counted = {0};
  hs_status status = cli_memory_make(job->context, HIST_LEVELS * sizeof *counts, &counted);
  if (status == HS_OK && mask) status = move_pixels(job->context, mask, &kept);
  if (status == HS_OK) status = hs_cuda_histogram256(job->context, &job->array, mask, NULL, counted.data);
  if (status == HS_OK) memcpy(counts, counted.data, HIST_LEVELS * sizeof *counts);
  cli_memory_free(&kept);
  cli_memory_free(&counted);
  return status;
}

static cli_exit count(gray_array_job *job, hist_result *r) {
  const option_value *mask_value = &job->set->values[OPTION_MASK];
  hs_image mask = {0};
  hs_array kept = {0};
  hs_status status = HS_OK;
  r->json = job->json;
  if (mask_value->is_set) {
    status = cli_load_mask(&job->input, mask_value->text, &mask, job->message, sizeof job->message);
    kept = gray_array_of(&mask);
  }
  if (status == HS_OK) {
    hs_array *counted = mask_value->is_set ? &kept : NULL;
    status = job->copy.on_device ? count_on_device(job, counted, r->counts)
                                 : hs_histogram256(job->context, &job->array, counted, r->counts);
    if (status != HS_OK) cli_explain(job->context, status, job->message, sizeof job->message);
  }
  hs_image_free(&mask);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, mask_value->is_set ? mask_value->text : "histogram");
}

/* Checks the path of the equalised image. */
static cli_exit check_equalized(gray_array_job *job) {
  const option_set *set = job->set;
  const char *path = set->values[OPTION_EQUALIZED_FILE].text;
  const bool to_stdout = strcmp(path, "-") == 0;
  const option_value *output = &set->values[OPTION_OUTPUT];
  if (to_stdout && (!output->is_set || strcmp(output->text, "-") == 0))
    return cli_fail(CLI_USAGE, COMMAND_HIST,
                    "--equalize '-': the image and the histogram cannot share standard output: expected -o FILE");
  if (to_stdout && cli_refuses_terminal(COMMAND_HIST, "--equalize '-'")) return CLI_USAGE;
  if (output->is_set && (strcmp(output->text, path) == 0 || cli_is_same_file(output->text, path)))
    return cli_fail(CLI_USAGE, COMMAND_HIST, "--equalize and --output name one file");
  return CLI_DONE;
}

static cli_exit equalize(gray_array_job *job) {
  const char *path = job->set->values[OPTION_EQUALIZED_FILE].text;
  const hs_array *in = &job->array;
  if (is_input(job->set, path)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, path);
  }
  cli_memory pixels;
  hs_status status = cli_memory_make(job->context, in->width * in->height, &pixels);
  const hs_image image = {.data = pixels.data, .width = job->image.width, .height = job->image.height};
  if (status == HS_OK)
    status = pixels.on_device ? hs_cuda_equalize(job->context, in, NULL, pixels.data, 0)
                              : hs_equalize(job->context, in, pixels.data, 0);
  snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
  if (status == HS_OK) status = image_save(path, &image, job->message, sizeof job->message);
  cli_memory_free(&pixels);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard output" : path);
}

/* Refuses to replace the equalised image by the histogram. Two spellings of one path can be detected only after the
   image is written. */
static cli_exit check_output(gray_array_job *job) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (output->is_set && cli_is_same_file(output->text, job->set->values[OPTION_EQUALIZED_FILE].text)) {
    snprintf(job->message, sizeof job->message, "the histogram would overwrite the equalised image");
    return gray_array_job_fail(job, output->text);
  }
  return CLI_DONE;
}

cli_exit cmd_hist(const option_set *set) {
  gray_array_job job = {.set = set};
  hist_result result = {.json = false};
  const bool equalized = set->values[OPTION_EQUALIZED_FILE].is_set;
  cli_exit done = equalized ? check_equalized(&job) : CLI_DONE;
  if (done != CLI_DONE) return done;
  done = gray_array_job_open(&job, set, true);
  if (done == CLI_DONE) done = count(&job, &result);
  if (done == CLI_DONE && equalized) {
    done = equalize(&job);
    done = done == CLI_DONE ? check_output(&job) : done;
  }
  if (done == CLI_DONE) done = gray_array_job_write(&job, write_histogram, &result);
  gray_array_job_free(&job);
  return done;
}
