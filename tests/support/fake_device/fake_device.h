/*
 * Fake GPUs on the CPU, for tests without one: implements the functions of cuda/runtime/device.h, and the launchers by
 * the CPU's stages. Work runs when it is enqueued, or is recorded into a graph and runs when the graph is launched.
 *
 * A test configures the machine and its failures; all allocated objects are counted. A separate program takes the
 * configuration from the environment: HARTSIFT_FAKE_DEVICE="gpus=2,memory=512,others=100", in MiB; see fake_read. With
 * log=FILE the program writes to FILE which GPUs got a CUDA context, and with how many queues.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_DEVICE_H
#define HARTSIFT_TESTS_SUPPORT_FAKE_DEVICE_FAKE_DEVICE_H

#include "cuda/runtime/device.h"

enum { FAKE_GPUS_MAX = 4 };

typedef struct fake_gpu {
  size_t memory_bytes, others_bytes; /* total memory, and the part that other programs use */
  size_t used_bytes;                 /* memory allocated by this program */
  int32_t error;                     /* the CUresult returned on opening the device */
  int32_t mode;                      /* a CUcomputemode */
  bool lost;                         /* whether every call on this GPU fails */
  bool entered;                      /* whether this GPU has a CUDA context */
  uint64_t launches;
} fake_gpu;

/* How GPUs decode JPEGs: with right pixels, with one pixel wrong by one, or refusing all. */
typedef enum fake_jpeg { FAKE_JPEG_RIGHT, FAKE_JPEG_DIFFERS, FAKE_JPEG_REFUSES } fake_jpeg;

typedef struct fake_machine {
  int32_t gpu_count, driver, runtime;
  int32_t error; /* a CUresult returned instead of the number of GPUs */
  fake_gpu gpus[FAKE_GPUS_MAX];
  uint64_t calls;        /* number of calls so far that can fail */
  uint64_t fail_at;      /* number of the call that fails, from 1; 0: none */
  bool lost_at;          /* whether the failure loses the GPU; otherwise memory is lacking */
  bool loses_all;        /* whether the failure loses every GPU */
  uint64_t listed;       /* number of graphs made or updated from lists */
  uint64_t fail_at_list; /* number of the graph that fails for lack of memory, from 1; 0: none */
  int64_t alive;         /* number of allocations, streams, events and graphs not yet destroyed */
  uint64_t event_waits;
  fake_jpeg jpeg;
  uint64_t decoded; /* number of JPEGs decoded */
  bool pinned;      /* whether pictures count as pinned memory, not as ordinary memory */
} fake_machine;

extern fake_machine fake;

/* Configures a machine with this number of working GPUs of 1 GiB each. No object may be alive. */
void fake_reset(int32_t gpus);

/* A test on one such GPU that fails if an object is alive at its end. */
#define FAKE_TEST(NAME) TEST_BETWEEN(NAME, fake_set_up, fake_tear_down)
int fake_set_up(void **state);
int fake_tear_down(void **state);

/* Adds to the number of live objects. The next function counts a decoded JPEG. */
void fake_count(int64_t change);
void fake_count_decoded(void);

/* Begins a call that makes a graph from a list, and that may fail. */
stage_status fake_list_call(void);

/* Enqueues run(args) on the stream, with a copy of the `bytes` bytes of args. Launchers call this. */
stage_status fake_submit(cuda_stream stream, stage_status (*run)(const void *args), const void *args, size_t bytes);

#endif
