/*
 * C interface of the device: discovery, memory, streams, events and graphs. Knows no stage.
 *
 * Every function returns a stage_status: STAGE_OUT_OF_MEMORY for a failed allocation, STAGE_DEVICE for any other error;
 * device_error_text() of the same thread then says which. None prints or ends the process. All work on the calling
 * thread's current device: wrap a call sequence in device_enter / device_leave.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_DEVICE_H
#define HARTSIFT_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/device_reason.h"
#include "stages/base.h"

typedef struct CUstream_st *cuda_stream;

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUevent_st *cuda_event;
typedef struct CUgraphExec_st *cuda_graph;

enum { DEVICE_NAME_BYTES = 256 };

typedef struct device_info {
  char name[DEVICE_NAME_BYTES];
  int32_t major, minor; /* compute capability */
  int32_t multiprocessors;
  int32_t driver, runtime; /* CUDA versions of the driver and of the kernels, 1000 * major + 10 * minor */
  device_code code;
  size_t memory_bytes, free_bytes;
  int32_t l2_bytes, shared_bytes_block_optin, shared_bytes_sm;
} device_info;

/* Fills `driver`, `runtime`, `missing`, `error` and `count` of the answer. */
void device_ask_count(device_answer *answer);
/* Fills `error`, `mode` and `architectures` for an existing device, and the device's facts. After a failure, info has
 * the facts that CUDA gave before it. */
stage_status device_ask(int32_t index, device_info *info, device_answer *answer);

/* The next two functions turn these answers into a sentence (device_probe.c). */

/* Number of devices that the driver lists; 0 with a reason (zero-terminated) if there is no driver, no device, or the
 * driver is older than this build needs. */
int32_t device_count(char *reason, size_t reason_bytes);

/* Number of GPUs by their files in /dev, without the driver; 0 on systems without such files. */
int32_t device_count_files(void);

/* For a program that uses one GPU: sets CUDA_VISIBLE_DEVICES, because CUDA takes some 240 ms to start each GPU that it
 * sees. The GPU keeps its number; the others cannot be used. Nothing changes if the user has set the variable, or after
 * the driver was loaded. */
void device_show_only(int32_t index);

/* Whether a GPU cannot be used because this process was forked from one that had used a GPU. */
bool device_is_lost(void);

/* Facts about one device; fails with a reason if it cannot run this build's code. Makes the device current for the call
 * only. */
stage_status device_query(int32_t index, device_info *info, char *reason, size_t reason_bytes);

/* Makes a device's primary context current until device_leave, which restores the caller's context. *previous: the
 * argument of device_leave; -1 after a failure, for which device_leave does nothing. */
stage_status device_enter(int32_t index, int32_t *previous);
void device_leave(int32_t previous);

/* Returns free and total memory of the current device, in bytes. */
stage_status device_memory(size_t *free_bytes, size_t *memory_bytes);

/* Device memory, 256-byte aligned. 0 bytes: null, and no failure; the same holds for pinned memory. */
stage_status device_alloc(void **pointer, size_t bytes);
void device_free(void *pointer);
/* Pinned host memory that the device can address too, at *device. */
stage_status device_alloc_pinned(void **host, void **device, size_t bytes);
void device_free_pinned(void *host);

/* Whether the host reads this memory and the device cannot, like memory from malloc. Copies from it to the device make
 * the host wait, unlike copies from pinned memory. */
bool device_is_pageable(const void *memory);

stage_status device_stream_create(cuda_stream *stream); /* of the lowest priority */
/* urgency 0: the lowest, 1: between, 2: the highest. Blocks of a more urgent stream's kernels start first; running
 * blocks are not stopped. */
stage_status device_stream_create_urgent(cuda_stream *stream, int32_t urgency);
void device_stream_destroy(cuda_stream stream);
stage_status device_stream_wait(cuda_stream stream);              /* blocks the host */
stage_status device_stream_query(cuda_stream stream, bool *busy); /* does not block; *busy: it still has work */
/* Whether a caller's stream is of another context than the current one, which is a device's primary context. */
bool device_stream_is_foreign(cuda_stream stream);

/* Asynchronous on the stream; host memory should be pinned. bytes 0 is allowed. device_copy_rows_to copies between any
 * two of host and device. */
stage_status device_copy_to(void *device, const void *host, size_t bytes, cuda_stream stream);
stage_status device_copy_from(void *host, const void *device, size_t bytes, cuda_stream stream);
stage_status device_copy_rows_to(void *device, size_t device_pitch, const void *source, size_t source_pitch,
                                 size_t row_bytes, size_t rows, cuda_stream stream);
stage_status device_clear(void *device, size_t bytes, cuda_stream stream);
/* The next two cannot be listed (cuda/runtime/launch_list.h). */
stage_status device_clear_rows(void *device, size_t pitch, size_t row_bytes, size_t rows, cuda_stream stream);
stage_status device_fill(void *device, uint8_t value, size_t bytes, cuda_stream stream);

/* Order between streams, also inside a capture (fork and join). */
stage_status device_event_create(cuda_event *event, bool timed);
/* Creates an event for which device_event_finish lets the thread sleep instead of spin: cheaper, but some 10 us
 * later. */
stage_status device_event_create_sleeping(cuda_event *event);
void device_event_destroy(cuda_event event);
stage_status device_event_record(cuda_event event, cuda_stream stream);
stage_status device_event_wait(cuda_event event, cuda_stream stream);                         /* the stream waits */
stage_status device_event_finish(cuda_event event);                                           /* blocks the host */
stage_status device_event_elapsed_ms(cuda_event start, cuda_event stop, float *milliseconds); /* after both happened */

/* Launches on the stream between begin and end become a graph instead of running. Its kernels keep the urgency of their
 * streams if the driver can (11.7 on). */
stage_status device_capture_begin(cuda_stream stream);
stage_status device_capture_end(cuda_stream stream, cuda_graph *graph);
/* Ends a capture that failed half way. */
void device_capture_abandon(cuda_stream stream);
stage_status device_graph_launch(cuda_graph graph, cuda_stream stream);
void device_graph_destroy(cuda_graph graph);

/* Returns the text of the calling thread's last CUDA error, and clears the error. The text is static. */
const char *device_error_text(void);

/* Sets *flag (mapped host memory) to 1 once all earlier writes on the stream are complete, host memory included. */
stage_status handover_launch(uint32_t *flag, cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
