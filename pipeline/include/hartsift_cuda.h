/*
 * hartsift_cuda.h - extraction from and to CUDA device memory, on the caller's stream.
 *
 * For contexts that work on a CUDA device (hs_backend_report names it). Needs no CUDA header: a stream is passed as the
 * pointer that cudaStream_t is. All functions leave the calling thread's current device as it was. The rules of
 * hartsift.h for contexts, options, order and bytes hold here too.
 *
 * hartsift works in the device's primary context, as the CUDA runtime, PyTorch and CuPy do. Streams of other contexts
 * and of other devices are refused with HS_ERR_ARGUMENT. After a reset of the device (cudaDeviceReset) all calls fail
 * with HS_ERR_DEVICE or HS_ERR_NO_DEVICE until the process ends; hs_destroy is still allowed. Lists that borrow pinned
 * memory (hs_extract) lose their contents; they may only be freed.
 *
 * A process's first context on a GPU waits some 230 ms for the driver (H100). The environment variable
 * CUDA_DEVICE_MAX_CONNECTIONS=2 saves 50 ms of these, and more at the process's end, without slowing frames that follow
 * one another; images in flight (hs_submit) need more hardware queues.
 */
#ifndef HARTSIFT_CUDA_H
#define HARTSIFT_CUDA_H

#include "hartsift.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Features in the memory of the context's device; all arrays belong to the context and stay valid until its next call
   or its end. */
typedef struct hs_cuda_features {
  size_t count;                       /* number of features */
  const hs_keypoint *keypoints;       /* device memory, count entries */
  const void *descriptors;            /* device memory, count x 128 uint8_t or float; null for HS_DESCRIPTOR_NONE */
  hs_descriptor_type descriptor_type; /* type of descriptors */
  int32_t image_width, image_height;  /* size of the image that the features are from */
  hs_origin origin;                   /* provenance, as in hs_features */
  const hs_frame *frames;             /* device memory, count entries if options.affine is 1, else null */
  int32_t reserved[14 - sizeof(void *) / sizeof(int32_t)]; /* 0 */
} hs_cuda_features;

/* Extracts features from a picture in device memory. image->data: a pointer that the context's device can read, with
   any type, layout and stride of hs_image; mask: null, or an image with such a pointer. stream: a cudaStream_t of that
   device that is not being captured. The picture must be complete in the order of that stream, and may be overwritten
   by work that is added to the stream after the call. stream null: the context's own stream. That does not wait for
   other streams, including the default stream, so the picture must be complete before the call. Blocks until the
   features are in *features (host memory, as hs_extract). Statuses: as hs_extract; HS_ERR_NO_DEVICE if the context
   works on the CPU. */
HS_API hs_status hs_cuda_extract(hs_context *context, const hs_image *image, const hs_image *mask, void *stream,
                                 hs_features *features);

/* As hs_cuda_extract, but leaves the results on the device. Blocks until they are complete there. */
HS_API hs_status hs_cuda_extract_resident(hs_context *context, const hs_image *image, const hs_image *mask,
                                          void *stream, hs_cuda_features *features);

/* Matches two lists of features in device memory; as hs_match, with the pairs in host memory. The arrays may be a
   context's results or the caller's own, on the context's device. Two results of one context: copy the first before the
   second extraction, or use two contexts. stream: as in hs_cuda_extract; the lists must be complete in the order of
   that stream. keypoints may be null without a guide. Blocks. Statuses: as hs_match; HS_ERR_NO_DEVICE when the context
   works on the CPU. */
HS_API hs_status hs_cuda_match(hs_context *context, const hs_cuda_features *first, const hs_cuda_features *second,
                               const hs_match_options *options, void *stream, hs_matches *matches);

/* As hs_find_nearest for lists in device memory; nearest: [first->count], host memory of the caller. */
HS_API hs_status hs_cuda_find_nearest(hs_context *context, const hs_cuda_features *first,
                                      const hs_cuda_features *second, const hs_match_options *options, void *stream,
                                      hs_nearest *nearest);

/* ------------------------------------------------------------------ primitives

   The functions of hartsift_primitives.h for a context on a GPU: same arguments, same bytes. "Device-readable" and
   "device-writable" mean memory that the context's device can access: device, managed or pinned host memory. The data
   of an hs_array is device-readable. taps are host memory, read during the call. *count is host memory, set on return.
   stream: a cudaStream_t of that device that is not being captured. The work is enqueued there and the call returns;
   arrays are read and results written in stream order, so neither may be freed or changed before. Calls on different
   streams with one context share its scratch memory, so the device executes them one after another. stream null: the
   context's own stream, and the call blocks until the results are complete. The first calls with a size may allocate
   scratch memory on the device.
   These functions exist in every build.
   Statuses: as the functions for the host, HS_ERR_NO_DEVICE if the context works on the CPU, HS_ERR_MEMORY,
   HS_ERR_DEVICE (which may also be the failure of earlier work on the stream). */

/* Allocates pinned host memory that the context's device can read and write, for arrays and results of these functions.
   *memory gets the address of at least `bytes` bytes (1 or more), aligned to 256. Allocation is slow, so keep the
   memory. Free it with hs_cuda_free_host (null is allowed), before hs_destroy and while no call uses it. */
HS_API hs_status hs_cuda_alloc_host(hs_context *context, size_t bytes, void **memory);
HS_API void hs_cuda_free_host(hs_context *context, void *memory);

/* Waits until the work of all earlier calls of these functions is complete, on all streams. */
HS_API hs_status hs_cuda_finish(hs_context *context);

/* *sum, *mean, *minimum, *maximum: memory that the device can write. */
HS_API hs_status hs_cuda_reduce_sum(hs_context *context, const hs_array *array, void *stream, double *sum);
HS_API hs_status hs_cuda_reduce_mean(hs_context *context, const hs_array *array, void *stream, double *mean);
HS_API hs_status hs_cuda_reduce_min(hs_context *context, const hs_array *array, void *stream, double *minimum);
HS_API hs_status hs_cuda_reduce_max(hs_context *context, const hs_array *array, void *stream, double *maximum);
HS_API hs_status hs_cuda_reduce_range(hs_context *context, const hs_array *array, void *stream, double *minimum,
                                      double *maximum);

/* tiles[capacity]: memory that the device can write. */
HS_API hs_status hs_cuda_tile_stats(hs_context *context, const hs_array *array, const hs_tiling *tiling, void *stream,
                                    hs_tile *tiles, size_t capacity, size_t *count);

/* counts[256]: memory that the device can write. mask: null, or memory that the device can read. */
HS_API hs_status hs_cuda_histogram256(hs_context *context, const hs_array *array, const hs_array *mask, void *stream,
                                      uint64_t *counts);

/* out: memory that the device can write; either the picture itself, or not overlapping it. */
HS_API hs_status hs_cuda_equalize(hs_context *context, const hs_array *picture, void *stream, uint8_t *out,
                                  size_t out_stride_bytes);

/* out: memory that the device can write, not overlapping the signal. */
HS_API hs_status hs_cuda_convolve1d(hs_context *context, const hs_array *signal, const double *taps, size_t tap_count,
                                    hs_ends ends, void *stream, void *out, size_t out_stride_bytes);

#ifdef __cplusplus
}
#endif
#endif
