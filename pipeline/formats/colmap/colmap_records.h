/* Options, cameras and features as COLMAP's database has them, whether the build has SQLite or not. */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_RECORDS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/common/feature_file.h"
#include "pipeline/include/hartsift.h"

/* ---- hs_colmap_options as callers give them */

/* Checked options with every field set; options null: the defaults. On failure the reason is in their message. Statuses:
   HS_ERR_OPTION. */
hs_status colmap_complete_options(const hs_colmap_options *options, hs_colmap_options *complete);

/* ---- what a camera must be to be stored */

/* Null, or why this cannot be a camera. */
const char *colmap_camera_fault(const hs_colmap_camera *camera);
/* Null, or why a calibrated camera cannot be right for pictures of its size: COLMAP's mapper would pass over them. */
const char *colmap_camera_misfit(const hs_colmap_camera *camera);
/* COLMAP's name for a model; "?" for an unknown one. */
const char *colmap_model_name(int32_t model);

/* ---- keypoints and descriptors as the database's bytes, and back */

/* Columns that are written: x, y, a11, a12, a21, a22, all float32. */
enum { COLMAP_COLUMNS = 6, COLMAP_KEYPOINT_BYTES = 4 * COLMAP_COLUMNS };

/* Writes the bytes of one keypoint. */
void colmap_keypoint_put(const hs_keypoint *keypoint, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* The same of one whose frame is known. */
void colmap_frame_put(const hs_keypoint *keypoint, const hs_frame *frame, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* Reads one of 2, 4 (x, y, scale, orientation) or 6 columns. Null, or why the values cannot be a keypoint. */
const char *colmap_keypoint_get(const uint8_t *bytes, int64_t columns, hs_keypoint *keypoint);

/* Whether rows of 6 columns are to be read with frames: some are not circles, and all have an inverse. */
bool colmap_rows_are_framed(const uint8_t *rows, size_t count);
/* The frame of a row of 6 columns. */
void colmap_frame_get(const uint8_t *row, hs_frame *frame);

/* ---- The features of an image as the database holds them, made without a database: in any thread, while another one
   adds images. */

typedef struct colmap_rows {
  size_t count;
  uint8_t *keypoints;   /* colmap_keypoint_put's bytes */
  uint8_t *descriptors; /* 128 bytes each; null: none are written */
  int32_t width, height;
  hs_origin origin;
  const hs_allocator *allocator; /* of the two arrays */
} colmap_rows;

/* Checks the target's features, as hs_colmap_add_image does, and converts them. On failure *rows holds nothing. Statuses:
   HS_ERR_ARGUMENT, HS_ERR_MEMORY, with a message. */
hs_status colmap_rows_make(const feature_target *target, colmap_rows *rows);
void colmap_rows_free(colmap_rows *rows);

/* digest_features of what hs_colmap_read_features will give. HS_ERR_FORMAT: it would refuse them. */
hs_status colmap_rows_digest(const colmap_rows *rows, uint64_t *digest);

/* hs_colmap_open of a database that many rows will be added to: a thread of its own writes the file. For programs that
   do not unload the library. Without SQLite the same as hs_colmap_open. */
hs_status colmap_open_behind(hs_colmap_database **database, const char *path, const hs_colmap_options *options);

/* CPU time of that thread so far, in seconds; 0: there is none. */
double colmap_writer_cpu_s(const hs_colmap_database *database);

/* hs_colmap_add_image with features that are converted already. Needs SQLite. */
hs_status colmap_add_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                          const colmap_rows *rows, uint32_t *image_id);

/* The same for an image whose picture has changed since its features were added: they are replaced whatever
   options.replace says, and all matches of the image are dropped. If the size has changed too, the image gets the
   camera that a new one would. */
hs_status colmap_replace_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              const colmap_rows *rows, uint32_t *image_id);

/* colmap_add_rows within a transaction; `features` tells the count, the image's size and the origin, which need not be the
   rows'. */
hs_status colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                           const colmap_rows *rows, const hs_features *features, int64_t *image_id);

/* hs_colmap_copy_image; camera: that the image gets, null: the source's. */
hs_status colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                            const hs_colmap_camera *camera, uint32_t *new_id);

#endif
