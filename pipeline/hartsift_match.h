/*
 * hartsift_match.h - exact matching of descriptors; part of hartsift.h.
 */
#ifndef HARTSIFT_MATCH_H
#define HARTSIFT_MATCH_H

#include "hartsift.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
