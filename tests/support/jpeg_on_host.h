/*
 * A packed JPEG decoded on the host as the GPU's kernels do it (cuda/jpeg): the same subsequences, states and rounds,
 * one after the other, from the same functions of stages/. For tests where there is no GPU.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_JPEG_ON_HOST_H
#define HARTSIFT_TESTS_SUPPORT_JPEG_ON_HOST_H

#include "cuda/jpeg/jpeg_cuda.h"

/* How often subsequences were decoded until their states agreed. */
typedef struct jpeg_host_effort {
  uint64_t decoded;     /* subsequences, all rounds together */
  uint32_t repetitions; /* the most of a tile in the first round */
} jpeg_host_effort;

/* Decodes args->packed into args->gray, all in host memory; scratch and refused are not used. Returns what the kernels set
   *refused to: 0, or the pixels are not to be used. */
uint32_t jpeg_on_host(const jpeg_decode_args *args, jpeg_host_effort *effort);

#endif
