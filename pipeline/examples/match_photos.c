/*
 * Matches two photographs and verifies the matches by a fundamental matrix. Prints "x1 y1 x2 y2" for each match that
 * agrees. Build: cc match_photos.c $(pkg-config --cflags --libs hartsift). Run: ./a.out one.jpg two.jpg
 */
#include <hartsift.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  hs_context *context = NULL;
  hs_options options;
  hs_verify_options verify;
  hs_image image[2] = {0};
  hs_features features[2] = {0};
  hs_matches matches = {0};
  hs_geometry geometry = {0};
  const char *at = "";

  hs_options_init(&options, HS_PROFILE_LOWE);
  hs_verify_options_init(&verify, HS_FUNDAMENTAL);
  if (argc != 3) return fprintf(stderr, "usage: %s one.jpg two.jpg\n", argv[0]), 2;
  hs_status status = hs_create(&context, &options);
  for (int i = 0; i < 2 && status == HS_OK; i++) {
    at = argv[1 + i];
    status = hs_load_image(at, NULL, &image[i]);
    if (status == HS_OK) status = hs_extract(context, &image[i], NULL, &features[i]);
  }
  if (status == HS_OK) status = hs_match(context, &features[0], &features[1], NULL, &matches);
  uint8_t *inlier = calloc(matches.count + 1, 1);
  if (status == HS_OK && inlier)
    status = hs_verify(&features[0], &features[1], matches.pairs, sizeof *matches.pairs, matches.count, &verify, inlier,
                       &geometry);
  for (size_t i = 0; i < matches.count && inlier; i++) {
    const hs_keypoint *a = &features[0].keypoints[matches.pairs[i].first];
    const hs_keypoint *b = &features[1].keypoints[matches.pairs[i].second];
    if (inlier[i]) printf("%.2f %.2f %.2f %.2f\n", (double)a->x, (double)a->y, (double)b->x, (double)b->y);
  }
  if (status != HS_OK) return fprintf(stderr, "%s: %s\n", at, hs_status_string(status)), 1;
  fprintf(stderr, "%zu matches, %zu agree\n", matches.count, geometry.inlier_count);
  return 0;
}
