/* Names of outputs from those of images. */
#include "pipeline/cli/common/output_name.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/formats.h"
#include "pipeline/image_io/image_io.h"

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

/* A scene's name as part of a file name: "@scene:64x48" gives "scene_64x48". */
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
