/*
 * GPUs that are played by the CPU, for tests where none is: the functions of cuda/runtime/device.h, and the launchers on the
 * CPU's stages. Work is done as it is enqueued, or recorded into a graph and done when that is launched.
 *
 * A test says what the machine has and what goes wrong; everything made is counted. A program of its own takes that from
 * the environment: HARTSIFT_PLAYED="gpus=2,memory=512,others=100", in MiB, see played_read; with log=FILE it leaves there
 * which GPUs got a CUDA context.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_PLAYED_DEVICE_PLAYED_DEVICE_H
#define HARTSIFT_TESTS_SUPPORT_PLAYED_DEVICE_PLAYED_DEVICE_H

#include "cuda/runtime/device.h"

enum { PLAYED_GPUS_MOST = 4 };

typedef struct played_gpu {
  size_t memory_bytes, others_bytes; /* of all, and of other programs */
  size_t used_bytes;                 /* allocated here */
  int32_t error;                     /* a cudaError_t that whoever opens the device gets */
  int32_t mode;                      /* a cudaComputeMode */
  bool lost;                         /* everything on it fails */
  bool entered;                      /* a CUDA context was made there */
  uint64_t launches;
} played_gpu;

/* How its GPUs decode JPEGs: right, wrong by one in a pixel, leaving all to libjpeg, or not at all, since the kernels
   want more shared memory than a block can have. */
typedef enum played_jpeg {
  PLAYED_JPEG_RIGHT,
  PLAYED_JPEG_DIFFERS,
  PLAYED_JPEG_REFUSES,
  PLAYED_JPEG_NO_ROOM
} played_jpeg;

typedef struct played_machine {
  int32_t gpu_count, driver, runtime;
  int32_t error; /* a cudaError_t instead of the count */
  played_gpu gpus[PLAYED_GPUS_MOST];
  uint64_t calls;        /* that can fail */
  uint64_t fail_at;      /* this call fails, counted from 1; 0: none */
  bool lost_at;          /* with its GPU being lost; else for want of memory */
  uint64_t listed;       /* graphs made from lists, or changed to them */
  uint64_t fail_at_list; /* this one fails for want of memory, counted from 1; 0: none */
  int64_t alive;         /* allocations, streams, events and graphs not yet destroyed */
  uint64_t event_waits;
  played_jpeg jpeg;
  uint64_t decoded; /* JPEGs */
  bool pinned;      /* pictures count as lying in pinned memory, not in ordinary memory */
} played_machine;

extern played_machine played;

/* A machine with this many GPUs of 1 GiB, all in order. Nothing may be alive. */
void played_reset(int32_t gpus);

/* Changes the number of things alive; counts a JPEG decoded. */
void played_count(int64_t change);
void played_count_decoded(void);

/* A call that makes a graph of a list, and may fail. */
stage_status played_list_call(void);

/* Enqueues run(args) on the stream: args is copied, bytes of it. For the launchers. */
stage_status played_submit(cuda_stream stream, stage_status (*run)(const void *args), const void *args, size_t bytes);

#endif
