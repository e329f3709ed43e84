/* Positions of surfaces and cameras of a scene; see collection.h. */
#include "bench/collection/collection.h"

#include <math.h>
#include <string.h>

enum { MIDDLE_BOXES = 5, WALL_BOXES = 4 };

static void normalize(double v[3]) {
  const double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  for (int i = 0; i < 3; i++) v[i] /= length;
}

static void cross(const double a[3], const double b[3], double out[3]) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

/* Adds the rectangle that starts at `corner` and extends along u (horizontal) and v. */
static void add_surface(scene *s, const double corner[3], const double u[3], const double v[3], double width,
                        double height, texture_kind kind, double texels_per_m) {
  surface *one = &s->surfaces[s->surface_count];
  *one = (surface){.width = width,
                   .height = height,
                   .kind = kind,
                   .texels_per_m = texels_per_m,
                   .seed = s->seed * SCENE_SURFACES + (uint64_t)s->surface_count};
  memcpy(one->origin, corner, sizeof one->origin);
  memcpy(one->u, u, sizeof one->u);
  memcpy(one->v, v, sizeof one->v);
  s->surface_count++;
}

/* Adds an upright rectangle, with the rows of its texture from top to bottom. u points right as seen by a viewer. */
static void add_upright(scene *s, double x, double y, double top, const double u[3], double width, texture_kind kind,
                        double texels_per_m) {
  static const double down[3] = {0.0, 0.0, -1.0};
  add_surface(s, (double[3]){x, y, top}, u, down, width, top, kind, texels_per_m);
}

/* Adds a box standing at (x, y). t is the tangent of half its angle of rotation. */
static void add_box(scene *s, double x, double y, const double size[3], double t, random_stream *r) {
  static const double up[3] = {0.0, 0.0, 1.0};
  const double c = (1.0 - t * t) / (1.0 + t * t), n = 2.0 * t / (1.0 + t * t), a = size[0] / 2, b = size[1] / 2;
  const double e[3] = {c, n, 0.0}, f[3] = {-n, c, 0.0}, back_e[3] = {-c, -n, 0.0}, back_f[3] = {n, -c, 0.0};
  const double density = 110.0;
#define SIDE (texture_kind)(random_below(r, TEXTURE_KINDS))
  add_upright(s, x - a * c + b * n, y - a * n - b * c, size[2], e, size[0], SIDE, density);
  add_upright(s, x + a * c + b * n, y + a * n - b * c, size[2], f, size[1], SIDE, density);
  add_upright(s, x + a * c - b * n, y + a * n + b * c, size[2], back_e, size[0], SIDE, density);
  add_upright(s, x - a * c - b * n, y - a * n + b * c, size[2], back_f, size[1], SIDE, density);
#undef SIDE
  double corner[3] = {x - a * c + b * n, y - a * n - b * c, size[2]}, side[3];
  cross(up, e, side);
  add_surface(s, corner, side, e, size[1], size[0], TEXTURE_LEAVES, density / 2);
}

static void add_boxes(scene *s, random_stream *r) {
  for (int i = 0; i < MIDDLE_BOXES + WALL_BOXES; i++) {
    const double size[3] = {random_between(r, 0.8, 2.4), random_between(r, 0.8, 2.4), random_between(r, 0.7, 2.6)};
    double x = s->width * 0.5 + random_between(r, -2.2, 2.2), y = s->depth * 0.5 + random_between(r, -2.2, 2.2);
    if (i >= MIDDLE_BOXES) {
      const bool along_x = random_below(r, 2) != 0, far_side = random_below(r, 2) != 0;
      x = along_x ? random_between(r, 1.5, s->width - 1.5) : far_side ? s->width - 1.2 : 1.2;
      y = !along_x ? random_between(r, 1.5, s->depth - 1.5) : far_side ? s->depth - 1.2 : 1.2;
    }
    add_box(s, x, y, size, random_between(r, -1.0, 1.0), r);
  }
}

void scene_make(scene *s, uint64_t seed) {
  random_stream r = random_of(seed, 1);
  memset(s, 0, sizeof *s);
  s->seed = seed;
  s->width = random_between(&r, 20.0, 26.0);
  s->depth = random_between(&r, 18.0, 22.0);
  const double e[3] = {1.0, 0.0, 0.0}, f[3] = {0.0, 1.0, 0.0}, back_e[3] = {-1.0, 0.0, 0.0},
               back_f[3] = {0.0, -1.0, 0.0};
  const double high = random_between(&r, 5.0, 8.0), density = 100.0;
  add_surface(s, (double[3]){0.0, 0.0, 0.0}, f, e, s->depth, s->width, TEXTURE_GRAVEL, 60.0);
#define WALL (texture_kind)(TEXTURE_BRICKS + random_below(&r, TEXTURE_KINDS - TEXTURE_BRICKS))
  add_upright(s, s->width, 0.0, high, back_e, s->width, WALL, density);
  add_upright(s, 0.0, 0.0, high, f, s->depth, WALL, density);
  add_upright(s, 0.0, s->depth, high, e, s->width, WALL, density);
  add_upright(s, s->width, s->depth, high, back_f, s->depth, WALL, density);
#undef WALL
  add_boxes(s, &r);
}

void scene_free(scene *s) {
  for (int32_t i = 0; i < s->surface_count; i++) texture_free(&s->surfaces[i].texture);
}

/* Computes a position on the square with corners (+-1, +-1). t from 0 to 1 goes once around. */
static void around(double t, double place[2]) {
  const double side = (t - floor(t)) * 4.0, part = 2.0 * (side - floor(side)) - 1.0;
  const int which = (int)side;
  place[0] = which == 0 ? part : which == 1 ? 1.0 : which == 2 ? -part : -1.0;
  place[1] = which == 0 ? -1.0 : which == 1 ? part : which == 2 ? 1.0 : -part;
}

static void look(view_camera *camera, const double target[3], double roll) {
  double *right = camera->rotation, *down = right + 3, *ahead = right + 6;
  const double fall[3] = {0.0, 0.0, -1.0};
  for (int i = 0; i < 3; i++) ahead[i] = target[i] - camera->centre[i];
  normalize(ahead);
  cross(fall, ahead, right);
  normalize(right);
  cross(ahead, right, down);
  const double c = (1.0 - roll * roll) / (1.0 + roll * roll), s = 2.0 * roll / (1.0 + roll * roll);
  for (int i = 0; i < 3; i++) {
    const double x = right[i], y = down[i];
    right[i] = c * x + s * y;
    down[i] = c * y - s * x;
  }
}

void scene_camera(const scene *s, int32_t index, int32_t count, int32_t width, int32_t height, view_camera *camera) {
  random_stream r = random_of(s->seed, 100 + (uint64_t)index), whole = random_of(s->seed, 2);
  const int32_t ring = (count + 1) / 2;
  const bool inward = index < ring;
  const double middle[2] = {s->width / 2, s->depth / 2}, larger = width > height ? width : height;
  const double step = inward ? (double)index / ring : (double)(index - ring) / (count - ring);
  const double t = random_between(&whole, 0.0, 1.0) + step, reach = random_between(&r, 5.0, 6.0);
  const bool zoomed = random_below(&r, 4) == 0;
  double place[2], wall[2], target[3];
  around(t, place);
  around(t + 0.2, wall);
  const double length = sqrt(place[0] * place[0] + place[1] * place[1]);
  camera->width = width;
  camera->height = height;
  camera->focal = larger * random_between(&whole, 0.75, 0.95) * (zoomed ? random_between(&r, 1.0, 1.4) : 1.0);
  camera->cx = (width - 1) * 0.5;
  camera->cy = (height - 1) * 0.5;
  for (int i = 0; i < 2; i++) {
    camera->centre[i] = middle[i] + place[i] / length * reach;
    target[i] = middle[i] + (inward ? 0.0 : wall[i] * middle[i]) + random_between(&r, -1.0, 1.0);
  }
  camera->centre[2] = random_between(&r, 1.3, 2.4);
  target[2] = random_between(&r, 0.9, 1.6) + (inward ? 0.0 : 0.8);
  look(camera, target, random_between(&r, -0.08, 0.08));
}
