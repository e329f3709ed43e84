/*
 * Replaces COLMAP's database in a build without SQLite: every function returns HS_ERR_UNSUPPORTED.
 */
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"

hs_status hs_colmap_open(hs_colmap_database **database, const char *path, const hs_colmap_options *options) {
  if (!database) return HS_ERR_ARGUMENT;
  *database = NULL;
  hs_colmap_options complete;
  const hs_status status = colmap_complete_options(options, &complete);
  if (status != HS_OK) return status;
  return hs_message_fail(HS_ERR_UNSUPPORTED, complete.message, complete.message_bytes,
                         "%s: COLMAP databases need SQLite, which this build lacks", path != NULL ? path : "");
}

hs_status colmap_open_behind(hs_colmap_database **database, const char *path, const hs_colmap_options *options) {
  return hs_colmap_open(database, path, options);
}

double colmap_writer_cpu_s(const hs_colmap_database *database) {
  (void)database;
  return 0;
}

const char *colmap_new_path(const hs_colmap_database *database) {
  (void)database;
  return NULL;
}

hs_status hs_colmap_commit(hs_colmap_database *database) {
  (void)database;
  return HS_ERR_UNSUPPORTED;
}

void hs_colmap_close(hs_colmap_database *database) { (void)database; }

const char *hs_colmap_last_error(const hs_colmap_database *database) {
  (void)database;
  return "";
}

hs_status hs_colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              const hs_features *features, uint32_t *image_id) {
  (void)database, (void)name, (void)camera, (void)features, (void)image_id;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_add_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                          colmap_rows *rows, uint32_t *image_id) {
  (void)database, (void)name, (void)camera, (void)rows, (void)image_id;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_replace_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              colmap_rows *rows, uint32_t *image_id) {
  (void)database, (void)name, (void)camera, (void)rows, (void)image_id;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                               uint32_t *new_id) {
  (void)database, (void)source, (void)image_id, (void)new_id;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                            const hs_colmap_camera *camera, uint32_t *new_id) {
  (void)camera;
  return hs_colmap_copy_image(database, source, image_id, new_id);
}

hs_status hs_colmap_find_image(hs_colmap_database *database, const char *name, hs_colmap_image *image) {
  (void)database, (void)name, (void)image;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_next_image(hs_colmap_database *database, int64_t after, hs_colmap_image *image) {
  (void)database, (void)after, (void)image;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_read_features(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  (void)database, (void)image_id, (void)features;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_set_position(hs_colmap_database *database, uint32_t image_id, const hs_colmap_position *position) {
  (void)database, (void)image_id, (void)position;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_read_position(hs_colmap_database *database, uint32_t image_id, hs_colmap_position *position) {
  (void)database, (void)image_id, (void)position;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_add_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                const hs_colmap_matches *matches) {
  (void)database, (void)image_a, (void)image_b, (void)matches;
  return HS_ERR_UNSUPPORTED;
}

hs_status hs_colmap_count_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, int64_t *matches,
                                  int64_t *verified) {
  (void)database, (void)image_a, (void)image_b, (void)matches, (void)verified;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_look_at_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                              colmap_pair_state *state) {
  (void)database, (void)image_a, (void)image_b, (void)state;
  return HS_ERR_UNSUPPORTED;
}

void colmap_begin_reading(hs_colmap_database *database) { (void)database; }

void colmap_end_reading(hs_colmap_database *database) { (void)database; }

hs_status colmap_read_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, hs_match_pair **matches,
                              size_t *count) {
  (void)database, (void)image_a, (void)image_b, (void)matches, (void)count;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_read_keypoints(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  (void)database, (void)image_id, (void)features;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_drop_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b) {
  (void)database, (void)image_a, (void)image_b;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_next_pair(hs_colmap_database *database, int64_t after, int64_t *pair_id, uint32_t images[2]) {
  (void)database, (void)after, (void)pair_id, (void)images;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_next_verified(hs_colmap_database *database, int64_t after, colmap_verified_pair *pair) {
  (void)database, (void)after, (void)pair;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_read_inliers(hs_colmap_database *database, int64_t pair_id, uint32_t *inliers, size_t count) {
  (void)database, (void)pair_id, (void)inliers, (void)count;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_count_held_keypoints(hs_colmap_database *database, uint32_t image_id, size_t *count) {
  (void)database, (void)image_id, (void)count;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_note_first_pass(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, size_t matches,
                                 size_t inliers) {
  (void)database, (void)image_a, (void)image_b, (void)matches, (void)inliers;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_set_aside(hs_colmap_database *database, int64_t pair_id, size_t on_tracks, size_t supported) {
  (void)database, (void)pair_id, (void)on_tracks, (void)supported;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_leave_inliers(hs_colmap_database *database, int64_t pair_id, const uint32_t *inliers, size_t count) {
  (void)database, (void)pair_id, (void)inliers, (void)count;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_take_back(hs_colmap_database *database, size_t *count) {
  (void)database, (void)count;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_copy_pair(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                           const uint32_t from[2]) {
  (void)database, (void)to, (void)source, (void)from;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_read_frame(hs_colmap_database *database, uint32_t image_id, colmap_frame *frame) {
  (void)database, (void)image_id, (void)frame;
  return HS_ERR_UNSUPPORTED;
}

hs_status colmap_read_camera(hs_colmap_database *database, int64_t camera_id, hs_colmap_camera *camera, bool *found) {
  (void)database, (void)camera_id, (void)camera, (void)found;
  return HS_ERR_UNSUPPORTED;
}

bool colmap_is_lost(const hs_colmap_database *database) {
  (void)database;
  return true;
}
