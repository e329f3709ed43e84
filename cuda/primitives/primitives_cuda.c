/* Launches of the primitives on the device: reductions, histogram, equalisation and convolution. */
#include "cuda/primitives/primitives_cuda.h"

#include "cuda/primitives/primitives_kernels.h"
#include "cuda/runtime/launch.h"

LAUNCH_MODULE(reduce_cuda)
LAUNCH_MODULE(histogram_cuda)
LAUNCH_MODULE(convolve_cuda)
REDUCE_KERNELS(LAUNCH_KERNEL)
HISTOGRAM_KERNELS(LAUNCH_KERNEL)
CONVOLVE_KERNELS(LAUNCH_KERNEL)

/* ------------------------------------------------------------------ reductions */

static uint64_t elements_of(const prim_view *v) { return (uint64_t)v->width * v->height; }
static uint64_t chunks_of(uint64_t elements) { return elements / PRIM_CHUNK + (elements % PRIM_CHUNK != 0); }

/* Launches for this number of items, at most as many blocks as are resident on the device. */
static launch_shape reduce_shape(uint64_t items, uint64_t items_a_block, const reduce_args *a, cuda_stream stream) {
  const uint64_t needed = (items + items_a_block - 1) / items_a_block;
  const uint64_t blocks_max = (uint64_t)a->processors * (uint64_t)REDUCE_BLOCKS_PER_SM;
  const uint32_t blocks = (uint32_t)(needed < blocks_max ? needed : blocks_max);
  return (launch_shape){launch_1d(blocks), launch_1d(REDUCE_THREADS), 0, stream};
}

static element_rows rows_of(const prim_view *v) {
  return (element_rows){v->data, elements_of(v), v->width, v->stride_bytes};
}

static bool is_flat(const prim_view *v) {
  return v->height == 1 || v->stride_bytes == v->width * prim_element_bytes(v->type);
}

static reduce_result result_of(const reduce_args *a, uint64_t count) {
  return (reduce_result){a->first, a->second, a->kind == REDUCE_MEAN ? (double)count : 1.0};
}

/* Whether sums of this type are exact in any order. */
static bool is_integer(prim_element type) { return type == PRIM_U8 || type == PRIM_U16; }

static void assert_reduction(const reduce_args *a) {
  assert(a->view.data && a->view.width > 0 && a->view.height > 0 && a->scratch && a->ticket && a->processors > 0);
  assert((uintptr_t)a->view.data % prim_element_bytes(a->view.type) == 0);
  assert(a->kind == REDUCE_RANGE ? a->first || a->second : a->first != NULL);
  (void)a;
}

size_t reduce_scratch_bytes(const reduce_args *a) {
  const size_t partials = (size_t)a->processors * REDUCE_BLOCKS_PER_SM * sizeof(integer_partial);
  if (is_integer(a->view.type) || a->kind == REDUCE_RANGE) return partials;
  const uint64_t chunks = chunks_of(elements_of(&a->view));
  return (size_t)(chunks + chunks_of(chunks)) * sizeof(double);
}

stage_status reduce_integers_launch(const reduce_args *a, cuda_stream stream) {
  typedef stage_status (*kernel)(launch_shape, byte_rows, integer_partial *, uint32_t *, reduce_result);
  static const kernel kernels[2][2][2] = {{{launch_reduce_u8_sum_rows_kernel, launch_reduce_u8_sum_flat_kernel},
                                           {launch_reduce_u8_range_rows_kernel, launch_reduce_u8_range_flat_kernel}},
                                          {{launch_reduce_u16_sum_rows_kernel, launch_reduce_u16_sum_flat_kernel},
                                           {launch_reduce_u16_range_rows_kernel, launch_reduce_u16_range_flat_kernel}}};
  assert_reduction(a);
  assert(a->view.type == PRIM_U8 || a->view.type == PRIM_U16);
  const int64_t width = (int64_t)(a->view.width * prim_element_bytes(a->view.type)), height = (int64_t)a->view.height;
  const size_t stride = a->view.stride_bytes;
  const byte_rows rows = byte_rows_make(a->view.data, width, height, stride, byte_rows_joined(width, height, stride));
  /* A block has 16 KiB in flight; small views are spread over more blocks. */
  const launch_shape shape = reduce_shape(byte_rows_units(&rows), REDUCE_THREADS, a, stream);
  return kernels[a->view.type == PRIM_U16][a->kind == REDUCE_RANGE][rows.rows == 1](
      shape, rows, a->scratch, a->ticket, result_of(a, elements_of(&a->view)));
}

stage_status reduce_sum_launch(const reduce_args *a, double *sums, uint64_t count, cuda_stream stream) {
  typedef stage_status (*kernel)(launch_shape, element_rows, double *, uint32_t *, reduce_result);
  static const kernel kernels[2][2] = {{launch_reduce_f32_sum_rows_kernel, launch_reduce_f32_sum_flat_kernel},
                                       {launch_reduce_f64_sum_rows_kernel, launch_reduce_f64_sum_flat_kernel}};
  assert_reduction(a);
  assert(!is_integer(a->view.type) && a->kind != REDUCE_RANGE && sums);
  const element_rows rows = rows_of(&a->view);
  const launch_shape shape = reduce_shape(chunks_of(rows.count), REDUCE_WARPS, a, stream);
  return kernels[a->view.type == PRIM_F64][is_flat(&a->view)](shape, rows, sums, a->ticket, result_of(a, count));
}

stage_status reduce_range_launch(const reduce_args *a, cuda_stream stream) {
  typedef stage_status (*kernel)(launch_shape, element_rows, range_partial *, uint32_t *, reduce_result);
  static const kernel kernels[2][2] = {{launch_reduce_f32_range_rows_kernel, launch_reduce_f32_range_flat_kernel},
                                       {launch_reduce_f64_range_rows_kernel, launch_reduce_f64_range_flat_kernel}};
  assert_reduction(a);
  assert(!is_integer(a->view.type) && a->kind == REDUCE_RANGE);
  const element_rows rows = rows_of(&a->view);
  const launch_shape shape = reduce_shape(chunks_of(rows.count), REDUCE_WARPS, a, stream);
  return kernels[a->view.type == PRIM_F64][is_flat(&a->view)](shape, rows, a->scratch, a->ticket, result_of(a, 0));
}

stage_status reduce_launch(const reduce_args *args, cuda_stream stream) {
  if (is_integer(args->view.type)) return reduce_integers_launch(args, stream);
  if (args->kind == REDUCE_RANGE) return reduce_range_launch(args, stream);
  /* The sums of the chunks are the elements of the next pass. Passes write alternately to two areas. */
  const uint64_t count = elements_of(&args->view), first_chunks = chunks_of(count);
  double *sums[2] = {args->scratch, (double *)args->scratch + first_chunks};
  reduce_args pass = *args;
  stage_status st = reduce_sum_launch(&pass, sums[0], count, stream);
  uint64_t chunks = first_chunks;
  for (int turn = 0; st == STAGE_OK && chunks > PRIM_CHUNK; turn ^= 1) {
    pass.view = (prim_view){sums[turn], (size_t)chunks, 1, (size_t)chunks * sizeof(double), PRIM_F64};
    st = reduce_sum_launch(&pass, sums[turn ^ 1], count, stream);
    chunks = chunks_of(chunks);
  }
  return st;
}

/* ------------------------------------------------------------------ histogram and equalisation */

/* Returns the blocks for this number of vectors, at most as many as are resident on the device. */
static uint32_t blocks_for(const byte_rows *rows, int32_t a_block, int32_t blocks_max) {
  const uint64_t needed = (byte_rows_units(rows) + (uint64_t)a_block - 1) / (uint64_t)a_block;
  return (uint32_t)(needed < (uint64_t)blocks_max ? needed : (uint64_t)blocks_max);
}

/* Returns the rows of the view, divided for a picture processed with it. *other_stride: stride of that picture's
 * rows in this division. */
static byte_rows rows_with(const prim_view *v, size_t *other_stride) {
  const int64_t width = (int64_t)v->width, height = (int64_t)v->height;
  const bool joined =
      byte_rows_joined(width, height, v->stride_bytes) && byte_rows_joined(width, height, *other_stride);
  const byte_rows rows = byte_rows_make(v->data, width, height, v->stride_bytes, joined);
  if (joined) *other_stride = rows.stride_bytes;
  return rows;
}

typedef enum histogram_size { HISTOGRAM_SMALL, HISTOGRAM_MEDIUM, HISTOGRAM_LARGE } histogram_size;

/* Launches as many blocks as have a vector for each thread, at most blocks_max. */
static stage_status histogram_of(const histogram_args *a, const byte_rows *rows, size_t mask_stride,
                                 histogram_size size, int32_t blocks_max, cuda_stream stream) {
  typedef stage_status (*kernel)(launch_shape, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *);
  static const kernel kernels[3][2][2] = {
      {{launch_histogram_small_rows_kernel, launch_histogram_small_flat_kernel},
       {launch_histogram_small_masked_rows_kernel, launch_histogram_small_masked_flat_kernel}},
      {{launch_histogram_medium_rows_kernel, launch_histogram_medium_flat_kernel},
       {launch_histogram_medium_masked_rows_kernel, launch_histogram_medium_masked_flat_kernel}},
      {{launch_histogram_large_rows_kernel, launch_histogram_large_flat_kernel},
       {launch_histogram_large_masked_rows_kernel, launch_histogram_large_masked_flat_kernel}}};
  const int32_t threads = size == HISTOGRAM_SMALL ? SMALL_THREADS : LANE_THREADS;
  const uint32_t blocks = blocks_for(rows, threads, blocks_max);
  assert(byte_rows_units(rows) / blocks < ((uint64_t)1 << 32) / BYTE_ROWS_VECTOR - (uint64_t)threads);
  const launch_shape shape = {launch_1d(blocks), launch_1d((uint32_t)threads), 0, stream};
  return kernels[size][a->mask != NULL][rows->rows == 1](shape, *rows, a->mask, mask_stride, a->scratch, a->counts);
}

stage_status histogram_launch(const histogram_args *a, cuda_stream stream) {
  assert(a->view.type == PRIM_U8 && a->view.data && a->view.width > 0 && a->view.height > 0);
  assert(a->counts && a->scratch && a->processors > 0 && a->processors <= LONG_TALLY_BLOCKS_MAX);
  assert((uint64_t)a->view.width * a->view.height < (uint64_t)1 << LONG_TALLY_SUM_BITS);
  size_t mask_stride = a->mask ? a->mask_stride_bytes : a->view.stride_bytes;
  const byte_rows rows = rows_with(&a->view, &mask_stride);
  const uint64_t units = byte_rows_units(&rows);
  const int32_t small_blocks_max = a->processors < TALLY_BLOCKS_MAX ? a->processors : (int32_t)TALLY_BLOCKS_MAX;
  if (units <= (uint64_t)small_blocks_max * HISTOGRAM_SMALL_VECTORS)
    return histogram_of(a, &rows, mask_stride, HISTOGRAM_SMALL, small_blocks_max, stream);
  const bool is_medium = units <= (uint64_t)a->processors * HISTOGRAM_MEDIUM_VECTORS;
  return histogram_of(a, &rows, mask_stride, is_medium ? HISTOGRAM_MEDIUM : HISTOGRAM_LARGE, a->processors, stream);
}

stage_status equalize_launch(const equalize_args *a, cuda_stream stream) {
  assert(a->view.type == PRIM_U8 && a->view.data && a->view.width > 0 && a->view.height > 0);
  assert(a->counts && a->out && a->processors > 0);
  size_t out_stride = a->out_stride_bytes;
  const byte_rows rows = rows_with(&a->view, &out_stride);
  const uint32_t blocks = blocks_for(&rows, LEVEL_THREADS, a->processors * LEVEL_BLOCKS_PER_SM);
  const launch_shape shape = {launch_1d(blocks), launch_1d(LEVEL_THREADS), 0, stream};
  return rows.rows == 1 ? launch_equalize_flat_kernel(shape, rows, a->counts, a->out, out_stride)
                        : launch_equalize_rows_kernel(shape, rows, a->counts, a->out, out_stride);
}

/* ------------------------------------------------------------------ convolution */

static void assert_convolution(const convolve_args *a) {
  const size_t bytes = prim_element_bytes(a->signal.type);
  assert(a->signal.type == PRIM_F32 || a->signal.type == PRIM_F64);
  assert(a->signal.data && a->signal.width > 0 && a->signal.height > 0 && a->out && a->taps);
  assert(a->tap_count % 2 == 1 && a->tap_count <= PRIM_TAPS_MAX);
  assert(((uintptr_t)a->signal.data | (uintptr_t)a->out | a->signal.stride_bytes | a->out_stride_bytes) % bytes == 0);
  (void)a, (void)bytes;
}

static uint32_t rows_grid(uint64_t rows) {
  return rows < CONVOLVE_GRID_Y_MAX ? (uint32_t)rows : (uint32_t)CONVOLVE_GRID_Y_MAX;
}

/* Sets a block as wide as a row has vectors (a power of two from 1 to 256), and its number of rows. */
static stage_status tree_shape(const convolve_args *a, uint64_t samples, launch_shape *shape) {
  const uint64_t vectors = (a->signal.width + samples - 1) / samples;
  uint32_t wide = TREE_THREADS;
  while (wide > 1 && wide / 2 * TREE_ROUNDS >= vectors) wide /= 2;
  shape->block = launch_2d(wide, TREE_THREADS / wide);
  const uint64_t across = (vectors + wide * TREE_ROUNDS - 1) / (wide * TREE_ROUNDS);
  if (across > INT32_MAX) return STAGE_OVERFLOW;
  shape->grid = launch_2d((uint32_t)across, rows_grid((a->signal.height + shape->block.y - 1) / shape->block.y));
  return STAGE_OK;
}

/* The parameters of a type of samples, from the arguments. */
#define TREE_PARAMS_SET(p, a, E)                                                                                       \
  do {                                                                                                                 \
    (p).data = (a)->signal.data;                                                                                       \
    (p).out = (a)->out;                                                                                                \
    (p).width = (int64_t)(a)->signal.width;                                                                            \
    (p).height = (int64_t)(a)->signal.height;                                                                          \
    (p).stride_bytes = (a)->signal.stride_bytes;                                                                       \
    (p).out_stride_bytes = (a)->out_stride_bytes;                                                                      \
    (p).ends = (a)->ends;                                                                                              \
    for (uint32_t j = 0; j < PRIM_TREE_TAPS_MAX; j++) (p).taps[j] = j < (a)->tap_count ? (E)(a)->taps[j] : (E)0;       \
  } while (0)

stage_status convolve_tree_launch(const convolve_args *a, cuda_stream stream) {
  static stage_status (*const f32_kernels[2][4])(launch_shape, tree_params_f32) = {
      {launch_convolve_f32_1_kernel, launch_convolve_f32_3_kernel, launch_convolve_f32_5_kernel,
       launch_convolve_f32_7_kernel},
      {launch_convolve_f32_1_vectors_kernel, launch_convolve_f32_3_vectors_kernel, launch_convolve_f32_5_vectors_kernel,
       launch_convolve_f32_7_vectors_kernel}};
  static stage_status (*const f64_kernels[2][4])(launch_shape, tree_params_f64) = {
      {launch_convolve_f64_1_kernel, launch_convolve_f64_3_kernel, launch_convolve_f64_5_kernel,
       launch_convolve_f64_7_kernel},
      {launch_convolve_f64_1_vectors_kernel, launch_convolve_f64_3_vectors_kernel, launch_convolve_f64_5_vectors_kernel,
       launch_convolve_f64_7_vectors_kernel}};
  const uint32_t half = a->tap_count / 2;
  const uintptr_t strides = a->signal.height > 1 ? a->signal.stride_bytes | a->out_stride_bytes : 0;
  const bool vectors = (((uintptr_t)a->signal.data | (uintptr_t)a->out | strides) & 15) == 0;
  launch_shape shape = {.stream = stream};
  assert_convolution(a);
  assert(a->tap_count <= PRIM_TREE_TAPS_MAX);
  const stage_status st = tree_shape(a, vectors ? 16 / prim_element_bytes(a->signal.type) : 1, &shape);
  if (st != STAGE_OK) return st;
  if (a->signal.type == PRIM_F32) {
    tree_params_f32 p;
    TREE_PARAMS_SET(p, a, float);
    return f32_kernels[vectors][half](shape, p);
  }
  tree_params_f64 p;
  TREE_PARAMS_SET(p, a, double);
  return f64_kernels[vectors][half](shape, p);
}

stage_status convolve_long_launch(const convolve_args *a, cuda_stream stream) {
  assert_convolution(a);
  assert(a->tap_count > PRIM_TREE_TAPS_MAX && (a->tap_count <= CONVOLVE_INLINE_TAPS || a->d_taps));
  long_params p = {.data = a->signal.data,
                   .out = a->out,
                   .width = (int64_t)a->signal.width,
                   .height = (int64_t)a->signal.height,
                   .stride_bytes = a->signal.stride_bytes,
                   .out_stride_bytes = a->out_stride_bytes,
                   .taps = a->tap_count <= CONVOLVE_INLINE_TAPS ? NULL : a->d_taps,
                   .tap_count = a->tap_count,
                   .ends = a->ends};
  for (uint32_t j = 0; j < CONVOLVE_INLINE_TAPS && j < a->tap_count; j++) p.inline_taps[j] = a->taps[j];
  const int64_t outputs = LONG_THREADS * LONG_OUTPUTS((int64_t)prim_element_bytes(a->signal.type));
  const int64_t across = (p.width + outputs - 1) / outputs;
  if (across > INT32_MAX) return STAGE_OVERFLOW;
  const launch_size grid = launch_2d((uint32_t)across, rows_grid(a->signal.height));
  const launch_shape shape = {grid, launch_1d(LONG_THREADS), 0, stream};
  return a->signal.type == PRIM_F32 ? launch_convolve_f32_long_kernel(shape, p)
                                    : launch_convolve_f64_long_kernel(shape, p);
}

stage_status convolve_launch(const convolve_args *args, cuda_stream stream) {
  return args->tap_count <= PRIM_TREE_TAPS_MAX ? convolve_tree_launch(args, stream)
                                               : convolve_long_launch(args, stream);
}
