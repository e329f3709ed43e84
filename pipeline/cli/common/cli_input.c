/*
 * Reading of images, masks and feature files for the subcommands; see cli_common.h.
 */
#include <inttypes.h>
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/image_io/image_io.h"

int32_t cli_decode_scale(const option_set *set) {
  return 1 << set->values[OPTION_DECODE_SCALE].integer; /* the choices are 1, 2, 4, 8; not given: the first */
}

void cli_input_init(cli_input *input, const option_set *set, const hs_options *options) {
  memset(input, 0, sizeof *input);
  input->load.struct_size = sizeof input->load;
  input->load.max_pixels = options->max_pixels;
  input->load.max_memory_bytes = options->max_memory_bytes;
  if (set->values[OPTION_MAX_MEMORY].given && options->max_memory_bytes == 0)
    input->load.max_memory_bytes =
        UINT64_MAX; /* on the command line 0 is no limit, in the library a share of the machine's */
  input->load.jpeg_scale = cli_decode_scale(set);
  input->load.max_image_size = set->values[OPTION_MAX_IMAGE_SIZE].integer;
  input->load.strict = set->values[OPTION_STRICT].given;
  input->load.range_low = (float)set->values[OPTION_VALUE_RANGE].number;
  input->load.range_high = (float)set->values[OPTION_VALUE_RANGE].high;
  input->command = set->command;
  input->masks = set->values[OPTION_MASKS].given ? set->values[OPTION_MASKS].text : NULL;
  input->load.keep_encoded =
      options->decoder == HS_DECODER_GPU; /* for one picture the comparison is not worth its time */
  cli_input_for(input, set, false);
}

void cli_input_for(cli_input *input, const option_set *set, bool as_stored) {
  input->load.ignore_exif = set->values[OPTION_NO_EXIF].given || (as_stored && !set->values[OPTION_EXIF].given);
}

void cli_explain_size(const cli_input *input, const char *what, int32_t width, int32_t height, const hs_image *image,
                      char message[CLI_MESSAGE_BYTES]) {
  const bool lies_across = width == image->height && height == image->width;
  const char *hint = "";
  if (lies_across) {
    hint = input->load.ignore_exif ? " as stored; --exif turns images by their EXIF orientation"
                                   : "; --no-exif leaves images as stored";
  }
  snprintf(message, CLI_MESSAGE_BYTES, "%s %" PRId32 "x%" PRId32 ": expected the image's %" PRId32 "x%" PRId32 "%s",
           what, width, height, image->width, image->height, hint);
}

void cli_input_free(cli_input *input) {
  hs_memory_release(NULL, input->stdin_bytes);
  input->stdin_bytes = NULL;
  input->stdin_size = 0;
}

/* Reads all of standard input, if it may be an image. On failure the data read so far are freed. */
static hs_status read_stdin(cli_input *input, char *message, size_t message_bytes) {
  image_request request;
  image_findings found;
  hs_load_options load = input->load;
  load.message = message;
  load.message_bytes = message_bytes;
  hs_status status = image_request_make(&load, "standard input", &found, &request);
  if (status == HS_OK) status = image_read_stream(&request, stdin, &input->stdin_bytes, &input->stdin_size);
  if (status != HS_OK) cli_input_free(input);
  input->has_stdin = status == HS_OK;
  return status;
}

void cli_print_notes(cli_input *input, const char *path, const hs_load_notes *notes) {
  if (input->warned == path) return;
  if (notes->damages > 0 || notes->is_low_range) input->warned = path;
  if (notes->damages > 1)
    cli_error(input->command, "warning: %s; %" PRId32 " such reports: pixels may be wrong, --strict refuses them",
              notes->damage, notes->damages);
  else if (notes->damages > 0)
    cli_error(input->command, "warning: %s: pixels may be wrong, --strict refuses them", notes->damage);
  /* stats and hist count samples as they are. */
  if (notes->is_low_range && option_belongs_to(OPTION_VALUE_RANGE, input->command))
    cli_error(input->command, "warning: %s (--value-range LOW:HIGH)", notes->low_range);
}

hs_load_options cli_mask_options(const hs_load_options *of_images) {
  hs_load_options load = *of_images;
  load.jpeg_scale = 1;
  load.max_image_size = 0;
  load.keep_colour = 0;
  load.range_low = load.range_high = 0.0f;
  load.exif = NULL;
  load.notes = NULL;
  return load;
}

static hs_status load_image(cli_input *input, const hs_load_options *options, const char *path, hs_image *image,
                            char *message, size_t message_bytes) {
  hs_status status = HS_OK;
  hs_load_options load = *options;
  message[0] = '\0';
  load.message = message;
  load.message_bytes = message_bytes;
  if (!input->keeps_stdin || strcmp(path, "-") != 0) {
    status = hs_load_image(path, &load, image);
  } else {
    status = input->has_stdin ? HS_OK : read_stdin(input, message, message_bytes);
    if (status == HS_OK) status = hs_load_image_memory(input->stdin_bytes, input->stdin_size, &load, image);
  }
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}

hs_status cli_load_image(cli_input *input, const char *path, bool keep_colour, hs_image *image, char *message,
                         size_t message_bytes) {
  hs_load_notes notes;
  hs_load_options load = input->load;
  load.keep_colour = keep_colour;
  load.notes = &notes;
  const hs_status status = load_image(input, &load, path, image, message, message_bytes);
  if (status == HS_OK) cli_print_notes(input, path, &notes);
  return status;
}

void cli_narrow_mask(hs_image *mask) {
  const size_t bytes_of_sample = image_sample_bytes(mask->type);
  if (mask->type == HS_U8) return;
  unsigned char *bytes = (unsigned char *)mask->data; /* the image is ours, hs_image just has no writable view */
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : bytes_of_sample * (size_t)mask->width;
  for (int32_t row = 0; row < mask->height; row++) {
    unsigned char *target = bytes + (size_t)row * stride;
    for (int32_t column = 0; column < mask->width; column++) {
      uint16_t word;
      float number = 0.0f;
      memcpy(&word, target + bytes_of_sample * (size_t)column, sizeof word);
      if (mask->type == HS_F32) memcpy(&number, target + bytes_of_sample * (size_t)column, sizeof number);
      target[column] = mask->type == HS_F32 ? number != 0.0f : word != 0;
    }
  }
  mask->type = HS_U8;
  mask->stride_bytes = stride;
}

hs_status cli_load_mask(cli_input *input, const char *path, hs_image *mask, char *message, size_t message_bytes) {
  const hs_load_options load = cli_mask_options(&input->load);
  const hs_status status = load_image(input, &load, path, mask, message, message_bytes);
  if (status == HS_OK) cli_narrow_mask(mask);
  return status;
}

hs_status cli_load_features_of(const cli_input *input, const char *path, const char *image, hs_features *features,
                               char *message, size_t message_bytes) {
  message[0] = '\0';
  const hs_file_options options = {.struct_size = sizeof options,
                                   .image_name = image,
                                   .max_memory_bytes = input->load.max_memory_bytes,
                                   .message = message,
                                   .message_bytes = message_bytes};
  const hs_status status = hs_load_features(path, features, &options);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s: %s", path, hs_status_string(status));
  return status;
}

hs_status cli_load_features(const cli_input *input, const char *path, hs_features *features, char *message,
                            size_t message_bytes) {
  return cli_load_features_of(input, path, NULL, features, message, message_bytes);
}
