/* More neighbours than two on a context's CUDA device; see cuda_neighbours.h. */
#include "pipeline/device/cuda_neighbours.h"

#include "cuda/match/match_cuda.h"
#include "pipeline/device/cuda_match_room.h"
#include "pipeline/device/cuda_state.h"

enum {
  TILE_ROWS = 128,        /* rows of a chunk come in whole tiles of the kernel */
  CHUNK_FLOATS = 1 << 26, /* squares of a chunk, and as much for its k nearest: 256 MiB each */
  FOUND_MIN = 1 << 20     /* neighbours that are brought home at once, or as many as one row may have */
};

/* A search on the device: rows in chunks, whose squares are there at once. */
typedef struct device_search {
  device_matching room;
  squares_args squares; /* of the chunk at work */
  uint32_t chunk_rows, found_capacity;
  float bound;
  match_neighbour *nearest;  /* device; of a chunk's rows */
  uint32_t *counts, *starts; /* device; of a chunk's rows */
  match_neighbour *found;    /* device; found_capacity */
  uint32_t *host_counts;     /* pinned: of a chunk; and as many starts behind them */
} device_search;

/* Lays out what a search wants besides the lists; returns its bytes. k 0: lists of any length. */
static size_t lay_out(const match_request *r, uint32_t k, unsigned char *base, device_search *s) {
  const size_t rows = s->chunk_rows, squares = rows * s->squares.pitch * sizeof(float);
  s->found_capacity = r->second.count > FOUND_MIN ? r->second.count : FOUND_MIN;
  s->squares.squares = (float *)(void *)base;
  unsigned char *at = base ? base + squares : NULL;
  s->nearest = (match_neighbour *)(void *)at;
  s->found = s->nearest;
  const size_t results = (k > 0 ? rows * k : s->found_capacity) * sizeof(match_neighbour);
  s->counts = (uint32_t *)(void *)(at ? at + results : NULL);
  s->starts = s->counts ? s->counts + rows : NULL;
  return squares + results + (k > 0 ? 0 : 2 * rows * sizeof(uint32_t));
}

/* Memory of a search: as large a chunk as there is memory for. */
static hs_status make_room(hs_context *c, const match_request *r, const match_placement *place, uint32_t k,
                           device_search *s) {
  const uint64_t nearest = (uint64_t)k * sizeof(match_neighbour) / sizeof(float), pitch = s->squares.pitch;
  const uint64_t widest = pitch > nearest ? pitch : nearest, fit = CHUNK_FLOATS / (widest > 0 ? widest : 1);
  const uint64_t tiles = ((uint64_t)r->first.count + TILE_ROWS - 1) / TILE_ROWS;
  uint64_t chunk = fit / TILE_ROWS < tiles ? fit / TILE_ROWS : tiles;
  hs_status st;
  if (chunk == 0) chunk = 1;
  do {
    s->chunk_rows = (uint32_t)(chunk * TILE_ROWS);
    st = cuda_match_make_room(c, r, place, WANTED_NEAREST, lay_out(r, k, NULL, s), &s->room);
    chunk /= 2;
  } while ((st == HS_ERR_LIMIT || st == HS_ERR_MEMORY) && chunk > 0);
  if (st != HS_OK) return st;
  context_clear_error(c);
  (void)lay_out(r, k, s->room.extra, s);
  s->squares.first = s->room.args.first;
  s->squares.second = s->room.args.second;
  return HS_OK;
}

/* Lists, places and norms; then the squares of a chunk. */
static stage_status bring_lists(const match_request *r, const match_placement *place, const device_search *s,
                                cuda_stream stream) {
  stage_status st = cuda_match_bring(r, place, 0, &s->room, stream);
  if (st == STAGE_OK) st = cuda_match_bring(r, place, 1, &s->room, stream);
  return st == STAGE_OK ? cuda_match_norms_launch(&s->room.args, &s->room.work, stream) : st;
}

static stage_status begin_chunk(const match_request *r, uint32_t first, device_search *s, cuda_stream stream) {
  const uint32_t left = r->first.count - first;
  s->squares.first_row = first;
  s->squares.rows = left < s->chunk_rows ? left : s->chunk_rows;
  return cuda_squares_launch(&s->squares, &s->room.work, stream);
}

static device_search search_of(const match_request *r, float bound) {
  return (device_search){.squares = {.type = r->type,
                                     .guide = r->guide.kind,
                                     .tolerance_squared = r->guide.tolerance_squared,
                                     .pitch = squares_pitch(r->second.count)},
                         .bound = bound};
}

/* ------------------------------------------------------------------ the k nearest */

static stage_status nearest_chunks(const match_request *r, const match_placement *place, uint32_t k, device_search *s,
                                   match_neighbour *nearest, cuda_stream stream) {
  stage_status st = bring_lists(r, place, s, stream);
  for (uint32_t first = 0; st == STAGE_OK && first < r->first.count; first += s->squares.rows) {
    st = begin_chunk(r, first, s, stream);
    if (st == STAGE_OK) st = cuda_neighbours_nearest_launch(&s->squares, s->bound, k, s->nearest, stream);
    if (st == STAGE_OK)
      st = device_copy_from(nearest + (size_t)first * k, s->nearest, (size_t)s->squares.rows * k * sizeof *nearest,
                            stream);
  }
  return st;
}

hs_status cuda_neighbours_nearest(hs_context *c, const match_request *r, float bound, uint32_t k,
                                  match_neighbour *nearest) {
  const match_placement place = {NULL, false};
  device_search s = search_of(r, bound);
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = make_room(c, r, &place, k, &s);
  if (st == HS_OK) {
    stage_status done = nearest_chunks(r, &place, k, &s, nearest, cuda_of(c)->stream);
    /* Copies may still be at work, also after a failure. */
    const stage_status waited = device_stream_wait(cuda_of(c)->stream);
    if (done == STAGE_OK) done = waited;
    if (done != STAGE_OK) st = cuda_failure(c, done, "looking for neighbours");
  }
  device_leave(previous);
  return st;
}

/* ------------------------------------------------------------------ all within */

/* Brings home the lists of rows [first, end) of a chunk, whose counts are there, as many rows at once as fit. */
static hs_status fetch_lists(hs_context *c, device_search *s, match_neighbour *found) {
  const cuda_stream stream = cuda_of(c)->stream;
  uint32_t *starts = s->host_counts + s->squares.rows;
  const squares_args all = s->squares;
  stage_status st = STAGE_OK;
  for (uint32_t row = 0; st == STAGE_OK && row < all.rows;) {
    uint32_t rows = 0, total = 0;
    while (row + rows < all.rows && s->host_counts[row + rows] <= s->found_capacity - total) {
      starts[rows] = total;
      total += s->host_counts[row + rows++];
    }
    squares_args part = all;
    part.squares += row * all.pitch;
    part.rows = rows;
    if (total > 0) {
      st = device_copy_to(s->starts, starts, rows * sizeof *starts, stream);
      if (st == STAGE_OK) st = cuda_neighbours_list_launch(&part, s->bound, s->starts, s->found, stream);
      if (st == STAGE_OK) st = device_copy_from(found, s->found, total * sizeof *found, stream);
      const stage_status waited = device_stream_wait(stream); /* starts are written again */
      if (st == STAGE_OK) st = waited;
    }
    found += total;
    row += rows;
  }
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "fetching neighbours");
}

/* Counts the rows of a chunk and brings them home. */
static hs_status within_chunk(hs_context *c, const match_request *r, uint32_t first, device_search *s,
                              neighbours_take take, void *user) {
  const cuda_stream stream = cuda_of(c)->stream;
  match_neighbour *found = NULL;
  stage_status done = begin_chunk(r, first, s, stream);
  if (done == STAGE_OK) done = cuda_neighbours_count_launch(&s->squares, s->bound, s->counts, stream);
  if (done == STAGE_OK) done = device_copy_from(s->host_counts, s->counts, s->squares.rows * sizeof *s->counts, stream);
  const stage_status waited = device_stream_wait(stream);
  if (done == STAGE_OK) done = waited;
  if (done != STAGE_OK) return cuda_failure(c, done, "counting neighbours");
  const hs_status st = take(c, user, first, s->squares.rows, s->host_counts, &found);
  return st == HS_OK ? fetch_lists(c, s, found) : st;
}

hs_status cuda_neighbours_within(hs_context *c, const match_request *r, float bound, neighbours_take take, void *user) {
  const match_placement place = {NULL, false};
  device_search s = search_of(r, bound);
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = make_room(c, r, &place, 0, &s);
  /* Pinned memory has room for a pair, four words, for each row of the first list; this takes two. */
  if (st == HS_OK) {
    s.host_counts = cuda_of(c)->matching->pinned;
    const stage_status done = bring_lists(r, &place, &s, cuda_of(c)->stream);
    if (done != STAGE_OK) st = cuda_failure(c, done, "bringing descriptors");
  }
  for (uint32_t first = 0; st == HS_OK && first < r->first.count; first += s.squares.rows)
    st = within_chunk(c, r, first, &s, take, user);
  (void)device_stream_wait(cuda_of(c)->stream); /* copies may still be at work after a failure */
  device_leave(previous);
  return st;
}
