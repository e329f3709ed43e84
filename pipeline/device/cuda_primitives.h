/*
 * What a context keeps on its device for the primitives: words that are zero between calls, scratch memory that grows to
 * the largest call, and the order of calls on different streams, which share both.
 */
#ifndef HARTSIFT_DEVICE_CUDA_PRIMITIVES_H
#define HARTSIFT_DEVICE_CUDA_PRIMITIVES_H

#include "cuda/runtime/device.h"
#include "pipeline/base/memory.h"

typedef struct cuda_primitives {
  unsigned char *zeros; /* device; null before the first call */
  unsigned char *slab;  /* device */
  size_t slab_bytes;
  cuda_event done; /* the last call's work */
  double *taps;    /* host, as they are uploaded */
  size_t tap_room;
} cuda_primitives;

/* The device is the current one. */
void cuda_primitives_free(cuda_primitives *primitives, const hs_allocator *allocator);

/* Bytes held on the device. */
size_t cuda_primitives_bytes(const cuda_primitives *primitives);

#endif
