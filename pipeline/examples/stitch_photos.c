/*
 * Stitches photographs, each of which overlaps the previous one, to a panorama: homographies between neighbours are
 * chained to the photo
 * in the middle; where photos overlap they fade into each other.
 * Build: cc stitch_photos.c $(pkg-config --cflags --libs hartsift) -lm. Run: ./a.out one.jpg two.jpg ... >panorama.ppm
 */
#include <hartsift.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PHOTOS_MAX = 64, CANVAS_MAX = 1 << 28 };

typedef struct photo {
  hs_image image;
  hs_features features;
  double to_middle[9], from_middle[9]; /* homographies, row-major */
} photo;

/* Computes c = a b; c must be neither a nor b. */
static void multiply(const double *a, const double *b, double *c) {
  for (int i = 0; i < 9; i++)
    c[i] = a[i / 3 * 3] * b[i % 3] + a[i / 3 * 3 + 1] * b[3 + i % 3] + a[i / 3 * 3 + 2] * b[6 + i % 3];
}

/* Computes the adjugate: the inverse up to scale, which suffices for a homography. */
static void invert(const double *h, double *inverse) {
  for (int i = 0; i < 9; i++) {
    const int r = i % 3, c = i / 3, r1 = (r + 1) % 3 * 3, r2 = (r + 2) % 3 * 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
    inverse[i] = h[r1 + c1] * h[r2 + c2] - h[r1 + c2] * h[r2 + c1];
  }
  for (int i = 0; i < 9; i++) inverse[i] /= inverse[8]; /* divides inverse[8] last, because the others use it */
}

static void map(const double *h, double x, double y, double to[2]) {
  const double w = h[6] * x + h[7] * y + h[8];
  to[0] = w > 0 ? (h[0] * x + h[1] * y + h[2]) / w : NAN;
  to[1] = w > 0 ? (h[3] * x + h[4] * y + h[5]) / w : NAN;
}

/* Adds a photo's colour at (x, y), bilinear, to sum; the weight is the distance to the nearest edge. */
static void add_sample(const hs_image *im, double x, double y, double sum[4]) {
  if (!(x >= 0 && y >= 0 && x < im->width - 1 && y < im->height - 1)) return;
  const int step = im->layout == HS_RGB ? 3 : 1, i = (int)x, j = (int)y;
  const double u = x - i, v = y - j;
  const double weight = 1e-3 + fmin(fmin(x, im->width - 1 - x), fmin(y, im->height - 1 - y));
  const uint8_t *p = (const uint8_t *)im->data + (size_t)j * im->stride_bytes + i * step, *q = p + im->stride_bytes;
  for (int c = 0; c < 3; c++, p += step == 3, q += step == 3)
    sum[c] += weight * ((1 - v) * ((1 - u) * p[0] + u * p[step]) + v * ((1 - u) * q[0] + u * q[step]));
  sum[3] += weight;
}

static hs_status load(hs_context *context, const char *name, photo *p) {
  hs_load_options colour;
  hs_load_options_init(&colour);
  colour.keep_colour = 1;
  hs_status status = hs_load_image(name, &colour, &p->image);
  if (status != HS_OK) return status;
  return p->image.type == HS_U8 ? hs_extract(context, &p->image, NULL, &p->features)
                                : HS_ERR_UNSUPPORTED; /* only HS_U8, because add_sample reads bytes */
}

/* Computes the homography from photo b to photo a. */
static hs_status relate(hs_context *context, const photo *a, const photo *b, hs_matches *matches,
                        hs_geometry *geometry) {
  hs_verify_options verify;
  hs_verify_options_init(&verify, HS_HOMOGRAPHY);
  const hs_status status = hs_match(context, &b->features, &a->features, NULL, matches);
  if (status != HS_OK) return status;
  return hs_verify(&b->features, &a->features, matches->pairs, sizeof *matches->pairs, matches->count, &verify, NULL,
                   geometry);
}

/* Computes the bounding rectangle of all photos in pixels of the middle photo: x, y, width, height. Returns 0 if it is
 * too large. */
static int frame_of(const photo *photos, int count, int frame[4]) {
  double low[2] = {0, 0}, high[2] = {0, 0};
  for (int i = 0; i < 4 * count; i++) {
    const photo *p = &photos[i / 4];
    double corner[2];
    map(p->to_middle, (i & 1) * (p->image.width - 1), (i >> 1 & 1) * (p->image.height - 1), corner);
    for (int c = 0; c < 2; c++) {
      if (!(fabs(corner[c]) < CANVAS_MAX)) return 0;
      low[c] = fmin(low[c], floor(corner[c])), high[c] = fmax(high[c], ceil(corner[c]));
    }
  }
  for (int c = 0; c < 2; c++) frame[c] = (int)low[c], frame[2 + c] = (int)(high[c] - low[c]) + 1;
  return (double)frame[2] * frame[3] < CANVAS_MAX;
}

static void write_panorama(const photo *photos, int count, const int frame[4]) {
  printf("P6 %d %d 255\n", frame[2], frame[3]);
  for (int y = frame[1]; y < frame[1] + frame[3]; y++) {
    for (int x = frame[0]; x < frame[0] + frame[2]; x++) {
      double sum[4] = {0}, at[2];
      for (int i = 0; i < count; i++) {
        map(photos[i].from_middle, x, y, at);
        add_sample(&photos[i].image, at[0], at[1], sum);
      }
      for (int c = 0; c < 3; c++) putchar(sum[3] > 0 ? (int)(sum[c] / sum[3] + 0.5) : 0);
    }
  }
}

int main(int argc, char **argv) {
  static photo photos[PHOTOS_MAX];
  static double to_previous[PHOTOS_MAX][9];
  const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const int count = argc - 1, middle = count / 2;
  int frame[4];
  hs_options options;
  hs_context *context = NULL;
  hs_matches matches = {0};
  hs_geometry geometry = {0};
  if (count < 2 || count > PHOTOS_MAX)
    return fprintf(stderr, "usage: %s one.jpg two.jpg ... >panorama.ppm\n", argv[0]), 2;
  hs_options_init(&options, HS_PROFILE_LOWE);
  hs_status status = hs_create(&context, &options);
  for (int i = 0; i < count && status == HS_OK; i++) {
    status = load(context, argv[1 + i], &photos[i]);
    if (status == HS_OK && i > 0) status = relate(context, &photos[i - 1], &photos[i], &matches, &geometry);
    if (status != HS_OK) return fprintf(stderr, "%s: %s\n", argv[1 + i], hs_status_string(status)), 1;
    if (i > 0 && !geometry.found)
      return fprintf(stderr, "%s does not overlap %s: %zu matches\n", argv[1 + i], argv[i], matches.count), 1;
    for (int k = 0; k < 9; k++) to_previous[i][k] = geometry.matrix[k];
  }
  if (status != HS_OK) return fprintf(stderr, "%s\n", hs_status_string(status)), 1;
  for (int k = 0; k < 9; k++) photos[middle].to_middle[k] = identity[k];
  for (int i = middle + 1; i < count; i++) multiply(photos[i - 1].to_middle, to_previous[i], photos[i].to_middle);
  for (int i = middle - 1; i >= 0; i--) {
    double to_next[9];
    invert(to_previous[i + 1], to_next);
    multiply(photos[i + 1].to_middle, to_next, photos[i].to_middle);
  }
  for (int i = 0; i < count; i++) invert(photos[i].to_middle, photos[i].from_middle);
  if (!frame_of(photos, count, frame)) return fprintf(stderr, "the photographs turn too far for one plane\n"), 1;
  write_panorama(photos, count, frame);
  for (int i = 0; i < count; i++) hs_features_free(&photos[i].features), hs_image_free(&photos[i].image);
  hs_matches_free(&matches);
  hs_destroy(context);
  if (fflush(stdout) != 0 || ferror(stdout)) return fprintf(stderr, "the panorama cannot be written\n"), 1;
  return 0;
}
