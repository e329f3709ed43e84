/* Matching on a device: memory layouts, and the launches of its kernels in order. */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_kernels.h"
#include "cuda/runtime/launch.h"
#include "stages/portable.h"

LAUNCH_MODULE(match_cuda)
LAUNCH_MODULE(match_guided)
LAUNCH_MODULE(match_products)
LAUNCH_MODULE(match_tiles)
LAUNCH_MODULE(neighbours_cuda)
MATCH_KERNELS(LAUNCH_KERNEL)
MATCH_GUIDED_KERNELS(LAUNCH_KERNEL)
MATCH_PRODUCTS_KERNELS(LAUNCH_KERNEL)
MATCH_TILES_KERNELS(LAUNCH_KERNEL)
NEIGHBOURS_KERNELS(LAUNCH_KERNEL)

enum { PAIR_TILES_MAX = 1024 }; /* few enough that summing the counts before a tile is cheap */

static uint32_t strips_of(uint32_t count) { return (count + MATCH_STRIP - 1u) / MATCH_STRIP; }

/* ------------------------------------------------------------------ work */

size_t cuda_match_work_layout(uint32_t first_count, uint32_t second_count, bool guided, void *base,
                              cuda_match_work *work) {
  const size_t rows = first_count, columns = second_count, strips = (columns + MATCH_STRIP - 1u) / MATCH_STRIP;
  size_t bytes = 0;
  *work = (cuda_match_work){0};
  work->tile_counts = match_array(base, &bytes, PAIR_TILES_MAX, sizeof(uint32_t));
  work->first_norms = match_array(base, &bytes, rows, sizeof(int32_t));
  work->second_base = match_array(base, &bytes, strips * MATCH_STRIP, sizeof(int32_t));
  work->first_best = match_array(base, &bytes, rows, sizeof(uint64_t));
  work->first_second = match_array(base, &bytes, rows, sizeof(uint64_t));
  work->second_best = match_array(base, &bytes, columns, sizeof(uint64_t));
  work->second_second = match_array(base, &bytes, columns, sizeof(uint64_t));
  work->first_positions = match_array(base, &bytes, guided ? rows : 0, sizeof(match_position));
  work->second_positions = match_array(base, &bytes, guided ? columns : 0, sizeof(match_position));
  return bytes;
}

/* ------------------------------------------------------------------ before the squares */

stage_status cuda_match_norms_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream) {
  const bool norms = args->type == MATCH_U8;
  const norms_args p = {norms ? args->first.descriptors : NULL,
                        norms ? args->second.descriptors : NULL,
                        args->first.count,
                        args->second.count,
                        strips_of(args->second.count) * MATCH_STRIP,
                        work->first_norms,
                        work->second_base,
                        {work->first_best, work->second_best},
                        {work->first_second, work->second_second}};
  assert(args->first.count <= CUDA_MATCH_COUNT_MAX && args->second.count <= CUDA_MATCH_COUNT_MAX);
  const uint64_t items = (uint64_t)p.first_count + p.second_padded;
  if (items == 0) return STAGE_OK;
  return launch_match_norms_kernel(match_shape(match_blocks(items * MATCH_LANES), stream), p);
}

stage_status cuda_match_positions_launch(const match_guide *guide, bool of_second, const void *keypoints,
                                         uint32_t count, match_position *positions, cuda_stream stream) {
  assert((uintptr_t)keypoints % sizeof(float) == 0 && count <= CUDA_MATCH_COUNT_MAX);
  if (count == 0) return STAGE_OK;
  return launch_match_positions_kernel(match_shape(match_blocks(count), stream), *guide, of_second, keypoints, count,
                                       positions);
}

/* The lists whose squares a launch computes; backward gets the columns' bests. */
static match_lists lists_of(const match_args *args, const cuda_match_work *work) {
  match_lists lists = {args->first.descriptors,
                       args->second.descriptors,
                       args->first.count,
                       args->second.count,
                       work->first_norms,
                       work->second_base,
                       {work->first_best, work->first_second},
                       {NULL, NULL},
                       0};
  if (args->backward) lists.column_bests = (match_bests){work->second_best, work->second_second};
  assert(lists.rows > 0 && lists.columns > 0 && lists.rows <= CUDA_MATCH_COUNT_MAX);
  assert(lists.columns <= CUDA_MATCH_COUNT_MAX);
  assert((uintptr_t)lists.first % 16u == 0 && (uintptr_t)lists.second % 16u == 0);
  return lists;
}

/* ------------------------------------------------------------------ squares by matrix instructions */

/* Returns the strips per block for which the busiest multiprocessor has the fewest; the start and end of a block
   count as one and a half strips. */
static uint32_t strips_a_block(uint32_t row_blocks, uint32_t strips, uint32_t resident) {
  uint32_t chosen = strips;
  double lowest_cost = 1e300;
  for (uint32_t segments = 1; segments <= strips && (uint64_t)segments * row_blocks <= 8ull * resident + row_blocks;
       segments++) {
    const uint32_t each = (strips + segments - 1u) / segments, used = (strips + each - 1u) / each;
    const uint64_t waves = ((uint64_t)used * row_blocks + resident - 1u) / resident;
    const double cost = (double)waves * ((double)each + 1.5);
    if (cost < lowest_cost) {
      lowest_cost = cost;
      chosen = each;
    }
  }
  return chosen;
}

static uint32_t resident_products(launch_kernel *kernel) {
  return launch_resident_blocks(kernel, PRODUCTS_THREADS, sizeof(products_shared));
}

stage_status cuda_match_products_launch(const match_args *args, const cuda_match_work *work, bool narrow,
                                        cuda_stream stream) {
  static const struct {
    launch_kernel *kernel;
    stage_status (*launch)(launch_shape shape, match_lists args);
  } forms[2][2] = {{{&match_products_wide_kernel, launch_match_products_wide_kernel},
                    {&match_products_wide_columns_kernel, launch_match_products_wide_columns_kernel}},
                   {{&match_products_narrow_kernel, launch_match_products_narrow_kernel},
                    {&match_products_narrow_columns_kernel, launch_match_products_narrow_columns_kernel}}};
  const bool both = args->backward != NULL;
  match_lists lists = lists_of(args, work);
  assert(args->type == MATCH_U8);
  const uint32_t row_blocks = (lists.rows + PRODUCTS_BLOCK_ROWS - 1u) / PRODUCTS_BLOCK_ROWS;
  const uint32_t strips = strips_of(lists.columns);
  const uint32_t each = strips_a_block(row_blocks, strips, resident_products(forms[narrow][both].kernel));
  lists.strips_a_block = each;
  const launch_shape shape = {launch_2d(row_blocks, (strips + each - 1u) / each), launch_1d(PRODUCTS_THREADS),
                              sizeof(products_shared), stream};
  return forms[narrow][both].launch(shape, lists);
}

stage_status cuda_match_products_many_launch(const cuda_match_many_args *args, cuda_stream stream) {
  enum { WAVES = 12 }; /* minimum number of blocks, so that the last one is a small part */
  launch_kernel *kernel = args->mutual ? &match_products_many_columns_kernel : &match_products_many_kernel;
  assert(args->count > 0 && args->count <= (uint32_t)GRID_Y_MAX);
  if (args->rows_most == 0 || args->columns_most == 0) return STAGE_OK;
  const uint32_t row_blocks = (args->rows_most + PRODUCTS_BLOCK_ROWS - 1u) / PRODUCTS_BLOCK_ROWS;
  const uint32_t strips = strips_of(args->columns_most);
  const uint64_t blocks = (uint64_t)row_blocks * args->count;
  const uint64_t wanted = (uint64_t)resident_products(kernel) * WAVES;
  uint64_t segments = (wanted + blocks - 1u) / blocks;
  const uint32_t segments_most = (strips + PRODUCTS_SPAN_STRIPS - 1u) / PRODUCTS_SPAN_STRIPS;
  if (segments > segments_most) segments = segments_most;
  const uint32_t each = (strips + (uint32_t)segments - 1u) / (uint32_t)segments;
  const launch_shape shape = {launch_3d(row_blocks, (strips + each - 1u) / each, args->count),
                              launch_1d(PRODUCTS_THREADS), sizeof(products_shared), stream};
  return args->mutual ? launch_match_products_many_columns_kernel(shape, args->tasks, each)
                      : launch_match_products_many_kernel(shape, args->tasks, each);
}

/* ------------------------------------------------------------------ squares without */

/* A grid of tiles; a loop in the kernel covers columns beyond it. */
static launch_shape tiles_shape(uint32_t rows, uint32_t columns, cuda_stream stream) {
  const uint32_t tiles = (columns + SQUARES_TILE - 1u) / SQUARES_TILE;
  const uint32_t y = tiles < (uint32_t)GRID_Y_MAX ? tiles : (uint32_t)GRID_Y_MAX;
  const launch_size grid = launch_2d((rows + SQUARES_TILE - 1u) / SQUARES_TILE, y);
  return (launch_shape){grid, launch_1d(MATCH_THREADS), 0, stream};
}

stage_status cuda_match_tiles_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream) {
  const match_lists lists = lists_of(args, work);
  const launch_shape shape = tiles_shape(lists.rows, lists.columns, stream);
  return args->type == MATCH_F32 ? launch_match_tiles_f32_kernel(shape, lists)
                                 : launch_match_tiles_u8_kernel(shape, lists);
}

stage_status cuda_squares_launch(const squares_args *args, const cuda_match_work *work, cuda_stream stream) {
  const size_t row_bytes = MATCH_LENGTH * (args->type == MATCH_F32 ? 4 : 1), first = args->first_row;
  const bool guided = args->guide != MATCH_UNGUIDED;
  const uint32_t columns = args->second.count;
  const squares_tiles_args p = {{(const uint8_t *)args->first.descriptors + first * row_bytes,
                                 args->second.descriptors,
                                 args->rows,
                                 columns,
                                 work->first_norms + first,
                                 work->second_base,
                                 {NULL, NULL},
                                 {NULL, NULL},
                                 0},
                                guided ? args->first.positions + first : NULL,
                                guided ? args->second.positions : NULL,
                                args->guide,
                                args->tolerance_squared,
                                args->squares,
                                args->pitch};
  assert(args->rows > 0 && args->rows <= CUDA_MATCH_COUNT_MAX && columns <= CUDA_MATCH_COUNT_MAX);
  assert(args->pitch % SQUARES_TILE == 0 && args->pitch >= columns && (uintptr_t)args->squares % 16u == 0);
  if (columns == 0) return STAGE_OK;
  const launch_shape shape = tiles_shape(args->rows, columns, stream);
  return args->type == MATCH_F32 ? launch_match_squares_f32_kernel(shape, p) : launch_match_squares_u8_kernel(shape, p);
}

/* ------------------------------------------------------------------ after the squares */

stage_status cuda_match_settle_launch(const match_args *args, const cuda_match_work *work, bool grouped,
                                      cuda_stream stream) {
  const uint8_t *first = args->first.descriptors, *second = args->second.descriptors;
  const uint32_t back_count = args->backward ? args->second.count : 0;
  const settle_both_args both = {
      {{args->type, first, second, work->first_norms, work->second_base, 0, MATCH_KEY_SHIFT, args->first.count,
        args->second.count, work->first_best, work->first_second, args->forward},
       {args->type, second, first, work->second_base, work->first_norms, MATCH_KEY_SHIFT, 0, back_count,
        args->first.count, work->second_best, work->second_second, args->backward}}};
  const uint64_t items = (uint64_t)args->first.count + back_count;
  assert(!grouped || args->type == MATCH_U8);
  if (items == 0) return STAGE_OK;
  return grouped ? launch_match_settle_group_kernel(match_shape(match_blocks(items * WARP_LANES), stream), both)
                 : launch_match_settle_kernel(match_shape(match_blocks(items), stream), both);
}

/* Returns the features in a tile: first's features are cut into at most PAIR_TILES_MAX tiles, one block each. */
static uint32_t pair_tile(uint32_t count) {
  const uint32_t steps = (count + PAIR_TILES_MAX * MATCH_THREADS - 1u) / (PAIR_TILES_MAX * MATCH_THREADS);
  return (steps > 1u ? steps : 1u) * MATCH_THREADS;
}

stage_status cuda_match_pairs_launch(const cuda_match_pairs_args *args, cuda_stream stream) {
  const uint32_t tile = pair_tile(args->count), tiles = args->count ? (args->count + tile - 1u) / tile : 1u;
  const launch_shape shape = match_shape(tiles, stream);
  assert(args->count <= CUDA_MATCH_COUNT_MAX && tiles <= PAIR_TILES_MAX && (uintptr_t)args->pairs % 16u == 0);
  const stage_status st = launch_match_count_kernel(shape, *args, tile);
  return st == STAGE_OK ? launch_match_pairs_kernel(shape, *args, tile) : st;
}

/* ------------------------------------------------------------------ the steps in order */

stage_status cuda_match_guided_launch(const match_args *args, bool backward, cuda_stream stream) {
  static stage_status (*const kernels[2][2][2])(launch_shape shape, guided_args args) = {
      {{launch_match_guided_u8_epipolar_kernel, launch_match_guided_u8_epipolar_back_kernel},
       {launch_match_guided_u8_homography_kernel, launch_match_guided_u8_homography_back_kernel}},
      {{launch_match_guided_f32_epipolar_kernel, launch_match_guided_f32_epipolar_back_kernel},
       {launch_match_guided_f32_homography_kernel, launch_match_guided_f32_homography_back_kernel}}};
  const match_side *own = backward ? &args->second : &args->first, *other = backward ? &args->first : &args->second;
  const guided_args p = {
      own->descriptors, other->descriptors, own->positions,          other->positions,
      own->count,       other->count,       args->tolerance_squared, backward ? args->backward : args->forward};
  assert(args->guide != MATCH_UNGUIDED && own->count > 0 && own->count <= CUDA_MATCH_COUNT_MAX);
  assert(other->count <= CUDA_MATCH_COUNT_MAX && p.nearest);
  const uint32_t blocks = (own->count + GUIDED_BLOCK_OWN - 1u) / GUIDED_BLOCK_OWN;
  const launch_shape shape = {launch_1d(blocks), launch_1d(GUIDED_WARPS * WARP_LANES), 0, stream};
  return kernels[args->type == MATCH_F32][args->guide == MATCH_HOMOGRAPHY][backward](shape, p);
}

static stage_status guided_nearest(const match_args *args, cuda_stream stream) {
  stage_status st = args->first.count ? cuda_match_guided_launch(args, false, stream) : STAGE_OK;
  if (st == STAGE_OK && args->backward && args->second.count) st = cuda_match_guided_launch(args, true, stream);
  return st;
}

stage_status cuda_match_nearest_launch(const match_args *args, const cuda_match_work *work, cuda_match_variant variant,
                                       cuda_stream stream) {
  if (args->guide != MATCH_UNGUIDED) return guided_nearest(args, stream);
  const bool grouped = args->type == MATCH_U8 && variant != CUDA_MATCH_PLAIN;
  stage_status st = cuda_match_norms_launch(args, work, stream);
  if (st == STAGE_OK && args->first.count > 0 && args->second.count > 0) {
    if (grouped)
      st = cuda_match_products_launch(args, work, variant == CUDA_MATCH_TENSOR_NARROW, stream);
    else
      st = cuda_match_tiles_launch(args, work, stream);
  }
  return st == STAGE_OK ? cuda_match_settle_launch(args, work, grouped, stream) : st;
}

/* ------------------------------------------------------------------ neighbours */

static rows_args rows_of(const squares_args *args, float bound) {
  return (rows_args){(const uint32_t *)args->squares, args->pitch, args->second.count, hs_float_bits(bound)};
}

stage_status cuda_neighbours_nearest_launch(const squares_args *args, float bound, uint32_t k, match_neighbour *nearest,
                                            cuda_stream stream) {
  assert(k >= 1 && k <= NEIGHBOURS_MAX && args->rows > 0 && args->rows <= CUDA_MATCH_COUNT_MAX);
  return launch_neighbours_nearest_kernel(match_shape(args->rows, stream), rows_of(args, bound), k, nearest);
}

stage_status cuda_neighbours_count_launch(const squares_args *args, float bound, uint32_t *counts, cuda_stream stream) {
  assert(args->rows > 0 && args->rows <= CUDA_MATCH_COUNT_MAX);
  return launch_neighbours_count_kernel(match_shape(args->rows, stream), rows_of(args, bound), counts);
}

stage_status cuda_neighbours_list_launch(const squares_args *args, float bound, const uint32_t *starts,
                                         match_neighbour *found, cuda_stream stream) {
  assert(args->rows > 0 && args->rows <= CUDA_MATCH_COUNT_MAX);
  return launch_neighbours_list_kernel(match_shape(args->rows, stream), rows_of(args, bound), starts, found);
}
