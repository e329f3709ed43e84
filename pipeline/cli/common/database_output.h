/*
 * COLMAP's database as the output of subcommands: opening with the given options, cameras, and names of images.
 */
#ifndef HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H
#define HARTSIFT_CLI_COMMON_DATABASE_OUTPUT_H

#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/cli/common/cli_common.h"

/* Opens with --replace, --single-camera and --single-camera-per-folder; layout: bin order of added descriptors.
   Closed by hs_colmap_close. On failure message has the reason. */
hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes);
/* As above with hs_colmap_options.share_cameras instead of the last two. */
hs_status database_open_sharing(const option_set *set, const char *path, hs_bin_layout layout, int32_t share_cameras,
                                hs_colmap_database **database, char *message, size_t message_bytes);

/* The camera of new images: --camera-id, or --camera-model and --camera-params. */
typedef struct database_camera {
  uint32_t camera_id; /* 0: not given */
  int32_t sharing;
  int32_t tentative;          /* as in hs_colmap_camera: parts not given */
  int32_t width, height;      /* size of the first image */
  size_t other_sizes;         /* images of another size than the first */
  size_t other_focal_lengths; /* images whose EXIF focal length differs from their shared camera's */
  int32_t model;
  int32_t parameter_count; /* 0: not given */
  double parameters[HS_COLMAP_PARAMETERS];
} database_camera;

/* Reads the camera options. False, with a message, if the parameters are not numbers or do not match the model, or
   if options exclude each other. */
bool database_camera_choose(const option_set *set, database_camera *choice, char *message, size_t message_bytes);

/* Refuses database options for other outputs. False with a message. */
bool database_options_are_used(const option_set *set, bool to_database, char *message, size_t message_bytes);

/* Adds an image with the chosen camera and, unless the database has one, the EXIF position. A new camera without
   given parameters gets the EXIF focal length. */
hs_status database_add_image(hs_colmap_database *database, database_camera *choice, const char *name,
                             const hs_features *features, const hs_exif *exif);
/* As above with converted features. */
hs_status database_add_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                            const colmap_rows *rows, const hs_exif *exif);
/* As above for a changed picture: see colmap_replace_rows. An EXIF position replaces the existing one. */
hs_status database_replace_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                                const colmap_rows *rows, const hs_exif *exif);

/* Reports how many images differ from their camera in size or focal length. */
void database_report_cameras(command_id command, const database_camera *choice);

/* Name of an image in COLMAP: its path below `folder` (--image-path), or the file name if folder is null; for a
   scene or standard input as output_name forms it. To be freed; null: out of memory, or, with a message, not in the
   folder. */
char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes);

/* COLMAP's names for two images, or the images of two feature files, without a database: as above if folder is
   given, else their paths below the common folder. To be freed; null for a scene or standard input. False with a
   message. */
bool database_pair_names(char *const images[2], const char *folder, char *names[2], char *message,
                         size_t message_bytes);

#endif
