/* The mask of each image; see image_masks.h. */
#include "pipeline/cli/common/image_masks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/image_io/image_io.h"

bool image_masks_make(image_masks *masks, const cli_input *input, const hs_image *shared, char *message,
                      size_t message_bytes) {
  struct stat info;
  *masks = (image_masks){
      .shared = shared && shared->data ? shared : NULL, .folder = input->masks, .load = cli_mask_options(&input->load)};
  if (!masks->folder) return true;
  if (stat(masks->folder, &info) == 0 && S_ISDIR(info.st_mode)) return true;
  snprintf(message, message_bytes, "--masks '%s': expected a folder with NAME.png for the image NAME", masks->folder);
  return false;
}

/* A link that leads nowhere, or a folder that may not be read, is a mask that cannot be loaded: an image is taken whole only
   where there is nothing. */
static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

/* Bytes of a name before its ending. */
static size_t stem_length(const char *name) {
  const char *slash = strrchr(name, '/');
  const char *base = slash ? slash + 1 : name;
  const char *dot = strrchr(base, '.');
  return dot && dot != base ? (size_t)(dot - name) : strlen(name);
}

/* An image's name without what leads out of a folder at its begin: DIR/../photos/a.png would be the photograph itself. */
static const char *below_folder(const char *name) {
  for (;;) {
    const size_t dots = strspn(name, ".");
    if (dots > 2 || name[dots] != '/') return name;
    name += dots + 1;
  }
}

/* The path of an image's mask, to be freed; null without memory. *found: there is one, whether or not it can be read. */
static char *find_mask(const image_masks *masks, const char *image, bool *found) {
  const char *name = below_folder(image);
  const size_t lengths[] = {strlen(name), stem_length(name)};
  const size_t bytes = strlen(masks->folder) + lengths[0] + sizeof "/.png";
  char *path = malloc(bytes);
  *found = false;
  for (size_t i = 0; path && i < 2 && !*found; i++) {
    snprintf(path, bytes, "%s/%.*s.png", masks->folder, (int)lengths[i], name);
    *found = is_there(path);
  }
  return path;
}

bool image_masks_count(const image_masks *masks, size_t count, const char *(*name_of)(const void *user, size_t index),
                       const void *user, char *message, size_t message_bytes) {
  size_t with = 0;
  message[0] = '\0';
  if (!masks->folder || count == 0) return true;
  for (size_t i = 0; i < count; i++) {
    bool found;
    free(find_mask(masks, name_of(user, i), &found));
    with += found;
  }
  if (with > 0) {
    hs_message_set(message, message_bytes, "%zu of %zu image%s %s a mask in %s", with, count, count == 1 ? "" : "s",
                   with == 1 ? "has" : "have", masks->folder);
    return true;
  }
  const char *image = name_of(user, 0), *name = below_folder(image);
  const int stem = (int)stem_length(name);
  hs_message_set(message, message_bytes,
                 "--masks '%s': 0 of %zu image%s have a mask there: for %s expected %s.png, or else %.*s.png",
                 masks->folder, count, count == 1 ? "" : "s", image, name, stem, name);
  return false;
}

uint64_t image_masks_digest(const image_masks *masks, const char *name) {
  bool found = false;
  char *path = masks->folder ? find_mask(masks, name, &found) : NULL;
  struct stat info;
  digest_state state;
  if (!path) return 0;
  digest_start(&state);
  const bool is_read = stat(path, &info) == 0 && S_ISREG(info.st_mode) && digest_add_file(&state, path) == HS_OK;
  const uint64_t digest = is_read ? digest_end(&state) : (found ? IMAGE_MASKS_UNREADABLE : 0);
  free(path);
  return digest;
}

/* Loads an image's mask where there is one. */
static hs_status load_own(const image_masks *masks, const char *name, hs_image *mask, char *message,
                          size_t message_bytes) {
  bool found = false;
  char *path = find_mask(masks, name, &found);
  if (!path) return HS_ERR_MEMORY;
  hs_load_options load = masks->load;
  load.message = message;
  load.message_bytes = message_bytes;
  const hs_status status = found ? hs_load_image(path, &load, mask) : HS_OK;
  free(path);
  if (status == HS_OK && mask->data) cli_narrow_mask(mask);
  return status;
}

/* Of the size of the image; *mask is replaced where it was larger. owned: the pixels of *mask are to be freed then. */
static hs_status fit(const hs_image *image, bool owned, hs_image *mask, char *message, size_t message_bytes) {
  if (mask->width == image->width && mask->height == image->height && image->original_width == 0) return HS_OK;
  const int32_t width = image->original_width ? image->original_width : image->width;
  const int32_t height = image->original_height ? image->original_height : image->height;
  if (mask->width != width || mask->height != height) {
    snprintf(message, message_bytes, "the mask is %" PRId32 "x%" PRId32 ": expected the image's %" PRId32 "x%" PRId32,
             mask->width, mask->height, width, height);
    return HS_ERR_ARGUMENT;
  }
  uint8_t *pixels = hs_memory_alloc(NULL, (size_t)image->width * (size_t)image->height);
  if (!pixels) return HS_ERR_MEMORY;
  mask_shrink(mask, image, pixels);
  if (owned) hs_image_free(mask);
  *mask = (hs_image){.data = pixels, .width = image->width, .height = image->height, .memory = pixels};
  return HS_OK;
}

hs_status image_masks_of(const image_masks *masks, const char *name, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes) {
  hs_status status = HS_OK;
  message[0] = '\0';
  *mask = (hs_image){0};
  if (masks->folder) status = load_own(masks, name, mask, message, message_bytes);
  if (masks->shared) *mask = *masks->shared;
  if (masks->shared) mask->memory = NULL; /* a view of it */
  if (status == HS_OK && mask->data) status = fit(image, masks->folder != NULL, mask, message, message_bytes);
  if (status != HS_OK) hs_image_free(mask);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}
