/*
 * Prints position, scale and orientation of every feature of an image file, or of a generated scene when no
 * file is named. Build: cc extract_features.c $(pkg-config --cflags --libs hartsift)
 */
#include <hartsift.h>
#include <stdio.h>

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "@scene";
  hs_options options;
  hs_context *context = NULL;
  hs_image image = {0};
  hs_features features = {0};

  hs_options_init(&options, HS_PROFILE_LOWE);
  options.max_features = 1000;
  hs_status status = hs_create(&context, &options);
  if (status == HS_OK) status = hs_load_image(name, NULL, &image);
  if (status == HS_OK) status = hs_extract(context, &image, NULL, &features);
  if (status != HS_OK) fprintf(stderr, "%s: %s\n", name, hs_status_string(status));
  for (size_t i = 0; i < features.count; i++) {
    const hs_keypoint *k = &features.keypoints[i];
    printf("%.2f %.2f %.3f %.4f\n", (double)k->x, (double)k->y, (double)k->sigma, (double)k->orientation);
  }
  hs_features_free(&features);
  hs_image_free(&image);
  hs_destroy(context);
  return status == HS_OK ? 0 : 1;
}
