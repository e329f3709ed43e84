/* A user's program: extracts the features of a small picture through the installed package. */
#include <hartsift.h>
#include <stdio.h>

int main(void) {
  static unsigned char pixels[64 * 64];
  for (int i = 0; i < 64 * 64; i++) {
    int column = i % 64 / 8, row = i / 64 / 8;
    pixels[i] = (unsigned char)((column * column * 3 + row * 5 + column * row) % 7 * 40);
  }
  hs_options options;
  hs_context *context = NULL;
  hs_image image = {.data = pixels, .width = 64, .height = 64, .stride_bytes = 64, .type = HS_U8};
  hs_features features = {0};
  hs_status status = hs_options_init(&options, HS_PROFILE_LOWE);
  if (status == HS_OK) status = hs_create(&context, &options);
  if (status == HS_OK) status = hs_extract(context, &image, NULL, &features);
  printf("%s: %zu features (%s)\n", hs_version_string(), features.count, hs_status_name(status));
  int failed = status != HS_OK || features.count == 0;
  hs_features_free(&features);
  hs_destroy(context);
  return failed;
}
