/*
 * Image, context and output of `stats` and `hist`; see gray_array_job.h.
 */
#include "pipeline/cli/common/gray_array_job.h"

#include <string.h>

#include "pipeline/base/path_text.h"

hs_array gray_array_of(const hs_image *image) {
  const hs_array array = {.data = image->data,
                          .width = (size_t)image->width,
                          .height = (size_t)image->height,
                          .stride_bytes = image->stride_bytes,
                          .type = image->type == HS_F32   ? HS_ELEMENT_F32
                                  : image->type == HS_U16 ? HS_ELEMENT_U16
                                                          : HS_ELEMENT_U8};
  return array;
}

cli_exit gray_array_job_fail(const gray_array_job *job, const char *name) {
  const size_t length = strlen(name);
  const bool named = strncmp(job->message, name, length) == 0 && job->message[length] == ':';
  if (named)
    cli_error(job->set->command, "%s", job->message);
  else
    cli_error(job->set->command, "%s: %s", name, job->message);
  return CLI_FAILED;
}

cli_exit gray_array_job_open(gray_array_job *job, const option_set *set) {
  hs_options options;
  hs_expert_options expert;
  const option_value *output = &set->values[OPTION_OUTPUT];
  memset(job, 0, sizeof *job);
  job->set = set;
  job->json = set->values[OPTION_JSON].given || (output->given && path_ends_with(output->text, ".json"));
  cli_fill_options(set, &options, &expert);
  options.device = HS_DEVICE_CPU;
  cli_input_init(&job->input, set, &options);
  const hs_status created = hs_create_explained(&job->context, &options, job->message, sizeof job->message);
  if (created != HS_OK) {
    cli_print_create_error(set->command, job->message);
    return cli_exit_of_create(created);
  }
  const char *path = set->operands[0];
  if (cli_load_image(&job->input, path, false, &job->image, job->message, sizeof job->message) != HS_OK)
    return gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard input" : path);
  job->array = gray_array_of(&job->image);
  return CLI_DONE;
}

void gray_array_job_free(gray_array_job *job) {
  hs_image_free(&job->image);
  cli_input_free(&job->input);
  hs_destroy(job->context);
}

cli_exit gray_array_job_write(gray_array_job *job, void (*write)(FILE *out, const void *result), const void *result) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (!output->given || strcmp(output->text, "-") == 0) {
    write(stdout, result);
    return CLI_DONE; /* main looks whether all of it could be written */
  }
  if (cli_is_same_file(job->set->operands[0], output->text)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, output->text);
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, output->text);
  if (stream) write(stream, result);
  if (!stream || atomic_file_commit(&file) != HS_OK) {
    cli_error(job->set->command, "%s", file.message); /* names the file */
    return CLI_FAILED;
  }
  return CLI_DONE;
}
