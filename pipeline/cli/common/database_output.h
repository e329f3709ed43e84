/*
 * COLMAP's database as the output of subcommands: opening it with the options given, and how its images are called.
 */
#ifndef HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H
#define HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H

#include "pipeline/cli/common/cli_common.h"

/* Opens with --replace and --single-camera; layout: of the descriptors that will be added. Closed by hs_colmap_close.
   On failure message says why. */
hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes);

/* What COLMAP is to call an image: its path below `folder` (--image-path), or the file's name alone where folder is null;
   a scene's or standard input's as output_name has it. To be freed; null without memory, or, with a message, where the
   image does not lie in the folder. */
char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes);

#endif
