/*
 * Cameras as COLMAP has them: the default for an image, and what a camera must be to be stored.
 */
#include "pipeline/formats/colmap/colmap_camera.h"

#include <math.h>
#include <string.h>

#include "cpu/float_environment.h"
#include "pipeline/base/adopt.h"

enum { MODEL_SIMPLE_RADIAL = 2 };

/* COLMAP's guess of a focal length, in units of the larger side of the image. */
static const double default_focal_factor = 1.2;

/* How many parameters COLMAP's models 0..10 have. */
static const int32_t model_parameters[] = {3, 4, 4, 5, 8, 8, 12, 5, 4, 5, 12};

hs_status hs_colmap_camera_init(hs_colmap_camera *camera, int32_t width, int32_t height, double focal_length) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!camera) return HS_ERR_ARGUMENT;
  memset(camera, 0, sizeof *camera);
  if (width < 1 || height < 1 || !(focal_length >= 0.0) || !isfinite(focal_length)) return HS_ERR_ARGUMENT;
  const bool is_known = focal_length > 0.0;
  camera->model = MODEL_SIMPLE_RADIAL;
  camera->width = width;
  camera->height = height;
  camera->prior_focal_length = is_known;
  camera->parameter_count = 4;
  camera->parameters[0] = is_known ? focal_length : default_focal_factor * (double)(width > height ? width : height);
  camera->parameters[1] = 0.5 * (double)width;
  camera->parameters[2] = 0.5 * (double)height;
  return HS_OK;
}

const char *colmap_camera_fault(const hs_colmap_camera *camera) {
  const int32_t known = (int32_t)(sizeof model_parameters / sizeof model_parameters[0]);
  if (camera->width < 1 || camera->height < 1) return "the camera's width or height is not 1 or more";
  if (!RESERVED_IS_CLEAR(camera->reserved)) return "the camera's reserved fields are set: start with {0}";
  if (camera->model < 0) return "the camera's model is negative";
  if (camera->prior_focal_length != 0 && camera->prior_focal_length != 1)
    return "the camera's prior_focal_length is neither 0 nor 1";
  if (camera->parameter_count < 1 || camera->parameter_count > HS_COLMAP_PARAMETERS)
    return "the camera's parameter_count is not 1 to 16";
  if (camera->model < known && camera->parameter_count != model_parameters[camera->model])
    return "the camera's parameter_count is not what its model has";
  for (int32_t i = 0; i < camera->parameter_count; i++)
    if (!isfinite(camera->parameters[i])) return "a parameter of the camera is not finite";
  return NULL;
}
