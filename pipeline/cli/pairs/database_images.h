/*
 * The images of COLMAP's database that can be matched: those with features.
 */
#ifndef HARTSIFT_CLI_PAIRS_DATABASE_IMAGES_H
#define HARTSIFT_CLI_PAIRS_DATABASE_IMAGES_H

#include "pipeline/cli/common/cli_common.h"

typedef struct database_image {
  uint32_t image_id;
  char *name;
  size_t features; /* keypoints; as many as will be read */
  hs_camera camera;
  bool is_calibrated; /* a pinhole camera of known focal length: an essential matrix can be estimated */
} database_image;

/* By ascending image_id. */
typedef struct database_images {
  const char *path; /* of the database, for messages; the caller's */
  database_image *each;
  size_t count;
  size_t without; /* further images of the database, without an entry of keypoints */
} database_images;

/* Lists them; *images has its path and is empty otherwise. Prints why when it fails; what was listed is freed by
   database_images_free in any case. */
cli_exit database_images_read(hs_colmap_database *database, database_images *images);

void database_images_free(database_images *images);

#endif
