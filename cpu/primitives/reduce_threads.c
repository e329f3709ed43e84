/* Sums and ranges of arrays: division into units of work, and the tree over the sums of chunks. */
#include "cpu/primitives/primitives_threads.h"
#include "cpu/schedule/threads.h"

/* Minimum number of bytes for which threads are woken: a few hundred microseconds of work. To wake a thread takes some
 * microseconds, and much longer if it shares a core with other programs. */
static const size_t shared_bytes_min[] = {[PRIM_READ] = (size_t)8 << 20, [PRIM_WORK] = (size_t)512 << 10};

bool prim_backend_shares(size_t bytes, prim_effort effort) { return bytes >= shared_bytes_min[effort]; }

prim_backend prim_backend_for(prim_backend backend, size_t bytes, prim_effort effort) {
  if (queue_threads(backend.queue) == 1 || !prim_backend_shares(bytes, effort)) backend.queue = NULL;
  return backend;
}

prim_run prim_run_at(const prim_view *view, size_t element, size_t most) {
  const size_t row = element / view->width, column = element % view->width, left = view->width - column;
  const unsigned char *data = view->data;
  return (prim_run){data + row * view->stride_bytes + column * prim_element_bytes(view->type),
                    left < most ? left : most};
}

prim_view prim_view_flat(prim_view view) {
  if (view.stride_bytes != view.width * prim_element_bytes(view.type) && view.height > 1) return view;
  view.width *= view.height;
  view.height = 1;
  view.stride_bytes = view.width * prim_element_bytes(view.type);
  return view;
}

/* ------------------------------------------------------------------ units without an order */

enum { UNITS_MAX = 256 };
static const size_t unit_elements_min = (size_t)1 << 16;

typedef struct reduce_job {
  const prim_ops *ops;
  prim_view view;
  size_t elements, unit_elements;
  uint64_t sum[UNITS_MAX];
  prim_range range[UNITS_MAX];
} reduce_job;

static void sum_unit(void *argument, int32_t unit, int32_t worker) {
  reduce_job *job = argument;
  const size_t first = (size_t)unit * job->unit_elements;
  const size_t end = job->elements - first < job->unit_elements ? job->elements : first + job->unit_elements;
  uint64_t sum = 0;
  (void)worker;
  for (size_t at = first; at < end;) {
    const prim_run run = prim_run_at(&job->view, at, end - at);
    sum += job->ops->sum[job->view.type & 1](run.at, run.count);
    at += run.count;
  }
  job->sum[unit] = sum;
}

static void range_unit(void *argument, int32_t unit, int32_t worker) {
  reduce_job *job = argument;
  const size_t first = (size_t)unit * job->unit_elements;
  const size_t end = job->elements - first < job->unit_elements ? job->elements : first + job->unit_elements;
  prim_range range = {INFINITY, -INFINITY};
  (void)worker;
  for (size_t at = first; at < end;) {
    const prim_run run = prim_run_at(&job->view, at, end - at);
    job->ops->range[job->view.type](run.at, run.count, &range);
    at += run.count;
  }
  job->range[unit] = range;
}

/* Fills in the job for a view; returns the number of units. */
static int32_t begin_units(reduce_job *job, prim_backend backend, const prim_view *view) {
  job->ops = backend.ops;
  job->view = prim_view_flat(*view);
  job->elements = view->width * view->height;
  job->unit_elements = job->elements / UNITS_MAX + 1;
  if (job->unit_elements < unit_elements_min) job->unit_elements = unit_elements_min;
  return (int32_t)((job->elements - 1) / job->unit_elements + 1);
}

static double sum_integers(prim_backend backend, const prim_view *view) {
  reduce_job job;
  const int32_t units = begin_units(&job, backend, view);
  uint64_t sum = 0;
  queue_run(backend.queue, units, sum_unit, &job);
  for (int32_t u = 0; u < units; u++) sum += job.sum[u];
  return (double)sum;
}

prim_range prim_reduce_range(prim_backend backend, const prim_view *view) {
  reduce_job job;
  const prim_backend here =
      prim_backend_for(backend, view->width * view->height * prim_element_bytes(view->type), PRIM_READ);
  const int32_t units = begin_units(&job, here, view);
  prim_range range = {INFINITY, -INFINITY};
  queue_run(here.queue, units, range_unit, &job);
  for (int32_t u = 0; u < units; u++) {
    if (job.range[u].low < range.low) range.low = job.range[u].low;
    if (job.range[u].high > range.high) range.high = job.range[u].high;
  }
  return (prim_range){prim_extreme(range.low, range.low, range.high), prim_extreme(range.high, range.low, range.high)};
}

/* ------------------------------------------------------------------ sums of floats */

static double tree_floor(const prim_tree *tree, const prim_ops *ops, int32_t floor) {
  double sum;
  ops->sum_chunks[PRIM_F64 & 1](tree->sums[floor], tree->count[floor], &sum);
  return sum;
}

/* Adds a sum at a tree level. If the level is full, its total moves to the next level, and the new sum starts the level
 * again. */
static void push_at(prim_tree *tree, const prim_ops *ops, int32_t floor, double sum) {
  for (; floor < PRIM_FLOORS - 1 && tree->count[floor] == PRIM_CHUNK; floor++) {
    const double whole = tree_floor(tree, ops, floor);
    tree->sums[floor][0] = sum;
    tree->count[floor] = 1;
    sum = whole;
  }
  tree->sums[floor][tree->count[floor]++] = sum;
}

void prim_tree_push(prim_tree *tree, const prim_ops *ops, double sum) { push_at(tree, ops, 0, sum); }

/* The sum of one number is that number, so a short sequence passes every level unchanged. */
double prim_tree_end(prim_tree *tree, const prim_ops *ops) {
  for (int32_t floor = 0; floor < PRIM_FLOORS - 1; floor++)
    if (tree->count[floor] > 0) push_at(tree, ops, floor + 1, tree_floor(tree, ops, floor));
  return prim_plain_nan(tree_floor(tree, ops, PRIM_FLOORS - 1));
}

const void *prim_block_at(const prim_view *view, size_t element, size_t count, prim_block_copy *copy) {
  const size_t bytes = prim_element_bytes(view->type);
  prim_run run = prim_run_at(view, element, count);
  if (run.count == count) return run.at;
  unsigned char *to = (unsigned char *)copy;
  for (size_t done = 0;;) {
    memcpy(to + done * bytes, run.at, run.count * bytes);
    done += run.count;
    if (done == count) return copy;
    run = prim_run_at(view, element + done, count - done);
  }
}

/* UNIT_CHUNKS: number of chunks of a unit of work. BATCH_CHUNKS: number of chunks whose sums are stored before they
 * enter the tree. */
enum { UNIT_CHUNKS = 32, BATCH_CHUNKS = 4 * PRIM_CHUNK };

typedef struct chunks_job {
  const prim_ops *ops;
  prim_view view;
  size_t first, elements; /* elements of this batch */
  double sums[BATCH_CHUNKS];
} chunks_job;

/* Chunks within one row are summed in place. A chunk that continues in the next row is first gathered. */
static void sum_chunks_unit(void *argument, int32_t unit, int32_t worker) {
  chunks_job *job = argument;
  const int32_t type = job->view.type & 1;
  prim_block_copy copy;
  const size_t begin = (size_t)unit * UNIT_CHUNKS * PRIM_CHUNK, most = (size_t)UNIT_CHUNKS * PRIM_CHUNK;
  const size_t end = job->elements - begin < most ? job->elements : begin + most;
  (void)worker;
  for (size_t at = begin; at < end;) {
    prim_run run = prim_run_at(&job->view, job->first + at, end - at);
    if (run.count < end - at) run.count -= run.count % PRIM_CHUNK;
    if (run.count > 0) {
      job->ops->sum_chunks[type](run.at, run.count, job->sums + at / PRIM_CHUNK);
    } else {
      run.count = end - at < PRIM_CHUNK ? end - at : PRIM_CHUNK;
      job->ops->sum_chunks[type](prim_block_at(&job->view, job->first + at, run.count, &copy), run.count,
                                 job->sums + at / PRIM_CHUNK);
    }
    at += run.count;
  }
}

static double sum_floats(prim_backend backend, const prim_view *view) {
  const size_t n = view->width * view->height, batch = (size_t)BATCH_CHUNKS * PRIM_CHUNK;
  chunks_job job = {.ops = backend.ops, .view = prim_view_flat(*view)};
  prim_tree tree;
  prim_tree_begin(&tree);
  for (job.first = 0; job.first < n; job.first += batch) {
    job.elements = n - job.first < batch ? n - job.first : batch;
    const size_t chunks = (job.elements + PRIM_CHUNK - 1) / PRIM_CHUNK;
    queue_run(backend.queue, (int32_t)((chunks + UNIT_CHUNKS - 1) / UNIT_CHUNKS), sum_chunks_unit, &job);
    for (size_t k = 0; k < chunks; k++) prim_tree_push(&tree, backend.ops, job.sums[k]);
  }
  return prim_tree_end(&tree, backend.ops);
}

double prim_reduce_sum(prim_backend backend, const prim_view *view) {
  const prim_backend here =
      prim_backend_for(backend, view->width * view->height * prim_element_bytes(view->type), PRIM_READ);
  return view->type < PRIM_F32 ? sum_integers(here, view) : sum_floats(here, view);
}

/* Statistics of tiles. A tile is a view, and its statistics are computed as for any view. */

/* Minimum number of elements in a unit of work; with fewer, the fixed cost of a unit would dominate. */
static const size_t tile_unit_elements_min = (size_t)1 << 15;

typedef struct tiles_job {
  const prim_ops *ops;
  const prim_tiles_args *args;
  size_t columns;
  size_t unit_tiles;
} tiles_job;

/* Computes the statistics of a tile of any type but u8. Elements are taken in blocks of one chunk, which stay in
 * the L1 cache for the three passes. */
static void tile_in_blocks(const prim_ops *ops, const prim_view *tile, double threshold, prim_tile *out) {
  const prim_view view = prim_view_flat(*tile);
  const size_t n = view.width * view.height;
  const int32_t kind = view.type & 1;
  prim_range range = {INFINITY, -INFINITY};
  uint64_t integers = 0;
  prim_block_copy copy;
  prim_tree tree;
  prim_tree_begin(&tree);
  out->above = 0;
  for (size_t at = 0; at < n; at += PRIM_CHUNK) {
    const size_t count = n - at < PRIM_CHUNK ? n - at : PRIM_CHUNK;
    const void *block = prim_block_at(&view, at, count, &copy);
    ops->range[view.type](block, count, &range);
    out->above += ops->count_above[view.type](block, count, threshold);
    if (view.type < PRIM_F32) {
      integers += ops->sum[kind](block, count);
    } else {
      double sum;
      ops->sum_chunks[kind](block, count, &sum);
      prim_tree_push(&tree, ops, sum);
    }
  }
  out->sum = view.type < PRIM_F32 ? (double)integers : prim_tree_end(&tree, ops);
  out->min = prim_extreme(range.low, range.low, range.high);
  out->max = prim_extreme(range.high, range.low, range.high);
}

static void one_tile(const tiles_job *job, size_t index) {
  const prim_tiles_args *a = job->args;
  const size_t x = index % job->columns * a->tile_width, y = index / job->columns * a->tile_height;
  prim_view tile = a->view;
  tile.data = (const unsigned char *)a->view.data + y * a->view.stride_bytes + x * prim_element_bytes(a->view.type);
  tile.width = a->view.width - x < a->tile_width ? a->view.width - x : a->tile_width;
  tile.height = a->view.height - y < a->tile_height ? a->view.height - y : a->tile_height;
  prim_tile *out = &a->tiles[index];
  if (tile.type == PRIM_U8)
    job->ops->tile_u8(&tile, a->threshold, out);
  else
    tile_in_blocks(job->ops, &tile, a->threshold, out);
  out->mean = prim_plain_nan(out->sum / (double)(tile.width * tile.height));
}

static void tiles_unit(void *argument, int32_t unit, int32_t worker) {
  const tiles_job *job = argument;
  const size_t first = (size_t)unit * job->unit_tiles, left = job->args->count - first;
  const size_t end = left < job->unit_tiles ? job->args->count : first + job->unit_tiles;
  (void)worker;
  for (size_t i = first; i < end; i++) one_tile(job, i);
}

void prim_tile_stats(prim_backend backend, const prim_tiles_args *args) {
  const prim_view *v = &args->view;
  const size_t area = args->tile_width * args->tile_height;
  const prim_backend here = prim_backend_for(backend, v->width * v->height * prim_element_bytes(v->type), PRIM_READ);
  tiles_job job = {.ops = here.ops, .args = args, .columns = (v->width - 1) / args->tile_width + 1};
  if (args->count == 0) return;
  job.unit_tiles = tile_unit_elements_min / area + 1;
  if (args->count / job.unit_tiles >= INT32_MAX) job.unit_tiles = args->count / (1 << 20);
  queue_run(here.queue, (int32_t)((args->count - 1) / job.unit_tiles + 1), tiles_unit, &job);
}
