/*
 * Fake GPUs on the CPU, for tests where none is: the functions of cuda/runtime/device.h, and the launchers on the
 * CPU's stages. Work is done as it is enqueued, or recorded into a graph and done when that is launched.
 *
 * A test says what the machine has and what goes wrong; everything made is counted. A program of its own takes that from
 * the environment: HARTSIFT_FAKE_DEVICE="gpus=2,memory=512,others=100", in MiB, see fake_read; with log=FILE it leaves there
 * which GPUs got a CUDA context.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_DEVICE_H
#define HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_DEVICE_H

#include "cuda/runtime/device.h"

enum { FAKE_GPUS_MAX = 4 };

typedef struct fake_gpu {
  size_t memory_bytes, others_bytes; /* of all, and of other programs */
  size_t used_bytes;                 /* allocated here */
  int32_t error;                     /* a cudaError_t that whoever opens the device gets */
  int32_t mode;                      /* a cudaComputeMode */
  bool lost;                         /* everything on it fails */
  bool entered;                      /* a CUDA context was made there */
  uint64_t launches;
} fake_gpu;

/* How its GPUs decode JPEGs: right, wrong by one in a pixel, leaving all to libjpeg, or not at all, since the kernels
   want more shared memory than a block can have. */
typedef enum fake_jpeg { FAKE_JPEG_RIGHT, FAKE_JPEG_DIFFERS, FAKE_JPEG_REFUSES, FAKE_JPEG_NO_CAPACITY } fake_jpeg;

typedef struct fake_machine {
  int32_t gpu_count, driver, runtime;
  int32_t error; /* a cudaError_t instead of the count */
  fake_gpu gpus[FAKE_GPUS_MAX];
  uint64_t calls;        /* that can fail */
  uint64_t fail_at;      /* this call fails, counted from 1; 0: none */
  bool lost_at;          /* with its GPU being lost; else for want of memory */
  uint64_t listed;       /* graphs made from lists, or changed to them */
  uint64_t fail_at_list; /* this one fails for want of memory, counted from 1; 0: none */
  int64_t alive;         /* allocations, streams, events and graphs not yet destroyed */
  uint64_t event_waits;
  fake_jpeg jpeg;
  uint64_t decoded; /* JPEGs */
  bool pinned;      /* pictures count as lying in pinned memory, not in ordinary memory */
} fake_machine;

extern fake_machine fake;

/* A machine with this many GPUs of 1 GiB, all in order. Nothing may be alive. */
void fake_reset(int32_t gpus);

/* Changes the number of things alive; counts a JPEG decoded. */
void fake_count(int64_t change);
void fake_count_decoded(void);

/* A call that makes a graph of a list, and may fail. */
stage_status fake_list_call(void);

/* Enqueues run(args) on the stream: args is copied, bytes of it. For the launchers. */
stage_status fake_submit(cuda_stream stream, stage_status (*run)(const void *args), const void *args, size_t bytes);

#endif
