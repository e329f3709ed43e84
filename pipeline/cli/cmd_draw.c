/*
 * hartsift draw: keypoints over a picture, as circles of a radius proportional to their scale with a line
 * in the direction of their orientation.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pipeline/cli/cli_common.h"
#include "pipeline/cli/drawing.h"
#include "pipeline/image_io/image_io.h"

/* Radius of a circle in units of sigma. The cells of a descriptor are 3 sigma wide; OpenCV's radius of one
   sigma leaves most keypoints too small to see. */
static const double draw_circle_scale = 3.0;

typedef struct draw_colour {
  uint8_t red, green, blue;
} draw_colour;

/* Okabe and Ito's palette without black, told apart with every common colour blindness; by octave. */
static const draw_colour draw_palette[] = {
    {230, 159, 0},   /* orange */
    {86, 180, 233},  /* sky blue */
    {0, 158, 115},   /* bluish green */
    {240, 228, 66},  /* yellow */
    {204, 121, 167}, /* reddish purple */
    {213, 94, 0},    /* vermilion */
    {0, 114, 178},   /* blue */
};
enum { DRAW_COLOURS = sizeof draw_palette / sizeof draw_palette[0], DRAW_LEAST_OCTAVE = -1 };

typedef struct draw_job {
  const option_set *set;
  cli_input input;
  hs_features features;
  drawing picture;
} draw_job;

static bool has_picture_ending(const char *path) {
  static const char *const endings[] = {".png", ".jpg", ".jpeg", ".ppm", ".pnm"};
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof endings[0]; ++i) {
    if (strcasecmp(dot, endings[i]) == 0) {
      return true;
    }
  }
  return strcmp(path, "-") == 0;
}

static cli_exit check_usage(const option_set *set) {
  if (!set->values[OPTION_OUTPUT].given) {
    cli_error(COMMAND_DRAW, "--output is missing: expected -o with a name ending in .png, .jpg, .jpeg, .ppm or .pnm");
    return CLI_USAGE;
  }
  const char *output = set->values[OPTION_OUTPUT].text;
  if (!has_picture_ending(output)) {
    cli_error(COMMAND_DRAW, "--output '%s': expected a name ending in .png, .jpg, .jpeg, .ppm or .pnm", output);
    return CLI_USAGE;
  }
  return CLI_DONE;
}

/* The keypoint's octave, from its scale where the file it comes from has none (level 0). */
static int octave_of(const hs_keypoint *keypoint) {
  if (keypoint->level != 0 || !(keypoint->sigma > 0.0f)) {
    return keypoint->octave;
  }
  const double lowest_sigma = 1.6; /* of octave 0 with the default options */
  return (int)fmin(fmax(floor(log2((double)keypoint->sigma / lowest_sigma)), DRAW_LEAST_OCTAVE), 32.0);
}

/* Lines grow with the picture so that they show when all of it fits on a screen. */
static double line_width(const drawing *picture) {
  const double longest = picture->width > picture->height ? picture->width : picture->height;
  return fmin(fmax(longest / 1200.0, 1.2), 12.0);
}

static void draw_keypoint(drawing *picture, const hs_keypoint *keypoint, double circle_scale, double width) {
  const int octave = octave_of(keypoint);
  const draw_colour colour = draw_palette[(octave > DRAW_LEAST_OCTAVE ? octave - DRAW_LEAST_OCTAVE : 0) % DRAW_COLOURS];
  const double radius = fmax((double)keypoint->sigma * circle_scale, 1.5 * width);
  const double x = (double)keypoint->x;
  const double y = (double)keypoint->y;
  const double end_x = x + radius * cos((double)keypoint->orientation);
  const double end_y = y + radius * sin((double)keypoint->orientation);
  /* A dark rim keeps the colours visible on bright ground. */
  const drawing_pen rim = {.opacity = 0.5, .width = 2.0 * width};
  const drawing_pen pen = {colour.red, colour.green, colour.blue, .opacity = 1.0, .width = width};
  drawing_circle(picture, x, y, radius, rim);
  drawing_line(picture, x, y, end_x, end_y, rim);
  drawing_circle(picture, x, y, radius, pen);
  drawing_line(picture, x, y, end_x, end_y, pen);
}

/* Large ones first, equal ones in their order: small circles stay on top. */
static int compare_keypoints(const void *one, const void *other) {
  const hs_keypoint *a = *(const hs_keypoint *const *)one;
  const hs_keypoint *b = *(const hs_keypoint *const *)other;
  const int by_scale = (a->sigma < b->sigma) - (a->sigma > b->sigma);
  return by_scale != 0 ? by_scale : (a > b) - (a < b);
}

static bool draw_keypoints(drawing *picture, const hs_features *features, double circle_scale) {
  const hs_keypoint **sorted = malloc((features->count + 1) * sizeof *sorted);
  if (sorted == NULL) {
    return false;
  }
  for (size_t i = 0; i < features->count; ++i) {
    sorted[i] = &features->keypoints[i];
  }
  qsort(sorted, features->count, sizeof *sorted, compare_keypoints);
  const double width = line_width(picture);
  for (size_t i = 0; i < features->count; ++i) {
    draw_keypoint(picture, sorted[i], circle_scale, width);
  }
  free(sorted);
  return true;
}

static cli_exit fail(const char *name, const char *message) {
  const size_t length = strlen(name);
  if (strncmp(message, name, length) == 0 && message[length] == ':') {
    cli_error(COMMAND_DRAW, "%s", message);
  } else {
    cli_error(COMMAND_DRAW, "%s: %s", name, message);
  }
  return CLI_FAILED;
}

/* Extracts from the gray image, as `extract` does: a JPEG's own luma is not that of its RGB pixels. */
static cli_exit extract_features(draw_job *job, hs_context *context, const char *path) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image gray = {0};
  hs_image mask = {0};
  const option_value *mask_value = &job->set->values[OPTION_MASK];
  hs_status status = cli_load_image(&job->input, path, false, &gray, message, sizeof message);
  if (status == HS_OK && mask_value->given) {
    status = cli_load_mask(&job->input, mask_value->text, &mask, message, sizeof message);
    if (status == HS_OK && (mask.width != gray.width || mask.height != gray.height)) {
      snprintf(message, sizeof message,
               "the mask is %" PRId32 "x%" PRId32 ": expected the image's %" PRId32 "x%" PRId32, mask.width,
               mask.height, gray.width, gray.height);
      status = HS_ERR_ARGUMENT;
    }
  }
  if (status == HS_OK) {
    status = hs_extract_masked(context, &gray, mask_value->given ? &mask : NULL, &job->features);
    if (status != HS_OK) {
      cli_explain(context, status, message, sizeof message);
    }
  }
  hs_image_free(&mask, NULL);
  hs_image_free(&gray, NULL);
  return status == HS_OK ? CLI_DONE : fail(path, message);
}

static cli_exit load_picture(draw_job *job, const char *path) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_image image = {0};
  hs_status status = cli_load_image(&job->input, path, true, &image, message, sizeof message);
  if (status == HS_OK) {
    status = drawing_from_image(&job->picture, &image);
    if (status != HS_OK) {
      snprintf(message, sizeof message, "%s", hs_status_string(status));
    }
  }
  hs_image_free(&image, NULL);
  return status == HS_OK ? CLI_DONE : fail(path, message);
}

static cli_exit load_features(draw_job *job, const char *path, const char *image) {
  char message[CLI_MESSAGE_BYTES];
  if (cli_load_features_of(path, image, &job->features, message, sizeof message) != HS_OK) {
    return fail(path, message);
  }
  const hs_features *features = &job->features;
  const bool fits = features->image_width == 0 ||
                    (features->image_width == job->picture.width && features->image_height == job->picture.height);
  if (!fits) {
    snprintf(message, sizeof message,
             "these are features of an image of %" PRId32 "x%" PRId32 ": expected %" PRId32 "x%" PRId32,
             features->image_width, features->image_height, job->picture.width, job->picture.height);
    return fail(path, message);
  }
  return CLI_DONE;
}

static cli_exit save_picture(draw_job *job) {
  const char *path = job->set->values[OPTION_OUTPUT].text;
  const bool to_stdout = strcmp(path, "-") == 0;
  const char *name = to_stdout ? "standard output" : path;
  const option_value *scale = &job->set->values[OPTION_CIRCLE_SCALE];
  char message[CLI_MESSAGE_BYTES] = "";
  for (int i = 0; i < job->set->operand_count; ++i) {
    if (cli_is_same_file(job->set->operands[i], path)) {
      return fail(path, "the output would overwrite an input");
    }
  }
  if (!draw_keypoints(&job->picture, &job->features, scale->given ? scale->number : draw_circle_scale)) {
    return fail(path, hs_status_string(HS_ERR_MEMORY));
  }
  const hs_image view = drawing_view(&job->picture);
  const hs_status status = image_save(path, &view, message, sizeof message);
  if (status != HS_OK) {
    return to_stdout && cli_stdout_is_gone() ? CLI_FAILED
                                             : fail(name, message[0] != '\0' ? message : hs_status_string(status));
  }
  if (!job->set->values[OPTION_QUIET].given) {
    fprintf(stderr, "%s: %" PRId32 "x%" PRId32 ", %zu features -> %s\n", job->set->operands[0], job->picture.width,
            job->picture.height, job->features.count, name);
  }
  return CLI_DONE;
}

cli_exit cmd_draw(const option_set *set) {
  draw_job job = {.set = set};
  hs_options options;
  hs_context *context = NULL;
  const bool extracts = set->operand_count == 1;
  cli_exit result = check_usage(set);
  if (result == CLI_DONE && extracts) {
    result = cli_make_context(set, &options, &context);
  }
  if (result == CLI_DONE) {
    cli_fill_options(set, &options);
    cli_input_init(&job.input, set, &options);
    job.input.keeps_stdin = extracts; /* decoded in colour for the picture and in gray for its features */
    result = load_picture(&job, set->operands[0]);
  }
  if (result == CLI_DONE) {
    result = extracts ? extract_features(&job, context, set->operands[0])
                      : load_features(&job, set->operands[1], set->operands[0]);
  }
  if (result == CLI_DONE) {
    result = save_picture(&job);
  }
  cli_input_free(&job.input);
  drawing_free(&job.picture);
  hs_features_free(&job.features);
  hs_destroy(context);
  return result;
}
