/* Masks of images, lists of names, and the memory that an image needs if it was refused. */
#ifndef HARTSIFT_CLI_COMMON_CLI_INPUT_H
#define HARTSIFT_CLI_COMMON_CLI_INPUT_H

#include <stdbool.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"

/* ---- Masks: either the mask of --mask for all images; or a mask per image in the folder of --masks, named by COLMAP's
   rule DIR/NAME.png, or DIR/NAME with the ending replaced by .png. Both have the size of the picture before
   --max-image-size. */

typedef struct image_masks {
  const hs_image *shared; /* mask from cli_load_mask, or null */
  const char *folder;     /* folder of masks, or null */
  hs_load_options load;   /* load options of the images; limits and EXIF rotation apply to masks too */
} image_masks;

/* Sets the masks from the options. shared: mask of --mask; data null: none. False, with a message, if the folder is not
   one. */
bool image_masks_make(image_masks *masks, const cli_input *input, const hs_image *shared, char *message,
                      size_t message_bytes);

/* Counts the images that have a mask, and writes "N of M images have a mask in DIR". name_of: returns the name of image
   i. False if no image has a mask; the message is then an error. Without --masks or images: true, and "". */
bool image_masks_count(const image_masks *masks, size_t count, const char *(*name_of)(const void *user, size_t index),
                       const void *user, char *message, size_t message_bytes);

/* Returns the digest of the bytes of an image's mask, as in manifests; 0: it has none; IMAGE_MASKS_UNREADABLE: the mask
   cannot be read. */
enum { IMAGE_MASKS_UNREADABLE = 1 };
uint64_t image_masks_digest(const image_masks *masks, const char *name);

/* Loads the mask of an image, in the image's size; data null: it has none. name: of the image, with folders.
   hs_image_free frees the mask. Thread-safe. Statuses: as hs_load_image; HS_ERR_ARGUMENT: the mask has another size. */
hs_status image_masks_of(const image_masks *masks, const char *name, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes);

/* ---- Memory that a picture needs, if it was refused because of a memory limit. */

/* Returns a max_memory_bytes that suffices to decode the file and to process its frame in tiles (with the planned
   capacities of lists): the maximum of both needs. 0: unknown, because it is no regular file, or its header cannot be
   read within the limit. */
uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path);

/* True, with a message, if path is a scene whose frame exceeds options->max_memory_bytes even with the smallest tiles.
   Checked before the scene is rendered, which may take minutes. */
bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes);

/* ---- Lines of a file of names, with any line ends: LF, CR LF or CR. */

enum { NAME_LINE_BYTES = 8192 };

typedef struct name_lines {
  command_id command;
  const char *option; /* start of messages: "--pairs: ", or "" */
  const char *path;
  FILE *file;
  size_t number; /* number of the current line, from 1 */
  char line[NAME_LINE_BYTES];
} name_lines;

/* Reads the next line without its end; *line: null at the end of the file. Skips UTF-8's byte order mark. Prints the
   reason of a failure: a line that is too long or has a zero byte, UTF-16, an unreadable file. */
cli_exit name_lines_next(name_lines *lines, char **line);

#endif
