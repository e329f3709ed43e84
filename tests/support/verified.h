/* A scene of two views and its verification result. */
#ifndef HARTSIFT_TESTS_SUPPORT_VERIFIED_H
#define HARTSIFT_TESTS_SUPPORT_VERIFIED_H

#include "pipeline/include/hartsift.h"
#include "tests/support/two_view_scene.h"

typedef struct verified {
  two_view_scene scene;
  uint8_t inliers[TWO_VIEW_MAX];
  hs_geometry geometry;
} verified;

/* Returns a result initialised with zeros, which the caller frees. */
verified *verified_new(void);

/* Returns the model's default options with the scene's cameras. */
hs_verify_options verified_options(hs_geometry_model model, const two_view_scene *scene);

#endif
