/*
 * Refinement and location of keypoints in a tile of a picture, for the fake launchers.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_TILES_H
#define HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_TILES_H

#include "cuda/keypoints/frame_view.h"
#include "tests/support/fake_device/fake_device.h"

void fake_refine_part(const cuda_frame_view *view);
void fake_locate_part(const cuda_frame_view *view);

#endif
