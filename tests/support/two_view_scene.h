/*
 * Matches of two views of a synthetic scene with known geometry, for tests of verification.
 *
 * Uses only sums, products, quotients and square roots, so that the points are the same on every machine.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_TWO_VIEW_SCENE_H
#define HARTSIFT_TESTS_SUPPORT_TWO_VIEW_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { TWO_VIEW_MAX = 2000 };

typedef enum two_view_kind {
  TWO_VIEW_VOLUME,   /* points spread in space */
  TWO_VIEW_PLANE,    /* all points on one plane */
  TWO_VIEW_MIXED,    /* three quarters of the points on one plane, the rest off it */
  TWO_VIEW_ROTATION, /* the camera only rotates */
  TWO_VIEW_LINE      /* all points on one line in space */
} two_view_kind;

typedef struct two_view_scene {
  size_t count, outliers; /* the first `outliers` matches are wrong: random positions in image b */
  double a[2 * TWO_VIEW_MAX], b[2 * TWO_VIEW_MAX];             /* measured positions, with noise and outliers */
  double exact_a[2 * TWO_VIEW_MAX], exact_b[2 * TWO_VIEW_MAX]; /* positions without noise and outliers */
  hs_camera camera_a, camera_b;
  double rotation[9], translation[3]; /* X_b = R X_a + t, t of length 1 (0 for TWO_VIEW_ROTATION) */
  double essential[9], fundamental[9];
  double homography[9]; /* homography of the plane or of the rotation */
} two_view_scene;

/* Makes a scene with images of 640x480. noise: standard deviation of each coordinate in pixels (a sum of twelve uniform
   numbers, nearly Gaussian). */
void two_view_make(two_view_kind kind, size_t count, size_t outliers, double noise, uint64_t seed,
                   two_view_scene *scene);

/* Returns the angle in radians between two rotations (nine numbers each). The next function does so for directions
 * (three numbers each). */
double two_view_rotation_angle(const double p[9], const double q[9]);
double two_view_direction_angle(const double p[3], const double q[3]);

/* Returns the largest distance |x' - H x| between two homographies over the four corners of a 640x480 image. */
double two_view_homography_difference(const double h[9], const double truth[9]);

/* Returns the root mean square Sampson distance in pixels of the scene's exact matches from an epipolar matrix. */
double two_view_epipolar_error(const double f[9], const two_view_scene *scene);

/* Computes f = Kb^-T E Ka^-1. */
void two_view_fundamental(const double e[9], const hs_camera *a, const hs_camera *b, double f[9]);

#endif
