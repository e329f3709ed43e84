#include "tests/support/verified.h"

#include <stdlib.h>

#include "tests/support/test.h"

verified *verified_new(void) {
  verified *const v = calloc(1, sizeof *v);
  assert_non_null(v);
  return v;
}

hs_verify_options verified_options(hs_geometry_model model, const two_view_scene *scene) {
  hs_verify_options o;
  assert_int_equal(hs_verify_options_init(&o, model), HS_OK);
  o.camera_a = scene->camera_a;
  o.camera_b = scene->camera_b;
  return o;
}
