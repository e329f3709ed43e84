/*
 * Renders the dead-leaves picture of hs_render_scene.
 *
 * The world. Each seed has one endless plane of opaque discs. The size of the frame and the
 * homography only choose the visible part. Radii follow r^-3 over SCENE_OCTAVES octaves from 2.5 px, which gives the
 * scale invariance and roughly 1/f^2 spectrum of photographs (Lee, Mumford, Huang, IJCV 2001). Discs of radius octave j
 * are in square cells of side 4a, a = 2.5 * 2^j; every cell holds SCENE_LEAVES discs, whose properties are hashes of
 * (seed, j, cell, index). So nothing is stored, and any part of the plane can be rendered independently. On average
 * 12.7 discs cover a point; uncovered points (3 in a million) are mid- gray.
 *
 * Reproducibility. Each sample's position is the only floating-point result that depends on the homography: IEEE double
 * + - * / in the order written (this file needs -ffp-contract=off). It is rounded to 1/1024 px; from there on all is
 * integer arithmetic, except a disc's radius (one division, one square root).
 *
 * A pixel is the mean of 4 x 4 samples, so views are resamplings of the same continuous scene.
 */
#include "pipeline/image_io/image_io.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/base/number_tools.h"
#include "pipeline/base/memory.h"

enum {
  SCENE_UNIT = 1024,  /* world units per pixel */
  SCENE_OCTAVES = 7,  /* radii 2.5 to 320 px */
  SCENE_LEAVES = 5,   /* discs per cell: each octave covers the plane 1.8 times */
  SCENE_CELL = 10240, /* side of a cell of octave 0, world units: 4a = 10 px */
  SCENE_SAMPLES = 4,  /* samples of a pixel in each direction */
  SCENE_TILE = 16,    /* side of a tile, pixels */
  SCENE_TILE_SAMPLES = SCENE_TILE * SCENE_SAMPLES,
  SCENE_MAX_EXTENT = 32 * SCENE_UNIT, /* a block of samples that is wider in the world is split, world units */
  SCENE_MAX_LEAVES = 1024,            /* capacity of the list of discs; see scene_gather */
  SCENE_TEXTURE = 256,                /* side of the periodic texture, texels */
  SCENE_GRAY_UNIT = 16,               /* units of a shade per gray level: 16 samples sum to 256 per level */
  SCENE_BACKGROUND = 128 * SCENE_GRAY_UNIT
};

/* A point of the world; outside of it x is SCENE_NOWHERE. */
typedef struct {
  int32_t x, y;
} scene_point;
#define SCENE_NOWHERE INT32_MIN
/* Half the side of the world, 2^20 px, in world units, so that differences fit 32 bits. */
#define SCENE_HALF_WORLD 1073741824.0

/* A disc and its shading. */
typedef struct {
  int32_t x, y, radius; /* world units */
  int64_t radius_squared;
  int32_t gray;                  /* gray at the centre */
  int32_t slope_x, slope_y;      /* change of gray, in gray units * 2^16 per world unit */
  int32_t turn_cos, turn_sin;    /* rotation and scale of the texture: texels * 2^20 per world unit */
  uint32_t texture_x, texture_y; /* texture coordinates of the centre, texels * 256 */
  int32_t texture_gain;          /* gray units * 64 per unit of the texture */
} scene_leaf;

/* Inverse homography of a view, up to a factor: world = (u/w, v/w), u = m0 x + m1 y + m2 ... */
typedef struct {
  double m[9];
} scene_view;

typedef struct {
  uint64_t seed;
  int16_t texture[SCENE_TEXTURE * SCENE_TEXTURE];
  scene_point points[SCENE_TILE_SAMPLES * SCENE_TILE_SAMPLES];
  uint32_t sums[SCENE_TILE * SCENE_TILE];
  uint64_t keys[SCENE_MAX_LEAVES]; /* [i]: depth in the high half, index into leaves in the low half */
  scene_leaf leaves[SCENE_MAX_LEAVES];
  int32_t leaf_count;
} scene_work;

/* ---------------------------------------------------------------- random numbers */

/* Returns number `index` of the random stream of `key`. */
static uint64_t scene_random(uint64_t key, uint32_t index) {
  return splitmix64_mix(key + (index + UINT64_C(1)) * SPLITMIX64_STEP);
}

/* Maps `bits` (at most 16) bits of a random number, from bit `shift` on, to 0..range-1. */
static int32_t scene_pick(uint64_t random, int shift, int bits, int32_t range) {
  uint32_t part = (uint32_t)(random >> shift) & ((1U << bits) - 1U);
  return (int32_t)((part * (uint32_t)range) >> bits);
}

/* ---------------------------------------------------------------- texture */

/* Adds one octave of value noise: random values -255..255 every 2^k texels, bilinear between them. */
static void scene_add_noise(scene_work *work, int k) {
  const uint64_t key = splitmix64_mix(work->seed ^ (UINT64_C(0x7465787475726500) + (uint64_t)k));
  const uint32_t step = 1U << k, cells = SCENE_TEXTURE >> k;
  for (uint32_t y = 0; y < SCENE_TEXTURE; y++) {
    uint32_t y0 = y >> k, y1 = (y0 + 1) & (cells - 1);
    int32_t fy = (int32_t)(y & (step - 1));
    for (uint32_t x0 = 0; x0 < cells; x0++) {
      uint32_t x1 = (x0 + 1) & (cells - 1);
      int32_t v00 = scene_pick(scene_random(key, y0 * cells + x0), 0, 16, 511) - 255;
      int32_t v01 = scene_pick(scene_random(key, y0 * cells + x1), 0, 16, 511) - 255;
      int32_t v10 = scene_pick(scene_random(key, y1 * cells + x0), 0, 16, 511) - 255;
      int32_t v11 = scene_pick(scene_random(key, y1 * cells + x1), 0, 16, 511) - 255;
      int32_t left = v00 * ((int32_t)step - fy) + v10 * fy;
      int32_t right = v01 * ((int32_t)step - fy) + v11 * fy;
      for (int32_t fx = 0; fx < (int32_t)step; fx++) {
        int32_t value = (left * ((int32_t)step - fx) + right * fx) / (int32_t)(step * step);
        int16_t *texel = &work->texture[y * SCENE_TEXTURE + x0 * step + (uint32_t)fx];
        *texel = (int16_t)(*texel + value);
      }
    }
  }
}

/* Makes a texture with equal variance in every octave of frequency; values are within +-6 * 255. */
static void scene_build_texture(scene_work *work) {
  memset(work->texture, 0, sizeof work->texture);
  for (int k = 1; k <= 6; k++) scene_add_noise(work, k);
}

/* Returns the texture's value at a position in 1/256 texel, interpolated bilinearly; both coordinates wrap around. */
static int32_t scene_texture_at(const scene_work *work, uint32_t x, uint32_t y) {
  const uint32_t mask = SCENE_TEXTURE - 1;
  uint32_t x0 = (x >> 8) & mask, y0 = (y >> 8) & mask;
  uint32_t x1 = (x0 + 1) & mask, y1 = (y0 + 1) & mask;
  int32_t fx = (int32_t)(x & 255U), fy = (int32_t)(y & 255U);
  const int16_t *upper = work->texture + y0 * SCENE_TEXTURE, *lower = work->texture + y1 * SCENE_TEXTURE;
  int32_t top = upper[x0] * (256 - fx) + upper[x1] * fx;
  int32_t bottom = lower[x0] * (256 - fx) + lower[x1] * fx;
  return (top * (256 - fy) + bottom * fy) / 65536;
}

/* ---------------------------------------------------------------- discs */

/* Returns the floor of a quotient with a positive divisor. */
static int32_t scene_floor_div(int64_t value, int64_t divisor) {
  int64_t quotient = value / divisor;
  return (int32_t)(quotient - (value % divisor < 0));
}

/* Computes a vector of this length in a direction from 16 random bits. The rational parametrisation of the circle
   avoids sines; its four branches are the quadrants. */
static void scene_direction(uint64_t random, int shift, double length, double *x, double *y) {
  double t = scene_pick(random, shift, 14, 1 << 14) / 16384.0;
  double scale = length / (1.0 + t * t);
  double along = (1.0 - t * t) * scale, across = (t + t) * scale;
  int quadrant = scene_pick(random, shift + 14, 2, 4);
  *x = quadrant == 0 ? along : quadrant == 1 ? -across : quadrant == 2 ? -along : across;
  *y = quadrant == 0 ? across : quadrant == 1 ? along : quadrant == 2 ? -across : -along;
}

/* Sets all properties of a disc except its position and radius. */
static void scene_shade_leaf(scene_leaf *leaf, uint64_t key) {
  uint64_t a = scene_random(key, 2), b = scene_random(key, 3);
  double radius = (double)leaf->radius, x, y;
  leaf->gray = (24 + scene_pick(a, 0, 16, 208)) * SCENE_GRAY_UNIT;
  /* the shade rises linearly by up to 28 levels from the centre to the rim */
  double rise = (double)scene_pick(a, 16, 16, 28 * SCENE_GRAY_UNIT);
  scene_direction(a, 32, rise * 65536.0 / radius, &x, &y);
  leaf->slope_x = (int32_t)x;
  leaf->slope_y = (int32_t)y;
  /* texels have 1 to 2 px, at any rotation */
  double texels = 512.0 + (double)scene_pick(a, 48, 16, 512);
  scene_direction(b, 0, texels, &x, &y);
  leaf->turn_cos = (int32_t)x;
  leaf->turn_sin = (int32_t)y;
  leaf->texture_x = (uint32_t)scene_pick(b, 16, 16, 65536);
  leaf->texture_y = (uint32_t)scene_pick(b, 32, 16, 65536);
  leaf->texture_gain = 8 + scene_pick(b, 48, 16, 56);
}

/* True if a disc overlaps the box low..high. */
static int scene_leaf_touches(const scene_leaf *leaf, scene_point low, scene_point high) {
  int64_t dx = leaf->x < low.x ? (int64_t)low.x - leaf->x : leaf->x > high.x ? (int64_t)leaf->x - high.x : 0;
  int64_t dy = leaf->y < low.y ? (int64_t)low.y - leaf->y : leaf->y > high.y ? (int64_t)leaf->y - high.y : 0;
  return dx * dx + dy * dy <= leaf->radius_squared;
}

/* Appends the discs of one cell that overlap the box. */
static void scene_gather_cell(scene_work *work, int octave, scene_point cell, scene_point low, scene_point high) {
  const int64_t side = (int64_t)SCENE_CELL << octave;
  uint64_t key = splitmix64_mix(work->seed + (uint64_t)octave);
  key = splitmix64_mix(key ^ (((uint64_t)(uint32_t)cell.y << 32) | (uint32_t)cell.x));
  for (uint32_t i = 0; i < SCENE_LEAVES && work->leaf_count < SCENE_MAX_LEAVES; i++) {
    uint64_t leaf_key = scene_random(key, i);
    uint64_t position = scene_random(leaf_key, 0), shape = scene_random(leaf_key, 1);
    scene_leaf *leaf = &work->leaves[work->leaf_count];
    leaf->x = (int32_t)(cell.x * side + (int64_t)(((position & UINT32_MAX) * (uint64_t)side) >> 32));
    leaf->y = (int32_t)(cell.y * side + (int64_t)(((position >> 32) * (uint64_t)side) >> 32));
    /* radius between a and 2a with density r^-3, by the inverse of its distribution function */
    double u = (double)(shape & UINT32_MAX) / 4294967296.0;
    leaf->radius = (int32_t)((double)(side / 4) / sqrt(1.0 - 0.75 * u));
    leaf->radius_squared = (int64_t)leaf->radius * leaf->radius;
    if (scene_leaf_touches(leaf, low, high)) {
      scene_shade_leaf(leaf, leaf_key);
      work->keys[work->leaf_count] = (shape & ~(uint64_t)UINT32_MAX) | (uint64_t)work->leaf_count;
      work->leaf_count++;
    }
  }
}

/* Collects the discs that overlap the box, sorted front to back by their random depth. The box is at most 32 px wide,
   so 7 x 7 cells of octave 0, 5 x 5 of octave 1 and at most 4 x 4 of the others are near: 154 cells with fewer than
   SCENE_MAX_LEAVES discs. */
static void scene_gather(scene_work *work, scene_point low, scene_point high) {
  work->leaf_count = 0;
  for (int octave = 0; octave < SCENE_OCTAVES; octave++) {
    const int64_t side = (int64_t)SCENE_CELL << octave, radius = side / 2;
    int32_t x0 = scene_floor_div(low.x - radius, side), x1 = scene_floor_div(high.x + radius, side);
    int32_t y0 = scene_floor_div(low.y - radius, side), y1 = scene_floor_div(high.y + radius, side);
    for (int32_t y = y0; y <= y1; y++)
      for (int32_t x = x0; x <= x1; x++) scene_gather_cell(work, octave, (scene_point){x, y}, low, high);
  }
  for (int32_t i = 1; i < work->leaf_count; i++) {
    uint64_t key = work->keys[i];
    int32_t j = i;
    for (; j > 0 && work->keys[j - 1] > key; j--) work->keys[j] = work->keys[j - 1];
    work->keys[j] = key;
  }
}

/* Returns the shade of a disc at an offset from its centre, inside the disc. */
static uint32_t scene_leaf_shade(const scene_work *work, const scene_leaf *leaf, int32_t dx, int32_t dy) {
  int32_t slope = (dx * leaf->slope_x + dy * leaf->slope_y) / 65536;
  /* unsigned, because wrapping is then defined, and the texture is periodic; 2^20 of the product is one texel */
  uint32_t turned_x = (uint32_t)dx * (uint32_t)leaf->turn_cos - (uint32_t)dy * (uint32_t)leaf->turn_sin;
  uint32_t turned_y = (uint32_t)dx * (uint32_t)leaf->turn_sin + (uint32_t)dy * (uint32_t)leaf->turn_cos;
  int32_t texel = scene_texture_at(work, (turned_x >> 12) + leaf->texture_x, (turned_y >> 12) + leaf->texture_y);
  int32_t shade = leaf->gray + slope + texel * leaf->texture_gain / 64;
  const int32_t white = 255 * SCENE_GRAY_UNIT;
  return (uint32_t)(shade < 0 ? 0 : shade > white ? white : shade);
}

static uint32_t scene_shade_point(const scene_work *work, scene_point point) {
  for (int32_t i = 0; i < work->leaf_count; i++) {
    const scene_leaf *leaf = &work->leaves[work->keys[i] & UINT32_MAX];
    int64_t dx = (int64_t)point.x - leaf->x, dy = (int64_t)point.y - leaf->y;
    if (dx * dx + dy * dy <= leaf->radius_squared) return scene_leaf_shade(work, leaf, (int32_t)dx, (int32_t)dy);
  }
  return SCENE_BACKGROUND;
}

/* ---------------------------------------------------------------- tiles */

/* Adds the shades of a square block of a tile's samples to the pixels' sums. A block that covers much of the world
   is split, down to one sample if needed, so that the list of discs stays short. */
static void scene_render_block(scene_work *work, int32_t left, int32_t top, int32_t size) {
  scene_point low = {INT32_MAX, INT32_MAX}, high = {INT32_MIN, INT32_MIN};
  for (int32_t y = top; y < top + size; y++) {
    for (int32_t x = left; x < left + size; x++) {
      scene_point point = work->points[y * SCENE_TILE_SAMPLES + x];
      if (point.x != SCENE_NOWHERE) {
        low.x = point.x < low.x ? point.x : low.x;
        low.y = point.y < low.y ? point.y : low.y;
        high.x = point.x > high.x ? point.x : high.x;
        high.y = point.y > high.y ? point.y : high.y;
      }
    }
  }
  work->leaf_count = 0;
  if (low.x <= high.x) {
    int64_t extent_x = (int64_t)high.x - low.x, extent_y = (int64_t)high.y - low.y;
    if (size > 1 && (extent_x > SCENE_MAX_EXTENT || extent_y > SCENE_MAX_EXTENT)) {
      const int32_t half = size / 2;
      scene_render_block(work, left, top, half);
      scene_render_block(work, left + half, top, half);
      scene_render_block(work, left, top + half, half);
      scene_render_block(work, left + half, top + half, half);
      return;
    }
    scene_gather(work, low, high);
  }
  for (int32_t y = top; y < top + size; y++) {
    for (int32_t x = left; x < left + size; x++) {
      scene_point point = work->points[y * SCENE_TILE_SAMPLES + x];
      uint32_t shade = point.x == SCENE_NOWHERE ? (uint32_t)SCENE_BACKGROUND : scene_shade_point(work, point);
      work->sums[(y / SCENE_SAMPLES) * SCENE_TILE + x / SCENE_SAMPLES] += shade;
    }
  }
}

/* Returns the point of the world that is visible at (x, y) of the view. The comparisons are false for NaN. */
static scene_point scene_look_up(const scene_view *view, double x, double y) {
  const double *m = view->m;
  double w = (m[6] * x + m[7] * y) + m[8];
  double u = ((m[0] * x + m[1] * y) + m[2]) / w * (double)SCENE_UNIT;
  double v = ((m[3] * x + m[4] * y) + m[5]) / w * (double)SCENE_UNIT;
  scene_point point = {SCENE_NOWHERE, 0};
  if (u > -SCENE_HALF_WORLD && u < SCENE_HALF_WORLD && v > -SCENE_HALF_WORLD && v < SCENE_HALF_WORLD) {
    /* rounds halves up: shifted to be positive, truncation equals floor */
    point.x = (int32_t)((int64_t)(u + (SCENE_HALF_WORLD + 0.5)) - (int64_t)SCENE_HALF_WORLD);
    point.y = (int32_t)((int64_t)(v + (SCENE_HALF_WORLD + 0.5)) - (int64_t)SCENE_HALF_WORLD);
  }
  return point;
}

/* Renders the tile whose first pixel is (left, top). columns, rows: its part inside the frame. */
static void scene_render_tile(scene_work *work, const scene_view *view, int32_t left, int32_t top) {
  for (int32_t y = 0; y < SCENE_TILE_SAMPLES; y++) {
    for (int32_t x = 0; x < SCENE_TILE_SAMPLES; x++) {
      /* samples are at -3/8, -1/8, 1/8, 3/8 from the pixel's centre, which is exact in binary */
      work->points[y * SCENE_TILE_SAMPLES + x] = scene_look_up(view, left + (2 * x - 3) / 8.0, top + (2 * y - 3) / 8.0);
    }
  }
  memset(work->sums, 0, sizeof work->sums);
  scene_render_block(work, 0, 0, SCENE_TILE_SAMPLES);
}

/* Inverts a homography up to a factor (by its adjugate). Returns 0 if it is singular or not finite. */
static int scene_invert(const double *h, scene_view *view) {
  double *m = view->m;
  matrix3_adjugate(h, m);
  double determinant = (h[0] * m[0] + h[1] * m[3]) + h[2] * m[6];
  double magnitude = fabs(h[0]) * (fabs(h[4] * h[8]) + fabs(h[5] * h[7])) +
                     fabs(h[1]) * (fabs(h[5] * h[6]) + fabs(h[3] * h[8])) +
                     fabs(h[2]) * (fabs(h[3] * h[7]) + fabs(h[4] * h[6]));
  /* if the exact determinant is 0, rounding leaves about 1e-16 of the sum of all products; the test is false for NaN */
  return fabs(determinant) > 1e-13 * magnitude && magnitude < 1e300;
}

static void scene_render_frame(scene_work *work, const scene_view *view, int32_t width, int32_t height,
                               uint8_t *pixels) {
  for (int32_t top = 0; top < height; top += SCENE_TILE) {
    int32_t rows = height - top < SCENE_TILE ? height - top : SCENE_TILE;
    for (int32_t left = 0; left < width; left += SCENE_TILE) {
      int32_t columns = width - left < SCENE_TILE ? width - left : SCENE_TILE;
      scene_render_tile(work, view, left, top);
      for (int32_t y = 0; y < rows; y++) {
        uint8_t *row = pixels + (size_t)(top + y) * (size_t)width + left;
        for (int32_t x = 0; x < columns; x++) row[x] = (uint8_t)((work->sums[y * SCENE_TILE + x] + 128U) >> 8);
      }
    }
  }
}

static hs_status scene_render(int32_t width, int32_t height, uint32_t seed, const double *homography,
                              const hs_allocator *allocator, hs_image *image) {
  scene_view view = {{1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}};
  if (homography && !scene_invert(homography, &view)) return HS_ERR_ARGUMENT;
  uint8_t *pixels = hs_memory_alloc(allocator, (size_t)width * (size_t)height);
  scene_work *work = !pixels ? NULL : hs_memory_alloc(allocator, sizeof *work);
  if (!work) {
    hs_memory_release(allocator, pixels);
    return HS_ERR_MEMORY;
  }
  work->seed = splitmix64_mix(seed + UINT64_C(0x6861727473696674));
  scene_build_texture(work);
  scene_render_frame(work, &view, width, height, pixels);
  hs_memory_release(allocator, work);
  *image = (hs_image){.data = pixels,
                      .width = width,
                      .height = height,
                      .stride_bytes = (size_t)width,
                      .type = HS_U8,
                      .layout = HS_GRAY,
                      .memory = pixels,
                      .allocator = allocator};
  return HS_OK;
}

hs_status hs_render_scene(int32_t width, int32_t height, uint32_t seed, const double *homography,
                          const hs_allocator *allocator, hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!image || width < 1 || height < 1) return HS_ERR_ARGUMENT;
  if (width > SCENE_MAX_SIDE || height > SCENE_MAX_SIDE) return HS_ERR_LIMIT;
  return scene_render(width, height, seed, homography, allocator, image);
}

/* ---------------------------------------------------------------- names */

/* Reads decimal digits of a number up to `most`. Null: no digits, or the number is larger. */
static const char *scene_read_number(const char *text, uint64_t most, uint64_t *value) {
  uint64_t number = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    number = number * 10U + (uint64_t)(*at - '0');
    if (number > most) return NULL;
  }
  *value = number;
  return at == text ? NULL : at;
}

int scene_parse_name(const char *name, int32_t *width, int32_t *height, uint32_t *seed) {
  static const char prefix[] = "@scene";
  uint64_t columns = 640, rows = 480, number = 1;
  if (strncmp(name, prefix, sizeof prefix - 1) != 0) return 0;
  const char *at = name + (sizeof prefix - 1);
  if (*at != '\0' && *at != ':') return 0;
  if (*at == ':') {
    at = scene_read_number(at + 1, SCENE_MAX_SIDE, &columns);
    at = at != NULL && *at == 'x' ? scene_read_number(at + 1, SCENE_MAX_SIDE, &rows) : NULL;
    if (at && *at == ':') at = scene_read_number(at + 1, UINT32_MAX, &number);
    if (!at || *at != '\0' || columns == 0 || rows == 0) return -1;
  }
  *width = (int32_t)columns;
  *height = (int32_t)rows;
  *seed = (uint32_t)number;
  return 1;
}
