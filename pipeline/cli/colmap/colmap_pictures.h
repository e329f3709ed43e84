/*
 * Images of feature_extractor and feature_importer: names, cameras by COLMAP's rules, and rows of the database.
 */
#ifndef HARTSIFT_CLI_COLMAP_COLMAP_PICTURES_H
#define HARTSIFT_CLI_COLMAP_COLMAP_PICTURES_H

#include "pipeline/cli/colmap/colmap_program.h"

/* Names of the images in a folder and its subfolders, in ascending order, each once. */
typedef struct colmap_images {
  const char *folder; /* value of --image_path; the memory belongs to the options */
  char **names;
  size_t count, capacity;
} colmap_images;

/* Reads the images of --image_list_path, or all images below --image_path except masks. Prints the reason of a failure;
   colmap_images_free is needed in any case. */
cli_exit colmap_images_read(colmap_images *images, const colmap_options *options);
void colmap_images_free(colmap_images *images);

/* Returns the path of an image, which the caller frees; null when out of memory. */
char *colmap_image_file(const colmap_images *images, size_t image);

/* Which images share a camera, numbered as in --camera_mode. BY_EXIF: images with the same size, and in EXIF the same
 * make, model and focal length.
 */
typedef enum colmap_sharing {
  COLMAP_CAMERAS_BY_EXIF = 0,
  COLMAP_CAMERAS_SINGLE,
  COLMAP_CAMERAS_PER_FOLDER,
  COLMAP_CAMERAS_PER_IMAGE
} colmap_sharing;

/* A group of images that share a camera of the database. */
typedef struct colmap_camera_group {
  char *folder;
  uint64_t camera; /* hs_exif.camera */
  int32_t width, height;
  uint32_t camera_id;
} colmap_camera_group;

typedef struct colmap_cameras {
  colmap_sharing sharing;
  int32_t model, parameter_count; /* parameter_count: number of parameters given, 0 or the model's number */
  double parameters[HS_COLMAP_PARAMETERS];
  double focal_factor;
  uint32_t existing; /* existing camera that all images share; 0: none */
  colmap_camera_group *groups;
  size_t count;
} colmap_cameras;

/* Reads the options of cameras. Returns false with a message printed. */
bool colmap_cameras_choose(colmap_cameras *cameras, const colmap_options *options);
void colmap_cameras_free(colmap_cameras *cameras);

/* Size and EXIF of a picture, as stored in its file. */
typedef struct colmap_picture {
  int32_t width, height;
  const hs_exif *exif;
} colmap_picture;

/* Returns whether the database has features of the image. If the image has a camera, later images may share it. */
bool colmap_has_features(colmap_cameras *cameras, hs_colmap_database *database, const char *name);

/* Adds an image with its features, camera and position. *added: the image as it is in the database, valid until the
   next call. An image without features keeps its camera. message: receives the reason of a failure. */
hs_status colmap_add_picture(colmap_cameras *cameras, hs_colmap_database *database, const char *name,
                             const colmap_picture *picture, const hs_features *features, hs_colmap_image *added,
                             char message[CLI_MESSAGE_BYTES]);

#endif
