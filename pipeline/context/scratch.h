/*
 * Host memory that a context keeps from call to call beside its slab, grown when more is wanted.
 */
#ifndef HS_PIPELINE_SCRATCH_H
#define HS_PIPELINE_SCRATCH_H

#include <stddef.h>

typedef enum scratch_use {
  SCRATCH_PICTURE, /* the equalised picture */
  SCRATCH_GRID,    /* features while they are ranked in the cells of a grid */
  SCRATCH_COUNT
} scratch_use;

typedef struct host_scratch {
  void *memory[SCRATCH_COUNT];
  size_t bytes[SCRATCH_COUNT];
} host_scratch;

#endif
