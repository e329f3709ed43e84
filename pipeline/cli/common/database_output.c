/*
 * COLMAP's database as an output; see database_output.h.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "pipeline/cli/common/database_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/cli/common/output_name.h"

hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes) {
  const hs_colmap_options options = {.struct_size = sizeof options,
                                     .replace = set->values[OPTION_REPLACE].given,
                                     .share_cameras = set->values[OPTION_SINGLE_CAMERA].given,
                                     .layout = layout,
                                     .message = message,
                                     .message_bytes = message_bytes};
  message[0] = '\0';
  const hs_status status = hs_colmap_open(database, path, &options);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s: %s", path, hs_status_string(status));
  return status;
}

/* The folder an image lies in, links resolved, with a slash at its end; to be freed, null with errno. */
static char *resolved_folder(const char *image) {
  const char *slash = strrchr(image, '/');
  const size_t length = slash ? (size_t)(slash - image) + 1 : 0;
  char *folder = malloc(length + 3);
  if (!folder) return NULL;
  memcpy(folder, image, length);
  strcpy(folder + length, ".");
  char *resolved = realpath(folder, NULL);
  free(folder);
  if (!resolved) return NULL;
  const size_t size = strlen(resolved);
  char *closed = realloc(resolved, size + 2);
  if (!closed) {
    free(resolved);
    return NULL;
  }
  if (size == 0 || closed[size - 1] != '/') strcpy(closed + size, "/");
  return closed;
}

static char *name_below(const char *image, const char *folder, char *message, size_t message_bytes) {
  char *top = NULL;
  char *name = NULL;
  const size_t size = strlen(folder) + 2;
  char *closed = malloc(size);
  char *place = resolved_folder(image);
  if (closed) {
    snprintf(closed, size, "%s/", folder);
    top = resolved_folder(closed);
  }
  if (!closed || !place || !top) {
    snprintf(message, message_bytes, "cannot tell where %s lies below %s: %s", image, folder, strerror(errno));
  } else if (strncmp(place, top, strlen(top)) != 0) {
    snprintf(message, message_bytes, "does not lie in the folder of --image-path, %s", folder);
  } else {
    const char *slash = strrchr(image, '/');
    const char *below = place + strlen(top);
    const char *last = slash ? slash + 1 : image;
    const size_t bytes = strlen(below) + strlen(last) + 1;
    name = malloc(bytes);
    if (name) snprintf(name, bytes, "%s%s", below, last);
  }
  free(closed);
  free(place);
  free(top);
  return name;
}

char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes) {
  const bool is_file = strcmp(image, "-") != 0 && !output_is_scene(image);
  snprintf(message, message_bytes, "no memory for its name");
  if (is_file && folder) return name_below(image, folder, message, message_bytes);
  return output_name(image, HS_FORMAT_COLMAP_DB);
}
