/*
 * Refinement and location on a part of a picture, as the played launchers do them.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_PLAYED_DEVICE_PLAYED_TILES_H
#define HARTSIFT_TESTS_SUPPORT_PLAYED_DEVICE_PLAYED_TILES_H

#include "cuda/keypoints/frame_view.h"
#include "tests/support/played_device/played_device.h"

void played_refine_part(const cuda_frame_view *view);
void played_locate_part(const cuda_frame_view *view);

#endif
