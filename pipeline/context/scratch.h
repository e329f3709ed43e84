/*
 * Host memory that a context keeps from call to call beside its slab, grown when more is wanted.
 */
#ifndef HARTSIFT_CONTEXT_SCRATCH_H
#define HARTSIFT_CONTEXT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

typedef enum scratch_use {
  SCRATCH_PICTURE, /* the equalised picture */
  SCRATCH_DECODED, /* pictures that were handed in encoded */
  SCRATCH_HEADERS, /* of those that the device decodes */
  SCRATCH_GRID,    /* features while they are ranked in the cells of a grid */
  SCRATCH_PATCHES, /* where patches lie */
  SCRATCH_GRAY,    /* the gray picture that patches are taken from, and what making it needs */
  /* Which given keypoint a listed one is, on a device: of those with their orientation and of the others; and of these
     others' features, whose keypoint they have. */
  SCRATCH_ORIENTED,
  SCRATCH_TO_ORIENT,
  SCRATCH_ORIENTATIONS,
  SCRATCH_COUNT
} scratch_use;

typedef struct host_scratch {
  void *memory[SCRATCH_COUNT];
  size_t bytes[SCRATCH_COUNT];
} host_scratch;

/* Bytes that ranking so many features in the cells of a grid takes. */
size_t scratch_grid_bytes(uint32_t features);

#endif
