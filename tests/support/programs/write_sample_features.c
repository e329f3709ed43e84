/*
 * Writes generated features in every format, for checks by other programs.
 *
 * usage: write_sample_features FOLDER COUNT u8|f32|scaled|none
 *
 * The features are also written as plain lines (truth.txt: x y sigma orientation response octave level and the
 * descriptor, C99 hexadecimal floats), without the library's code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/formats.h"
#include "tests/support/feature_maker.h"

enum { SAMPLE_SEED = 77, SAMPLE_PATH_BYTES = 1024 };

static bool sample_style(const char *name, feature_style *style) {
  static const char *const names[] = {"u8", "f32", "scaled", "none"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(names[i], name) == 0) {
      *style = (feature_style)i;
      return true;
    }
  }
  return false;
}

static void sample_print_entries(FILE *file, const hs_features *features, size_t index) {
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH && features->descriptor_type != HS_DESCRIPTOR_NONE; k++) {
    size_t at = index * HS_DESCRIPTOR_LENGTH + k;
    if (features->descriptor_type == HS_DESCRIPTOR_U8)
      fprintf(file, " %d", ((const uint8_t *)features->descriptors)[at]);
    else
      fprintf(file, " %a", (double)((const float *)features->descriptors)[at]);
  }
}

static int sample_write_truth(const char *folder, const hs_features *features) {
  char path[SAMPLE_PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/truth.txt", folder);
  FILE *file = fopen(path, "w");
  if (!file) return 1;
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    fprintf(file, "%a %a %a %a %a %d %d", (double)k->x, (double)k->y, (double)k->sigma, (double)k->orientation,
            (double)k->response, k->octave, k->level);
    sample_print_entries(file, features, i);
    fprintf(file, "\n");
  }
  return fclose(file) == 0 ? 0 : 1;
}

static int sample_write_formats(const char *folder, const hs_features *features) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    char path[SAMPLE_PATH_BYTES];
    char message[256] = "";
    hs_file_options options = {.struct_size = sizeof options,
                               .format = format->id,
                               .image_name = "an \"image\".png",
                               .message = message,
                               .message_bytes = sizeof message};
    if (features->descriptor_type == HS_DESCRIPTOR_NONE && !format->without_descriptors) continue;
    (void)snprintf(path, sizeof path, "%s/%s%s", folder, format->name, format->endings[0]);
    const hs_status status = hs_save_features(path, features, &options);
    /* the library was built without SQLite */
    if (status == HS_ERR_UNSUPPORTED && format->id == HS_FORMAT_COLMAP_DB) continue;
    if (status != HS_OK) {
      fprintf(stderr, "%s\n", message);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  feature_style style;
  hs_features features = {0};
  if (argc != 4 || !sample_style(argv[3], &style)) {
    fprintf(stderr, "usage: write_sample_features FOLDER COUNT u8|f32|scaled|none\n");
    return 2;
  }
  feature_maker_fill(&features, (size_t)strtoul(argv[2], NULL, 10), style, SAMPLE_SEED);
  int failed = sample_write_truth(argv[1], &features) || sample_write_formats(argv[1], &features);
  hs_features_free(&features);
  return failed;
}
