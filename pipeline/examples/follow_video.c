/* Follows features through a video, given as image files in order. Prints "frame track x y" for every feature that the
 * previous frame had too. Build: cc follow_video.c $(pkg-config --cflags --libs hartsift). Run: ./a.out frame*.png */
#include <hartsift.h>
#include <stdio.h>
#include <stdlib.h>

enum { AHEAD = 4, MOST = 2000 };

int main(int argc, char **argv) {
  hs_context *context = NULL;
  hs_options options;
  hs_image image[AHEAD] = {0};
  hs_features features[2] = {0};
  hs_matches matches = {0};
  static int track[2][MOST], next = 1, tracks;
  const char *at = "";

  if (argc < 3) return fprintf(stderr, "usage: %s FRAME1 FRAME2 ... >tracks.txt\n", argv[0]), 2;
  hs_options_init(&options, HS_PROFILE_LOWE);
  options.max_features = MOST;
  options.in_flight = AHEAD;
  hs_status status = hs_create(&context, &options);
  for (int frame = 1; frame < argc && status == HS_OK; frame++) {
    hs_features *before = &features[frame % 2], *now = &features[1 - frame % 2];
    int *of_before = track[frame % 2], *of_now = track[1 - frame % 2];
    for (; status == HS_OK && next < argc && next < frame + AHEAD; next++) {
      at = argv[next];
      hs_image_free(&image[next % AHEAD]);
      status = hs_load_image(argv[next], NULL, &image[next % AHEAD]);
      if (status == HS_OK) status = hs_submit(context, &image[next % AHEAD], NULL);
    }
    if (status == HS_OK) at = argv[frame];
    if (status == HS_OK) status = hs_wait(context, now);
    if (status == HS_OK && frame > 1) status = hs_match(context, before, now, NULL, &matches);
    for (size_t i = 0; i < now->count; i++) of_now[i] = 0;
    for (size_t i = 0; i < matches.count && status == HS_OK; i++) {
      const uint32_t a = matches.pairs[i].first, b = matches.pairs[i].second;
      of_now[b] = of_before[a] ? of_before[a] : ++tracks;
      printf("%d %d %.2f %.2f\n", frame, of_now[b], (double)now->keypoints[b].x, (double)now->keypoints[b].y);
    }
  }
  if (status == HS_OK)
    fprintf(stderr, "%d tracks\n", tracks);
  else
    fprintf(stderr, "%s: %s\n", at, hs_status_string(status));
  return status == HS_OK ? 0 : 1;
}
