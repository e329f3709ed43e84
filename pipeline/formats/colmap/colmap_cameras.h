/*
 * Rows of COLMAP's cameras, rigs and frames, and the choice among them. Only built with SQLite.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_CAMERAS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_CAMERAS_H

#include "pipeline/formats/colmap/colmap_internal.h"

/* ---- colmap_cameras.c */

/* The columns model, width, height, prior_focal_length and params, from `first` on. */
void colmap_camera_columns(sqlite3_stmt *statement, int first, hs_colmap_camera *camera);
hs_status colmap_read_camera(hs_colmap_database *database, int64_t camera_id, hs_colmap_camera *camera, bool *found);
/* *camera_id: the first camera of these values, -1: none. outside_rigs: passes over cameras of rigs of several. */
hs_status colmap_find_camera(hs_colmap_database *database, const hs_colmap_camera *camera, bool outside_rigs,
                             int64_t *camera_id);

/* The cameras that some images have. */
typedef struct colmap_group {
  int64_t first; /* of the image of the smallest number; -1: there are none */
  int64_t count;
  bool is_in_rig; /* the first is in a rig of several cameras; set in colmap_choice.c */
  bool has_rigs;  /* the database has such rigs; set in colmap_choice.c */
} colmap_group;

/* Of the images of the camera's size and, so far as they are not tentative, its model and parameters. folder: of images
   whose names are directly in it ("": in none); null: of all images. */
hs_status colmap_find_group(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                            colmap_group *group);
hs_status colmap_insert_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id);
/* Whether a camera is in a rig of several cameras. */
hs_status colmap_is_in_rig(hs_colmap_database *database, int64_t camera_id, bool *is_in_rig);
/* Every image of a database that has rigs belongs to a frame, the picture that a rig took. */
hs_status colmap_insert_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id);
/* Gives an image another camera: the one of this number or, where it is below 0, a new one, which replaces the old one
   if no other image has that. Drops the geometry of the image's pairs, not their matches. */
hs_status colmap_change_camera(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, int64_t camera_id);

/* ---- colmap_choice.c */

/* The camera of a new image; it is made where none is shared. */
hs_status colmap_camera_for_new(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                int64_t *camera_id);
/* The same for an image of the database: it has that camera already, or is refused, or with the option replace gets it. */
hs_status colmap_camera_of_old(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, bool *changed);
/* Forgets choices, which others may have changed or which were undone. */
void colmap_forget_choices(hs_colmap_database *database);

#endif
