/*
 * hartsift hist: the 256-bin histogram of an image, and the image with its histogram equalised.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/common/gray_array_job.h"
#include "pipeline/cli/draw/save_picture.h"

enum { HIST_LEVELS = 256 };

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

static cli_exit count(gray_array_job *job, hist_result *r) {
  const option_value *mask_value = &job->set->values[OPTION_MASK];
  hs_image mask = {0};
  hs_array kept = {0};
  hs_status status = HS_OK;
  r->json = job->json;
  if (job->image.type != HS_U8) {
    snprintf(job->message, sizeof job->message, "the image has 16 bits a sample: expected 8");
    return gray_array_job_fail(job, job->set->operands[0]);
  }
  if (mask_value->given) {
    status = cli_load_mask(&job->input, mask_value->text, &mask, job->message, sizeof job->message);
    kept = gray_array_of(&mask);
  }
  if (status == HS_OK) {
    status = hs_histogram256(job->context, &job->array, mask_value->given ? &kept : NULL, r->counts);
    if (status != HS_OK) cli_explain(job->context, status, job->message, sizeof job->message);
  }
  hs_image_free(&mask);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, mask_value->given ? mask_value->text : "histogram");
}

/* Where the equalised image goes, when that can be. */
static cli_exit check_equalized(gray_array_job *job) {
  const option_set *set = job->set;
  const char *path = set->values[OPTION_EQUALIZED_FILE].text;
  const bool to_stdout = strcmp(path, "-") == 0;
  const option_value *output = &set->values[OPTION_OUTPUT];
  if (to_stdout && (!output->given || strcmp(output->text, "-") == 0)) {
    cli_error(COMMAND_HIST,
              "--equalize '-': the image and the histogram cannot share standard output: expected -o FILE");
    return CLI_USAGE;
  }
  if (to_stdout && cli_refuses_terminal(COMMAND_HIST, "--equalize '-'")) return CLI_USAGE;
  if (output->given && (strcmp(output->text, path) == 0 || cli_is_same_file(output->text, path))) {
    cli_error(COMMAND_HIST, "--equalize and --output name one file");
    return CLI_USAGE;
  }
  return CLI_DONE;
}

static cli_exit equalize(gray_array_job *job) {
  const char *path = job->set->values[OPTION_EQUALIZED_FILE].text;
  const hs_array *in = &job->array;
  if (cli_is_same_file(job->set->operands[0], path)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, path);
  }
  uint8_t *pixels = malloc(in->width * in->height);
  const hs_image image = {.data = pixels, .width = job->image.width, .height = job->image.height};
  hs_status status = pixels ? hs_equalize(job->context, in, pixels, 0) : HS_ERR_MEMORY;
  snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
  if (status == HS_OK) status = image_save(path, &image, job->message, sizeof job->message);
  free(pixels);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard output" : path);
}

/* Two spellings of one name, which only show once the image is there: the histogram must not take its place. */
static cli_exit check_output(gray_array_job *job) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (output->given && cli_is_same_file(output->text, job->set->values[OPTION_EQUALIZED_FILE].text)) {
    snprintf(job->message, sizeof job->message, "the histogram would overwrite the equalised image");
    return gray_array_job_fail(job, output->text);
  }
  return CLI_DONE;
}

cli_exit cmd_hist(const option_set *set) {
  gray_array_job job = {.set = set};
  hist_result result = {.json = false};
  const bool equalized = set->values[OPTION_EQUALIZED_FILE].given;
  cli_exit done = equalized ? check_equalized(&job) : CLI_DONE;
  if (done != CLI_DONE) return done;
  done = gray_array_job_open(&job, set);
  if (done == CLI_DONE) done = count(&job, &result);
  if (done == CLI_DONE && equalized) {
    done = equalize(&job);
    done = done == CLI_DONE ? check_output(&job) : done;
  }
  if (done == CLI_DONE) done = gray_array_job_write(&job, write_histogram, &result);
  gray_array_job_free(&job);
  return done;
}
