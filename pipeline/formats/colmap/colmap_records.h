/* Forms of COLMAP's options, cameras and features, for builds with and without SQLite. */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_RECORDS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/common/feature_file.h"
#include "pipeline/include/hartsift.h"

/* ---- hs_colmap_options of callers */

/* Checks options and sets every field of *complete; options null: the defaults. On failure the options' message has the
   reason. Statuses: HS_ERR_OPTION. */
hs_status colmap_complete_options(const hs_colmap_options *options, hs_colmap_options *complete);

/* ---- checks of cameras */

/* Returns null, or the reason why the camera is invalid. */
const char *colmap_camera_fault(const hs_colmap_camera *camera);
/* Returns null, or the reason why a calibrated camera does not fit pictures of its size; COLMAP's mapper would ignore
   such a camera. */
const char *colmap_camera_misfit(const hs_colmap_camera *camera);
/* Returns COLMAP's name for a model; "?" for an unknown one. */
const char *colmap_model_name(int32_t model);

/* ---- keypoints and descriptors in the database's byte form */

/* Columns of a written keypoint: x, y, a11, a12, a21, a22, all float32. */
enum { COLMAP_COLUMNS = 6, COLMAP_KEYPOINT_BYTES = 4 * COLMAP_COLUMNS };

/* Writes the bytes of one keypoint. */
void colmap_keypoint_put(const hs_keypoint *keypoint, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* As colmap_keypoint_put, for a keypoint with a frame. */
void colmap_frame_put(const hs_keypoint *keypoint, const hs_frame *frame, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* Reads a keypoint of 2 (x, y), 4 (x, y, scale, orientation) or 6 columns. Returns null, or the reason why the values
   are no keypoint. */
const char *colmap_keypoint_get(const uint8_t *bytes, int64_t columns, hs_keypoint *keypoint);

/* True if rows of 6 columns need frames: at least one is not a circle, and all are invertible. */
bool colmap_rows_are_framed(const uint8_t *rows, size_t count);
/* Reads the frame of a row of 6 columns. */
void colmap_frame_get(const uint8_t *row, hs_frame *frame);

/* ---- Features of an image in the form of the database. The conversion needs no database, so another thread can add
   images meanwhile. */

typedef struct colmap_rows {
  size_t count;
  uint8_t *keypoints;   /* bytes as colmap_keypoint_put writes them */
  uint8_t *descriptors; /* 128 bytes for each feature; null: no descriptors are written */
  int32_t width, height;
  hs_origin origin;
  const hs_allocator *allocator; /* allocator of the two arrays */
} colmap_rows;

/* Checks and converts the target's features as hs_colmap_add_image does. On failure *rows is empty, and the message is
   set. Statuses: HS_ERR_ARGUMENT, HS_ERR_MEMORY. */
hs_status colmap_rows_make(const feature_target *target, colmap_rows *rows);
void colmap_rows_free(colmap_rows *rows);

/* Computes the digest (digest_features) of the list that hs_colmap_read_features will return. HS_ERR_FORMAT: that
   function would refuse the rows. */
hs_status colmap_rows_digest(const colmap_rows *rows, uint64_t *digest);

/* As hs_colmap_open, but a separate thread writes the file, for adding many rows. Its waiting pages take 8 MiB
   (write_queue.h), which no memory limit includes. Only for programs that never unload the library. Without SQLite it
   equals hs_colmap_open. */
hs_status colmap_open_behind(hs_colmap_database **database, const char *path, const hs_colmap_options *options);

/* Returns the CPU time of that thread so far, in seconds; 0: no such thread. */
double colmap_writer_cpu_s(const hs_colmap_database *database);

/* Returns the path of a file that opening has created and that has no committed content, valid until closing; null: the
   file existed, or other programs have committed to it. */
const char *colmap_new_path(const hs_colmap_database *database);

/* As hs_colmap_add_image, with features that are already converted. Needs SQLite. A database that another thread writes
   (colmap_open_behind) may take the arrays, which are then null in *rows, and frees them when they are written. */
hs_status colmap_add_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                          colmap_rows *rows, uint32_t *image_id);

/* As colmap_add_rows, for an image whose picture has changed: its features are replaced whatever options.replace is,
   and all its matches are dropped. If the size changed too, it gets a camera as a new image does. */
hs_status colmap_replace_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              colmap_rows *rows, uint32_t *image_id);

/* As colmap_add_rows, within a transaction that is already open. `features` has the count, the image's size and the
   origin, which may differ from that of the rows. */
hs_status colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                           colmap_rows *rows, const hs_features *features, int64_t *image_id);

/* As hs_colmap_copy_image. camera: the image's camera in the target; null: as in the source. */
hs_status colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                            const hs_colmap_camera *camera, uint32_t *new_id);

#endif
