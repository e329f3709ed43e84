/*
 * The tree over the sums of chunks, of a sequence that comes chunk by chunk.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIM_TREE_H
#define HARTSIFT_CPU_PRIMITIVES_PRIM_TREE_H

#include "stages/primitive_ops.h"

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
