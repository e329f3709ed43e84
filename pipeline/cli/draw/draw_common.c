/*
 * What both kinds of pictures of `hartsift draw` share; see draw_common.h.
 */
#include "pipeline/cli/draw/draw_common.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pipeline/base/path_text.h"
#include "pipeline/cli/draw/save_picture.h"
#include "pipeline/formats/formats.h"

const draw_colour draw_palette[DRAW_COLOURS] = {
    {230, 159, 0},   /* orange */
    {86, 180, 233},  /* sky blue */
    {0, 158, 115},   /* bluish green */
    {240, 228, 66},  /* yellow */
    {204, 121, 167}, /* reddish purple */
    {213, 94, 0},    /* vermilion */
    {0, 114, 178},   /* blue */
};

double draw_line_width(const drawing *picture) {
  const double longest = picture->width > picture->height ? picture->width : picture->height;
  return fmin(fmax(longest / 1200.0, 1.2), 12.0);
}

cli_exit draw_fail(const char *name, const char *message) {
  cli_error_about(COMMAND_DRAW, name, message);
  return CLI_FAILED;
}

cli_exit draw_load_picture(cli_input *input, const char *path, drawing *picture) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image image = {0};
  hs_status status = cli_load_image(input, path, true, &image, message, sizeof message);
  if (status == HS_OK) {
    status = drawing_from_image(picture, &image);
    if (status != HS_OK) snprintf(message, sizeof message, "%s", hs_status_string(status));
  }
  hs_image_free(&image);
  return status == HS_OK ? CLI_DONE : draw_fail(path, message);
}

/* A JPEG's own luma is not that of its RGB pixels, so the image is decoded once more, in gray. */
cli_exit draw_extract_features(cli_input *input, hs_context *context, const char *path, const char *mask_path,
                               hs_features *features) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image gray = {0};
  hs_image mask = {0};
  hs_status status = cli_load_image(input, path, false, &gray, message, sizeof message);
  if (status == HS_OK && mask_path) {
    status = cli_load_mask(input, mask_path, &mask, message, sizeof message);
    if (status == HS_OK && (mask.width != gray.width || mask.height != gray.height)) {
      cli_explain_size(input, "the mask is", mask.width, mask.height, &gray, message);
      status = HS_ERR_ARGUMENT;
    }
  }
  if (status == HS_OK) {
    status = hs_extract(context, &gray, mask_path ? &mask : NULL, features);
    if (status != HS_OK) cli_explain(context, status, message, sizeof message);
  }
  hs_image_free(&mask);
  hs_image_free(&gray);
  return status == HS_OK ? CLI_DONE : draw_fail(path, message);
}

cli_exit draw_load_features(const cli_input *input, const char *path, const char *image, const drawing *picture,
                            hs_features *features) {
  char message[CLI_MESSAGE_BYTES];
  if (cli_load_features_of(input, path, image, features, message, sizeof message) != HS_OK)
    return draw_fail(path, message);
  const bool fits = features->image_width == 0 ||
                    (features->image_width == picture->width && features->image_height == picture->height);
  if (!fits) {
    const hs_image size = {.width = picture->width, .height = picture->height};
    cli_explain_size(input, "these are features of an image of", features->image_width, features->image_height, &size,
                     message);
    return draw_fail(path, message);
  }
  return CLI_DONE;
}

bool draw_is_as_stored(const char *path) {
  const feature_format *format = format_of_file(path);
  return format != NULL && format->as_stored;
}

bool draw_can_write(const char *path) {
  static const char *const endings[] = {".png", ".jpg", ".jpeg", ".ppm", ".pnm"};
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    if (path_ends_with(path, endings[i])) return true;
  return strcmp(path, "-") == 0;
}

cli_exit draw_save_picture(const option_set *set, const char *path, const drawing *picture, const char *summary) {
  const bool to_stdout = strcmp(path, "-") == 0;
  const char *name = to_stdout ? "standard output" : path;
  if (to_stdout && cli_refuses_terminal(set->command, "a picture")) return CLI_USAGE;
  char message[CLI_MESSAGE_BYTES] = "";
  for (int i = 0; i < set->operand_count; i++)
    if (cli_is_same_file(set->operands[i], path)) return draw_fail(path, "the output would overwrite an input");
  const hs_image view = drawing_view(picture);
  const hs_status status = image_save(path, &view, message, sizeof message);
  if (status != HS_OK) {
    return to_stdout && cli_stdout_is_gone() ? CLI_FAILED
                                             : draw_fail(name, message[0] != '\0' ? message : hs_status_string(status));
  }
  if (!set->values[OPTION_QUIET].given) cli_note("%s -> %s", summary, name);
  return CLI_DONE;
}
