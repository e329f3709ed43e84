/*
 * COLMAP's database as the output of subcommands: opening it with the options given, and how its images are called.
 */
#ifndef HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H
#define HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H

#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/cli/common/cli_common.h"

/* Opens with --replace, --single-camera and --single-camera-per-folder; layout: of the descriptors that will be added.
   Closed by hs_colmap_close. On failure message says why. */
hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes);
/* The same with hs_colmap_options.share_cameras in place of these two. */
hs_status database_open_sharing(const option_set *set, const char *path, hs_bin_layout layout, int32_t share_cameras,
                                hs_colmap_database **database, char *message, size_t message_bytes);

/* The camera that images of a database get: --camera-id, or --camera-model and --camera-params. */
typedef struct database_camera {
  uint32_t camera_id; /* 0: not given */
  int32_t sharing;
  int32_t tentative;          /* as in hs_colmap_camera: all that is not given */
  int32_t width, height;      /* of the first image */
  size_t other_sizes;         /* images of another size than the first */
  size_t other_focal_lengths; /* images whose EXIF has another focal length than their shared camera */
  int32_t model;
  int32_t parameter_count; /* 0: not given */
  double parameters[HS_COLMAP_PARAMETERS];
} database_camera;

/* False, with a message that names the option, where the parameters are not numbers, or not as many as the model has,
   or where options exclude each other. */
bool database_camera_choose(const option_set *set, database_camera *choice, char *message, size_t message_bytes);

/* Refuses options that are for databases where the output is none. False with a message. */
bool database_options_are_used(const option_set *set, bool to_database, char *message, size_t message_bytes);

/* Adds an image with the camera chosen and, unless the database has one, exif's position. A new camera without given
   parameters gets the focal length of exif. */
hs_status database_add_image(hs_colmap_database *database, database_camera *choice, const char *name,
                             const hs_features *features, const hs_exif *exif);
/* The same with features that are converted already. */
hs_status database_add_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                            const colmap_rows *rows, const hs_exif *exif);
/* The same of a picture that has changed since its image was added: see colmap_replace_rows. A position that EXIF gives
   takes the place of the one there. */
hs_status database_replace_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                                const colmap_rows *rows, const hs_exif *exif);

/* Says how many images have another size or focal length than the camera that is chosen for them. */
void database_report_cameras(command_id command, const database_camera *choice);

/* What COLMAP is to call an image: its path below `folder` (--image-path), or the file's name alone where folder is null;
   a scene's or standard input's as output_name has it. To be freed; null without memory, or, with a message, where the
   image does not lie in the folder. */
char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes);

/* COLMAP's names for two images, or for the images of two files of features, without a database: as above if folder is
   given, else their paths below the folder that both are in. To be freed; null where one is a scene or standard input,
   which have no path. False with a message. */
bool database_pair_names(char *const images[2], const char *folder, char *names[2], char *message,
                         size_t message_bytes);

#endif
