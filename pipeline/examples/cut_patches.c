/*
 * Writes the patches about the 100 strongest features of an image file (without a file, of a generated scene) as one
 * PGM sheet to standard output. Learned descriptors such as HardNet take such patches.
 * Build: cc cut_patches.c $(pkg-config --cflags --libs hartsift)
 */
#include <hartsift.h>
#include <stdio.h>

enum { SIDE = 32, COLUMNS = 10, ROWS = 10 };

static unsigned char patches[COLUMNS * ROWS][SIDE][SIDE]; /* patches without a feature stay black */

static void write_sheet(void) {
  printf("P5\n%d %d\n255\n", COLUMNS * SIDE, ROWS * SIDE);
  for (int y = 0; y < ROWS * SIDE; y++)
    for (int column = 0; column < COLUMNS; column++)
      fwrite(patches[y / SIDE * COLUMNS + column][y % SIDE], 1, SIDE, stdout);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "@scene";
  hs_options options;
  hs_patch_options patch;
  hs_context *context = NULL;
  hs_image image = {0};
  hs_features features = {0};

  hs_options_init(&options, HS_PROFILE_LOWE);
  options.max_features = COLUMNS * ROWS;
  hs_patch_options_init(&patch);
  patch.size = SIDE;
  hs_status status = hs_create(&context, &options);
  if (status == HS_OK) status = hs_load_image(name, NULL, &image);
  if (status == HS_OK) status = hs_detect(context, &image, NULL, &features);
  if (status == HS_OK)
    status = hs_extract_patches(context, &image, features.keypoints, NULL, features.count, &patch, patches, NULL);
  if (status != HS_OK)
    fprintf(stderr, "%s: %s\n", name, hs_status_string(status));
  else
    write_sheet();
  hs_features_free(&features);
  hs_image_free(&image);
  hs_destroy(context);
  return status == HS_OK ? 0 : 1;
}
