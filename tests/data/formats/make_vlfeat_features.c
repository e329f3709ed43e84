/*
 * Writes vlfeat.sift with libvl (0.9.21 wrote the file that is kept): the loop and the output format of
 * VLFeat's own program, "x y sigma theta" and 128 integers, on a picture of a few blobs. Debian packages
 * the library without that program.
 *
 *   cc make_vlfeat_features.c -lvl -lm -o make && ./make > vlfeat.sift
 */
#include <math.h>
#include <stdio.h>
#include <vl/sift.h>

enum { SIDE = 64, BLOBS = 6 };

static void paint(float *picture) {
  for (int y = 0; y < SIDE; y++) {
    for (int x = 0; x < SIDE; x++) {
      double value = 40.0 + x;
      for (int b = 0; b < BLOBS; b++) {
        double dx = x - (12.0 + 19.0 * (b % 3)) - 0.3 * b;
        double dy = y - (16.0 + 29.0 * (b / 3)) + 0.2 * b;
        double width = 2.0 + 0.6 * b;
        value += (b % 2 == 0 ? 120.0 : -60.0) * exp(-(dx * dx + (1.0 + 0.3 * b) * dy * dy) / (2.0 * width * width));
      }
      picture[y * SIDE + x] = (float)value;
    }
  }
}

static void print_feature(const VlSiftKeypoint *keypoint, double angle, const float *descriptor) {
  printf("%g %g %g %g", keypoint->x, keypoint->y, keypoint->sigma, angle);
  for (int k = 0; k < 128; k++) {
    double value = 512.0 * descriptor[k];
    printf(" %d", (int)(value < 255.0 ? value : 255.0));
  }
  printf("\n");
}

int main(void) {
  float picture[SIDE * SIDE];
  paint(picture);
  VlSiftFilt *filter = vl_sift_new(SIDE, SIDE, -1, 3, -1);
  for (int error = vl_sift_process_first_octave(filter, picture); error == 0;
       error = vl_sift_process_next_octave(filter)) {
    vl_sift_detect(filter);
    const VlSiftKeypoint *keypoints = vl_sift_get_keypoints(filter);
    for (int i = 0; i < vl_sift_get_nkeypoints(filter); i++) {
      double angles[4];
      int count = vl_sift_calc_keypoint_orientations(filter, angles, &keypoints[i]);
      for (int a = 0; a < count; a++) {
        float descriptor[128];
        vl_sift_calc_keypoint_descriptor(filter, descriptor, &keypoints[i], angles[a]);
        print_feature(&keypoints[i], angles[a], descriptor);
      }
    }
  }
  vl_sift_delete(filter);
  return 0;
}
