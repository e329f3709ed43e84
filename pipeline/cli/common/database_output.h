/*
 * COLMAP's database as the output of subcommands: opening with the given options, cameras, and the names of images.
 */
#ifndef HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H
#define HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H

#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/cli/common/cli_common.h"

/* Opens a database with the options --replace, --single-camera and --single-camera-per-folder. layout: bin order of
   added descriptors. hs_colmap_close closes it. On failure message has the reason. */
hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes);
/* As database_open, with share_cameras (as in hs_colmap_options) instead of the options --single-camera... */
hs_status database_open_sharing(const option_set *set, const char *path, hs_bin_layout layout, int32_t share_cameras,
                                hs_colmap_database **database, char *message, size_t message_bytes);

/* Camera of new images: from --camera-id, or from --camera-model and --camera-params. */
typedef struct database_camera {
  uint32_t camera_id; /* id of an existing camera; 0: not given */
  int32_t sharing;
  int32_t tentative;          /* parts of the camera that were not given, as in hs_colmap_camera */
  int32_t width, height;      /* size of the first image */
  size_t other_sizes;         /* number of images of another size than the first */
  size_t other_focal_lengths; /* number of images whose EXIF focal length differs from that of their shared camera */
  int32_t model;
  int32_t parameter_count; /* 0: parameters were not given */
  double parameters[HS_COLMAP_PARAMETERS];
} database_camera;

/* Reads the options of cameras. False, with a message, if the parameters are not numbers or do not match the model, or
   if options exclude each other. */
bool database_camera_choose(const option_set *set, database_camera *choice, char *message, size_t message_bytes);

/* Refuses options of databases for other outputs. False with a message. */
bool database_options_are_used(const option_set *set, bool to_database, char *message, size_t message_bytes);

/* Adds an image with the chosen camera and, unless the database has one, its EXIF position. A new camera without given
   parameters gets the EXIF focal length. */
hs_status database_add_image(hs_colmap_database *database, database_camera *choice, const char *name,
                             const hs_features *features, const hs_exif *exif);
/* As database_add_image, with features that are already converted. */
hs_status database_add_rows(hs_colmap_database *database, database_camera *choice, const char *name, colmap_rows *rows,
                            const hs_exif *exif);
/* As database_add_rows, for a picture that has changed: see colmap_replace_rows. An EXIF position replaces the existing
   one. */
hs_status database_replace_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                                colmap_rows *rows, const hs_exif *exif);

/* Reports how many images differ in size or focal length from their camera. */
void database_report_cameras(command_id command, const database_camera *choice);

/* Returns the name of an image in COLMAP: its path below `folder` (--image-path); if folder is null, its file name; for
   a scene or standard input, the name that output_name gives. The caller frees it. Null: out of memory, or, with a
   message, the image is not in the folder. */
char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes);

/* Finds COLMAP's names for two images, or for the images of two feature files, without a database: with `folder` as
   database_image_name, else their paths below their common folder. The caller frees them; null for a scene or standard
   input. False with a message. */
bool database_pair_names(char *const images[2], const char *folder, char *names[2], char *message,
                         size_t message_bytes);

#endif
