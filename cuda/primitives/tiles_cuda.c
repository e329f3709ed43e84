/* Launches of tile statistics on the device: the choice of kernels, and the division of tiles into segments. */
#include "cuda/primitives/primitives_cuda.h"

#include "cuda/primitives/primitives_kernels.h"
#include "cuda/runtime/launch.h"

LAUNCH_MODULE(tile_bytes_cuda)
LAUNCH_MODULE(tile_stats_cuda)
LAUNCH_MODULE(tile_floats_cuda)
TILE_BYTES_KERNELS(LAUNCH_KERNEL)
TILE_CHUNKS_KERNELS(LAUNCH_KERNEL)
TILE_FLOATS_KERNELS(LAUNCH_KERNEL)

static tile_grid tile_grid_make(const tile_stats_args *a) {
  tile_grid g;
  g.data = a->view.data;
  g.width = a->view.width;
  g.height = a->view.height;
  g.tile_width = a->tile_width;
  g.tile_height = a->tile_height;
  g.columns = ceil_div_u64(g.width, g.tile_width);
  g.count = a->count;
  g.rows = ceil_div_u64(a->count, g.columns);
  g.stride_bytes = a->view.stride_bytes;
  return g;
}

/* ------------------------------------------------------------------ bytes */

/* Number of adjacent words to read, and how. */
typedef struct tile_choice {
  uint32_t words;
  tile_reading reading;
} tile_choice;

static tile_choice choice_of(const tile_stats_args *a) {
  const uint64_t all = (uintptr_t)a->view.data | a->view.stride_bytes | a->tile_width, width = a->tile_width;
  tile_choice c = {1, all % 4 == 0 ? TILE_ALIGNED : (a->view.stride_bytes % 4 == 0 ? TILE_SHIFTED : TILE_TURNING)};
  if (c.reading == TILE_ALIGNED) {
    c.words = all % 8 == 0 ? 2 : 1;
    /* The widest loads are faster if a row of a tile fills a block, but not for small tiles. */
    if (all % 16 == 0 && width >= 16 * TILE_THREADS) c.words = 4;
    return c;
  }
  /* A row of a column costs some 16 instructions, plus 9 per word; the last column may overlap its neighbour. */
  uint64_t lowest_cost = UINT64_MAX;
  for (uint32_t words = 1; words <= 3; words++) {
    const uint64_t cost = ceil_div_u64(width, 4 * words) * (16 + 9 * words);
    if (words > 1 && (width < 4 * words || cost >= lowest_cost)) continue;
    lowest_cost = cost;
    c.words = words;
  }
  return c;
}

/* Chooses segments that give every multiprocessor its blocks; none is too low or too large. */
static void choose_segments(const tile_stats_args *a, tile_bytes_params *p, uint32_t words) {
  const uint64_t tile_height = p->grid.tile_height < p->grid.height ? p->grid.tile_height : p->grid.height;
  const uint64_t blocks = ceil_div_u64(p->grid.columns, p->tiles_a_block) * p->grid.rows;
  const uint64_t wanted = (uint64_t)a->processors * TILE_BLOCKS_PER_SM;
  const uint64_t segments = blocks >= wanted ? 1 : ceil_div_u64(wanted, blocks);
  const uint64_t unit_bytes = 4 * (uint64_t)words;
  /* Wide tiles are divided into units first, so that the part of a row in a segment has at most 2^20 bytes. */
  uint64_t segment_units = p->units < (1u << 20) / unit_bytes ? p->units : (1u << 20) / unit_bytes;
  uint64_t rows_max = TILE_SEGMENT_BYTES_MAX / (segment_units * unit_bytes);
  uint64_t segment_rows = ceil_div_u64(tile_height, segments);
  if (segment_rows < TILE_SEGMENT_ROWS_MIN) segment_rows = TILE_SEGMENT_ROWS_MIN;
  if (segment_rows > rows_max) segment_rows = rows_max;
  if (segment_rows > tile_height) segment_rows = tile_height;
  const uint64_t row_segments = ceil_div_u64(tile_height, segment_rows);
  if (p->tiles_a_block == 1 && row_segments < segments) { /* too low for that: also from left to right */
    const uint64_t across = segments / row_segments, units_min = TILE_THREADS;
    const uint64_t units = ceil_div_u64(p->units, across);
    if (units < segment_units)
      segment_units = units > units_min ? units : (units_min < segment_units ? units_min : segment_units);
  }
  p->segment_rows = segment_rows;
  p->row_segments = row_segments;
  p->segment_units = segment_units;
  p->unit_segments = ceil_div_u64(p->units, segment_units);
}

static tile_bytes_params bytes_params_of(const tile_stats_args *a) {
  tile_bytes_params p;
  const uint32_t words = choice_of(a).words;
  const int32_t threshold = prim_threshold_integer(a->threshold);
  p.grid = tile_grid_make(a);
  p.end = p.grid.data + (size_t)(p.grid.height - 1) * p.grid.stride_bytes + p.grid.width;
  p.units = ceil_div_u64(a->tile_width, 4 * words);
  p.block_units = p.units < TILE_THREADS ? (uint32_t)p.units : (uint32_t)TILE_THREADS;
  p.unit_reciprocal = (1u << 16) / p.block_units + 1u;
  p.tiles_a_block = TILE_THREADS / p.block_units;
  p.all_above = threshold < 0;
  p.none_above = threshold >= 255;
  p.threshold = byte_threshold_make(p.all_above || p.none_above ? 0u : (uint32_t)threshold);
  p.tiles = a->tiles;
  choose_segments(a, &p, words);
  p.segments = p.row_segments * p.unit_segments > 1 ? a->scratch : NULL;
  return p;
}

static size_t tile_bytes_scratch(const tile_stats_args *a) {
  const tile_bytes_params p = bytes_params_of(a);
  const size_t segments = (size_t)(p.row_segments * p.unit_segments);
  return segments > 1 ? segments * (size_t)p.grid.count * sizeof(tile_byte_segment) : 0;
}

stage_status tile_bytes_launch(const tile_stats_args *a, cuda_stream stream) {
  static stage_status (*const kernels[4][3])(launch_shape, tile_bytes_params) = {
      {launch_tile_bytes_1_aligned_kernel, launch_tile_bytes_1_shifted_kernel, launch_tile_bytes_1_turning_kernel},
      {launch_tile_bytes_2_aligned_kernel, launch_tile_bytes_2_shifted_kernel, launch_tile_bytes_2_turning_kernel},
      {NULL, launch_tile_bytes_3_shifted_kernel, launch_tile_bytes_3_turning_kernel},
      {launch_tile_bytes_4_aligned_kernel, NULL, NULL}};
  assert(a->view.type == PRIM_U8 && a->view.data && a->tiles && a->count > 0 && a->processors > 0);
  const tile_bytes_params p = bytes_params_of(a);
  const tile_choice choice = choice_of(a);
  const uint64_t groups = ceil_div_u64(p.grid.columns, p.tiles_a_block), segments = p.row_segments * p.unit_segments;
  assert(segments == 1 || a->scratch);
  if (groups > INT32_MAX || segments > TILE_GRID_YZ_MAX) return STAGE_OVERFLOW;
  const uint64_t rows = p.grid.rows < TILE_GRID_YZ_MAX ? p.grid.rows : (uint64_t)TILE_GRID_YZ_MAX;
  const uint32_t threads = (p.tiles_a_block * p.block_units + WARP_LANES - 1) / WARP_LANES * WARP_LANES;
  const launch_size grid = launch_3d((uint32_t)groups, (uint32_t)rows, (uint32_t)segments);
  assert(kernels[choice.words - 1][choice.reading]);
  return kernels[choice.words - 1][choice.reading]((launch_shape){grid, launch_1d(threads), 0, stream}, p);
}

stage_status tile_bytes_finish_launch(const tile_stats_args *a, cuda_stream stream) {
  const tile_bytes_params p = bytes_params_of(a);
  assert(p.segments && a->tiles);
  const bool many = p.row_segments * p.unit_segments >= TILE_FINISH_MANY;
  const uint64_t blocks = many ? p.grid.count : ceil_div_u64(p.grid.count, TILE_FINISH_WARPS);
  if (blocks > INT32_MAX) return STAGE_OVERFLOW;
  const launch_shape shape = {launch_1d((uint32_t)blocks), launch_1d(TILE_FINISH_WARPS * WARP_LANES), 0, stream};
  return many ? launch_tile_bytes_finish_many_kernel(shape, p) : launch_tile_bytes_finish_few_kernel(shape, p);
}

/* ------------------------------------------------------------------ small tiles of f32 */

stage_status tile_floats_launch(const tile_stats_args *a, cuda_stream stream) {
  tile_floats_params p;
  p.grid = tile_grid_make(a);
  const uint64_t elements = p.grid.tile_width * p.grid.tile_height;
  assert(a->view.type == PRIM_F32 && elements <= TILE_LISTED_MAX);
  assert(p.grid.stride_bytes <= UINT32_MAX / p.grid.tile_height);
  p.threshold = prim_threshold_float(a->threshold);
  p.tiles = a->tiles;
  p.whole_columns = p.grid.width / p.grid.tile_width;
  const uint64_t rows = p.grid.count / p.grid.columns, last = p.grid.count - rows * p.grid.columns;
  p.whole_tiles = rows * p.whole_columns + (last < p.whole_columns ? last : p.whole_columns);
  p.rest_tiles = p.whole_columns == p.grid.columns ? 0 : rows;
  const size_t list_bytes = ceil_div_u64(elements, LIST_GROUP) * LIST_GROUP * sizeof(uint32_t);
  const uint64_t wanted = ceil_div_u64(p.grid.count, FLOATS_WARPS);
  const uint64_t blocks_max = (uint64_t)a->processors * FLOATS_BLOCKS_PER_SM;
  const uint32_t blocks = (uint32_t)(wanted < blocks_max ? wanted : blocks_max);
  return launch_tile_floats_kernel((launch_shape){launch_1d(blocks), launch_1d(FLOATS_THREADS), list_bytes, stream}, p);
}

/* ------------------------------------------------------------------ u16, f32 and f64 */

/* Whether most chunks of a tile are within a row, or rows have no padding between them. */
static bool is_wide(const tile_stats_args *a) {
  const bool flat = a->tile_width == a->view.width && a->view.stride_bytes == a->view.width * sizeof(float);
  return a->view.type == PRIM_F32 && (flat || a->tile_width >= WIDE_ROW);
}

/* Returns the number of segments of a tile that gives work to all warps; in one round, if the tile divides well. */
static uint64_t segments_wanted(const tile_stats_args *a) {
  const uint64_t resident = (uint64_t)a->processors * WIDE_WARPS_RESIDENT / a->count;
  if (is_wide(a) && resident >= WIDE_SEGMENTS_MIN) return resident;
  const uint64_t fine = ceil_div_u64((uint64_t)a->processors * CHUNK_WARPS_WANTED * CHUNK_FINER, a->count);
  if (fine <= CHUNK_THREADS && a->count <= (uint64_t)a->processors * CHUNK_FINER) return fine;
  return ceil_div_u64((uint64_t)a->processors * CHUNK_WARPS_WANTED, a->count);
}

static tile_chunks_params chunks_params_of(const tile_stats_args *a) {
  tile_chunks_params p;
  p.grid = tile_grid_make(a);
  const uint64_t width = p.grid.tile_width, height = p.grid.tile_height;
  const uint64_t chunks = ceil_div_u64(width * height, PRIM_CHUNK);
  const uint64_t wanted = segments_wanted(a);
  const uint64_t segments_min =
      ceil_div_u64(chunks, PRIM_CHUNK); /* no segment of more chunks than a chunk has elements */
  uint64_t segments = wanted < chunks ? wanted : chunks;
  if (segments < segments_min) segments = segments_min;
  p.segment_chunks = ceil_div_u64(chunks, segments);
  p.segments = ceil_div_u64(chunks, p.segment_chunks);
  p.tile_sums = 0;
  for (uint64_t n = chunks; n > 1; n = ceil_div_u64(n, PRIM_CHUNK)) p.tile_sums += n;
  p.tile_sums += 1;
  p.floor_apart = chunks > PRIM_CHUNK;
  p.threshold = a->threshold;
  p.tiles = a->tiles;
  p.sums = p.segments > 1 ? a->scratch : NULL;
  p.ranges = p.segments > 1 ? (void *)((double *)a->scratch + p.grid.count * p.tile_sums) : NULL;
  return p;
}

static size_t tile_chunks_scratch(const tile_stats_args *a) {
  const tile_chunks_params p = chunks_params_of(a);
  return p.segments > 1
             ? (size_t)p.grid.count * (size_t)(p.tile_sums * sizeof(double) + p.segments * sizeof(lane_range))
             : 0;
}

static void assert_tiles(const tile_stats_args *a) {
  assert(a->view.data && a->view.width > 0 && a->view.height > 0 && a->tiles && a->count > 0 && a->processors > 0);
  assert(a->tile_width > 0 && a->tile_width <= a->view.width && a->tile_height > 0 && a->tile_height <= a->view.height);
  assert((uintptr_t)a->view.data % prim_element_bytes(a->view.type) == 0);
  (void)a;
}

/* Whether the list holds a tile. */
static bool is_listed(const tile_chunks_params *p) {
  const tile_grid *g = &p->grid;
  return p->segments == 1 && g->tile_width <= TILE_LISTED_MAX && g->tile_height <= TILE_LISTED_MAX &&
         g->tile_width * g->tile_height <= TILE_LISTED_MAX && g->stride_bytes <= UINT32_MAX / g->tile_height;
}

static launch_shape chunks_shape(uint64_t blocks, cuda_stream stream) {
  return (launch_shape){launch_1d((uint32_t)blocks), launch_1d(CHUNK_THREADS), 0, stream};
}

static stage_status launch_listed(const tile_stats_args *a, const tile_chunks_params *p, uint64_t blocks,
                                  cuda_stream stream) {
  const uint64_t a_processor = a->view.type == PRIM_F64 ? LISTED_BLOCKS_OF_F64 : LISTED_BLOCKS_PER_SM;
  const uint64_t blocks_max = (uint64_t)a->processors * a_processor;
  const launch_shape shape = chunks_shape(blocks < blocks_max ? blocks : blocks_max, stream);
  return a->view.type == PRIM_U16 ? launch_tile_listed_u16_kernel(shape, *p) : launch_tile_listed_f64_kernel(shape, *p);
}

stage_status tile_chunks_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_tiles(a);
  assert(a->view.type != PRIM_U8);
  const tile_chunks_params p = chunks_params_of(a);
  const uint64_t blocks = ceil_div_u64(p.grid.count * p.segments, CHUNK_WARPS);
  if (blocks > INT32_MAX) return STAGE_OVERFLOW;
  if (is_listed(&p)) {
    if (a->view.type == PRIM_F32) return tile_floats_launch(a, stream);
    return launch_listed(a, &p, blocks, stream);
  }
  const launch_shape shape = chunks_shape(blocks, stream);
  if (is_wide(a)) return launch_tile_wide_chunks_kernel(shape, p);
  if (a->view.type == PRIM_F32) return launch_tile_chunks_f32_kernel(shape, p);
  return a->view.type == PRIM_U16 ? launch_tile_chunks_u16_kernel(shape, p) : launch_tile_chunks_f64_kernel(shape, p);
}

stage_status tile_chunks_floor_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_tiles(a);
  const tile_chunks_params p = chunks_params_of(a);
  assert(p.sums);
  if (!p.floor_apart) return STAGE_OK;
  const uint64_t groups = ceil_div_u64(p.tile_sums, (uint64_t)PRIM_CHUNK * CHUNK_WARPS);
  const uint64_t tiles = p.grid.count < GRID_Y_MAX ? p.grid.count : (uint64_t)GRID_Y_MAX;
  if (groups > INT32_MAX) return STAGE_OVERFLOW;
  const launch_size grid = launch_2d((uint32_t)groups, (uint32_t)tiles);
  return launch_tile_chunks_floor_kernel((launch_shape){grid, launch_1d(CHUNK_THREADS), 0, stream}, p);
}

stage_status tile_chunks_finish_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_tiles(a);
  const tile_chunks_params p = chunks_params_of(a);
  assert(p.sums);
  const uint64_t blocks_max = (uint64_t)a->processors * CHUNK_BLOCKS_PER_SM;
  return launch_tile_chunks_finish_kernel(chunks_shape(p.grid.count < blocks_max ? p.grid.count : blocks_max, stream),
                                          p);
}

size_t tile_stats_scratch_bytes(const tile_stats_args *a) {
  return a->view.type == PRIM_U8 ? tile_bytes_scratch(a) : tile_chunks_scratch(a);
}

stage_status tile_stats_launch(const tile_stats_args *a, cuda_stream stream) {
  const bool bytes = a->view.type == PRIM_U8;
  stage_status st = bytes ? tile_bytes_launch(a, stream) : tile_chunks_launch(a, stream);
  if (st != STAGE_OK || tile_stats_scratch_bytes(a) == 0) return st;
  if (bytes) return tile_bytes_finish_launch(a, stream);
  st = tile_chunks_floor_launch(a, stream);
  return st == STAGE_OK ? tile_chunks_finish_launch(a, stream) : st;
}
