/* Panorama of two photos: cc stitch_photos.c $(pkg-config --cflags --libs hartsift) && ./a.out a.jpg b.jpg >pano.ppm */
#include <hartsift.h>
#include <stdio.h>

static void sample(const hs_image *im, double x, double y, uint8_t rgb[3]) {
  if (!(x >= 0 && y >= 0 && x < im->width - 1 && y < im->height - 1)) return; /* outside: rgb stays as it is */
  const int step = im->layout == HS_RGB ? 3 : 1, i = (int)x, j = (int)y;
  const double u = x - i, v = y - j;
  const uint8_t *p = (const uint8_t *)im->data + (size_t)j * im->stride_bytes + i * step, *q = p + im->stride_bytes;
  for (int c = 0; c < 3; c++, p += step == 3, q += step == 3)
    rgb[c] = (uint8_t)((1 - v) * ((1 - u) * p[0] + u * p[step]) + v * ((1 - u) * q[0] + u * q[step]));
}

int main(int argc, char **argv) {
  hs_load_options colour = {.struct_size = sizeof colour, .keep_colour = 1};
  hs_options options;
  hs_verify_options verify;
  hs_context *context = NULL;
  hs_image im[2] = {0};
  hs_features f[2] = {0};
  hs_matches m = {0};
  hs_geometry g;
  hs_options_init(&options, HS_PROFILE_LOWE);
  hs_verify_options_init(&verify, HS_HOMOGRAPHY);
  if (argc != 3) return fprintf(stderr, "usage: %s a.jpg b.jpg >pano.ppm\n", argv[0]), 2;
  hs_status st = hs_create(&context, &options);
  for (int i = 0; i < 2 && st == HS_OK && (st = hs_load_image(argv[1 + i], &colour, &im[i])) == HS_OK; i++)
    st = im[i].type == HS_U8 ? hs_extract(context, &im[i], NULL, &f[i]) : HS_ERR_UNSUPPORTED; /* sample() reads bytes */
  if (st == HS_OK) st = hs_match(context, &f[0], &f[1], NULL, &m);
  if (st == HS_OK) st = hs_verify(&f[0], &f[1], m.pairs, sizeof *m.pairs, m.count, &verify, NULL, &g);
  if (st != HS_OK || !g.found) return fprintf(stderr, "%s %zu matches\n", hs_status_string(st), m.count), 1;
  printf("P6 %d %d 255\n", 3 * im[0].width, 2 * im[0].height);
  for (int i = 0; i < 6 * im[0].width * im[0].height; i++) {
    const double x = i % (3 * im[0].width) - im[0].width, y = i / (3 * im[0].width) - im[0].height / 2;
    const double *h = g.matrix, w = h[6] * x + h[7] * y + h[8];
    uint8_t rgb[3] = {0};
    if (w > 0) sample(&im[1], (h[0] * x + h[1] * y + h[2]) / w, (h[3] * x + h[4] * y + h[5]) / w, rgb);
    sample(&im[0], x, y, rgb);
    fwrite(rgb, 1, 3, stdout);
  }
}
