/* Launches of the keypoint stages, and the layout of their scratch memory. */
#include "cuda/keypoints/keypoints_cuda.h"

#include "cuda/keypoints/keypoints_kernels.h"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/pyramid/tune.h"
#include "cuda/runtime/launch.h"

LAUNCH_MODULE(affine_cuda)
LAUNCH_MODULE(describe_cuda)
LAUNCH_MODULE(extrema_cuda)
LAUNCH_MODULE(frame_cuda)
LAUNCH_MODULE(orient_cuda)
LAUNCH_MODULE(orient_peaks)
LAUNCH_MODULE(refine_cuda)
LAUNCH_MODULE(select_cuda)

/* Nearly all kernels have the frame's view as their only argument, or as their first. */
#define VIEW_ENTRY(module, name, ...) LAUNCH_ENTRY(module, name)
AFFINE_KERNELS(VIEW_ENTRY)
DESCRIBE_KERNELS(VIEW_ENTRY)
ORIENT_KERNELS(VIEW_ENTRY)
PEAK_KERNELS(VIEW_ENTRY)
REFINE_KERNELS(VIEW_ENTRY)
EXTREMA_KERNELS(LAUNCH_KERNEL)
FRAME_KERNELS(LAUNCH_KERNEL)
SELECT_KERNELS(LAUNCH_KERNEL)

static launch_shape shape_of(uint32_t blocks, uint32_t threads, cuda_stream stream) {
  return (launch_shape){launch_1d(blocks), launch_1d(threads), 0, stream};
}

/* A grid of `blocks` blocks for each picture. */
static launch_shape group_shape(const cuda_frame_view *view, uint32_t blocks, uint32_t threads, cuda_stream stream) {
  return (launch_shape){launch_3d(blocks, 1, cuda_group_count(view)), launch_1d(threads), 0, stream};
}

static stage_status launch_view(launch_kernel *kernel, launch_shape shape, const cuda_frame_view *view) {
  const launch_argument arguments[] = {{view, sizeof *view}};
  return launch(kernel, shape, arguments, 1);
}

/* Launches the blocks that are resident, at most `tiles` of each picture. */
static stage_status launch_tiles(launch_kernel *kernel, const cuda_frame_view *view, uint32_t threads, uint32_t tiles,
                                 cuda_stream stream) {
  const uint32_t share = cuda_group_share(view, launch_resident_blocks(kernel, threads, 0));
  return launch_view(kernel, group_shape(view, tiles < share ? tiles : share, threads, stream), view);
}

static uint32_t tiles_of(uint32_t items, uint32_t a_tile) { return (items + a_tile - 1u) / a_tile; }

/* ------------------------------------------------------------------ memory */

enum { SCRATCH_ALIGNMENT = 256 };

/* Takes `count` items of `size` bytes from the running offset. Returns null if base is null. */
static void *take(void *base, size_t *offset, size_t count, size_t size) {
  void *at = base ? (char *)base + *offset : NULL;
  *offset += (count * size + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return at;
}

static size_t list_tiles(uint32_t capacity) { return (size_t)capacity / LIST_TILE + 1; }

size_t cuda_keypoint_scratch_layout(const cuda_keypoint_capacity *capacity, void *base, cuda_keypoint_scratch *s) {
  size_t at = 0;
  const size_t word = sizeof(uint32_t);
  s->counters = base;
  s->candidate_count = take(base, &at, 1, word);
  s->tickets = take(base, &at, TICKETS, word);
  s->settled_tiles = take(base, &at, MASK_TILES_MAX, word);
  s->work_counts = take(base, &at, 2 * WORK_BINS, word);
  s->work_cursors = take(base, &at, 2 * WORK_BINS, word);
  s->select_digits = take(base, &at, SELECT_PASSES * SELECT_DIGITS, word);
  s->grid_counts = take(base, &at, capacity->cells, word);
  s->grid_cursors = take(base, &at, capacity->cells, word);
  s->peak_tiles = take(base, &at, list_tiles(capacity->keypoints), word);
  s->select_above = take(base, &at, list_tiles(capacity->features), word);
  s->select_equal = take(base, &at, list_tiles(capacity->features), word);
  s->counter_bytes = at;
  s->histograms = take(base, &at, (size_t)capacity->keypoints * ORIENT_BINS, sizeof(int32_t));
  s->peak_counts = take(base, &at, capacity->keypoints, 1);
  s->peak_angles = take(base, &at, (size_t)capacity->keypoints * ORIENT_PEAKS_MAX, sizeof(float));
  s->select_keys = take(base, &at, capacity->features, word);
  const size_t ranked = capacity->cells > 0 ? capacity->features : 0;
  s->grid_first = take(base, &at, capacity->cells, word);
  s->grid_ranks = take(base, &at, 1, word);
  s->grid_cells = take(base, &at, ranked, word);
  s->grid_list = take(base, &at, ranked, word);
  s->grid_keys = take(base, &at, ranked, word);
  s->order = take(base, &at, capacity->features, word);
  return at;
}

/* Clears `bytes` bytes at the same offset in each picture of a group. */
static stage_status clear_each(const cuda_frame_view *view, void *first, size_t bytes, cuda_stream stream) {
  if (view->group <= 1) return device_clear(first, bytes, stream);
  return device_clear_rows(first, view->group_stride_bytes, bytes, (size_t)view->group, stream);
}

stage_status cuda_keypoint_reset_launch(const cuda_frame_view *view, cuda_stream stream) {
  const stage_status st = clear_each(view, view->scratch.counters, view->scratch.counter_bytes, stream);
  if (st != STAGE_OK || !view->settled_words) return st;
  return clear_each(view, view->settled_words, sizeof(uint32_t) * (size_t)view->mask_words, stream);
}

/* ------------------------------------------------------------------ extremum search */

/* Returns the rows of a warp: the smallest number for which all blocks are resident at once. */
static int32_t rows_of_warp(const octave_view *o, int32_t multiprocessors) {
  const int64_t groups = (int64_t)multiprocessors * EXTREMA_BLOCKS_PER_SM / ceil_div(o->width, STRIP_COLUMNS);
  const int32_t rows = ceil_div(o->height, EXTREMA_WARPS * (int32_t)(groups > 1 ? groups : 1));
  if (rows < EXTREMA_ROWS_MIN) return EXTREMA_ROWS_MIN;
  return rows > EXTREMA_ROWS_MAX ? (int32_t)EXTREMA_ROWS_MAX : rows;
}

/* Fills the jobs. Returns the number of blocks, or -1 if a grid cannot hold them. */
static int64_t fill_jobs(const extrema_launch_args *args, bool march, extrema_params *p) {
  const int32_t multiprocessors = launch_multiprocessors();
  int64_t blocks = 0;
  for (int32_t i = 0; i < args->octave_count; i++) {
    const extrema_octave *from = &args->octaves[i];
    const octave_view *o = &from->octave;
    if (o->width <= 0 || o->height <= 0) continue;
    assert(o->stride % PLANE_STRIDE_FLOATS == 0 && o->stride <= INT32_MAX &&
           o->level_floats % PLANE_STRIDE_FLOATS == 0);
    assert((uintptr_t)o->levels % 256 == 0 && from->candidates.words_per_row == mask_words_per_row(o->width));
    extrema_job *to = &p->jobs[p->job_count++];
    assert((uintptr_t)from->dog % 16 == 0); /* rows are copied in vectors */
    to->planes = from->dog ? from->dog : o->levels;
    to->words = from->candidates.words;
    to->plane_floats = o->level_floats;
    to->stride = (int32_t)o->stride;
    to->width = o->width;
    to->height = o->height;
    to->words_per_row = from->candidates.words_per_row;
    to->first_block = (int32_t)blocks;
    to->rows = march ? rows_of_warp(o, multiprocessors) : 1;
    blocks += (int64_t)ceil_div(o->width, march ? STRIP_COLUMNS : 32) * ceil_div(o->height, to->rows * EXTREMA_WARPS);
    if (blocks > INT32_MAX) return -1;
  }
  return blocks;
}

/* Searches the octaves of a group of pictures. */
static stage_status extrema_run_group(const extrema_params *p, const extrema_launch_args *args, bool ties,
                                      uint32_t blocks, cuda_stream stream) {
  const launch_shape shape = {launch_3d(blocks, 1, (uint32_t)args->group), launch_1d(32 * EXTREMA_WARPS), 0, stream};
  assert(p->scales == MARCH_LEVELS && !args->octaves[0].dog && args->group_stride_bytes % 256 == 0);
  return ties ? launch_extrema_march_ties_group_kernel(shape, *p, args->group_stride_bytes)
              : launch_extrema_march_group_kernel(shape, *p, args->group_stride_bytes);
}

stage_status extrema_launch(const extrema_launch_args *args, cuda_stream stream) {
  static stage_status (*const march_kernels[2][2])(launch_shape, extrema_params, size_t) = {
      {launch_extrema_march_kernel, launch_extrema_march_ties_kernel},
      {launch_extrema_march_stored_kernel, launch_extrema_march_stored_ties_kernel}};
  static stage_status (*const plain_kernels[2][2])(launch_shape, extrema_params) = {
      {launch_extrema_plain_kernel, launch_extrema_plain_ties_kernel},
      {launch_extrema_plain_stored_kernel, launch_extrema_plain_stored_ties_kernel}};
  assert(args->octave_count >= 0 && args->octave_count <= OCTAVES_MAX);
  assert(args->params.border >= 1 && args->params.scales >= 1 && args->params.scales <= SCALES_MAX);
  extrema_params p;
  p.job_count = 0;
  p.scales = args->params.scales;
  p.border = args->params.border;
  /* |c| > t and c > 0 is equivalent to c > max(t, 0); likewise for c < 0 */
  p.above = args->params.candidate_above > 0.0f ? args->params.candidate_above : 0.0f;
  const bool march = p.scales == MARCH_LEVELS, ties = args->params.extremum_ties;
  const int64_t blocks = fill_jobs(args, march, &p);
  if (blocks < 0) return STAGE_OVERFLOW;
  if (blocks == 0) return STAGE_OK;
  const bool stored = args->octaves[0].dog != NULL;
  for (int32_t i = 1; i < args->octave_count; i++) assert((args->octaves[i].dog != NULL) == stored);
  if (args->group > 1) return extrema_run_group(&p, args, ties, (uint32_t)blocks, stream);
  const launch_shape shape = shape_of((uint32_t)blocks, 32 * EXTREMA_WARPS, stream);
  return march ? march_kernels[stored][ties](shape, p, 0) : plain_kernels[stored][ties](shape, p);
}

/* ------------------------------------------------------------------ refinement */

static void assert_view(const cuda_frame_view *v) {
  assert(v->octave_count >= 1 && v->octave_count <= OCTAVES_MAX && v->first_octave == v->octaves[0].octave);
  assert(v->mask_words > 0 && v->mask_words % 4u == 0 && v->mask_words <= UINT32_MAX - 4u * MASK_TILE_WORDS);
  assert((uintptr_t)v->candidate_words % 16u == 0 && (uintptr_t)v->settled_words % 16u == 0);
  if (v->part.tiled)
    assert(cuda_part_words(&v->part, v->params.scales) <= v->mask_words && v->part.masked.x0 % 32 == 0);
  for (int32_t o = 0; o < v->octave_count && !v->part.tiled; o++) {
    assert(v->mask_offset[o] % 4u == 0 && v->octaves[o].octave == v->first_octave + o);
    assert(v->mask_offset[o] + cuda_mask_words(&v->octaves[o], v->params.scales) <= v->mask_words);
  }
  (void)v;
}

stage_status cuda_refine_launch(const cuda_frame_view *view, cuda_refine_variant variant, cuda_stream stream) {
  assert_view(view);
  if (variant == CUDA_REFINE_REBALANCED) {
    launch_kernel *kernel = view->group > 1 ? &refine_follow_group_kernel : &refine_follow_kernel;
    return launch_tiles(kernel, view, FOLLOW_THREADS, tiles_of(view->mask_words / 4u, FOLLOW_THREADS), stream);
  }
  assert(view->group <= 1);
  const uint32_t resident = launch_resident_blocks(&refine_plain_kernel, REFINE_THREADS, 0);
  return launch_view(&refine_plain_kernel, shape_of(resident, REFINE_THREADS, stream), view);
}

stage_status cuda_locate_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert_view(view);
  const uint32_t words = (uint32_t)MASK_TILE_WORDS << cuda_mask_tile_shift(view->mask_words);
  const launch_shape shape = group_shape(view, tiles_of(view->mask_words, words), LOCATE_THREADS, stream);
  return launch_view(view->group > 1 ? &locate_tile_group_kernel : &locate_tile_kernel, shape, view);
}

/* ------------------------------------------------------------------ affine shapes */

stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream) {
  const bool group = view->group > 1;
  const uint32_t threads = SHAPE_WARPS * WARP_LANES;
  launch_kernel *first = group ? &affine_shape_group_kernel : &affine_shape_kernel;
  launch_kernel *rest = group ? &affine_long_shape_group_kernel : &affine_long_shape_kernel;
  assert(view->shapes && view->keypoints.capacity > 0 && view->octave_count >= 1);
  const stage_status st = launch_tiles(first, view, threads, UINT32_MAX, stream);
  return st == STAGE_OK ? launch_tiles(rest, view, threads, UINT32_MAX, stream) : st;
}

/* ------------------------------------------------------------------ orientation */

/* By rule; on the level or on patches of shapes. */
#define ORIENT_ROW(variant, suffix)                                                                                    \
  {                                                                                                                    \
    {&orient_##variant##_lowe##suffix, &orient_##variant##_lowe_patch##suffix},                                        \
        {&orient_##variant##_opencv##suffix, &orient_##variant##_opencv_patch##suffix}, {                              \
      &orient_##variant##_vlfeat##suffix, &orient_##variant##_vlfeat_patch##suffix                                     \
    }                                                                                                                  \
  }

static stage_status orient_by_warps(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  enum { ATOMIC, GROUP, HISTOGRAM };
  static launch_kernel *const kernels[3][3][2] = {ORIENT_ROW(atomic, _kernel), ORIENT_ROW(atomic, _group_kernel),
                                                  ORIENT_ROW(warp_histogram, _kernel)};
  const int way = variant == CUDA_ORIENT_WARP_HISTOGRAM ? HISTOGRAM : view->group > 1 ? GROUP : ATOMIC;
  launch_kernel *kernel = kernels[way][view->params.orientation_rule][view->shapes != NULL];
  return launch_tiles(kernel, view, ORIENT_WARPS * WARP_LANES, UINT32_MAX, stream);
}

_Static_assert(RULE_LOWE == 0 && RULE_OPENCV == 1 && RULE_VLFEAT == 2, "the order of ORIENT_ROW");

stage_status cuda_orient_plain_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  const bool thread = variant == CUDA_ORIENT_THREAD;
  launch_kernel *kernel = thread                        ? &orient_thread_per_keypoint_kernel
                          : variant == CUDA_ORIENT_WARP ? &orient_warp_per_keypoint_kernel
                                                        : &orient_block_per_keypoint_kernel;
  const uint32_t threads = thread ? ORIENT_PLAIN_THREADS : ORIENT_BLOCK_THREADS;
  return launch_view(kernel, shape_of(launch_resident_blocks(kernel, threads, 0), threads, stream), view);
}

static stage_status orient_variant(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  if (variant >= CUDA_ORIENT_THREAD && !view->shapes) return cuda_orient_plain_launch(view, variant, stream);
  return orient_by_warps(view, variant, stream);
}

stage_status cuda_orient_peaks_launch(const cuda_frame_view *view, cuda_stream stream) {
  const bool group = view->group > 1;
  const uint32_t capacity = view->keypoints.capacity;
  const stage_status st = launch_tiles(group ? &orient_peak_group_kernel : &orient_peak_kernel, view, PEAK_THREADS,
                                       tiles_of(capacity, PEAK_KEYPOINTS), stream);
  if (st != STAGE_OK) return st;
  return launch_tiles(group ? &orient_emit_group_kernel : &orient_emit_kernel, view, LIST_TILE,
                      tiles_of(capacity, LIST_TILE), stream);
}

stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  assert(view->octave_count >= 1 && view->keypoints.capacity > 0 && view->oriented.capacity > 0 && view->scales);
  assert(variant == CUDA_ORIENT_ATOMIC || view->group <= 1);
  const stage_status st = view->params.upright ? STAGE_OK : orient_variant(view, variant, stream);
  return st == STAGE_OK ? cuda_orient_peaks_launch(view, stream) : st;
}

/* ------------------------------------------------------------------ selection */

/* Blocks for the oriented features, at most those that are resident. */
static uint32_t oriented_blocks(const cuda_frame_view *view, launch_kernel *kernel, uint32_t threads) {
  const uint32_t tiles = tiles_of(view->oriented.capacity, threads);
  const uint32_t resident = launch_resident_blocks(kernel, threads, 0);
  return tiles < resident ? tiles : resident;
}

stage_status cuda_grid_keys_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->grid.columns > 0 && view->grid.rows > 0 && view->max_features > 0);
  assert((uint64_t)view->grid.columns * (uint64_t)view->grid.rows <= GRID_DEVICE_CELLS && view->scratch.grid_counts);
  const uint32_t blocks = oriented_blocks(view, &grid_rank_kernel, GRID_THREADS);
  const launch_shape shape = shape_of(blocks, GRID_THREADS, stream);
  stage_status st = launch_grid_cell_kernel(shape, *view);
  if (st == STAGE_OK) st = launch_grid_rounds_kernel(shape_of(1, GRID_THREADS, stream), *view);
  if (st == STAGE_OK) st = launch_grid_list_kernel(shape, *view);
  return st == STAGE_OK ? launch_grid_rank_kernel(shape, *view) : st;
}

stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->max_features > 0 && view->oriented.capacity > 0 && view->features.capacity > 0);
  assert(view->features.keypoint != view->oriented.keypoint && view->features.count != view->oriented.count);
  assert(view->grid.columns == 0 || view->selection != SELECT_LEVELS);
  const uint32_t blocks = oriented_blocks(view, &select_digit_kernel, LIST_TILE);
  const launch_shape shape = shape_of(blocks, LIST_TILE, stream);
  stage_status st = view->grid.columns > 0 ? cuda_grid_keys_launch(view, stream) : STAGE_OK;
  for (int32_t pass = 0; pass < select_passes(view) && st == STAGE_OK; pass++)
    st = launch_select_digit_kernel(shape, *view, pass);
  if (st == STAGE_OK) st = launch_select_count_kernel(shape, *view);
  if (st == STAGE_OK) st = launch_select_emit_kernel(shape, *view);
  return st == STAGE_OK ? cuda_work_order_launch(view, stream) : st;
}

/* ------------------------------------------------------------------ descriptors */

stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->features.capacity > 0);
  const uint32_t tiles = tiles_of(view->features.capacity, WORK_BINS);
  const uint32_t resident = launch_resident_blocks(&work_scatter_kernel, WORK_BINS, 0);
  const launch_shape shape = shape_of(tiles < resident ? tiles : resident, WORK_BINS, stream);
  const stage_status st = launch_view(&work_count_kernel, shape, view);
  return st == STAGE_OK ? launch_view(&work_scatter_kernel, shape, view) : st;
}

static stage_status launch_descriptors(launch_kernel *kernel, uint32_t warps, const cuda_frame_view *view,
                                       const cuda_outputs *outputs, cuda_stream stream) {
  const uint32_t threads = warps * WARP_LANES, resident = launch_resident_blocks(kernel, threads, 0);
  const launch_argument arguments[] = {{view, sizeof *view}, {&outputs, sizeof outputs}};
  return launch(kernel, group_shape(view, cuda_group_share(view, resident), threads, stream), arguments, 2);
}

stage_status cuda_affine_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                         const cuda_outputs *outputs, cuda_stream stream) {
  enum { ATOMIC, GROUP, MULTI_KEY };
  /* two copies: with more, the patches' lines would leave L1 */
  static launch_kernel *const kernels[3][2] = {
      {&affine_describe_kernel, &affine_describe_pooled_kernel},
      {&affine_describe_group_kernel, &affine_describe_pooled_group_kernel},
      {&affine_describe_multi_key_kernel, &affine_describe_multi_key_pooled_kernel}};
  assert(view->shapes && view->features.capacity > 0 && view->scales && outputs);
  assert(variant == CUDA_DESCRIBE_ATOMIC4 || view->group <= 1);
  const int way = view->group > 1 ? GROUP : variant == CUDA_DESCRIBE_MULTI_KEY ? MULTI_KEY : ATOMIC;
  return launch_descriptors(kernels[way][view->params.domain.count > 0], WARPED_WARPS, view, outputs, stream);
}

stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream) {
  static launch_kernel *const kernels[CUDA_DESCRIBE_VARIANTS][2] = {
      [CUDA_DESCRIBE_ATOMIC4] = {&describe_atomic4_kernel, &describe_atomic4_pooled_kernel},
      [CUDA_DESCRIBE_ATOMIC2] = {&describe_atomic2_kernel, &describe_atomic2_pooled_kernel},
      [CUDA_DESCRIBE_MULTI_KEY] = {&describe_multi_key_kernel, &describe_multi_key_pooled_kernel}};
  static launch_kernel *const group_kernels[2] = {&describe_atomic4_group_kernel,
                                                  &describe_atomic4_pooled_group_kernel};
  assert(view->features.capacity > 0 && view->scales && outputs);
  assert(variant == CUDA_DESCRIBE_ATOMIC4 || view->group <= 1);
  if (view->shapes) return cuda_affine_describe_launch(view, variant, outputs, stream);
  const bool pooled = view->params.domain.count > 0;
  launch_kernel *kernel = view->group > 1 ? group_kernels[pooled] : kernels[variant][pooled];
  return launch_descriptors(kernel, DESCRIBE_WARPS, view, outputs, stream);
}

/* ------------------------------------------------------------------ tiles and results */

stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->part.tiled && view->mask_words > 0);
  return launch_tile_candidates_kernel(shape_of(tiles_of(view->mask_words, TILE_THREADS), TILE_THREADS, stream), *view);
}

stage_status cuda_tile_lists_launch(const cuda_frame_view *view, const cuda_tile_lists *lists, cuda_stream stream) {
  assert(view->part.tiled && (uintptr_t)lists->counts % 16u == 0);
  const uint32_t resident = launch_resident_blocks(&tile_lists_kernel, TILE_THREADS, 0);
  const uint32_t tiles = tiles_of(view->features.capacity, TILE_THREADS);
  return launch_tile_lists_kernel(shape_of(tiles < resident ? tiles : resident, TILE_THREADS, stream), *view, *lists);
}

stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream) {
  assert(outputs && counts && (uintptr_t)counts % 16u == 0);
  const uint32_t share = cuda_group_share(view, launch_resident_blocks(&results_kernel, RESULTS_THREADS, 0));
  const uint32_t tiles = tiles_of(view->features.capacity, RESULTS_THREADS);
  const launch_shape shape = group_shape(view, tiles < share ? tiles : share, RESULTS_THREADS, stream);
  return view->group > 1 ? launch_results_group_kernel(shape, *view, outputs, counts)
                         : launch_results_kernel(shape, *view, outputs, counts);
}
