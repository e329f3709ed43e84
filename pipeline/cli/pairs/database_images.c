/*
 * Listing the images of a database; see database_images.h.
 */
#include "pipeline/cli/pairs/database_images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The pinhole camera that COLMAP's is, if it is one without distortion and with a known focal length. */
static bool pinhole_of(const hs_colmap_camera *camera, hs_camera *pinhole) {
  const double *p = camera->parameters;
  if (camera->prior_focal_length == 0 || camera->model < 0 || camera->model > 4) return false;
  const bool two_focal_lengths = camera->model == 1 || camera->model == 4;
  const int32_t center = two_focal_lengths ? 2 : 1;
  for (int32_t i = center + 2; i < camera->parameter_count; i++)
    if (p[i] != 0.0) return false;
  /* The origin there is the corner of the first pixel. */
  *pinhole = (hs_camera){p[0], p[two_focal_lengths ? 1 : 0], p[center] - 0.5, p[center + 1] - 0.5};
  return camera->parameter_count > center + 1 && pinhole->fx > 0.0 && pinhole->fy > 0.0 && isfinite(pinhole->fx) &&
         isfinite(pinhole->fy) && isfinite(pinhole->cx) && isfinite(pinhole->cy);
}

static bool add_image(database_images *images, const hs_colmap_image *image) {
  /* Room doubles: at powers of two. */
  if ((images->count & (images->count - 1)) == 0) {
    const size_t room = images->count == 0 ? 1 : 2 * images->count;
    database_image *larger = realloc(images->each, room * sizeof *larger);
    if (!larger) return false;
    images->each = larger;
  }
  database_image *added = &images->each[images->count];
  *added = (database_image){
      .image_id = image->image_id, .name = malloc(strlen(image->name) + 1), .features = (size_t)image->features};
  if (!added->name) return false;
  strcpy(added->name, image->name);
  added->is_calibrated = pinhole_of(&image->camera, &added->camera);
  images->count++;
  return true;
}

cli_exit database_images_read(hs_colmap_database *database, database_images *images) {
  hs_colmap_image image = {.found = 1};
  for (int64_t after = -1; image.found != 0; after = image.image_id) {
    if (hs_colmap_next_image(database, after, &image) != HS_OK) {
      cli_error(COMMAND_MATCH, "%s", hs_colmap_last_error(database));
      return CLI_FAILED;
    }
    images->without += image.found != 0 && image.features < 0;
    if (image.found != 0 && image.features >= 0 && !add_image(images, &image)) {
      cli_error(COMMAND_MATCH, "%s: no memory for its images", images->path);
      return CLI_FAILED;
    }
  }
  return CLI_DONE;
}

void database_images_free(database_images *images) {
  for (size_t i = 0; i < images->count; i++) free(images->each[i].name);
  free(images->each);
  *images = (database_images){.path = images->path};
}
