/*
 * The primitives on whole arrays: cut into units that threads take by demand. No result depends on the threads: sums of
 * integers, ranges and counts have no order, sums of floats are put together by the tree of stages/primitives.h.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_THREADS_H
#define HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_THREADS_H

#include "stages/ops.h"
#include "stages/primitives.h"

/* How and where: queue null: on the calling thread. */
typedef struct prim_place {
  stage_queue *queue;
  const prim_ops *ops;
} prim_place;

/* Kinds of work, by how long a byte takes: reading it through, or counting, looking up and filtering. */
typedef enum prim_effort { PRIM_READ, PRIM_WORK } prim_effort;

/* Whether work on so many bytes is worth waking threads, and the place for it: without threads where it is not. */
bool prim_place_shares(size_t bytes, prim_effort effort);
prim_place prim_place_for(prim_place place, size_t bytes, prim_effort effort);

/* Elements of a view that lie one after another in memory. */
typedef struct prim_run {
  const unsigned char *at;
  size_t count;
} prim_run;

/* The run that begins at an element (counted row by row), up to `most` elements. */
prim_run prim_run_at(const prim_view *view, size_t element, size_t most);

/* The same elements in as few rows as they can be seen in. */
prim_view prim_view_flat(prim_view view);

double prim_reduce_sum(prim_place place, const prim_view *view);
prim_range prim_reduce_range(prim_place place, const prim_view *view);

/* Tiles of an array, the first `count` of them; the size of a tile is cut to the array's. */
typedef struct prim_tiles_args {
  prim_view view;
  size_t tile_width, tile_height;
  double threshold;
  prim_tile *tiles;
  size_t count;
} prim_tiles_args;

void prim_tile_stats(prim_place place, const prim_tiles_args *args);

/* mask: data null, or a view of the picture's size. */
void prim_histogram(prim_place place, const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]);

/* out: rows out_stride apart; may be the picture. */
void prim_equalize(prim_place place, const prim_view *picture, uint8_t *out, size_t out_stride);

typedef struct prim_convolve_args {
  prim_view signal; /* every row is a signal */
  const double *taps;
  size_t tap_count;
  prim_ends ends;
  void *out;
  size_t out_stride;
} prim_convolve_args;

void prim_convolve(prim_place place, const prim_convolve_args *args);

/* The tree over the sums of chunks, of a sequence that comes chunk by chunk. */

/* Three floors of PRIM_CHUNK sums cover 2^40 elements; the last takes their total. */
enum { PRIM_FLOORS = 4 };

typedef struct prim_tree {
  size_t count[PRIM_FLOORS];
  double sums[PRIM_FLOORS][PRIM_CHUNK];
} prim_tree;

static inline void prim_tree_begin(prim_tree *tree) { memset(tree->count, 0, sizeof tree->count); }

/* Takes the sum of the next chunk. */
void prim_tree_push(prim_tree *tree, const prim_ops *ops, double sum);
/* The sum of all, one chunk or more. */
double prim_tree_end(prim_tree *tree, const prim_ops *ops);

/* Room for a chunk of any type. */
typedef union prim_room {
  uint16_t u16[PRIM_CHUNK];
  float f32[PRIM_CHUNK];
  double f64[PRIM_CHUNK];
} prim_room;

/* `count` elements (a chunk at most) from one on, one after another: in place, or gathered in room. */
const void *prim_block_at(const prim_view *view, size_t element, size_t count, prim_room *room);

#endif
