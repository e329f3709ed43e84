/* Tile statistics: a tile is a view, and its figures are those of that view. */
#include "cpu/primitives/prim_tree.h"
#include "cpu/primitives/primitives_threads.h"
#include "cpu/schedule/threads.h"

/* Fewest elements of a unit of work, so that its fixed cost is small beside them. */
static const size_t least_unit_elements = (size_t)1 << 15;

typedef struct tiles_job {
  const prim_ops *ops;
  const prim_tiles_args *args;
  size_t columns;
  size_t unit_tiles;
} tiles_job;

/* Any type but u8: the tile's elements in blocks of a chunk, which stay in the nearest cache for the three passes. */
static void tile_in_blocks(const prim_ops *ops, const prim_view *tile, double threshold, prim_tile *out) {
  const prim_view view = prim_view_flat(*tile);
  const size_t n = view.width * view.height;
  const int32_t kind = view.type & 1;
  prim_range range = {INFINITY, -INFINITY};
  uint64_t integers = 0;
  prim_room room;
  prim_tree tree;
  prim_tree_begin(&tree);
  out->above = 0;
  for (size_t at = 0; at < n; at += PRIM_CHUNK) {
    const size_t count = n - at < PRIM_CHUNK ? n - at : PRIM_CHUNK;
    const void *block = prim_block_at(&view, at, count, &room);
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

void prim_tile_stats(prim_place place, const prim_tiles_args *args) {
  const prim_view *v = &args->view;
  const size_t area = args->tile_width * args->tile_height;
  const prim_place here = prim_place_for(place, v->width * v->height * prim_element_bytes(v->type), PRIM_READ);
  tiles_job job = {.ops = here.ops, .args = args, .columns = (v->width - 1) / args->tile_width + 1};
  if (args->count == 0) return;
  job.unit_tiles = least_unit_elements / area + 1;
  if (args->count / job.unit_tiles >= INT32_MAX) job.unit_tiles = args->count / (1 << 20);
  queue_run(here.queue, (int32_t)((args->count - 1) / job.unit_tiles + 1), tiles_unit, &job);
}
