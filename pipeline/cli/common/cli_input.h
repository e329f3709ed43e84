/* Masks of images, and the memory needed by a refused image. */
#ifndef HARTSIFT_CLI_COMMON_CLI_INPUT_H
#define HARTSIFT_CLI_COMMON_CLI_INPUT_H

#include <stdbool.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"

/* ---- Masks: the one of --mask for all images, or each image's in the folder of --masks, by COLMAP's rule:
   DIR/NAME.png, else DIR/NAME with its ending replaced by .png. Both refer to the picture before --max-image-size. */

typedef struct image_masks {
  const hs_image *shared; /* from cli_load_mask; or null */
  const char *folder;     /* or null */
  hs_load_options load;   /* options of the images; limits and EXIF apply to masks too */
} image_masks;

/* Sets the masks from the options; shared: of --mask, or data null. False, with a message, if the folder is not one. */
bool image_masks_make(image_masks *masks, const cli_input *input, const hs_image *shared, char *message,
                      size_t message_bytes);

/* Writes "N of M images have a mask in DIR" for the names from `name_of`. False if none has: message is then an
   error. "" and true without --masks or images. */
bool image_masks_count(const image_masks *masks, size_t count, const char *(*name_of)(const void *user, size_t index),
                       const void *user, char *message, size_t message_bytes);

/* Digest of the bytes of an image's mask, as in manifests; 0: none; IMAGE_MASKS_UNREADABLE: it exists but cannot be
   read. */
enum { IMAGE_MASKS_UNREADABLE = 1 };
uint64_t image_masks_digest(const image_masks *masks, const char *name);

/* The mask of an image in its size; data null: none. name: of the image, with folders. Freed by hs_image_free.
   Thread-safe. Statuses: those of hs_load_image, HS_ERR_ARGUMENT (another size). */
hs_status image_masks_of(const image_masks *masks, const char *name, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes);

/* ---- Memory needed by a picture that was refused for lack of it. */

/* A max_memory_bytes that suffices to decode the file and to process its frame in tiles (with planned list sizes):
   the maximum of both. 0: unknown, because it is no regular file, or its header cannot be read within the limit. */
uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path);

/* True, with a message, if path is a scene whose frame exceeds options->max_memory_bytes even in the smallest tiles:
   known before rendering, which may take minutes. */
bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes);

#endif
