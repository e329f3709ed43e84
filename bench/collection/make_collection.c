/*
 * make_collection: writes a collection of views of generated scenes and the list of overlapping pairs.
 *
 * usage: make_collection FOLDER [--scenes N] [--views N] [--others N] [--size WxH] [--seed N] [--threads N] [--png]
 *
 * --scenes scenes (default 40) are seen in --views views each (24); --others (40) are single views of other scenes.
 * FOLDER gets
 *   images/sceneNNNN_viewNNNN.pgm   the views, --size pixels (1024x768), numbered along the camera's path
 *   images/otherNNNN.pgm            the single views
 *   pairs.txt     the pairs that overlap, as `hartsift match --pairs` reads them: at least a tenth of the surface
 *                 in each view is visible in the other, from directions that differ by at most 40 degrees on average
 *   overlaps.tsv  all pairs of one scene with that share and 1 - cosine of that angle
 *   cameras.txt   one line a view: name, width, height, focal length, principal point (centre of the first pixel is
 *                 0, 0), rotation row by row and centre: x_camera = rotation (x_world - centre), metres
 * The same arguments give the same files on every machine, whatever --threads is (2). See README.md.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/collection/collection.h"
#include "pipeline/cli/draw/drawing.h"

static const double least_share = 0.1, largest_angle = 0.2340; /* largest_angle: 1 - cos 40 degrees */

enum { MOST_THREADS = 64, PATH_BYTES = 4096, MOST_VIEWS = 10000 };

typedef struct settings {
  const char *folder, *ending;
  int32_t scenes, views, others, width, height, threads;
  uint64_t seed;
} settings;

/* Output lines of one scene, written in the order of the scenes. */
typedef struct scene_lists {
  char *text[3]; /* lines of pairs.txt, overlaps.tsv and cameras.txt */
  size_t bytes[3];
} scene_lists;

typedef struct job {
  const settings *settings;
  scene_lists *lists;
  atomic_int next, failed;
} job;

static void view_name(const settings *s, int32_t scene_index, int32_t index, char *name, size_t bytes) {
  if (scene_index < s->scenes)
    snprintf(name, bytes, "scene%04d_view%04d.%s", (int)scene_index, (int)index, s->ending);
  else
    snprintf(name, bytes, "other%04d.%s", (int)(scene_index - s->scenes), s->ending);
}

static bool save_view(const settings *s, const char *name, const view *v) {
  char path[PATH_BYTES], reason[IMAGE_REASON_BYTES] = "";
  const hs_image image = {
      .data = v->pixels, .width = v->camera.width, .height = v->camera.height, .type = HS_U8, .layout = HS_GRAY};
  snprintf(path, sizeof path, "%s/images/%s", s->folder, name);
  if (image_save(path, &image, reason, sizeof reason) == HS_OK) return true;
  fprintf(stderr, "make_collection: %s: %s\n", path, reason);
  return false;
}

static void write_camera(FILE *file, const char *name, const view_camera *c) {
  fprintf(file, "%s %d %d %.17g %.17g %.17g", name, (int)c->width, (int)c->height, c->focal, c->cx, c->cy);
  for (int i = 0; i < 9; i++) fprintf(file, " %.17g", c->rotation[i]);
  for (int i = 0; i < 3; i++) fprintf(file, " %.17g", c->centre[i]);
  fprintf(file, "\n");
}

static void write_pairs(const settings *s, int32_t index, const scene *of, const view *views, int32_t count,
                        FILE *pairs, FILE *overlaps) {
  for (int32_t i = 0; i < count; i++) {
    for (int32_t k = i + 1; k < count; k++) {
      char a[64], b[64];
      const view_overlap found = views_compare(of, &views[i], &views[k]);
      if (found.share == 0.0) continue;
      view_name(s, index, i, a, sizeof a);
      view_name(s, index, k, b, sizeof b);
      fprintf(overlaps, "%s\t%s\t%.4f\t%.4f\n", a, b, found.share, found.angle);
      if (found.share >= least_share && found.angle <= largest_angle) fprintf(pairs, "%s %s\n", a, b);
    }
  }
}

/* Renders all views of a scene, then compares them. Returns false on failure, with the reason printed. */
static bool make_views(const settings *s, int32_t index, scene *of, view *views, int32_t count, FILE *lists[3]) {
  for (int32_t i = 0; i < count; i++) {
    char name[64];
    const size_t pixels = (size_t)s->width * (size_t)s->height;
    view *v = &views[i];
    view_name(s, index, i, name, sizeof name);
    scene_camera(of, i, count, s->width, s->height, &v->camera);
    v->surface = malloc(pixels);
    v->pixels = malloc(pixels);
    if (!v->surface || !v->pixels || !view_render(of, i, v)) {
      fprintf(stderr, "make_collection: no memory for %s\n", name);
      return false;
    }
    if (!save_view(s, name, v)) return false;
    free(v->pixels);
    v->pixels = NULL;
    write_camera(lists[2], name, &v->camera);
  }
  write_pairs(s, index, of, views, count, lists[0], lists[1]);
  return true;
}

static bool make_scene(const settings *s, int32_t index, scene_lists *lists) {
  const int32_t count = index < s->scenes ? s->views : 1;
  view *views = calloc((size_t)count, sizeof *views);
  FILE *files[3] = {NULL, NULL, NULL};
  scene of;
  bool made = views != NULL;
  scene_make(&of, s->seed * UINT64_C(1000003) + (uint64_t)index);
  for (int i = 0; i < 3 && made; i++) {
    files[i] = open_memstream(&lists->text[i], &lists->bytes[i]);
    made = files[i] != NULL;
  }
  made = made && make_views(s, index, &of, views, count, files);
  for (int i = 0; i < 3; i++) made = (!files[i] || fclose(files[i]) == 0) && made;
  for (int32_t i = 0; i < count && views; i++) {
    free(views[i].surface);
    free(views[i].pixels);
  }
  free(views);
  scene_free(&of);
  return made;
}

static void *work(void *argument) {
  job *j = argument;
  for (;;) {
    const int32_t index = atomic_fetch_add(&j->next, 1);
    if (index >= j->settings->scenes + j->settings->others || atomic_load(&j->failed)) return NULL;
    if (!make_scene(j->settings, index, &j->lists[index])) atomic_store(&j->failed, 1);
  }
}

static bool write_lists(const settings *s, const scene_lists *lists) {
  static const char *const names[3] = {"pairs.txt", "overlaps.tsv", "cameras.txt"};
  for (int which = 0; which < 3; which++) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", s->folder, names[which]);
    FILE *file = fopen(path, "w");
    bool written = file != NULL;
    for (int32_t i = 0; i < s->scenes + s->others && written; i++)
      written = fwrite(lists[i].text[which], 1, lists[i].bytes[which], file) == lists[i].bytes[which];
    if (file) written = fclose(file) == 0 && written;
    if (!written) {
      fprintf(stderr, "make_collection: cannot write %s: %s\n", path, strerror(errno));
      return false;
    }
  }
  return true;
}

static bool make_folders(const settings *s) {
  char path[PATH_BYTES];
  if (mkdir(s->folder, 0777) != 0 && errno != EEXIST) return false;
  if (snprintf(path, sizeof path, "%s/images", s->folder) >= (int)sizeof path - 64) return false;
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static int run(const settings *s) {
  job j = {.settings = s, .lists = calloc((size_t)(s->scenes + s->others) + 1, sizeof *j.lists)};
  pthread_t threads[MOST_THREADS];
  int32_t started = 0;
  if (!j.lists || !make_folders(s)) {
    fprintf(stderr, "make_collection: cannot make %s/images\n", s->folder);
    free(j.lists);
    return 1;
  }
  while (started < s->threads - 1 && pthread_create(&threads[started], NULL, work, &j) == 0) started++;
  (void)work(&j);
  for (int32_t i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
  const bool done = !atomic_load(&j.failed) && write_lists(s, j.lists);
  for (int32_t i = 0; i < s->scenes + s->others; i++)
    for (int which = 0; which < 3; which++) free(j.lists[i].text[which]);
  free(j.lists);
  return done ? 0 : 1;
}

static bool read_number(const char *text, int32_t least, int32_t most, int32_t *value) {
  char *end = NULL;
  const long number = text ? strtol(text, &end, 10) : -1;
  *value = (int32_t)number;
  return text && *text != '\0' && *end == '\0' && number >= least && number <= most;
}

static bool read_size(const char *text, settings *s) {
  int width = 0, height = 0;
  char rest = 0;
  if (!text || sscanf(text, "%dx%d%c", &width, &height, &rest) != 2) return false;
  s->width = width;
  s->height = height;
  return width >= 16 && height >= 16 && width <= 16384 && height <= 16384;
}

static bool read_arguments(int argc, char **argv, settings *s) {
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    int32_t seed = 0;
    bool good = true;
    if (name[0] != '-' && !s->folder) {
      s->folder = name;
      continue;
    }
    if (strcmp(name, "--png") == 0) {
      s->ending = "png";
      continue;
    }
    if (strcmp(name, "--scenes") == 0)
      good = read_number(value, 0, MOST_VIEWS, &s->scenes);
    else if (strcmp(name, "--views") == 0)
      good = read_number(value, 1, MOST_VIEWS, &s->views);
    else if (strcmp(name, "--others") == 0)
      good = read_number(value, 0, MOST_VIEWS, &s->others);
    else if (strcmp(name, "--threads") == 0)
      good = read_number(value, 1, MOST_THREADS, &s->threads);
    else if (strcmp(name, "--size") == 0)
      good = read_size(value, s);
    else if (strcmp(name, "--seed") == 0)
      good = read_number(value, 0, INT32_MAX, &seed);
    else
      good = false;
    if (!good) return false;
    if (strcmp(name, "--seed") == 0) s->seed = (uint64_t)seed;
    i++;
  }
  return s->folder && strlen(s->folder) < PATH_BYTES / 2;
}

int main(int argc, char **argv) {
  settings s = {
      .ending = "pgm", .scenes = 40, .views = 24, .others = 40, .width = 1024, .height = 768, .threads = 2, .seed = 1};
  if (!read_arguments(argc, argv, &s)) {
    fprintf(stderr, "usage: make_collection FOLDER [--scenes N] [--views N] [--others N] [--size WxH] [--seed N] "
                    "[--threads N] [--png]\n");
    return 2;
  }
  return run(&s);
}
