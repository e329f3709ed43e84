/*
 * Cameras as COLMAP has them: the default for an image, and what a camera must be to be stored.
 */
#include "pipeline/formats/colmap/colmap_camera.h"

#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"

enum { MODEL_SIMPLE_RADIAL = 2 };

/* COLMAP's guess of a focal length, in units of the larger side of the image. */
static const double default_focal_factor = 1.2;

/* A model's parameters: focal lengths, principal point, then others, whose start is 0 but for the last ones. */
typedef struct camera_model {
  const char *name;
  int32_t parameters, focal_lengths;
  double last; /* of the last parameter, where a model without distortion is not all 0 */
} camera_model;

/* By COLMAP's numbers; COLMAP 3.8 knows those up to 10. */
static const camera_model models[] = {{"SIMPLE_PINHOLE", 3, 1, 0.0},
                                      {"PINHOLE", 4, 2, 0.0},
                                      {"SIMPLE_RADIAL", 4, 1, 0.0},
                                      {"RADIAL", 5, 1, 0.0},
                                      {"OPENCV", 8, 2, 0.0},
                                      {"OPENCV_FISHEYE", 8, 2, 0.0},
                                      {"FULL_OPENCV", 12, 2, 0.0},
                                      {"FOV", 5, 2, 0.01},
                                      {"SIMPLE_RADIAL_FISHEYE", 4, 1, 0.0},
                                      {"RADIAL_FISHEYE", 5, 1, 0.0},
                                      {"THIN_PRISM_FISHEYE", 12, 2, 0.0},
                                      {"RAD_TAN_THIN_PRISM_FISHEYE", 16, 2, 0.0},
                                      {"SIMPLE_DIVISION", 4, 1, 0.0},
                                      {"DIVISION", 5, 2, 0.0},
                                      {"SIMPLE_FISHEYE", 3, 1, 0.0},
                                      {"FISHEYE", 4, 2, 0.0},
                                      {"EUCM", 6, 2, 1.0},
                                      {"EQUIRECTANGULAR", 2, 0, 0.0}};
enum { MODELS = sizeof models / sizeof models[0] };

int32_t hs_colmap_model_of_name(const char *name) {
  for (int32_t i = 0; name && i < MODELS; i++)
    if (strcmp(models[i].name, name) == 0) return i;
  return -1;
}

const char *colmap_model_name(int32_t model) { return model >= 0 && model < MODELS ? models[model].name : "?"; }

hs_status hs_colmap_camera_init_model(hs_colmap_camera *camera, int32_t model, int32_t width, int32_t height,
                                      double focal_length) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!camera) return HS_ERR_ARGUMENT;
  memset(camera, 0, sizeof *camera);
  if (model < 0 || model >= MODELS || width < 1 || height < 1) return HS_ERR_ARGUMENT;
  if (!(focal_length >= 0.0) || !isfinite(focal_length)) return HS_ERR_ARGUMENT;
  const camera_model *kind = &models[model];
  const bool is_known = focal_length > 0.0;
  const double larger = (double)(width > height ? width : height);
  *camera = (hs_colmap_camera){.model = model,
                               .width = width,
                               .height = height,
                               .prior_focal_length = is_known && kind->focal_lengths > 0,
                               .parameter_count = kind->parameters};
  double *parameter = camera->parameters;
  for (int32_t i = 0; i < kind->focal_lengths; i++)
    *parameter++ = is_known ? focal_length : default_focal_factor * larger;
  /* A panorama of the whole sphere has its width and height in place of a principal point. */
  const double share = kind->focal_lengths > 0 ? 0.5 : 1.0;
  *parameter++ = share * (double)width;
  *parameter = share * (double)height;
  if (kind->last != 0.0) camera->parameters[kind->parameters - 1] = kind->last;
  return HS_OK;
}

hs_status hs_colmap_camera_init(hs_colmap_camera *camera, int32_t width, int32_t height, double focal_length) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return hs_colmap_camera_init_model(camera, MODEL_SIMPLE_RADIAL, width, height, focal_length);
}

const char *colmap_camera_fault(const hs_colmap_camera *camera) {
  if (!RESERVED_IS_CLEAR(camera->reserved)) return "the camera's reserved fields are set: start with {0}";
  if (camera->tentative < HS_TENTATIVE_NOTHING || camera->tentative > HS_TENTATIVE_CAMERA)
    return "the camera's tentative is not 0 to 2";
  if (camera->camera_id != 0) return NULL;
  if (camera->width < 1 || camera->height < 1) return "the camera's width or height is not 1 or more";
  if (camera->model < 0) return "the camera's model is negative";
  if (camera->prior_focal_length != 0 && camera->prior_focal_length != 1)
    return "the camera's prior_focal_length is neither 0 nor 1";
  if (camera->parameter_count < 1 || camera->parameter_count > HS_COLMAP_PARAMETERS)
    return "the camera's parameter_count is not 1 to 16";
  if (camera->model < MODELS && camera->parameter_count != models[camera->model].parameters)
    return "the camera's parameter_count is not what its model has";
  for (int32_t i = 0; i < camera->parameter_count; i++)
    if (!isfinite(camera->parameters[i])) return "a parameter of the camera is not finite";
  for (int32_t i = 0; camera->model < MODELS && i < models[camera->model].focal_lengths; i++)
    if (!(camera->parameters[i] > 0.0)) return "a focal length of the camera is not above 0";
  return NULL;
}

const char *colmap_camera_misfit(const hs_colmap_camera *camera) {
  if (camera->model < 0 || camera->model >= MODELS) return NULL;
  const int32_t focal_lengths = models[camera->model].focal_lengths;
  const double *point = camera->parameters + focal_lengths;
  const double width = (double)camera->width, height = (double)camera->height;
  if (focal_lengths == 0)
    return point[0] == width && point[1] == height ? NULL : "the parameters of the camera are not its width and height";
  if (point[0] >= 0.0 && point[0] <= width && point[1] >= 0.0 && point[1] <= height) return NULL;
  return "the principal point of the camera is not in its picture";
}
