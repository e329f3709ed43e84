/*
 * Statistics of tiles, rung by rung: one thread, block or warp per tile, and the library; compared with the CPU.
 *
 *   bench_ladder_tiles [--device-only] [--json FILE] [--once CASE]
 *
 * An 8000 x 1000 picture of bytes and one of 1000 x 8000, alone (in the L2), and repeated to 1 GiB; tiles of 40 x 40
 * and other sizes, and rows at odd addresses. Every rung gives the same bytes as the CPU.
 */
#include "bench/prim/ladder.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/include/hartsift_primitives.h"

/* GRID_ROWS: rows of a two-dimensional block, which has a column for each of a tile's. */
enum { TREE_THREADS = 256, WARPS = 8, GRID_SIDE = 40, GRID_ROWS = 20, GRID_THREADS = GRID_SIDE * GRID_ROWS };

struct tiles_state {
  tile_stats_args args;
  uint32_t columns;
  hs_context *cpu;
  hs_array on_host;
  hs_tiling tiling;
  hs_tile *tiles, *plain; /* host */
  size_t count;
};

/* Arguments of the ladder's own kernels, for bytes. */
struct plain_tiles {
  const uint8_t *data;
  size_t stride;
  uint32_t width, height, tile_width, tile_height, columns, count;
  uint32_t threshold;
  prim_tile *tiles;
};

struct tile_sums {
  uint32_t sum, above, least, most;
};

static __device__ void add_byte(tile_sums *s, uint32_t v, uint32_t threshold) {
  s->sum += v;
  s->above += v > threshold ? 1u : 0u;
  s->least = min(s->least, v);
  s->most = max(s->most, v);
}

static __device__ void write_tile(const plain_tiles &p, uint32_t index, const tile_sums &s, uint32_t elements) {
  prim_tile t = {(double)s.sum, (double)s.sum / (double)elements, (double)s.least, (double)s.most, s.above};
  p.tiles[index] = t;
}

/* Visits bytes first, first + step, ... of a tile, row by row; returns the tile's number of elements. */
static __device__ uint32_t walk_tile(const plain_tiles &p, uint32_t index, uint32_t first, uint32_t step,
                                     tile_sums *s) {
  const uint32_t x = index % p.columns * p.tile_width, y = index / p.columns * p.tile_height;
  const uint32_t w = min(p.tile_width, p.width - x), h = min(p.tile_height, p.height - y);
  for (uint32_t i = first; i < w * h; i += step)
    add_byte(s, p.data[(size_t)(y + i / w) * p.stride + x + i % w], p.threshold);
  return w * h;
}

__global__ void thread_a_tile_kernel(const __grid_constant__ plain_tiles p) {
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  tile_sums s = {0, 0, 255, 0};
  if (index >= p.count) return;
  const uint32_t n = walk_tile(p, index, 0, 1, &s);
  write_tile(p, index, s, n);
}

/* Adds up the sums of THREADS threads in s_tile[0]. FIRST: the smallest power of two that is at least half of them. */
template <uint32_t THREADS, uint32_t FIRST> static __device__ void tile_tree(tile_sums *s_tile, uint32_t t) {
  __syncthreads();
  for (uint32_t half = FIRST; half > 0; half /= 2) {
    if (t < half && t + half < THREADS) {
      const tile_sums other = s_tile[t + half];
      s_tile[t].sum += other.sum;
      s_tile[t].above += other.above;
      s_tile[t].least = min(s_tile[t].least, other.least);
      s_tile[t].most = max(s_tile[t].most, other.most);
    }
    __syncthreads();
  }
}

/* A block adds up one tile with a tree in shared memory. */
__global__ void block_a_tile_kernel(const __grid_constant__ plain_tiles p) {
  __shared__ tile_sums s_tile[TREE_THREADS];
  tile_sums s = {0, 0, 255, 0};
  const uint32_t t = threadIdx.x, n = walk_tile(p, blockIdx.x, t, TREE_THREADS, &s);
  s_tile[t] = s;
  tile_tree<TREE_THREADS, TREE_THREADS / 2>(s_tile, t);
  if (t == 0) write_tile(p, blockIdx.x, s_tile[0], n);
}

/* A block of 40 x 20 threads adds up one tile of 40 x 40: two bytes a thread, whose addresses need no division. Only
 * for pictures of whole tiles. */
__global__ void grid_a_tile_kernel(const __grid_constant__ plain_tiles p) {
  __shared__ tile_sums s_tile[GRID_THREADS];
  const uint32_t t = threadIdx.y * GRID_SIDE + threadIdx.x;
  const uint8_t *at =
      p.data + (size_t)(blockIdx.y * GRID_SIDE + threadIdx.y) * p.stride + blockIdx.x * GRID_SIDE + threadIdx.x;
  tile_sums s = {0, 0, 255, 0};
  add_byte(&s, at[0], p.threshold);
  add_byte(&s, at[GRID_ROWS * p.stride], p.threshold);
  s_tile[t] = s;
  tile_tree<GRID_THREADS, 512>(s_tile, t);
  if (t == 0) write_tile(p, blockIdx.y * gridDim.x + blockIdx.x, s_tile[0], GRID_SIDE * GRID_SIDE);
}

__global__ void warp_a_tile_kernel(const __grid_constant__ plain_tiles p) {
  const uint32_t index = blockIdx.x * WARPS + threadIdx.x / WARP_LANES;
  tile_sums s = {0, 0, 255, 0};
  if (index >= p.count) return;
  const uint32_t n = walk_tile(p, index, threadIdx.x % WARP_LANES, WARP_LANES, &s);
  s.sum = warp_reduce_sum(s.sum);
  s.above = warp_reduce_sum(s.above);
  s.least = (uint32_t)warp_reduce_min((int32_t)s.least);
  s.most = (uint32_t)warp_reduce_max((int32_t)s.most);
  if (threadIdx.x % WARP_LANES == 0) write_tile(p, index, s, n);
}

static plain_tiles plain_of(const tiles_state *s) {
  const prim_view *v = &s->args.view;
  const plain_tiles p = {(const uint8_t *)v->data,
                         v->stride_bytes,
                         (uint32_t)v->width,
                         (uint32_t)v->height,
                         (uint32_t)s->args.tile_width,
                         (uint32_t)s->args.tile_height,
                         s->columns,
                         (uint32_t)s->args.count,
                         (uint32_t)s->args.threshold,
                         s->args.tiles};
  return p;
}

static void launch_thread(void *state, cudaStream_t stream) {
  const plain_tiles p = plain_of((const tiles_state *)state);
  thread_a_tile_kernel<<<(p.count + 127) / 128, 128, 0, stream>>>(p);
}
static void launch_block(void *state, cudaStream_t stream) {
  const plain_tiles p = plain_of((const tiles_state *)state);
  block_a_tile_kernel<<<p.count, TREE_THREADS, 0, stream>>>(p);
}
static void launch_grid(void *state, cudaStream_t stream) {
  const plain_tiles p = plain_of((const tiles_state *)state);
  const dim3 blocks(p.width / GRID_SIDE, p.height / GRID_SIDE), threads(GRID_SIDE, GRID_ROWS);
  grid_a_tile_kernel<<<blocks, threads, 0, stream>>>(p);
}
static void launch_warp(void *state, cudaStream_t stream) {
  const plain_tiles p = plain_of((const tiles_state *)state);
  warp_a_tile_kernel<<<(p.count + WARPS - 1) / WARPS, WARPS * WARP_LANES, 0, stream>>>(p);
}
static void launch_library(void *state, cudaStream_t stream) {
  if (tile_stats_launch(&((const tiles_state *)state)->args, stream) != STAGE_OK) exit(1);
}
static void host_tiles(void *state) {
  tiles_state *s = (tiles_state *)state;
  size_t count;
  (void)hs_tile_stats(s->cpu, &s->on_host, &s->tiling, s->tiles, s->count, &count);
}

/* The loop that a user of C would write. Its results are not used. */
LADDER_HOST_LOOP static void plain_tiles_loop(void *state) {
  const tiles_state *s = (const tiles_state *)state;
  const uint8_t *data = (const uint8_t *)s->on_host.data;
  const size_t stride = s->on_host.stride_bytes ? s->on_host.stride_bytes : s->on_host.width;
  size_t k = 0;
  for (size_t top = 0; top < s->on_host.height; top += s->tiling.height)
    for (size_t left = 0; left < s->on_host.width; left += s->tiling.width, k++) {
      const size_t bottom = top + s->tiling.height < s->on_host.height ? top + s->tiling.height : s->on_host.height;
      const size_t right = left + s->tiling.width < s->on_host.width ? left + s->tiling.width : s->on_host.width;
      uint32_t sum = 0, above = 0, least = 255, most = 0;
      for (size_t y = top; y < bottom; y++)
        for (size_t x = left; x < right; x++) {
          const uint32_t v = data[y * stride + x];
          sum += v;
          above += v > 100u;
          least = v < least ? v : least;
          most = v > most ? v : most;
        }
      hs_tile *t = &s->plain[k];
      t->sum = sum;
      t->mean = (double)sum / (double)((bottom - top) * (right - left));
      t->min = least;
      t->max = most;
      t->above = above;
    }
}

struct tiles_shape {
  const char *name;
  prim_element type;
  uint64_t width, height, gap, tile_width, tile_height;
  bool all; /* whether the ladder's own kernels run too */
};

static void run_shape(ladder *l, const tiles_shape *shape, const void *pattern, size_t pattern_bytes) {
  tiles_state s;
  if (ladder_skips(l, shape->name)) return;
  memset(&s, 0, sizeof s);
  const size_t element = prim_element_bytes(shape->type), stride = (shape->width + shape->gap) * element;
  const size_t bytes = stride * shape->height;
  void *data = ladder_repeat(pattern, pattern_bytes, bytes), *host = malloc(bytes);
  LADDER_CHECK(cudaMemcpy(host, data, bytes, cudaMemcpyDeviceToHost));
  const prim_view view = {data, shape->width, shape->height, stride, shape->type};
  const hs_array array = {host, shape->width, shape->height, stride, (hs_element)shape->type};
  const hs_tiling tiling = {shape->tile_width, shape->tile_height, shape->type == PRIM_U8 ? 100.0 : 0.5};
  s.on_host = array;
  s.tiling = tiling;
  s.columns = (uint32_t)((shape->width + shape->tile_width - 1) / shape->tile_width);
  s.count = s.columns * ((shape->height + shape->tile_height - 1) / shape->tile_height);
  s.tiles = (hs_tile *)malloc(s.count * sizeof *s.tiles);
  s.plain = (hs_tile *)malloc(s.count * sizeof *s.plain);
  s.args.view = view;
  s.args.tile_width = shape->tile_width;
  s.args.tile_height = shape->tile_height;
  s.args.threshold = tiling.threshold;
  s.args.tiles = (prim_tile *)ladder_device(s.count * sizeof(prim_tile));
  s.args.count = s.count;
  s.args.processors = l->processors;
  s.args.scratch = ladder_device(tile_stats_scratch_bytes(&s.args) + 256);
  host_tiles(&s);
  const double moved = (double)(shape->width * shape->height * element) + (double)(s.count * sizeof(prim_tile));
  const ladder_case c = {shape->name, &s, s.args.tiles, s.count * sizeof(prim_tile), s.tiles, NULL, moved, l->read_gbs};
  static const ladder_rung rungs[] = {{"a thread a tile", launch_thread, true},
                                      {"a block a tile, tree in shared memory", launch_block, false},
                                      {"a block of 40 x 20 a tile, no division", launch_grid, false},
                                      {"a warp a tile, shuffle", launch_warp, false},
                                      {"the library", launch_library, false}};
  const bool whole = shape->width % GRID_SIDE == 0 && shape->height % GRID_SIDE == 0;
  for (int i = shape->all ? 0 : 4; i < 5; i++)
    if (i != 2 || whole) ladder_run(l, &c, &rungs[i]);
  if (shape->all) ladder_run_host(l, &c, "CPU, a serial loop", plain_tiles_loop, &s);
  ladder_run_host(l, &c, "CPU, the library, 1 thread", host_tiles, &s);
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  if (shape->all && hs_create(&s.cpu, &o) == HS_OK)
    ladder_run_host(l, &c, "CPU, the library, all threads", host_tiles, &s);
  hs_destroy(s.cpu);
  cudaFree(data);
  cudaFree(s.args.tiles);
  cudaFree(s.args.scratch);
  free(host);
  free(s.tiles);
  free(s.plain);
}

int main(int argc, char **argv) {
  enum { W = 8000, H = 1000 };
  ladder l;
  uint8_t *bytes = (uint8_t *)malloc((size_t)W * H);
  float *floats = (float *)malloc((size_t)W * H * sizeof(float));
  uint32_t seed = 5;
  for (size_t i = 0; i < (size_t)W * H; i++)
    floats[i] = (float)(bytes[i] = (uint8_t)(ladder_random(&seed) >> 9)) / 255.0f;
  ladder_open(&l, "tile statistics", argc, argv);
  const uint64_t high = ((uint64_t)1 << 30) / W;
  const tiles_shape of_bytes[] = {{"u8, 8000 x 1000, 40 x 40 (in L2)", PRIM_U8, W, H, 0, 40, 40, true},
                                  {"u8, 1000 x 8000, 40 x 40 (in L2)", PRIM_U8, H, W, 0, 40, 40, true},
                                  {"u8, 1 GiB, 40 x 40", PRIM_U8, W, high, 0, 40, 40, true},
                                  {"u8, 1 GiB, 37 x 41", PRIM_U8, W, high, 0, 37, 41, false},
                                  {"u8, 1 GiB, 33 x 17, rows of 8001", PRIM_U8, W, high, 1, 33, 17, false},
                                  {"u8, 1 GiB, 40 x 40, rows of 8001", PRIM_U8, W, high, 1, 40, 40, false},
                                  {"u8, 1 GiB, 16 x 16", PRIM_U8, W, high, 0, 16, 16, false},
                                  {"u8, 1 GiB, 200 x 200", PRIM_U8, W, high, 0, 200, 200, false},
                                  {"u8, 1 GiB, one tile", PRIM_U8, W, high, 0, W, high, false}};
  const tiles_shape of_floats[] = {
      {"f32, 1 GiB, 40 x 40", PRIM_F32, W, high / 4, 0, 40, 40, false},
      {"f32, 1 GiB, 37 x 41", PRIM_F32, W, high / 4, 0, 37, 41, false},
      {"f32, 1 GiB, 33 x 17, rows of 8001", PRIM_F32, W, high / 4, 1, 33, 17, false},
      {"f32, 1 GiB, 16 x 16", PRIM_F32, W, high / 4, 0, 16, 16, false},
      {"f32, 1 GiB, 200 x 200", PRIM_F32, W, high / 4, 0, 200, 200, false},
      {"f32, 1 GiB, 1000 x 1000", PRIM_F32, W, high / 4, 0, 1000, 1000, false},
      {"f32, 1 GiB, one tile", PRIM_F32, W, high / 4, 0, W, high / 4, false},
      {"f32, 1 GiB, one tile, rows of 8001", PRIM_F32, W, high / 4, 1, W, high / 4, false}};
  for (size_t i = 0; i < sizeof of_bytes / sizeof of_bytes[0]; i++) run_shape(&l, &of_bytes[i], bytes, (size_t)W * H);
  for (size_t i = 0; i < sizeof of_floats / sizeof of_floats[0]; i++)
    run_shape(&l, &of_floats[i], floats, (size_t)W * H * sizeof(float));
  free(bytes);
  free(floats);
  return ladder_close(&l);
}
