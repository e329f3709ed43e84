/*
 * Forms of COLMAP's options, cameras and features, for builds with and without SQLite; see colmap_records.h.
 */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/common/feature_codec.h"
#include "stages/table_math.h"

/* ---- hs_colmap_options of callers */

enum { COLMAP_USUAL_WAIT_MS = 10000 };
#define COLMAP_FEATURES_MAX (UINT64_C(1) << 27)

OPTIONS_END_WITH(hs_colmap_options, message_bytes);
static const options_kind options_of_caller = OPTIONS_KIND(hs_colmap_options, read_only);

hs_status hs_colmap_options_init_sized(hs_colmap_options *options, size_t struct_size) {
  return options_give(options, struct_size, NULL, options_of_caller);
}

static bool is_switch(int32_t value) { return value == 0 || value == 1; }

/* Returns the name of the first field that is out of range, or null. */
static const char *fault_of(const hs_colmap_options *o) {
  if (!is_switch(o->read_only)) return "read_only: 0 or 1 expected";
  if (!is_switch(o->replace)) return "replace: 0 or 1 expected";
  if (o->share_cameras < HS_CAMERAS_OWN || o->share_cameras > HS_CAMERAS_BY_FOLDER)
    return "share_cameras: 0 to 3 expected";
  if (o->wait_ms < 0) return "wait_ms: 0 or more expected";
  if (o->layout != HS_LAYOUT_UBC && o->layout != HS_LAYOUT_VLFEAT) return "layout: no such bin order";
  return NULL;
}

hs_status colmap_complete_options(const hs_colmap_options *options, hs_colmap_options *complete) {
  char reason[ADOPT_REASON_BYTES] = "";
  *complete = (hs_colmap_options){.struct_size = sizeof *complete};
  const hs_status status = !options ? HS_OK : options_adopt(complete, options, options_of_caller, reason);
  hs_message_set(complete->message, complete->message_bytes, "%s", reason);
  if (status != HS_OK) return status;
  const char *fault = fault_of(complete);
  if (fault)
    return hs_message_fail(HS_ERR_OPTION, complete->message, complete->message_bytes, "hs_colmap_options.%s", fault);
  if (complete->max_features == 0) complete->max_features = COLMAP_FEATURES_MAX;
  if (complete->wait_ms == 0) complete->wait_ms = COLMAP_USUAL_WAIT_MS;
  return HS_OK;
}

/* ---- Cameras: the default for an image, and the check of given ones. */

enum { MODEL_SIMPLE_RADIAL = 2 };

/* COLMAP's default focal length, in units of the image's larger side. */
static const double default_focal_factor = 1.2;

/* Parameters of a camera model, in this order: focal lengths, principal point, distortion. Distortion is initially 0,
 * except perhaps its last parameter. */
typedef struct camera_model {
  const char *name;
  int32_t parameters, focal_lengths;
  double last; /* initial value of the last parameter; in some models this is not 0 without distortion */
} camera_model;

/* Models, indexed by COLMAP's model id. COLMAP 3.8 knows ids up to 10. */
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
  /* a spherical panorama has width and height where other models have the principal point */
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
    return "the camera's parameter_count is not that of its model";
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

/* ---- Keypoints: scale and orientation as a 2 x 2 matrix; the pixel origin is the pixel's corner. */

/* COLMAP's pixel origin is the corner of the first pixel. */
static const double colmap_origin = 0.5;

void colmap_keypoint_put(const hs_keypoint *keypoint, uint8_t out[COLMAP_KEYPOINT_BYTES]) {
  const double sigma = (double)keypoint->sigma;
  double sine, cosine; /* the C library's functions differ in the last bits between machines, so they are not used */
  table_sincos((double)angle_wrap((double)keypoint->orientation), &sine, &cosine);
  const double along = sigma * cosine, across = sigma * sine;
  const double columns[COLMAP_COLUMNS] = {
      (double)keypoint->x + colmap_origin, (double)keypoint->y + colmap_origin, along, -across, across, along};
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) bytes_put_f32(out + 4 * i, (float)columns[i]);
}

void colmap_frame_put(const hs_keypoint *keypoint, const hs_frame *frame, uint8_t out[COLMAP_KEYPOINT_BYTES]) {
  const float columns[COLMAP_COLUMNS] = {(float)((double)keypoint->x + colmap_origin),
                                         (float)((double)keypoint->y + colmap_origin),
                                         frame->a11,
                                         frame->a12,
                                         frame->a21,
                                         frame->a22};
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) bytes_put_f32(out + 4 * i, columns[i]);
}

/* Computes the length in double, where squares of floats neither overflow nor underflow. */
static double length(double x, double y) { return sqrt(x * x + y * y); }

const char *colmap_keypoint_get(const uint8_t *bytes, int64_t columns, hs_keypoint *keypoint) {
  double value[COLMAP_COLUMNS] = {0};
  for (int64_t i = 0; i < columns; i++) value[i] = (double)bytes_get_f32(bytes + 4 * i);
  double sigma = 1.0;
  double orientation = 0.0;
  if (columns == 4) {
    sigma = value[2];
    orientation = value[3];
  } else if (columns == COLMAP_COLUMNS) {
    /* as COLMAP computes them: scale is the mean length of the two columns, orientation the direction of the first
     * column */
    sigma = 0.5 * (length(value[2], value[4]) + length(value[3], value[5]));
    orientation = table_atan2(value[4], value[2]);
  }
  return keypoint_fill(keypoint, value[0] - colmap_origin, value[1] - colmap_origin, sigma, orientation);
}

void colmap_frame_get(const uint8_t *row, hs_frame *frame) {
  *frame =
      (hs_frame){bytes_get_f32(row + 8), bytes_get_f32(row + 12), bytes_get_f32(row + 16), bytes_get_f32(row + 20)};
}

bool colmap_rows_are_framed(const uint8_t *rows, size_t count) {
  bool circles = true;
  for (size_t i = 0; i < count; i++) {
    hs_frame frame;
    colmap_frame_get(rows + i * COLMAP_KEYPOINT_BYTES, &frame);
    if (!frame_has_inverse(&frame)) return false;
    circles = circles && frame.a11 == frame.a22 && frame.a12 == -frame.a21;
  }
  return !circles;
}

/* ---- an image's features as rows */

enum { ROWS_AT_ONCE = 256 };

hs_status colmap_rows_make(const feature_target *target, colmap_rows *rows) {
  const hs_features *features = target->features;
  const size_t count = features->count;
  const bool described = features->descriptor_type != HS_DESCRIPTOR_NONE;
  *rows = (colmap_rows){.count = count,
                        .width = features->image_width,
                        .height = features->image_height,
                        .origin = features->origin,
                        .allocator = target->allocator};
  hs_status status = features_check_unturned(target, "COLMAP");
  if (status == HS_OK) status = features_check(target);
  if (status != HS_OK) return status;
  rows->keypoints = hs_memory_alloc(rows->allocator, count * COLMAP_KEYPOINT_BYTES);
  rows->descriptors = described ? hs_memory_alloc(rows->allocator, count * HS_DESCRIPTOR_LENGTH) : NULL;
  if (!rows->keypoints || (described && !rows->descriptors)) {
    colmap_rows_free(rows);
    return target_fail(target, HS_ERR_MEMORY, "out of memory for %zu features", count);
  }
  const descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  for (size_t i = 0; i < count; i++) {
    uint8_t *row = rows->keypoints + i * COLMAP_KEYPOINT_BYTES;
    if (features->frames)
      colmap_frame_put(&features->keypoints[i], &features->frames[i], row);
    else
      colmap_keypoint_put(&features->keypoints[i], row);
    if (described) descriptor_to_u8(&codec, i, rows->descriptors + i * HS_DESCRIPTOR_LENGTH);
  }
  return HS_OK;
}

void colmap_rows_free(colmap_rows *rows) {
  hs_memory_release(rows->allocator, rows->keypoints);
  hs_memory_release(rows->allocator, rows->descriptors);
  memset(rows, 0, sizeof *rows);
}

hs_status colmap_rows_digest(const colmap_rows *rows, uint64_t *digest) {
  hs_keypoint keypoints[ROWS_AT_ONCE];
  digest_state state;
  digest_start_features(&state, rows->count);
  for (size_t first = 0; first < rows->count; first += ROWS_AT_ONCE) {
    const size_t here = rows->count - first < ROWS_AT_ONCE ? rows->count - first : ROWS_AT_ONCE;
    for (size_t i = 0; i < here; i++) {
      const uint8_t *bytes = rows->keypoints + (first + i) * COLMAP_KEYPOINT_BYTES;
      if (colmap_keypoint_get(bytes, COLMAP_COLUMNS, &keypoints[i])) return HS_ERR_FORMAT;
    }
    digest_add_keypoints(&state, keypoints, here);
  }
  if (rows->descriptors) digest_add(&state, rows->descriptors, rows->count * HS_DESCRIPTOR_LENGTH);
  const size_t framed = colmap_rows_are_framed(rows->keypoints, rows->count) ? rows->count : 0;
  for (size_t i = 0; i < framed; i++) {
    hs_frame frame;
    colmap_frame_get(rows->keypoints + i * COLMAP_KEYPOINT_BYTES, &frame);
    digest_add_frames(&state, &frame, 1);
  }
  *digest = digest_end(&state);
  return HS_OK;
}
