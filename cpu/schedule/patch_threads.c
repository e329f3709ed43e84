/* Patches, some at a time on each thread, a row of samples after the other: first where they lie, which compilers turn into
   vectors, then their four neighbours, then bytes. One plain source for every machine: its operations are those of the
   contract, and the reads bound it. */
#include "cpu/schedule/patch_threads.h"

#include <string.h>

enum { CHUNK = 32 };

/* A row of samples: the neighbour above and to the left of each, whether there are others to the right and below (1 or 0),
   how far it lies from the first, and what is read. */
typedef struct sample_row {
  int32_t column[PATCH_SIZE_MAX], row[PATCH_SIZE_MAX], right[PATCH_SIZE_MAX], below[PATCH_SIZE_MAX];
  float fx[PATCH_SIZE_MAX], fy[PATCH_SIZE_MAX], corner[4][PATCH_SIZE_MAX], value[PATCH_SIZE_MAX];
} sample_row;

/* The places of patch_sample at (x + dx u, y + dy u). */
static void place_row(const plane_view *p, const patch_map *m, float v, int32_t size, sample_row *restrict r) {
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

/* Their values. The four neighbours are gathered first, so that the arithmetic is one of vectors. */
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

static void take_patch(const patch_args *args, uint32_t n) {
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
    place_row(&plane, &m, (float)j - middle, size, &r);
    read_row(&plane, size, &r);
    if (args->as_float)
      memcpy(out, r.value, row_bytes);
    else
      for (int32_t i = 0; i < size; i++) out[i] = patch_byte(r.value[i]);
  }
}

static void take_chunk(void *job, int32_t chunk, int32_t worker) {
  const patch_args *args = job;
  const uint32_t first = (uint32_t)chunk * CHUNK;
  const uint32_t end = args->count - first < CHUNK ? args->count : first + CHUNK;
  (void)worker;
  for (uint32_t n = first; n < end; n++) take_patch(args, n);
}

void patch_run(stage_queue *queue, const patch_args *args) {
  patch_args mine = *args;
  queue_run(queue, (int32_t)((args->count + CHUNK - 1) / CHUNK), take_chunk, &mine);
}
