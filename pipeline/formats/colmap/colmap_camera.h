/*
 * What a camera must be to be stored in COLMAP's database.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_CAMERA_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_CAMERA_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* Null, or why this cannot be a camera. */
const char *colmap_camera_fault(const hs_colmap_camera *camera);
/* Null, or why a calibrated camera cannot be right for pictures of its size: COLMAP's mapper would pass over them. */
const char *colmap_camera_misfit(const hs_colmap_camera *camera);
/* COLMAP's name for a model; "?" for an unknown one. */
const char *colmap_model_name(int32_t model);

#endif
