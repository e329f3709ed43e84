/*
 * What the output for an image is called.
 */
#ifndef HARTSIFT_CLI_COMMON_OUTPUT_NAME_H
#define HARTSIFT_CLI_COMMON_OUTPUT_NAME_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* Three texts as one; to be freed, null without memory. */
char *cli_join(const char *first, const char *middle, const char *last);

/* Whether this is the whole name of a generated picture, and no file or folder whose name only begins like one. */
bool output_is_scene(const char *image);

/* The file name, without folder, for an image's features in a format; to be freed, null without memory.
   photo.jpg and npz: photo.npz; colmap: photo.jpg.txt;
   colmap-db, in which it is an image's name: photo.jpg; @scene:64x48:7: scene_64x48_7; "-": stdin. */
char *output_name(const char *image, hs_format format);

#endif
