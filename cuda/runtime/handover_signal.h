/*
 * How a device tells a waiting host thread that a level lies in mapped memory, while its frame goes on.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_HANDOVER_SIGNAL_H
#define HARTSIFT_CUDA_RUNTIME_HANDOVER_SIGNAL_H

#include "cuda/runtime/stream.h"
#include "stages/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *flag (mapped host memory) to 1 once everything before it on the stream is written, host memory included. */
stage_status handover_launch(uint32_t *flag, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
