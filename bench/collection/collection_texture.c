/* Generates textures: 1/f noise, shapes of all sizes, and bricks, windows or letters; see collection.h. */
#include "bench/collection/collection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/number_tools.h"

enum { GLYPHS = 26, GLYPH_ROWS = 7, GLYPH_COLUMNS = 5, STOCK_WINDOWS = 12 };
/* All scenes draw letters and windows from the same stock, so structure repeats within and between scenes. */
static const uint64_t stock_seed = 77;

random_stream random_of(uint64_t seed, uint64_t stream) {
  return (random_stream){splitmix64_mix(splitmix64_mix(seed) + stream * SPLITMIX64_STEP)};
}

uint64_t random_next(random_stream *r) {
  r->state += SPLITMIX64_STEP;
  return splitmix64_mix(r->state);
}

double random_between(random_stream *r, double low, double high) {
  return low + (high - low) * ((double)(random_next(r) >> 11) * 0x1p-53);
}

uint32_t random_below(random_stream *r, uint32_t count) { return (uint32_t)((random_next(r) >> 32) * count >> 32); }

static uint8_t to_gray(double value) { return (uint8_t)(value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value + 0.5); }

/* ------------------------------------------------------------------ noise */

/* Computes out [height][width]: the linear interpolation of the coarser plane, plus noise of the given amplitude. */
static void refine_noise(const int16_t *coarse, int32_t coarse_width, int32_t coarse_height, int16_t *out,
                         int32_t width, int32_t height, int32_t amplitude, random_stream *r) {
  for (int32_t y = 0; y < height; y++) {
    const int32_t y0 = y / 2, other_y = y0 + ((y & 1) ? 1 : -1);
    const int32_t y1 = other_y < 0 || other_y >= coarse_height ? y0 : other_y;
    const int16_t *row = coarse + (size_t)y0 * (size_t)coarse_width, *next = coarse + (size_t)y1 * (size_t)coarse_width;
    uint64_t bits = 0;
    for (int32_t x = 0; x < width; x++) {
      const int32_t x0 = x / 2, other_x = x0 + ((x & 1) ? 1 : -1);
      const int32_t x1 = other_x < 0 || other_x >= coarse_width ? x0 : other_x;
      if (x % 8 == 0) bits = random_next(r);
      const int32_t noise = (int32_t)(int8_t)(bits >> (x % 8 * 8));
      const int32_t mean = (9 * row[x0] + 3 * (row[x1] + next[x0]) + next[x1]) / 16;
      out[(size_t)y * (size_t)width + (size_t)x] = (int16_t)(mean + noise * amplitude / 128);
    }
  }
}

/* Makes noise of nearly equal energy in every octave, in 1/16 gray values around 0. Returns false when out of
 * memory. */
static bool make_noise(int16_t *noise, int32_t width, int32_t height, random_stream *r) {
  int32_t steps = 0;
  while ((width >> (steps + 1)) >= 2 && (height >> (steps + 1)) >= 2) steps++;
  int16_t *planes[2] = {noise, malloc((size_t)width * (size_t)height * sizeof *noise)};
  if (!planes[1]) return false;
  int16_t *from = planes[steps & 1], *to = planes[(steps & 1) ^ 1];
  int32_t w = (width + (1 << steps) - 1) >> steps, h = (height + (1 << steps) - 1) >> steps;
  for (int32_t i = 0; i < w * h; i++) from[i] = (int16_t)((int32_t)random_below(r, 640) - 320);
  for (int32_t step = steps - 1, amplitude = 360; step >= 0; step--, amplitude = amplitude * 7 / 8) {
    const int32_t wide = (width + (1 << step) - 1) >> step, high = (height + (1 << step) - 1) >> step;
    refine_noise(from, w, h, to, wide, high, amplitude, r);
    int16_t *swap = from;
    from = to;
    to = swap;
    w = wide;
    h = high;
  }
  free(planes[1]);
  return true;
}

/* ------------------------------------------------------------------ shapes */

typedef struct canvas {
  uint8_t *pixels;
  int32_t width, height;
} canvas;

/* Draws a rotated, partly transparent rectangle or ellipse. direction: cosine and sine of its angle. */
static void draw_shape(const canvas *c, double x, double y, double a, double b, const double direction[2], bool round,
                       double gray, double cover) {
  const double reach = (a > b ? a : b) * (round ? 1.0 : 1.5);
  const int32_t x0 = x - reach < 0.0 ? 0 : (int32_t)(x - reach), y0 = y - reach < 0.0 ? 0 : (int32_t)(y - reach);
  const int32_t x1 = x + reach >= c->width ? c->width - 1 : (int32_t)(x + reach);
  const int32_t y1 = y + reach >= c->height ? c->height - 1 : (int32_t)(y + reach);
  const int32_t ink = (int32_t)(gray * cover * 256.0), keep = 256 - (int32_t)(cover * 256.0);
  for (int32_t py = y0; py <= y1; py++) {
    uint8_t *row = c->pixels + (size_t)py * (size_t)c->width;
    for (int32_t px = x0; px <= x1; px++) {
      const double u = ((px - x) * direction[0] + (py - y) * direction[1]) / a;
      const double v = ((py - y) * direction[0] - (px - x) * direction[1]) / b;
      if (round ? u * u + v * v <= 1.0 : u * u <= 1.0 && v * v <= 1.0) row[px] = (uint8_t)((row[px] * keep + ink) >> 8);
    }
  }
}

/* Draws shapes until their total area is `cover` times the texture's. Their sizes have a density of r^-3, so that every
 * scale has an equal share of the area. */
static void draw_shapes(const canvas *c, double smallest, double largest, double cover, random_stream *r) {
  double left = cover * c->width * c->height;
  while (left > 0.0) {
    const double low = 1.0 / (largest * largest), high = 1.0 / (smallest * smallest);
    const double radius = 1.0 / sqrt(random_between(r, low, high)), flat = random_between(r, 0.35, 1.0);
    const double t = random_between(r, -1.0, 1.0);
    const double direction[2] = {(1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)};
    const double x = random_between(r, 0.0, c->width), y = random_between(r, 0.0, c->height);
    const double gray = random_between(r, 10.0, 245.0);
    draw_shape(c, x, y, radius, radius * flat, direction, random_below(r, 2) != 0, gray, random_between(r, 0.5, 0.95));
    left -= 3.0 * radius * radius * flat;
  }
}

static void fill(const canvas *c, double x, double y, double width, double height, double gray, double cover) {
  static const double upright[2] = {1.0, 0.0};
  draw_shape(c, x + width / 2, y + height / 2, width / 2, height / 2, upright, false, gray, cover);
}

/* Draws rows of bricks between lines of mortar, each brick with a different shade. */
static void draw_bricks(const canvas *c, double texels_per_m, random_stream *r) {
  const double height = texels_per_m * random_between(r, 0.12, 0.3), width = height * random_between(r, 1.5, 3.0);
  const double gap = height * 0.12, mortar = random_between(r, 20.0, 235.0);
  bool odd = false;
  for (double y = 0.0; y < c->height; y += height, odd = !odd) {
    fill(c, 0.0, y, c->width, gap, mortar, 0.8);
    for (double x = odd ? width / 2 : 0.0; x < c->width + width; x += width) {
      fill(c, x, y, gap, height, mortar, 0.8);
      fill(c, x - width + gap, y + gap, width - gap, height - gap, random_between(r, 0.0, 255.0), 0.25);
    }
  }
}

/* Draws window number `stock`: panes, bars, a sill and a shade. A window looks alike wherever it appears. */
static void draw_window(const canvas *c, double x, double y, double width, double height, uint32_t stock) {
  random_stream r = random_of(stock_seed, stock);
  const uint32_t columns = 1 + random_below(&r, 3), rows = 1 + random_below(&r, 3);
  const double frame = random_between(&r, 0.0, 255.0), bar = width * random_between(&r, 0.03, 0.08);
  fill(c, x - bar, y - bar, width + 2 * bar, height + 2 * bar, frame, 0.95);
  for (uint32_t i = 0; i < columns * rows; i++) {
    const double w = width / columns, h = height / rows;
    const double px = x + w * (i % columns) + bar, py = y + h * (i / columns) + bar;
    fill(c, px, py, w - 2 * bar, h - 2 * bar, random_between(&r, 0.0, 120.0), 0.9);
    fill(c, px + w * random_between(&r, 0.0, 0.3), py, w * random_between(&r, 0.1, 0.3),
         (h - 2 * bar) * random_between(&r, 0.3, 0.9), random_between(&r, 60.0, 255.0), 0.5);
  }
  fill(c, x - 3 * bar, y + height + bar, width + 6 * bar, 2 * bar, 255.0 - frame, 0.95);
}

static void draw_windows(const canvas *c, double texels_per_m, random_stream *r) {
  const double width = texels_per_m * random_between(r, 0.8, 1.4), height = width * random_between(r, 1.0, 1.6);
  const double step_x = width * random_between(r, 1.5, 2.2), step_y = height * random_between(r, 1.4, 1.8);
  const uint32_t stock = random_below(r, STOCK_WINDOWS);
  for (double y = step_y * 0.25; y + height < c->height; y += step_y)
    for (double x = step_x * 0.25; x + width < c->width; x += step_x) draw_window(c, x, y, width, height, stock);
}

static void draw_glyph(const canvas *c, double x, double y, double dot, uint32_t glyph, double gray) {
  random_stream r = random_of(stock_seed, 1000 + glyph);
  const uint64_t bits = random_next(&r);
  for (int32_t i = 0; i < GLYPH_ROWS * GLYPH_COLUMNS; i++)
    if ((bits >> i) & 1) fill(c, x + dot * (i % GLYPH_COLUMNS), y + dot * (i / GLYPH_COLUMNS), dot, dot, gray, 0.9);
}

/* Draws boards with lines of words. */
static void draw_text(const canvas *c, double texels_per_m, random_stream *r) {
  const uint32_t boards = 1 + (uint32_t)((double)c->width * c->height / (texels_per_m * texels_per_m * 5.0));
  for (uint32_t board = 0; board < boards; board++) {
    const double dot = texels_per_m * random_between(r, 0.012, 0.05),
                 width = texels_per_m * random_between(r, 0.8, 2.0);
    const double height = width * random_between(r, 0.5, 1.2), paper = random_between(r, 0.0, 255.0);
    const double x = random_between(r, -0.2 * width, c->width - 0.5 * width);
    const double y = random_between(r, -0.2 * height, c->height - 0.5 * height);
    fill(c, x, y, width, height, paper, 0.9);
    for (double line = y + 2 * dot; line + 8 * dot < y + height; line += 10 * dot) {
      for (double letter = x + 2 * dot; letter + 6 * dot < x + width; letter += 6 * dot)
        if (random_below(r, 6) != 0)
          draw_glyph(c, letter, line, dot, random_below(r, GLYPHS), paper < 128.0 ? 240.0 : 15.0);
    }
  }
}

/* ------------------------------------------------------------------ whole texture */

static void halve(const texture *t, int32_t level) {
  const uint8_t *from = t->level[level - 1];
  const int32_t stride = t->width[level - 1];
  for (int32_t y = 0; y < t->height[level]; y++) {
    for (int32_t x = 0; x < t->width[level]; x++) {
      const uint8_t *p = from + 2 * (size_t)y * (size_t)stride + 2 * (size_t)x;
      t->level[level][(size_t)y * (size_t)t->width[level] + (size_t)x] =
          (uint8_t)((p[0] + p[1] + p[stride] + p[stride + 1] + 2) / 4);
    }
  }
}

static bool allocate_levels(texture *t, int32_t width, int32_t height) {
  size_t bytes = 0, offsets[TEXTURE_LEVELS];
  for (t->levels = 0; t->levels < TEXTURE_LEVELS && width >= 4 && height >= 4; t->levels++, width /= 2, height /= 2) {
    t->width[t->levels] = width;
    t->height[t->levels] = height;
    offsets[t->levels] = bytes;
    bytes += (size_t)width * (size_t)height;
  }
  t->level[0] = malloc(bytes);
  for (int32_t i = 1; i < t->levels && t->level[0]; i++) t->level[i] = t->level[0] + offsets[i];
  return t->level[0] != NULL;
}

bool texture_make(texture *t, texture_kind kind, int32_t width, int32_t height, double texels_per_m, uint64_t seed) {
  const size_t texels = (size_t)width * (size_t)height;
  random_stream r = random_of(seed, 0);
  int16_t *noise = malloc(texels * sizeof *noise);
  if (!noise || !make_noise(noise, width, height, &r) || !allocate_levels(t, width, height)) {
    free(noise);
    return false;
  }
  const canvas c = {t->level[0], width, height};
  const double gray = random_between(&r, 70.0, 190.0), leaf = texels_per_m * 0.012;
  memset(c.pixels, (int)gray, texels);
  if (kind == TEXTURE_BRICKS) draw_bricks(&c, texels_per_m, &r);
  draw_shapes(&c, leaf, texels_per_m * 0.6, kind == TEXTURE_LEAVES ? 1.2 : kind == TEXTURE_GRAVEL ? 0.5 : 0.15, &r);
  if (kind == TEXTURE_WINDOWS) draw_windows(&c, texels_per_m, &r);
  if (kind == TEXTURE_TEXT) draw_text(&c, texels_per_m, &r);
  for (size_t i = 0; i < texels; i++) c.pixels[i] = to_gray((double)c.pixels[i] + noise[i] * 0.0625);
  free(noise);
  for (int32_t level = 1; level < t->levels; level++) halve(t, level);
  return true;
}

void texture_free(texture *t) {
  free(t->level[0]);
  memset(t, 0, sizeof *t);
}
