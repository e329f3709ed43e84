/*
 * Decodes a packed JPEG on the host like the GPU's kernels (cuda/jpeg): the same subsequences, states and rounds in
 * sequence, with the same functions of stages/. For tests without a GPU.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_JPEG_ON_HOST_H
#define HARTSIFT_TESTS_SUPPORT_JPEG_ON_HOST_H

#include "cuda/jpeg/jpeg_cuda.h"

/* How many subsequences were decoded until their states agreed. */
typedef struct jpeg_host_effort {
  uint64_t decoded;     /* number of subsequences, all rounds together */
  uint32_t repetitions; /* largest number of repetitions of a tile in the first round */
} jpeg_host_effort;

/* Decodes args->packed into args->gray, all in host memory; scratch and refused are unused. Returns what the kernels
 * write to `refused`: 0, or a reason for which the pixels must not be used. */
uint32_t jpeg_on_host(const jpeg_decode_args *args, jpeg_host_effort *effort);

#endif
