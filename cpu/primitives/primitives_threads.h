/*
 * The primitives on complete arrays, which are divided into units that threads take on demand. No result depends on
 * the threads: integer sums, ranges and counts have no order, and float sums are combined by the tree of
 * stages/primitives.h.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_THREADS_H
#define HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_THREADS_H

#include "stages/ops.h"
#include "stages/primitives.h"

/* Threads and functions that execute primitives. queue null: the calling thread alone. */
typedef struct prim_backend {
  stage_queue *queue;
  const prim_ops *ops;
} prim_backend;

/* Kinds of work, by time per byte. PRIM_READ: each byte is read once. PRIM_WORK: bytes are counted, looked up or
 * filtered. */
typedef enum prim_effort { PRIM_READ, PRIM_WORK } prim_effort;

/* Returns whether work on this number of bytes is worth waking threads. The second function returns the place of such
 * work: without threads if it is not worth it. */
bool prim_backend_shares(size_t bytes, prim_effort effort);
prim_backend prim_backend_for(prim_backend backend, size_t bytes, prim_effort effort);

/* A run of elements that are consecutive in memory. */
typedef struct prim_run {
  const unsigned char *at;
  size_t count;
} prim_run;

/* Returns the run that begins at an element (counted row by row), with at most `most` elements. */
prim_run prim_run_at(const prim_view *view, size_t element, size_t most);

/* Returns a view of the same elements with as few rows as possible. */
prim_view prim_view_flat(prim_view view);

double prim_reduce_sum(prim_backend backend, const prim_view *view);
prim_range prim_reduce_range(prim_backend backend, const prim_view *view);

/* The first `count` tiles of an array. Tiles at its edges are clipped to it. */
typedef struct prim_tiles_args {
  prim_view view;
  size_t tile_width, tile_height;
  double threshold;
  prim_tile *tiles;
  size_t count;
} prim_tiles_args;

void prim_tile_stats(prim_backend backend, const prim_tiles_args *args);

/* Adds the levels of a picture to counts. mask: data null, or a view of the picture's size. */
void prim_histogram(prim_backend backend, const prim_view *picture, const prim_view *mask,
                    uint64_t counts[PRIM_LEVELS]);

/* Equalises a picture. out: rows out_stride apart; may be the picture. */
void prim_equalize(prim_backend backend, const prim_view *picture, uint8_t *out, size_t out_stride);

typedef struct prim_convolve_args {
  prim_view signal; /* signal: every row is a separate signal */
  const double *taps;
  size_t tap_count;
  prim_ends ends;
  void *out;
  size_t out_stride;
} prim_convolve_args;

void prim_convolve(prim_backend backend, const prim_convolve_args *args);

/* The tree that combines the sums of chunks, for a sequence that arrives chunk by chunk. */

/* Three tree levels of PRIM_CHUNK sums each cover 2^40 elements. The last level combines their totals. */
enum { PRIM_FLOORS = 4 };

typedef struct prim_tree {
  size_t count[PRIM_FLOORS];
  double sums[PRIM_FLOORS][PRIM_CHUNK];
} prim_tree;

static inline void prim_tree_begin(prim_tree *tree) { memset(tree->count, 0, sizeof tree->count); }

/* Adds the sum of the next chunk. */
void prim_tree_push(prim_tree *tree, const prim_ops *ops, double sum);
/* Returns the total of the pushed sums, one or more. */
double prim_tree_end(prim_tree *tree, const prim_ops *ops);

/* Memory for one chunk of any element type. */
typedef union prim_block_copy {
  uint16_t u16[PRIM_CHUNK];
  float f32[PRIM_CHUNK];
  double f64[PRIM_CHUNK];
} prim_block_copy;

/* Returns `count` consecutive elements (at most a chunk) from `element` on: a pointer into the view, or, if they
 * are not consecutive in memory, a copy in `copy`. */
const void *prim_block_at(const prim_view *view, size_t element, size_t count, prim_block_copy *copy);

#endif
