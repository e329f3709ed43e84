/* A user's program: extracts the features of a small picture through the installed package. */
#include <hartsift.h>
#include <stdio.h>

int main(void) {
  static unsigned char pixels[64 * 64];
  for (int i = 0; i < 64 * 64; i++) {
    int dx = i % 64 - 30, dy = i / 64 - 33;
    pixels[i] = dx * dx + dy * dy < 81 ? 230 : 20;
  }
  hs_options options;
  hs_context *context = NULL;
  hs_image image = {.data = pixels, .width = 64, .height = 64, .stride_bytes = 64, .type = HS_U8};
  hs_features features = {0};
  hs_status status = hs_options_init(&options, HS_PROFILE_LOWE);
  if (status == HS_OK) status = hs_create(&context, &options);
  if (status == HS_OK) status = hs_extract(context, &image, &features);
  printf("%s: %zu features (%s)\n", hs_version_string(), features.count, hs_status_name(status));
  int failed = status != HS_OK || features.count == 0;
  hs_features_free(&features);
  hs_destroy(context);
  return failed;
}
