/*
 * hartsift_geometry.h - verification of matches by homography, fundamental or essential matrix; part of hartsift.h.
 */
#ifndef HARTSIFT_GEOMETRY_H
#define HARTSIFT_GEOMETRY_H

#include "hartsift.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
