/*
 * Views of generated scenes, for benches and tests that need a whole collection; see make_collection.c.
 *
 * A scene is a courtyard: ground, four walls and boxes, each a textured rectangle. Views therefore differ by parallax
 * and have fundamental matrices, and the surface that two views share is known exactly. The content is computed from a
 * seed with integers and + - * / sqrt of doubles, so it is the same on every machine (-ffp-contract=off).
 */
#ifndef HARTSIFT_BENCH_COLLECTION_COLLECTION_H
#define HARTSIFT_BENCH_COLLECTION_COLLECTION_H

#include <stdbool.h>
#include <stdint.h>

enum { TEXTURE_LEVELS = 12, SCENE_SURFACES = 64, NO_SURFACE = 255 };

/* ---- random numbers: splitmix64 */

typedef struct random_stream {
  uint64_t state;
} random_stream;

random_stream random_of(uint64_t seed, uint64_t stream);
uint64_t random_next(random_stream *r);
double random_between(random_stream *r, double low, double high);
uint32_t random_below(random_stream *r, uint32_t count);

/* ---- textures */

/* Pattern drawn over the noise and the shapes that every texture has. */
typedef enum texture_kind {
  TEXTURE_GRAVEL,
  TEXTURE_BRICKS,
  TEXTURE_WINDOWS,
  TEXTURE_TEXT,
  TEXTURE_LEAVES,
  TEXTURE_KINDS
} texture_kind;

/* Mip chain of gray values: each level has half the side of the previous one. */
typedef struct texture {
  int32_t levels, width[TEXTURE_LEVELS], height[TEXTURE_LEVELS];
  uint8_t *level[TEXTURE_LEVELS]; /* One allocation, owned by level[0]. Null until the texture is made. */
} texture;

/* Makes a texture. texels_per_m sets the size of bricks and letters. Returns false when out of memory. */
bool texture_make(texture *t, texture_kind kind, int32_t width, int32_t height, double texels_per_m, uint64_t seed);
void texture_free(texture *t);

/* ---- scenes and views */

/* A rectangle in space: the points origin + s u + t v with 0 <= s <= width and 0 <= t <= height, in metres. u and v are
   orthonormal. The rectangle is visible from the side that v x u points to. */
typedef struct surface {
  double origin[3], u[3], v[3], width, height;
  texture_kind kind;
  double texels_per_m;
  uint64_t seed;
  texture texture;
} surface;

typedef struct scene {
  uint64_t seed;
  double width, depth; /* extent of the courtyard in x and y; z is up */
  int32_t surface_count;
  surface surfaces[SCENE_SURFACES];
} scene;

/* x_camera = rotation (x_world - centre), row-major; x right, y down, z forward. Pixel centres are integers. */
typedef struct view_camera {
  int32_t width, height;
  double focal, cx, cy;
  double rotation[9], centre[3];
} view_camera;

typedef struct view {
  view_camera camera;
  uint8_t *surface; /* [height][width]: index of the visible surface; NO_SURFACE where the sky is visible */
  uint8_t *pixels;  /* [height][width] */
} view;

void scene_make(scene *s, uint64_t seed);
void scene_free(scene *s);

/* Sets the camera of view `index` of `count`. Cameras of the first half go around the middle and look at it; cameras of
   the second half look at the walls. Views with neighbouring indices overlap. */
void scene_camera(const scene *s, int32_t index, int32_t count, int32_t width, int32_t height, view_camera *camera);

/* Renders the view into v->surface and v->pixels, which the caller allocates. Light, exposure, blur and noise come from
 * the seed and the index. Returns false when out of memory. */
bool view_render(scene *s, int32_t index, view *v);

/* Overlap of two views. */
typedef struct view_overlap {
  double share; /* share of the visible surface that the other view sees too: the smaller of the two directions */
  double angle; /* mean of 1 - cosine of the angle between the two rays to a common point */
} view_overlap;

view_overlap views_compare(const scene *s, const view *a, const view *b);

#endif
