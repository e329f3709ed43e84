/*
 * Arrays of the primitives in host memory and, with the same bytes, in device memory; with their context and stream.
 * For tests of builds with CUDA.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_DEVICE_TWINS_H
#define HARTSIFT_TESTS_SUPPORT_DEVICE_TWINS_H

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#  include "pipeline/include/hartsift_primitives.h"
#  include "tests/support/array_maker.h"
#  include "tests/support/test.h"

extern hs_context *twin_gpu;    /* null without a device */
extern cuda_stream twin_stream; /* for copies */

#  define GPU_TEST(NAME) TEST_WHERE(twin_gpu, NEEDS_GPU, NAME)

/* Fixture of a group of tests. HARTSIFT_TEST_ELEMENTS skips larger arrays, for runs under a memory checker. */
int twins_set_up(void **state);
int twins_tear_down(void **state);

typedef struct twin_shape {
  size_t width, height, gap; /* elements; between rows */
  size_t offset;             /* of the first element in its memory, elements */
} twin_shape;

/* The memory ends with the array, so that a memory checker detects a read beyond it. */
typedef struct twin {
  unsigned char *host, *device; /* memory of offset + span bytes */
  size_t bytes;
  hs_array on_host, on_device;
} twin;

enum { TWIN_SHAPES = 17 };
extern const twin_shape twin_shapes[TWIN_SHAPES]; /* unusual ones, with row padding and offsets */

bool twin_left_out(const twin_shape *s);
twin twin_make(hs_element type, const twin_shape *s, array_content content);
/* Copies the device's memory to the host. */
void twin_fetch(twin *t);
void twin_free(twin *t);

/* Pinned memory for results, at the same address on both sides, filled with 0xa5. Released by device_free_pinned. */
void *twin_pinned(size_t bytes);

#endif

#endif
