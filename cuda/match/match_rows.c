/* Matching by rows alone (match_rows.cu), and many pairs of images. */
#include <stdlib.h>
#include <string.h>

#include "cuda/match/match_cuda.h"
#include "cuda/match/match_kernels.h"
#include "cuda/runtime/launch.h"
#include "os/os_threads.h"

LAUNCH_MODULE(match_many)
LAUNCH_MODULE(match_rows)
MATCH_MANY_KERNELS(LAUNCH_KERNEL)
MATCH_ROWS_KERNELS(LAUNCH_KERNEL)

enum { ROWS_CAPABILITY = 90 }; /* the only one whose warpgroups multiply in this form */

/* Whether the user has the driver translate PTX in place of the machine code, which alone has these instructions. The
 * driver reads the variables once, too. */
static bool forces_ptx;
static void read_variables(void) {
  const char *forced = getenv("CUDA_FORCE_PTX_JIT"), *older = getenv("CUDA_FORCE_JIT");
  forces_ptx = (forced && strcmp(forced, "1") == 0) || (older && strcmp(older, "1") == 0);
}

bool cuda_match_has_rows(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  driver_function function;
  (void)pthread_once(&once, read_variables);
  return HARTSIFT_WARPGROUP_CODE && !forces_ptx && launch_capability() == ROWS_CAPABILITY &&
         launch_function(&match_rows_kernel, sizeof(rows_shared), &function) == DRIVER_SUCCESS;
}

static size_t padded(uint32_t count) {
  return ((size_t)count + CUDA_MATCH_PADDING - 1u) / CUDA_MATCH_PADDING * CUDA_MATCH_PADDING;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ------------------------------------------------------------------ layouts */

static void lay_out_keys(cuda_match_task *t, void *keys, size_t *bytes) {
  const size_t rows = t->first.count, columns = t->second.count;
  t->first_best = match_array(keys, bytes, rows, sizeof(uint64_t));
  t->first_second = match_array(keys, bytes, rows, sizeof(uint64_t));
  t->second_best = match_array(keys, bytes, columns, sizeof(uint64_t));
  t->second_second = match_array(keys, bytes, columns, sizeof(uint64_t));
}

/* Words of a task's claims and unclaimed bits. */
static size_t claim_words(const cuda_match_task *t, size_t *counters) {
  *counters = ROWS_TILES + 1u + smaller(t->first.count / ROWS_TILE, ROWS_TILES_MAX);
  return *counters + ((size_t)t->second.count + 31u) / 32u;
}

static void lay_out_claims(cuda_match_task *t, void *keys, size_t *bytes) {
  size_t counters;
  const size_t words = claim_words(t, &counters), listed = smaller(t->first.count, t->second.count);
  t->claims = match_array(keys, bytes, words + listed, sizeof(uint32_t));
  if (!t->claims) return;
  t->unclaimed = t->claims + counters;
  t->list = t->claims + words;
}

/* ------------------------------------------------------------------ one pair */

/* Fewer products than these are faster without, because more launches depend on each other. */
#define ROWS_PRODUCTS_MIN (UINT64_C(7000) * 7000)

size_t cuda_match_rows_layout(const match_args *args, void *base, cuda_match_work *work) {
  cuda_match_task *t = &work->rows;
  size_t bytes = 0;
  *t = (cuda_match_task){0};
  if (args->type != MATCH_U8 || args->guide != MATCH_UNGUIDED || !args->limits) return 0;
  if ((uint64_t)args->first.count * args->second.count < ROWS_PRODUCTS_MIN || !cuda_match_has_rows()) return 0;
  t->first.count = args->first.count;
  t->second.count = args->second.count;
  t->first.descriptors = match_array(base, &bytes, padded(t->first.count), MATCH_LENGTH);
  t->first.base = match_array(base, &bytes, padded(t->first.count), sizeof(int32_t));
  t->second.descriptors = match_array(base, &bytes, padded(t->second.count), MATCH_LENGTH);
  t->second.base = match_array(base, &bytes, padded(t->second.count), sizeof(int32_t));
  lay_out_keys(t, base, &bytes);
  lay_out_claims(t, base, &bytes);
  return bytes;
}

/* Returns the rows of a tile: few while there are few blocks, so that they are spread over the device. */
static uint32_t tile_of(uint32_t rows_most, uint32_t tasks) {
  enum { BLOCKS = 1024, TILE_MAX = 256 };
  const uint64_t rows = (uint64_t)rows_most * tasks, wanted = (rows / BLOCKS + ROWS_TILE - 1u) / ROWS_TILE * ROWS_TILE;
  const uint32_t tile = wanted < TILE_MAX ? larger((uint32_t)wanted, ROWS_TILE) : TILE_MAX;
  const uint32_t least = (rows_most / ROWS_TILES_MAX + TILE_MAX) / TILE_MAX * TILE_MAX; /* for ROWS_TILES_MAX tiles */
  return rows_most > tile * ROWS_TILES_MAX ? least : tile;
}

/* Launches all steps after packing. */
static stage_status launch_rows(match_rows_args *p, uint32_t rows_most, cuda_stream stream) {
  const uint32_t blocks = launch_resident_blocks(&match_rows_kernel, ROWS_THREADS, sizeof(rows_shared));
  const launch_shape rows = {launch_1d(blocks), launch_1d(ROWS_THREADS), sizeof(rows_shared), stream};
  const launch_shape claims = {launch_2d(match_blocks(rows_most), p->count), launch_1d(MATCH_THREADS), 0, stream};
  p->tile = tile_of(rows_most, p->count);
  const uint32_t tiles = rows_most / p->tile + 1u;
  const launch_shape pairs = {launch_2d(tiles, p->count), launch_1d(MATCH_THREADS), 0, stream};
  stage_status st = rows_most > 0 ? launch_match_rows_kernel(rows, *p) : STAGE_OK;
  if (st == STAGE_OK && p->mutual && rows_most > 0) {
    st = launch_match_claim_kernel(claims, *p);
    p->back = true;
    if (st == STAGE_OK) st = launch_match_rows_kernel(rows, *p);
  }
  return st == STAGE_OK ? launch_match_confirm_kernel(pairs, *p) : st;
}

stage_status cuda_match_kept_launch(const match_args *args, const cuda_match_work *work, match_pair *pairs,
                                    uint32_t *pair_count, cuda_stream stream) {
  const cuda_match_pairs_args listed = {*args->limits,     args->forward, args->backward, args->first.count,
                                        work->tile_counts, pairs,         pair_count};
  match_rows_args p = {.one = work->rows, .count = 1, .mutual = args->backward != NULL, .limits = *args->limits};
  const cuda_match_task *t = &p.one;
  if (!t->claims) {
    const stage_status st = cuda_match_nearest_launch(args, work, CUDA_MATCH_TENSOR, stream);
    return st == STAGE_OK ? cuda_match_pairs_launch(&listed, stream) : st;
  }
  size_t counters;
  const pack_args pack = {{args->first.descriptors, args->second.descriptors},
                          {t->first, t->second},
                          {(uint32_t)padded(t->first.count), (uint32_t)padded(t->second.count)},
                          {t->first_best, t->second_best},
                          {t->first_second, t->second_second},
                          t->claims,
                          claim_words(t, &counters)};
  const uint64_t features = (uint64_t)pack.padded[0] + pack.padded[1];
  p.one.pairs = pairs;
  p.one.pair_count = pair_count;
  assert((uintptr_t)pairs % 16u == 0 && t->first.count == args->first.count && t->second.count == args->second.count);
  const stage_status st =
      launch_match_pack_kernel(match_shape(match_blocks((features + 1u) * MATCH_LANES), stream), pack);
  return st == STAGE_OK ? launch_rows(&p, t->first.count, stream) : st;
}

/* ------------------------------------------------------------------ many pairs of images */

size_t cuda_match_image_layout(uint32_t count, void *base, cuda_match_image *image) {
  size_t bytes = 0;
  image->count = count;
  image->descriptors = match_array(base, &bytes, padded(count), MATCH_LENGTH);
  image->norms = match_array(base, &bytes, count, sizeof(int32_t));
  image->base = match_array(base, &bytes, padded(count), sizeof(int32_t));
  return bytes;
}

stage_status cuda_match_image_launch(const cuda_match_image *image, cuda_stream stream) {
  const uint32_t features = (uint32_t)padded(image->count);
  const launch_shape shape = match_shape(match_blocks((uint64_t)features * MATCH_LANES), stream);
  assert((uintptr_t)image->descriptors % 16u == 0 && image->count <= CUDA_MATCH_COUNT_MAX);
  if (image->count == 0) return STAGE_OK;
  if (!cuda_match_has_rows()) return launch_match_image_kernel(shape, *image, features);
  const pack_args pack = {.from = {image->descriptors}, .to = {*image}, .padded = {features}};
  return launch_match_pack_kernel(shape, pack);
}

void cuda_match_task_layout(cuda_match_task *t, bool mutual, void *keys, size_t *key_bytes, void *nearest,
                            size_t *nearest_bytes) {
  lay_out_keys(t, keys, key_bytes);
  if (cuda_match_has_rows()) {
    lay_out_claims(t, keys, key_bytes);
    return;
  }
  t->forward = match_array(nearest, nearest_bytes, t->first.count, sizeof(match_nearest));
  t->backward = mutual ? match_array(nearest, nearest_bytes, t->second.count, sizeof(match_nearest)) : NULL;
}

stage_status cuda_match_many_launch(const cuda_match_many_args *args, cuda_stream stream) {
  assert(args->count > 0 && args->count <= (uint32_t)GRID_Y_MAX);
  stage_status st = device_fill(args->keys, 0xff, args->key_bytes, stream); /* MATCH_NO_KEY is all ones */
  if (st == STAGE_OK && cuda_match_has_rows()) {
    match_rows_args p = {.tasks = args->tasks, .count = args->count, .mutual = args->mutual, .limits = args->limits};
    return launch_rows(&p, args->rows_most, stream);
  }
  if (st == STAGE_OK) st = cuda_match_products_many_launch(args, stream);
  const uint64_t items = (uint64_t)args->rows_most + (args->mutual ? args->columns_most : 0);
  const launch_shape shape = {launch_2d(match_blocks(items * WARP_LANES), args->count), launch_1d(MATCH_THREADS), 0,
                              stream};
  if (st == STAGE_OK && items > 0) st = launch_match_settle_many_kernel(shape, args->tasks);
  if (st != STAGE_OK) return st;
  return launch_match_pairs_many_kernel(match_shape(args->count, stream), args->tasks, args->limits);
}
