/* Affine shapes with their orientations and descriptors: a thread takes a few keypoints at a time. Also the sampling of
 * patches. */
#include "cpu/schedule/stage_jobs.h"

#include <string.h>

#include "cpu/schedule/ordered_results.h"
#include "cpu/schedule/window_prefetch.h"

enum {
  PLANES = DOMAIN_SIZES_MAX, /* maximum number of patches in one describe call of a worker */
  ROW_FLOATS = 16,
  CHUNK = 16
};

static size_t stride_of(int32_t side) { return ((size_t)side + ROW_FLOATS - 1) & ~(size_t)(ROW_FLOATS - 1); }

static size_t plane_floats(int32_t side) { return stride_of(side) * (size_t)side + AFFINE_PATCH_SLACK; }

static size_t worker_floats(void) { return PLANES * plane_floats(AFFINE_DESCRIBE_SIDE); }

size_t affine_work_floats(int32_t threads) { return (size_t)threads * worker_floats(); }

typedef struct affine_job {
  const affine_args *args;
  const stage_ops *ops;
  float *work;
  uint32_t end;
  ordered_list list;
} affine_job;

/* Returns a worker's patches as the levels of an octave whose sampling distance is 1. */
static octave_view planes_of(const affine_job *job, int32_t worker, int32_t side) {
  return (octave_view){.levels = job->work + (size_t)worker * worker_floats(),
                       .level_floats = plane_floats(side),
                       .stride = stride_of(side),
                       .width = side,
                       .height = side};
}

/* Level and map from which a patch of keypoint n is sampled. */
typedef struct patch_site {
  plane_view level;
  patch_map map;
} patch_site;

/* size: of pooled descriptors, or one of these, of the keypoint's size. describe_site chooses the level for a size. */
enum { SIZE_OF_DESCRIPTOR = -1, SIZE_OF_ORIENTATION = -2 };

static patch_site site_of(const affine_job *job, uint32_t n, int32_t size) {
  const affine_args *a = job->args;
  const keypoint_list *k = &a->keypoints;
  int32_t octave = k->octave[n] - a->first_octave, level = k->level[n];
  float sigma = k->sigma[n];
  if (size >= 0) {
    domain_level(&a->params.domain, size, a->params.scales, a->octave_count, &octave, &level);
    sigma *= a->params.domain.size[size];
  }
  if (size == SIZE_OF_ORIENTATION) level = affine_finer_level(level);
  const int32_t number = a->first_octave + octave;
  const float shift = a->params.grid_shift;
  return (patch_site){octave_level(&a->octaves[octave], level),
                      affine_map_of(sample_of_position(k->x[n], number, shift),
                                    sample_of_position(k->y[n], number, shift), sigma * hs_power_of_two(-number),
                                    &a->shapes[n], AFFINE_DISTANCE)};
}

/* Returns the bounds of the samples that a patch with that side reads in its level. */
static window_prefetch prefetch_of(const patch_site *s, int32_t side) {
  const patch_map *m = &s->map;
  const int32_t middle = side / 2;
  const float radius = (float)middle;
  const float across = hs_sqrtf(m->a11 * m->a11 + m->a12 * m->a12), down = hs_sqrtf(m->a21 * m->a21 + m->a22 * m->a22);
  return window_prefetch_box(&s->level, (int32_t)m->x, (int32_t)m->y, (int32_t)(radius * across),
                             (int32_t)(radius * down));
}

/* Samples a patch. next: the patch that is sampled after it and prefetched now, or null. */
static void take_patch(const affine_job *job, const octave_view *planes, int32_t plane, const patch_site *from,
                       const patch_rows *read, const patch_site *next) {
  window_prefetch prefetch = {.rows = 0};
  if (next) prefetch = prefetch_of(next, planes->width);
  job->ops->affine_patch(&from->level, &from->map, read, planes->width, planes->stride,
                         planes->levels + (size_t)plane * planes->level_floats, &prefetch);
}

/* ------------------------------------------------------------------ shapes */

/* Returns the level whose gradients make the moments. */
static plane_view shape_level(const affine_args *a, uint32_t n) {
  const keypoint_list *k = &a->keypoints;
  return octave_level(&a->octaves[k->octave[n] - a->first_octave], affine_finer_level(k->level[n]));
}

static window_prefetch circle_of(const affine_job *job, uint32_t n) {
  const affine_args *a = job->args;
  const keypoint_list *k = &a->keypoints;
  if (n >= job->end) return (window_prefetch){.rows = 0};
  const plane_view level = shape_level(a, n);
  const octave_keypoint at = keypoint_in_octave(k, n, a->params.grid_shift);
  return window_prefetch_of(&level, (int32_t)at.x, (int32_t)at.y,
                            (int32_t)(AFFINE_SHAPE_DISTANCE * (AFFINE_SHAPE_SIDE / 2) * at.sigma));
}

/* disc: the samples that the moments read. */
static void find_shape(const affine_job *job, uint32_t n, const patch_rows *disc) {
  enum { STRIDE = 32, FLOATS = AFFINE_SHAPE_SIDE * STRIDE + AFFINE_PATCH_SLACK };
  float patch[FLOATS] = {0}; /* vectors also load samples that are not read */
  const affine_args *a = job->args;
  const plane_view level = shape_level(a, n);
  const octave_keypoint at = keypoint_in_octave(&a->keypoints, n, a->params.grid_shift);
  window_prefetch prefetch = circle_of(job, n + 1);
  affine_shape s = {1.0f, 0.0f, 1.0f};
  for (int32_t step = 0; step < AFFINE_STEPS; step++) {
    const patch_map map = affine_map_of(at.x, at.y, at.sigma, &s, AFFINE_SHAPE_DISTANCE);
    job->ops->affine_patch(&level, &map, disc, AFFINE_SHAPE_SIDE, STRIDE, patch, &prefetch);
    const affine_moments m = job->ops->affine_moments(patch, STRIDE);
    if (!affine_next_shape(&s, &m)) break;
  }
  a->shapes[n] = s;
}

static void shape_chunk(void *argument, int32_t chunk, int32_t worker) {
  const affine_job *job = argument;
  const uint32_t first = job->args->first_keypoint + (uint32_t)chunk * CHUNK;
  const uint32_t end = job->end - first < CHUNK ? job->end : first + CHUNK;
  const patch_rows disc = affine_shape_rows();
  (void)worker;
  for (uint32_t n = first; n < end; n++) find_shape(job, n, &disc);
}

static uint32_t listed(uint32_t count, uint32_t capacity) { return count < capacity ? count : capacity; }

static int32_t chunks_of(uint32_t first, uint32_t end) {
  return end > first ? (int32_t)((end - first + CHUNK - 1) / CHUNK) : 0;
}

/* Sets all arguments except the list of orientations. */
static void job_start(affine_job *job, const stage_ops *ops, const affine_args *args, float *work, uint32_t end) {
  job->args = args;
  job->ops = ops;
  job->work = work;
  job->end = end;
}

stage_status affine_shape_run(stage_queue *queue, const stage_ops *ops, const affine_args *args) {
  affine_job job;
  job_start(&job, ops, args, NULL, listed(*args->keypoints.count, args->keypoints.capacity));
  queue_run(queue, chunks_of(args->first_keypoint, job.end), shape_chunk, &job);
  return STAGE_OK;
}

/* ------------------------------------------------------------------ the stages on patches */

/* Keypoints in patch coordinates: one in the middle of each patch. */
typedef struct local_keypoints {
  uint32_t count;
  float position[CHUNK], sigma[CHUNK], response[CHUNK];
  int32_t sample[CHUNK];
  int16_t octave[CHUNK], level[CHUNK];
} local_keypoints;

static void add_local(local_keypoints *k, int32_t side, int32_t plane) {
  const uint32_t n = k->count++;
  const int32_t middle = side / 2;
  k->position[n] = (float)middle;
  k->sigma[n] = 1.0f / AFFINE_DISTANCE;
  k->response[n] = 0.0f;
  k->sample[n] = middle;
  k->octave[n] = 0;
  k->level[n] = (int16_t)plane;
}

static keypoint_list list_of(local_keypoints *k) {
  return (keypoint_list){.count = &k->count,
                         .capacity = CHUNK,
                         .x = k->position,
                         .y = k->position,
                         .sigma = k->sigma,
                         .response = k->response,
                         .column = k->sample,
                         .row = k->sample,
                         .octave = k->octave,
                         .level = k->level};
}

/* Returns the parameters for patches: positions are in samples, and each size of a feature is one level. */
static sift_params params_on_patches(const sift_params *from) {
  sift_params p = *from;
  p.grid_shift = 0.0f;
  p.scales = PLANES;
  for (int32_t i = 0; i < p.domain.count; i++) {
    p.domain.size[i] = 1.0f;
    p.domain.levels[i] = i;
  }
  return p;
}

static void sort_angles(float *angle, int32_t count) {
  for (int32_t i = 1; i < count; i++)
    for (int32_t j = i; j > 0 && angle[j] < angle[j - 1]; j--) {
      const float t = angle[j];
      angle[j] = angle[j - 1];
      angle[j - 1] = t;
    }
}

/* Takes the angles from the features of one call, and converts them to angles in the picture. */
static void take_angles(const affine_job *job, const feature_list *f, ordered_chunk *c) {
  const uint32_t count = *f->count;
  uint32_t n = 0;
  for (int32_t i = 0; i < c->items; i++) {
    const int32_t first = c->angles;
    for (; n < count && f->keypoint[n] == (uint32_t)i; n++)
      c->angle[c->angles++] = affine_angle_in_image(&job->args->shapes[c->first + (uint32_t)i], f->orientation[n]);
    c->count[i] = (uint8_t)(c->angles - first);
    sort_angles(c->angle + first, c->count[i]);
  }
}

static void orient_chunk(void *argument, int32_t chunk, int32_t worker) {
  affine_job *job = argument;
  const octave_view planes = planes_of(job, worker, AFFINE_ORIENT_SIDE);
  ordered_chunk c = {.first = job->args->first_keypoint + (uint32_t)chunk * ORDERED_ITEMS};
  uint32_t count = 0, keypoint[ORDERED_ITEMS * ORIENT_PEAKS_MAX];
  float orientation[ORDERED_ITEMS * ORIENT_PEAKS_MAX];
  local_keypoints local = {0};
  patch_rows disc;
  const patch_rows *read = orient_rows(job->args->params.orientation_rule, &disc) ? &disc : NULL;
  c.items = job->end - c.first < ORDERED_ITEMS ? (int32_t)(job->end - c.first) : ORDERED_ITEMS;
  patch_site from = site_of(job, c.first, SIZE_OF_ORIENTATION);
  for (int32_t i = 0; i < c.items; i++) {
    const bool last = i + 1 == c.items;
    const patch_site next = last ? from : site_of(job, c.first + (uint32_t)i + 1, SIZE_OF_ORIENTATION);
    take_patch(job, &planes, i, &from, read, last ? NULL : &next);
    from = next;
    add_local(&local, AFFINE_ORIENT_SIDE, i);
  }
  const feature_list features = {&count, ORDERED_ITEMS * ORIENT_PEAKS_MAX, keypoint, orientation};
  const orient_args args = {.octaves = &planes,
                            .keypoints = list_of(&local),
                            .features = features,
                            .params = params_on_patches(&job->args->params),
                            .scales = job->args->scales};
  (void)job->ops->orient(NULL, &args);
  take_angles(job, &features, &c);
  ordered_append(&job->list, chunk, &c);
}
_Static_assert((int)ORDERED_ITEMS == (int)CHUNK && (int)PLANES >= (int)CHUNK, "a chunk's patches fit the work memory");

static void upright(const affine_args *args, uint32_t end) {
  for (uint32_t i = args->first_keypoint; i < end; i++) {
    const uint32_t n = (*args->features.count)++;
    if (n >= args->features.capacity) continue;
    args->features.keypoint[n] = i;
    args->features.orientation[n] = 0.0f;
  }
}

stage_status affine_orient_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work) {
  affine_job job;
  job_start(&job, ops, args, work, listed(*args->keypoints.count, args->keypoints.capacity));
  if (args->params.upright) {
    upright(args, job.end);
    return STAGE_OK;
  }
  if (!ordered_start(&job.list, &args->features)) return STAGE_OUT_OF_MEMORY;
  queue_run(queue, chunks_of(args->first_keypoint, job.end), orient_chunk, &job);
  ordered_end(&job.list);
  return STAGE_OK;
}

/* A run of features whose patches have been sampled. Features of one keypoint share their patches. */
typedef struct described {
  local_keypoints keypoints;
  uint32_t first, count; /* features first..first + count - 1 */
  uint32_t keypoint[CHUNK];
  float orientation[CHUNK];
} described;

static void describe_group(const affine_job *job, const octave_view *planes, described *g) {
  const affine_args *a = job->args;
  const size_t bytes = DESCRIBE_LENGTH * (a->params.descriptor_float ? sizeof(float) : 1);
  const feature_list features = {&g->count, CHUNK, g->keypoint, g->orientation};
  const describe_args args = {.octaves = planes,
                              .octave_count = 1,
                              .keypoints = list_of(&g->keypoints),
                              .features = features,
                              .params = params_on_patches(&a->params),
                              .scales = a->scales,
                              .descriptors = (unsigned char *)a->descriptors + g->first * bytes};
  if (g->count > 0) (void)job->ops->describe(NULL, &args);
  g->first += g->count;
  g->count = g->keypoints.count = 0;
}

/* Samples the patches of feature n, one for each size, into the planes from `plane` on. Usually only the part that the
 * descriptor reads is sampled. If the next feature (before `end`) belongs to the same keypoint, it uses the same
 * patches, which are then sampled completely. */
static void take_sizes(const affine_job *job, const octave_view *planes, int32_t plane, uint32_t n, uint32_t end) {
  const affine_args *a = job->args;
  const uint32_t i = a->features.keypoint[n];
  const bool pooled = a->params.domain.count > 0, alone = n + 1 == end || a->features.keypoint[n + 1] != i;
  const int32_t last = pooled ? a->params.domain.count - 1 : 0;
  const patch_rows square = describe_rows(affine_angle_in_patch(&a->shapes[i], a->features.orientation[n]));
  const int32_t first = pooled ? 0 : SIZE_OF_DESCRIPTOR;
  patch_site from = site_of(job, i, first);
  for (int32_t s = 0; s <= last; s++) {
    const bool more = s < last, other = !more && n + 1 < end;
    const patch_site next = more    ? site_of(job, i, s + 1)
                            : other ? site_of(job, a->features.keypoint[n + 1], first)
                                    : from;
    take_patch(job, planes, plane + s, &from, alone ? &square : NULL, more || other ? &next : NULL);
    from = next;
  }
}

static void describe_chunk(void *argument, int32_t chunk, int32_t worker) {
  const affine_job *job = argument;
  const affine_args *a = job->args;
  const octave_view planes = planes_of(job, worker, AFFINE_DESCRIBE_SIDE);
  const int32_t sizes = a->params.domain.count > 0 ? a->params.domain.count : 1;
  described g = {.first = a->first_feature + (uint32_t)chunk * CHUNK};
  const uint32_t first = g.first, end = job->end - first < CHUNK ? job->end : first + CHUNK;
  for (uint32_t n = first; n < end; n++) {
    const uint32_t i = a->features.keypoint[n];
    if (g.count == 0 || a->features.keypoint[n - 1] != i) {
      if (((int32_t)g.keypoints.count + 1) * sizes > PLANES) describe_group(job, &planes, &g);
      const int32_t plane = (int32_t)g.keypoints.count * sizes;
      take_sizes(job, &planes, plane, n, end);
      add_local(&g.keypoints, AFFINE_DESCRIBE_SIDE, plane);
    }
    g.keypoint[g.count] = g.keypoints.count - 1;
    g.orientation[g.count++] = affine_angle_in_patch(&a->shapes[i], a->features.orientation[n]);
  }
  describe_group(job, &planes, &g);
}

stage_status affine_describe_run(stage_queue *queue, const stage_ops *ops, const affine_args *args, float *work) {
  affine_job job;
  job_start(&job, ops, args, work, listed(*args->features.count, args->features.capacity));
  queue_run(queue, chunks_of(args->first_feature, job.end), describe_chunk, &job);
  return STAGE_OK;
}

/* Sampling of patches: a thread takes some patches at a time and makes one row of samples after another. It computes
 * first the positions, in loops that compilers vectorise, then reads the four neighbours, then writes the bytes. One
 * plain source serves every machine, because the contract fixes the operations and memory reads bound the speed. */

enum { PATCHES_AT_ONCE = 32 };

/* A row of samples. For each sample: its upper left neighbour, whether neighbours to the right and below exist (1 or
 * 0), the distance from the upper left neighbour, and the values of the neighbours. */
typedef struct sample_row {
  int32_t column[PATCH_SIZE_MAX], row[PATCH_SIZE_MAX], right[PATCH_SIZE_MAX], below[PATCH_SIZE_MAX];
  float fx[PATCH_SIZE_MAX], fy[PATCH_SIZE_MAX], corner[4][PATCH_SIZE_MAX], value[PATCH_SIZE_MAX];
} sample_row;

/* Computes the positions of patch_sample at (x + dx u, y + dy u). */
static void locate_row(const plane_view *p, const patch_map *m, float v, int32_t size, sample_row *restrict r) {
  const float last_x = (float)(p->width - 1), last_y = (float)(p->height - 1), middle = 0.5f * (float)(size - 1);
  const float x0 = m->x + m->a12 * v, y0 = m->y + m->a22 * v, dx = m->a11, dy = m->a21;
  const int32_t last_column = p->width - 1, last_row = p->height - 1;
  for (int32_t i = 0; i < size; i++) {
    const float u = (float)i - middle;
    float x = x0 + dx * u, y = y0 + dy * u;
    x = x > 0.0f ? x : 0.0f;
    x = x < last_x ? x : last_x;
    y = y > 0.0f ? y : 0.0f;
    y = y < last_y ? y : last_y;
    const int32_t column = (int32_t)x, row = (int32_t)y;
    r->column[i] = column;
    r->row[i] = row;
    r->right[i] = column < last_column ? 1 : 0;
    r->below[i] = row < last_row ? 1 : 0;
    r->fx[i] = x - (float)column;
    r->fy[i] = y - (float)row;
  }
}

/* Computes the values at these positions. The four neighbours are gathered first, so that the arithmetic
 * vectorises. */
static void read_row(const plane_view *p, int32_t size, sample_row *restrict r) {
  for (int32_t i = 0; i < size; i++) {
    const float *at = p->data + (size_t)r->row[i] * p->stride + (size_t)r->column[i];
    const float *under = at + (size_t)r->below[i] * p->stride;
    const int32_t right = r->right[i];
    r->corner[0][i] = at[0];
    r->corner[1][i] = at[right];
    r->corner[2][i] = under[0];
    r->corner[3][i] = under[right];
  }
  for (int32_t i = 0; i < size; i++) {
    const float upper = r->corner[0][i] + r->fx[i] * (r->corner[1][i] - r->corner[0][i]);
    const float lower = r->corner[2][i] + r->fx[i] * (r->corner[3][i] - r->corner[2][i]);
    r->value[i] = upper + r->fy[i] * (lower - upper);
  }
}

static void take_user_patch(const patch_args *args, uint32_t n) {
  const int32_t size = args->size;
  const size_t sample = args->as_float ? sizeof(float) : 1, row_bytes = (size_t)size * sample;
  unsigned char *out = (unsigned char *)args->out + (size_t)n * (size_t)size * row_bytes;
  sample_row r;
  if (!args->valid[n]) {
    memset(out, 0, (size_t)size * row_bytes);
    return;
  }
  patch_map m = args->maps[n];
  const int32_t layer = patch_layer_of(args->layers, args->blur * patch_distance(&m));
  const plane_view plane = patch_plane(args->layers, layer, &m);
  const float middle = 0.5f * (float)(size - 1);
  for (int32_t j = 0; j < size; j++, out += row_bytes) {
    locate_row(&plane, &m, (float)j - middle, size, &r);
    read_row(&plane, size, &r);
    if (args->as_float)
      memcpy(out, r.value, row_bytes);
    else
      for (int32_t i = 0; i < size; i++) out[i] = patch_byte(r.value[i]);
  }
}

static void take_user_patches(void *job, int32_t chunk, int32_t worker) {
  const patch_args *args = job;
  const uint32_t first = (uint32_t)chunk * PATCHES_AT_ONCE;
  const uint32_t end = args->count - first < PATCHES_AT_ONCE ? args->count : first + PATCHES_AT_ONCE;
  (void)worker;
  for (uint32_t n = first; n < end; n++) take_user_patch(args, n);
}

void patch_run(stage_queue *queue, const patch_args *args) {
  patch_args mine = *args;
  queue_run(queue, (int32_t)((args->count + PATCHES_AT_ONCE - 1) / PATCHES_AT_ONCE), take_user_patches, &mine);
}
