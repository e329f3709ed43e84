/*
 * hartsift_primitives.h - reductions, tile statistics, histograms and 1-D convolution; part of hartsift.h.
 */
#ifndef HARTSIFT_PRIMITIVES_H
#define HARTSIFT_PRIMITIVES_H

#include "hartsift.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
