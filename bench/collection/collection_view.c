/* Renders views and computes the overlap of two views; see collection.h. */
#include "bench/collection/collection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double near_m = 0.1;
/* COMPARED_EACH: distance in pixels between the samples that are compared. FRACTION: interpolation steps per texel. */
enum { COMPARED_EACH = 12, FRACTION = 256 };

/* A surface in camera coordinates. The ray through a pixel is d = (dx, dy, 1) with dx = (x - cx) / focal, dy = (y - cy)
 * / focal. The ray meets the surface at 1 / depth = inverse . d, s = depth u . d - s0, t = depth v . d - t0. */
typedef struct seen_surface {
  double inverse[3], u[3], v[3], s0, t0, width, height;
  double facing; /* distance of the camera's centre from the plane, metres */
} seen_surface;

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void rotate(const double m[9], const double p[3], double out[3]) {
  for (int i = 0; i < 3; i++) out[i] = dot(m + 3 * i, p);
}

/* Transforms a surface to camera coordinates. Returns false if the camera sees its back. */
static bool see(const surface *one, const view_camera *camera, seen_surface *out) {
  double offset[3], origin[3];
  for (int i = 0; i < 3; i++) offset[i] = one->origin[i] - camera->centre[i];
  rotate(camera->rotation, offset, origin);
  rotate(camera->rotation, one->u, out->u);
  rotate(camera->rotation, one->v, out->v);
  const double *u = out->u, *v = out->v;
  const double normal[3] = {v[1] * u[2] - v[2] * u[1], v[2] * u[0] - v[0] * u[2], v[0] * u[1] - v[1] * u[0]};
  const double reach = dot(normal, origin);
  if (reach >= -1e-6) return false;
  for (int i = 0; i < 3; i++) out->inverse[i] = normal[i] / reach;
  out->s0 = dot(origin, u);
  out->t0 = dot(origin, v);
  out->width = one->width;
  out->height = one->height;
  out->facing = -reach;
  return true;
}

/* Computes the rows and columns that a surface can cover: all of them if a corner is not in front of the camera. */
static void bounds_of(const surface *one, const view_camera *camera, int32_t box[4]) {
  double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
  for (int corner = 0; corner < 4; corner++) {
    double world[3], p[3];
    for (int i = 0; i < 3; i++)
      world[i] = one->origin[i] + ((corner & 1) ? one->width * one->u[i] : 0.0) +
                 ((corner & 2) ? one->height * one->v[i] : 0.0) - camera->centre[i];
    rotate(camera->rotation, world, p);
    const double place[2] = {camera->cx + camera->focal * p[0] / p[2], camera->cy + camera->focal * p[1] / p[2]};
    for (int i = 0; i < 2; i++) {
      low[i] = p[2] < near_m ? -1.0 : place[i] < low[i] ? place[i] : low[i];
      high[i] = p[2] < near_m ? 1e9 : place[i] > high[i] ? place[i] : high[i];
    }
  }
  const int32_t size[2] = {camera->width, camera->height};
  for (int i = 0; i < 2; i++) {
    box[i] = low[i] < 1.0 ? 0 : low[i] > size[i] ? size[i] : (int32_t)low[i] - 1;
    box[i + 2] = high[i] < -1.0 ? 0 : high[i] + 2.0 > size[i] ? size[i] : (int32_t)(high[i] + 2.0);
  }
}

/* Writes one surface into the map of surfaces wherever it is nearer than the surfaces written before. */
static void cover(const view_camera *camera, const seen_surface *seen, const int32_t box[4], uint8_t id, float *nearest,
                  uint8_t *surface_map) {
  for (int32_t y = box[1]; y < box[3]; y++) {
    const double dy = (y - camera->cy) / camera->focal;
    const double inverse_row = seen->inverse[1] * dy + seen->inverse[2];
    const double u_row = seen->u[1] * dy + seen->u[2], v_row = seen->v[1] * dy + seen->v[2];
    float *depth_row = nearest + (size_t)y * (size_t)camera->width;
    uint8_t *map_row = surface_map + (size_t)y * (size_t)camera->width;
    for (int32_t x = box[0]; x < box[2]; x++) {
      const double dx = (x - camera->cx) / camera->focal, inverse = seen->inverse[0] * dx + inverse_row;
      if (inverse <= (double)depth_row[x]) continue;
      /* Tests whether the point is inside the rectangle, with both sides multiplied by 1 / depth. */
      const double s = seen->u[0] * dx + u_row - seen->s0 * inverse, t = seen->v[0] * dx + v_row - seen->t0 * inverse;
      if (s < 0.0 || t < 0.0 || s > seen->width * inverse || t > seen->height * inverse) continue;
      depth_row[x] = (float)inverse;
      map_row[x] = id;
    }
  }
}

/* ------------------------------------------------------------------ sampling */

static double sample_level(const texture *t, int32_t level, double x, double y) {
  const int32_t width = t->width[level], height = t->height[level];
  const double most_x = width - 1.001, most_y = height - 1.001;
  x = x < 0.0 ? 0.0 : x > most_x ? most_x : x;
  y = y < 0.0 ? 0.0 : y > most_y ? most_y : y;
  const int32_t column = (int32_t)x, row = (int32_t)y;
  const int32_t fx = (int32_t)((x - column) * FRACTION), fy = (int32_t)((y - row) * FRACTION);
  const uint8_t *p = t->level[level] + (size_t)row * (size_t)width + (size_t)column;
  const int32_t upper = p[0] * (FRACTION - fx) + p[1] * fx, lower = p[width] * (FRACTION - fx) + p[width + 1] * fx;
  return (upper * (FRACTION - fy) + lower * fy) * (1.0 / (FRACTION * FRACTION));
}

/* Returns the gray value at (s, t) metres for a pixel that covers `area` texels, interpolated between the two nearest
 * levels. */
static double sample(const texture *t, double texels_per_m, double x, double y, double area) {
  int32_t level = 0;
  while (area >= 4.0 && level < t->levels - 1) {
    area *= 0.25;
    level++;
  }
  const double scale = texels_per_m / (double)(1 << level), px = x * scale, py = y * scale;
  const double fine = sample_level(t, level, px - 0.5, py - 0.5);
  const double share = area <= 1.0 || level + 1 >= t->levels ? 0.0 : (area - 1.0) / 3.0;
  return share == 0.0 ? fine : fine + share * (sample_level(t, level + 1, px * 0.5 - 0.5, py * 0.5 - 0.5) - fine);
}

/* ------------------------------------------------------------------ light and camera */

typedef struct photograph {
  double gain[SCENE_SURFACES]; /* brightness of each surface, from its angle to the sun's direction */
  double exposure, curve, black, slope_x, slope_y, noise;
  int32_t blurs;
  random_stream random;
} photograph;

static void expose(const scene *s, int32_t index, photograph *p) {
  random_stream r = random_of(s->seed, 10000 + (uint64_t)index);
  double sun[3] = {random_between(&r, -1.0, 1.0), random_between(&r, -1.0, 1.0), random_between(&r, 0.3, 1.0)};
  const double length = sqrt(dot(sun, sun)), contrast = random_between(&r, 0.2, 0.5);
  for (int32_t i = 0; i < s->surface_count; i++) {
    const double *u = s->surfaces[i].u, *v = s->surfaces[i].v;
    const double lit = ((v[1] * u[2] - v[2] * u[1]) * sun[0] + (v[2] * u[0] - v[0] * u[2]) * sun[1] +
                        (v[0] * u[1] - v[1] * u[0]) * sun[2]) /
                       length;
    p->gain[i] = 1.0 - contrast + (lit > 0.0 ? contrast * lit : 0.0);
  }
  p->exposure = random_between(&r, 0.7, 1.35);
  p->curve = random_between(&r, -0.25, 0.25);
  p->black = random_between(&r, 0.0, 14.0);
  p->slope_x = random_between(&r, -0.2, 0.2);
  p->slope_y = random_between(&r, -0.2, 0.2);
  p->noise = random_between(&r, 0.6, 3.0);
  p->blurs = random_below(&r, 4) == 0 ? 1 : 0;
  p->random = r;
}

/* Applies a 1 2 1 filter along the rows and then along the columns, in place. */
static void blur(float *image, int32_t width, int32_t height) {
  for (int32_t y = 0; y < height; y++) {
    float *row = image + (size_t)y * (size_t)width, before = row[0];
    for (int32_t x = 0; x + 1 < width; x++) {
      const float here = row[x];
      row[x] = (before + 2.0f * here + row[x + 1]) * 0.25f;
      before = here;
    }
  }
  for (int32_t y = 0; y + 1 < height; y++) {
    float *row = image + (size_t)y * (size_t)width;
    for (int32_t x = 0; x < width; x++) row[x] = (row[x] + row[x + width]) * 0.5f;
  }
}

/* Returns noise of standard deviation 1, from the sum of four bytes. */
static double noise_of(uint32_t bits) {
  const int32_t sum = (int32_t)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24));
  return (sum - 510) * (1.0 / 147.8);
}

static void develop(photograph *p, const float *light, const view *v) {
  const int32_t width = v->camera.width, height = v->camera.height;
  for (int32_t y = 0; y < height; y++) {
    const double row = 1.0 + p->slope_y * ((double)y / height - 0.5);
    uint64_t bits = 0;
    for (int32_t x = 0; x < width; x++) {
      const size_t i = (size_t)y * (size_t)width + (size_t)x;
      const double raw = (double)light[i] * p->exposure * (row + p->slope_x * ((double)x / width - 0.5));
      if (x % 2 == 0) bits = random_next(&p->random);
      const double value = raw + p->curve * raw * (1.0 - raw * (1.0 / 255.0)) + p->black +
                           p->noise * noise_of((uint32_t)(bits >> (x % 2 * 32)));
      v->pixels[i] = (uint8_t)(value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value + 0.5);
    }
  }
}

/* ------------------------------------------------------------------ a view */

static bool find_surfaces(const scene *s, const view_camera *camera, seen_surface *seen, uint8_t *surface_map) {
  const size_t pixels = (size_t)camera->width * (size_t)camera->height;
  float *nearest = calloc(pixels, sizeof *nearest);
  if (!nearest) return false;
  memset(surface_map, NO_SURFACE, pixels);
  for (int32_t i = 0; i < s->surface_count; i++) {
    int32_t box[4];
    if (!see(&s->surfaces[i], camera, &seen[i])) continue;
    bounds_of(&s->surfaces[i], camera, box);
    cover(camera, &seen[i], box, (uint8_t)i, nearest, surface_map);
  }
  free(nearest);
  return true;
}

static bool make_texture_of(surface *one) {
  if (one->texture.level[0]) return true;
  return texture_make(&one->texture, one->kind, (int32_t)(one->width * one->texels_per_m) + 2,
                      (int32_t)(one->height * one->texels_per_m) + 2, one->texels_per_m, one->seed);
}

/* Makes each texture that the view shows and that does not exist yet. */
static bool make_textures(scene *s, const view *v) {
  bool shown[NO_SURFACE + 1] = {false};
  const size_t pixels = (size_t)v->camera.width * (size_t)v->camera.height;
  for (size_t i = 0; i < pixels; i++) shown[v->surface[i]] = true;
  for (int32_t i = 0; i < s->surface_count; i++)
    if (shown[i] && !make_texture_of(&s->surfaces[i])) return false;
  return true;
}

static void light_row(const scene *s, const view *v, const seen_surface *seen, const photograph *p, int32_t y,
                      float *light) {
  const view_camera *camera = &v->camera;
  const double dy = (y - camera->cy) / camera->focal;
  const uint8_t *row = v->surface + (size_t)y * (size_t)camera->width;
  for (int32_t x = 0; x < camera->width; x++) {
    const double dx = (x - camera->cx) / camera->focal;
    if (row[x] == NO_SURFACE) {
      light[x] = (float)(200.0 - 60.0 * dx * dx);
      continue;
    }
    const seen_surface *one = &seen[row[x]];
    const surface *which = &s->surfaces[row[x]];
    const double depth = 1.0 / (one->inverse[0] * dx + one->inverse[1] * dy + one->inverse[2]);
    const double along = depth * (one->u[0] * dx + one->u[1] * dy + one->u[2]) - one->s0;
    const double down = depth * (one->v[0] * dx + one->v[1] * dy + one->v[2]) - one->t0;
    /* texels per pixel if the surface faced the camera */
    const double side = depth * which->texels_per_m / camera->focal;
    const double value = sample(&which->texture, which->texels_per_m, along, down, side * side * depth / one->facing);
    light[x] = (float)(value * p->gain[row[x]]);
  }
}

bool view_render(scene *s, int32_t index, view *v) {
  const int32_t width = v->camera.width, height = v->camera.height;
  seen_surface seen[SCENE_SURFACES];
  photograph p;
  float *light = malloc((size_t)width * (size_t)height * sizeof *light);
  if (!light || !find_surfaces(s, &v->camera, seen, v->surface) || !make_textures(s, v)) {
    free(light);
    return false;
  }
  expose(s, index, &p);
  for (int32_t y = 0; y < height; y++) light_row(s, v, seen, &p, y, light + (size_t)y * (size_t)width);
  for (int32_t i = 0; i < p.blurs; i++) blur(light, width, height);
  develop(&p, light, v);
  free(light);
  return true;
}

/* ------------------------------------------------------------------ overlap of two views */

/* Returns whether `other` shows the surface point at a pixel of `v`: whether the map of `other` has the same surface at
 * the projected position. This is exact because surfaces are plane. */
static bool is_shared(const view_camera *camera, const seen_surface *seen, int32_t x, int32_t y, uint8_t id,
                      const view *other, double *cosine) {
  const double ray[3] = {(x - camera->cx) / camera->focal, (y - camera->cy) / camera->focal, 1.0};
  const double depth = 1.0 / dot(seen[id].inverse, ray);
  double point[3], from_other[3], to_point[3];
  for (int i = 0; i < 3; i++) {
    const double *m = camera->rotation;
    to_point[i] = depth * (m[i] * ray[0] + m[3 + i] * ray[1] + m[6 + i] * ray[2]);
    from_other[i] = to_point[i] + camera->centre[i] - other->camera.centre[i];
  }
  rotate(other->camera.rotation, from_other, point);
  if (point[2] < near_m) return false;
  const double px = other->camera.cx + other->camera.focal * point[0] / point[2] + 0.5;
  const double py = other->camera.cy + other->camera.focal * point[1] / point[2] + 0.5;
  if (px < 0.0 || py < 0.0 || px >= other->camera.width || py >= other->camera.height) return false;
  *cosine = dot(to_point, from_other) / sqrt(dot(to_point, to_point) * dot(from_other, from_other));
  return other->surface[(size_t)py * (size_t)other->camera.width + (size_t)px] == id;
}

static double shared_part(const scene *s, const view *v, const view *other, double *cosines, int32_t *shared) {
  seen_surface seen[SCENE_SURFACES];
  int32_t compared = 0, common = 0;
  for (int32_t i = 0; i < s->surface_count; i++) (void)see(&s->surfaces[i], &v->camera, &seen[i]);
  for (int32_t y = COMPARED_EACH / 2; y < v->camera.height; y += COMPARED_EACH) {
    for (int32_t x = COMPARED_EACH / 2; x < v->camera.width; x += COMPARED_EACH) {
      const uint8_t id = v->surface[(size_t)y * (size_t)v->camera.width + (size_t)x];
      double cosine = 0.0;
      if (id == NO_SURFACE) continue;
      compared++;
      if (!is_shared(&v->camera, seen, x, y, id, other, &cosine)) continue;
      common++;
      *cosines += cosine;
    }
  }
  *shared += common;
  return compared > 0 ? (double)common / compared : 0.0;
}

view_overlap views_compare(const scene *s, const view *a, const view *b) {
  double cosines = 0.0;
  int32_t shared = 0;
  const double one = shared_part(s, a, b, &cosines, &shared), other = shared_part(s, b, a, &cosines, &shared);
  return (view_overlap){one < other ? one : other, shared > 0 ? 1.0 - cosines / shared : 1.0};
}
