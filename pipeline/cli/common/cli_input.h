/* Masks of images, and the memory that a refused image needs. */
#ifndef HARTSIFT_CLI_COMMON_CLI_INPUT_H
#define HARTSIFT_CLI_COMMON_CLI_INPUT_H

#include <stdbool.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"

/* ---- The mask of each image: the one of --mask for all, or its mask in the folder of --masks, by COLMAP's rule:
   DIR/NAME.png, else DIR/NAME with its ending replaced by .png. Both are of the picture as it was before --max-
   image-size made it smaller. */

typedef struct image_masks {
  const hs_image *shared; /* as cli_load_mask has it; or null */
  const char *folder;     /* or null */
  hs_load_options load;   /* of the images; limits and EXIF count for masks too */
} image_masks;

/* The masks of the options; shared: of --mask, or data null. False, with a message, where the folder is none. */
bool image_masks_make(image_masks *masks, const cli_input *input, const hs_image *shared, char *message,
                      size_t message_bytes);

/* "N of M images have a mask in DIR", of the images whose names `name_of` gives. False where none of them has one: then
   message is the reason of an error. "" and true without --masks or without images. */
bool image_masks_count(const image_masks *masks, size_t count, const char *(*name_of)(const void *user, size_t index),
                       const void *user, char *message, size_t message_bytes);

/* The digest of the bytes of an image's own mask, as manifests have it; 0 where there is none, IMAGE_MASKS_UNREADABLE where
   there is one that cannot be read. */
enum { IMAGE_MASKS_UNREADABLE = 1 };
uint64_t image_masks_digest(const image_masks *masks, const char *name);

/* The mask of an image, of its size, or data null where there is none. name: of the image, with the folders that masks lie
   in. Freed by hs_image_free. Called from any thread. Statuses: those of hs_load_image, HS_ERR_ARGUMENT (of another
   size). */
hs_status image_masks_of(const image_masks *masks, const char *name, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes);

/* ---- How much memory a picture needs that was refused for lack of it. */

/* A max_memory_bytes within which the file is decoded and its frame is worked off in tiles, as far as the lists planned for
   it do: the larger of both. 0: not known, because it is no regular file, or what is in it cannot be seen within the
   limit. */
uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path);

/* Whether path is a scene whose frame needs more than options->max_memory_bytes even in the smallest tiles: known
   before it is rendered, which takes minutes where it is that large. message says so. */
bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes);

#endif
