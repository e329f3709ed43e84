/*
 * Descriptors on the device.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a warp adds its votes into the 360 bins. */
typedef enum cuda_describe_variant {
  CUDA_DESCRIBE_ATOMIC4 = 0,   /* integer atomics on 4 interleaved copies in shared memory; beside a patch on 1 */
  CUDA_DESCRIBE_ATOMIC2 = 1,   /* on 2 copies */
  CUDA_DESCRIBE_MULTI_KEY = 2, /* no atomics: multi-key reduction of each vote (Li, Jia, Zhang, ICPADS 2017) */
  CUDA_DESCRIBE_VARIANTS
} cuda_describe_variant;

/* features (all within the capacity) -> outputs->descriptors, at the feature's own index: 128 uint8_t or float each, as
   params.descriptor_float says; device memory or mapped host memory. outputs: device memory. scratch.order holds the list's
   order of work: orientation, selection or cuda_work_order_launch made it. As describe_ref with first_feature 0. */
stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream);

/* features -> scratch.order, for a list that neither orientation nor selection made. */
stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
