/* Launches of the Gaussian pyramid: base, level steps with and without DoG, chains. */
#include "cuda/pyramid/pyramid_cuda.h"

#include "cuda/pyramid/tune.h"
#include "cuda/runtime/launch.h"

LAUNCH_MODULE(base_cuda)
LAUNCH_MODULE(pyramid_cuda)
LAUNCH_MODULE(blur_chain)
GRAY_BASE_KERNELS(LAUNCH_KERNEL)
BLUR_PLAIN_KERNELS(LAUNCH_KERNEL)

#define MARCH_ENTRIES(R)                                                                                               \
  LAUNCH_ENTRY(pyramid_cuda, blur_march_kernel_##R)                                                                    \
  LAUNCH_ENTRY(pyramid_cuda, blur_march_group_kernel_##R)                                                              \
  LAUNCH_ENTRY(pyramid_cuda, uber_level_kernel_##R)                                                                    \
  LAUNCH_ENTRY(base_cuda, base_aligned_kernel_##R)                                                                     \
  LAUNCH_ENTRY(base_cuda, base_aligned_group_kernel_##R)                                                               \
  LAUNCH_ENTRY(base_cuda, base_half_pixel_kernel_##R)                                                                  \
  LAUNCH_ENTRY(base_cuda, base_half_pixel_group_kernel_##R)
TUNE_MARCH_RADII(MARCH_ENTRIES)

#define CHAIN_ENTRIES(R1, R2, R3)                                                                                      \
  LAUNCH_ENTRY(blur_chain, blur_chain_kernel_##R1##_##R2##_##R3)                                                       \
  LAUNCH_ENTRY(blur_chain, blur_chain_group_kernel_##R1##_##R2##_##R3)                                                 \
  LAUNCH_ENTRY(blur_chain, blur_chain_small_kernel_##R1##_##R2##_##R3)                                                 \
  LAUNCH_ENTRY(blur_chain, blur_chain_small_group_kernel_##R1##_##R2##_##R3)
TUNE_CHAINS(CHAIN_ENTRIES)

/* ------------------------------------------------------------------ marching blurs */

/* The kernels of a radius. [1]: for groups. */
typedef struct march_row {
  int32_t radius;
  size_t argument_bytes, shared_bytes;
  launch_kernel *blur[2], *uber, *base_aligned[2], *base_half_pixel[2];
} march_row;

#define MARCH_ROW(R)                                                                                                   \
  {R,                                                                                                                  \
   MARCH_ARGUMENT_BYTES(R),                                                                                            \
   MARCH_SHARED_BYTES(R),                                                                                              \
   {&blur_march_kernel_##R, &blur_march_group_kernel_##R},                                                             \
   &uber_level_kernel_##R,                                                                                             \
   {&base_aligned_kernel_##R, &base_aligned_group_kernel_##R},                                                         \
   {&base_half_pixel_kernel_##R, &base_half_pixel_group_kernel_##R}},
static const march_row march_rows[] = {TUNE_MARCH_RADII(MARCH_ROW)};

/* Returns the row of a radius; null: no specialised kernel. */
static const march_row *march_row_of(int32_t radius) {
  for (size_t i = 0; i < sizeof march_rows / sizeof march_rows[0]; i++)
    if (march_rows[i].radius == radius) return &march_rows[i];
  return NULL;
}

/* Returns the steps of a block. It weighs rows that are filtered twice against blocks spread evenly over the
 * multiprocessors. The cost is the number of steps of the busiest multiprocessor. At least MARCH_DEPTH_MIN blocks
 * are counted there, because a block alone on a multiprocessor mostly waits. Ties favour fewer, longer blocks. */
static int32_t march_steps(int32_t radius, int32_t width, int32_t height) {
  const int64_t strips = ceil_div(width, MARCH_COLUMNS), sms = launch_multiprocessors();
  int32_t best = 1;
  int64_t best_cost = INT64_MAX;
  for (int32_t steps = 1; steps <= MARCH_STEPS_MAX; steps++) {
    const int64_t blocks = strips * ceil_div(height + 1, steps * MARCH_ROWS - 2 * radius);
    int64_t cost = (blocks + sms - 1) / sms;
    if (cost < MARCH_DEPTH_MIN) cost = MARCH_DEPTH_MIN;
    cost *= steps;
    if (cost < best_cost || (cost == best_cost && blocks >= sms * MARCH_BLOCKS_PER_SM)) {
      best_cost = cost;
      best = steps;
    }
  }
  while (ceil_div(height + 1, best * MARCH_ROWS - 2 * radius) > GRID_Y_MAX) best *= 2;
  return best;
}

static march_arguments march_arguments_of(const blur_launch_args *args) {
  const int32_t radius = args->filter->radius;
  assert(args->out.width == args->in.width && args->out.height == args->in.height &&
         args->in.stride == args->out.stride);
  assert(args->in.stride % PLANE_STRIDE_FLOATS == 0 && args->in.stride >= (size_t)args->in.width);
  assert(args->in.stride <= INT32_MAX / MARCH_ROWS && args->halved.stride <= INT32_MAX / MARCH_ROWS);
  /* both samples of a pair are in the picture: then so is their half */
  assert(!args->halved.data ||
         (args->halved.width == args->in.width / 2 && args->halved.height == args->in.height / 2));
  assert((uintptr_t)args->in.data % 256 == 0 && (uintptr_t)args->out.data % 256 == 0 &&
         (uintptr_t)args->dog.data % 256 == 0);
  march_arguments p = {.in = args->in.data,
                       .out = args->out.data,
                       .halved = args->halved.data,
                       .dog = args->dog.data,
                       .stride = args->in.stride,
                       .halved_stride = args->halved.stride,
                       .width = args->in.width,
                       .height = args->in.height,
                       .halved_width = args->halved.width,
                       .halved_height = args->halved.height,
                       .border = args->border};
  p.row_bytes = p.stride * sizeof(float);
  p.round_bytes = p.row_bytes * MARCH_BODY_ROWS;
  p.step_bytes = p.row_bytes * MARCH_ROWS;
  p.halved_row_bytes = p.halved_stride * sizeof(float);
  p.halved_step_bytes = p.halved_row_bytes * (MARCH_ROWS / 2);
  p.steps = march_steps(radius, p.width, p.height);
  for (int32_t j = 0; j <= radius; j++) p.taps[j] = args->filter->taps[j];
  return p;
}

static launch_shape march_shape(const march_arguments *p, const march_row *row, int32_t group, cuda_stream stream) {
  const int32_t rows = ceil_div(p->height - p->first_row, p->steps * MARCH_ROWS - 2 * row->radius);
  const launch_size grid =
      launch_3d((uint32_t)ceil_div(p->width, MARCH_COLUMNS), (uint32_t)rows, group > 1 ? (uint32_t)group : 1u);
  return (launch_shape){grid, launch_1d(MARCH_THREADS), row->shared_bytes, stream};
}

/* A filter of any radius in two passes. */
static stage_status blur_plain(const blur_launch_args *args, cuda_stream stream) {
  assert(args->group.count <= 1);
  assert(args->work.data && args->work.data != args->in.data && args->work.data != args->out.data);
  const plain_params rows = {args->in, args->work, {NULL, 0, 0, 0}, args->border, *args->filter};
  plain_params columns = {args->work, args->out, args->halved, args->border, *args->filter};
  columns.in.width = args->in.width;
  columns.in.height = args->in.height;
  const launch_shape shape = {launch_grid_2d(args->in.width, PLAIN_COLUMNS, args->in.height, PLAIN_ROWS),
                              launch_2d(PLAIN_COLUMNS, PLAIN_ROWS), 0, stream};
  const stage_status status = launch_blur_plain_rows_kernel(shape, rows);
  return status == STAGE_OK ? launch_blur_plain_columns_kernel(shape, columns) : status;
}

bool blur_needs_work(int32_t radius) { return !march_row_of(radius); }

stage_status blur_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && !args->dog.data);
  assert(args->filter->radius >= 0 && args->filter->radius <= FILTER_RADIUS_MAX);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  const march_row *row = march_row_of(args->filter->radius);
  if (!row) return blur_plain(args, stream);
  const bool group = args->group.count > 1;
  assert(!group || args->group.stride_bytes % 256 == 0);
  const march_arguments p = march_arguments_of(args);
  const launch_argument arguments[] = {{&p, row->argument_bytes},
                                       {&args->group.stride_bytes, sizeof args->group.stride_bytes}};
  return launch(row->blur[group], march_shape(&p, row, args->group.count, stream), arguments, 2);
}

stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && args->dog.data && args->dog.stride == args->out.stride);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  const march_row *row = march_row_of(args->filter->radius);
  assert(row);
  if (!row) return STAGE_OVERFLOW;
  const march_arguments p = march_arguments_of(args);
  const launch_argument arguments[] = {{&p, row->argument_bytes}};
  return launch(row->uber, march_shape(&p, row, 1, stream), arguments, 1);
}

stage_status dog_launch(const plane_view *lower, const plane_view *upper, const plane_view *dog, cuda_stream stream) {
  assert(lower->stride == dog->stride && upper->stride == dog->stride && dog->stride % PLANE_STRIDE_FLOATS == 0);
  assert(lower->width == dog->width && upper->width == dog->width && upper->height == dog->height);
  if (dog->width <= 0 || dog->height <= 0) return STAGE_OK;
  const launch_shape shape = {launch_grid_2d(dog->width, 4 * PLAIN_COLUMNS, dog->height, PLAIN_ROWS),
                              launch_2d(PLAIN_COLUMNS, PLAIN_ROWS), 0, stream};
  return launch_dog_kernel(shape, *lower, *upper, *dog);
}

/* ------------------------------------------------------------------ base */

stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream) {
  assert(source->type == SOURCE_U8 && source->data && out && out_stride_bytes >= (size_t)source->width);
  const bool colour = source_channels(source->layout) >= 3;
  const bool blue_first = source->layout == SOURCE_BGR || source->layout == SOURCE_BGRA;
  const gray_source s = {source->data,
                         source->stride_bytes,
                         source->width,
                         source->height,
                         (int32_t)source_channels(source->layout),
                         colour && blue_first ? 2 : 0,
                         colour && !blue_first ? 2 : 0};
  const uint32_t columns = ((uint32_t)source->width + GRAY_THREADS - 1u) / GRAY_THREADS;
  const uint32_t rows = source->height < GRAY_ROWS_MAX ? (uint32_t)source->height : (uint32_t)GRAY_ROWS_MAX;
  const launch_size grid = launch_3d(columns, rows, group.count > 1 ? (uint32_t)group.count : 1u);
  const launch_shape shape = {grid, launch_1d(GRAY_THREADS), 0, stream};
  return launch_gray_bytes_kernel(shape, s, out, out_stride_bytes, group.stride_bytes);
}

bool base_is_fused(const base_args *args) {
  const bool on_words = (((uintptr_t)args->source.data | args->source.stride_bytes) & 3) == 0;
  return args->source.type == SOURCE_U8 && args->source.layout == SOURCE_GRAY && args->first_octave < 0 && on_words &&
         !blur_needs_work(args->filter->radius);
}

static march_arguments base_arguments_of(const base_args *args, int32_t bands) {
  const plane_view none = {NULL, 0, 0, 0};
  /* the marching kernel's `in` is made from source bytes: `out` only provides its geometry */
  const blur_launch_args blur = {args->out, args->out, none, none, none, args->border, args->filter, {1, 0}};
  march_arguments p = march_arguments_of(&blur);
  p.first_row = -(args->filter->radius & 1);
  if (bands > 1) p.steps = BASE_BAND_STEPS;
  assert(p.width == 2 * args->source.width && p.height == 2 * args->source.height);
  return p;
}

/* The rows of blocks [first, end) of one band, and the number of rows of all bands. */
typedef struct band_blocks {
  int32_t first, end, all;
} band_blocks;

static band_blocks blocks_of_band(const march_arguments *p, int32_t radius, int32_t band, int32_t bands) {
  band_blocks b;
  b.all = ceil_div(p->height - p->first_row, p->steps * MARCH_ROWS - 2 * radius);
  b.first = (int32_t)((int64_t)b.all * band / bands);
  b.end = (int32_t)((int64_t)b.all * (band + 1) / bands);
  return b;
}

int32_t base_band_rows(const base_args *args, int32_t band, int32_t bands) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  const int32_t radius = args->filter->radius;
  const march_arguments p = base_arguments_of(args, bands);
  const band_blocks blocks = blocks_of_band(&p, radius, band, bands);
  /* the rows of the last block's filter, and one step of prefetch; two doubled rows come from one */
  const int64_t doubled = p.first_row + (int64_t)blocks.end * (p.steps * MARCH_ROWS - 2 * radius) + radius + MARCH_ROWS;
  const int64_t rows = doubled / 2 + 2;
  return blocks.end == blocks.all || rows > args->source.height ? args->source.height : (int32_t)rows;
}

static stage_status base_fused(const base_args *args, int32_t band, int32_t bands, picture_group group,
                               cuda_stream stream) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  const march_row *row = march_row_of(args->filter->radius);
  if (!row) return STAGE_DEVICE;
  march_arguments p = base_arguments_of(args, bands);
  const band_blocks blocks = blocks_of_band(&p, row->radius, band, bands);
  if (blocks.first == blocks.end) return STAGE_OK;
  launch_shape shape = march_shape(&p, row, group.count, stream);
  shape.grid.y = (uint32_t)(blocks.end - blocks.first);
  p.first_row += blocks.first * (p.steps * MARCH_ROWS - 2 * row->radius);
  const byte_picture source = {args->source.data, args->source.stride_bytes, args->source.width, args->source.height};
  const launch_argument arguments[] = {
      {&p, row->argument_bytes}, {&source, sizeof source}, {&group.stride_bytes, sizeof group.stride_bytes}};
  launch_kernel *const *kernels = args->grid == GRID_ALIGNED ? row->base_aligned : row->base_half_pixel;
  return launch(kernels[group.count > 1], shape, arguments, 3);
}

/* Returns the shape of a kernel with one sample per thread, for each picture of a group. */
static launch_shape plain_shape(const plane_view *out, picture_group group, cuda_stream stream) {
  launch_size grid = launch_grid_2d(out->width, PLAIN_COLUMNS, out->height, PLAIN_ROWS);
  grid.z = group.count > 1 ? (uint32_t)group.count : 1u;
  return (launch_shape){grid, launch_2d(PLAIN_COLUMNS, PLAIN_ROWS), 0, stream};
}

static stage_status base_split(const base_args *args, picture_group group, cuda_stream stream) {
  const bool is_doubled = args->first_octave < 0;
  const plane_view gray = is_doubled ? args->gray : args->doubled, none = {NULL, 0, 0, 0};
  assert(gray.width <= args->source.width && gray.height <= args->source.height);
  stage_status status = launch_gray_kernel(plain_shape(&gray, group, stream), args->source, gray,
                                           is_doubled ? 1 : 1 << args->first_octave, group.stride_bytes);
  if (is_doubled && status == STAGE_OK) {
    const plane_view out = args->doubled;
    assert(out.width == 2 * gray.width && out.height == 2 * gray.height);
    status = launch_double_kernel(plain_shape(&out, group, stream), gray, out, args->grid, group.stride_bytes);
  }
  const blur_launch_args blur = {args->doubled, args->out, args->work, none, none, args->border, args->filter, group};
  return status == STAGE_OK ? blur_launch(&blur, stream) : status;
}

stage_status base_band_launch(const base_args *args, int32_t band, int32_t bands, cuda_stream stream) {
  const picture_group one = {1, 0};
  return base_fused(args, band, bands, one, stream);
}

stage_status base_group_launch(const base_args *args, picture_group group, cuda_stream stream) {
  assert(group.count <= 1 || !blur_needs_work(args->filter->radius));
  if (args->out.width <= 0 || args->out.height <= 0) return STAGE_OK;
  return base_is_fused(args) ? base_fused(args, 0, 1, group, stream) : base_split(args, group, stream);
}

stage_status base_launch(const base_args *args, cuda_stream stream) {
  const picture_group one = {1, 0};
  return base_group_launch(args, one, stream);
}

/* ------------------------------------------------------------------ chains */

/* An available chain. radii: 0 for a missing third step. First index of the others: 1 for small tiles. Second: 1 for
 * groups. */
typedef struct chain_row {
  int32_t radii[3];
  size_t shared_bytes[2];
  launch_kernel *kernels[2][2];
} chain_row;

#define CHAIN_ROW(R1, R2, R3)                                                                                          \
  {{R1, R2, R3},                                                                                                       \
   {CHAIN_SHARED_BYTES(false, R1, R1 + R2 + R3), CHAIN_SHARED_BYTES(true, R1, R1 + R2 + R3)},                          \
   {{&blur_chain_kernel_##R1##_##R2##_##R3, &blur_chain_group_kernel_##R1##_##R2##_##R3},                              \
    {&blur_chain_small_kernel_##R1##_##R2##_##R3, &blur_chain_small_group_kernel_##R1##_##R2##_##R3}}},
static const chain_row chain_rows[] = {TUNE_CHAINS(CHAIN_ROW)};

/* The row for these radii; null: no chain. */
static const chain_row *chain_row_of(const chain_launch_args *args) {
  for (size_t k = 0; k < sizeof chain_rows / sizeof chain_rows[0]; k++) {
    const chain_row *row = &chain_rows[k];
    bool same = args->count == (row->radii[2] ? 3 : 2);
    for (int32_t i = 0; i < args->count && same; i++)
      same = args->filters[args->first_level + i].radius == row->radii[i];
    if (same) return row;
  }
  return NULL;
}

bool chain_fits(const chain_launch_args *args) {
  const int64_t samples = (int64_t)args->octave.width * args->octave.height;
  const int64_t samples_max = args->count == 3 ? CHAIN_THREE_SAMPLES_MAX : CHAIN_TWO_SAMPLES_MAX;
  return samples <= samples_max && chain_row_of(args);
}

static chain_params chain_params_of(const chain_launch_args *args) {
  const octave_view *o = &args->octave;
  assert(args->first_level >= 1 && (uintptr_t)o->levels % 256 == 0 && o->level_floats % PLANE_STRIDE_FLOATS == 0);
  assert(o->stride % PLANE_STRIDE_FLOATS == 0 && o->stride >= (size_t)o->width);
  chain_params p = {.in = o->levels + (size_t)(args->first_level - 1) * o->level_floats,
                    .out = o->levels + (size_t)args->first_level * o->level_floats,
                    .halved = args->halved.data,
                    .stride = o->stride,
                    .level_floats = o->level_floats,
                    .halved_stride = args->halved.stride,
                    .width = o->width,
                    .height = o->height,
                    .halved_width = args->halved.width,
                    .halved_height = args->halved.height,
                    .border = args->border};
  for (int32_t i = 0; i < args->count; i++)
    for (int32_t j = 0; j <= MARCH_RADIUS_MAX; j++) p.taps[i][j] = args->filters[args->first_level + i].taps[j];
  return p;
}

stage_status chain_launch(const chain_launch_args *args, cuda_stream stream) {
  const octave_view *o = &args->octave;
  if (o->width <= 0 || o->height <= 0) return STAGE_OK;
  const bool is_small = (int64_t)o->width * o->height <= CHAIN_SMALL_SAMPLES_MAX, group = args->group.count > 1;
  const int32_t tile = CHAIN_TILE(is_small);
  const chain_row *row = chain_row_of(args);
  assert(row && ceil_div(o->height, tile) <= GRID_Y_MAX);
  if (!row) return STAGE_OVERFLOW;
  const chain_params p = chain_params_of(args);
  const launch_size grid = launch_3d((uint32_t)ceil_div(o->width, tile), (uint32_t)ceil_div(o->height, tile),
                                     group ? (uint32_t)args->group.count : 1u);
  const launch_argument arguments[] = {{&p, sizeof p}, {&args->group.stride_bytes, sizeof args->group.stride_bytes}};
  const launch_shape shape = {grid, launch_1d(CHAIN_THREADS(is_small)), row->shared_bytes[is_small], stream};
  return launch(row->kernels[is_small][group], shape, arguments, 2);
}
