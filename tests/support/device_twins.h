/*
 * Arrays for tests of the primitives, each in host memory and with equal bytes in device memory; also the context and
 * the stream of these tests. For tests of builds with CUDA.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_DEVICE_TWINS_H
#define HARTSIFT_TESTS_SUPPORT_DEVICE_TWINS_H

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#  include "pipeline/include/hartsift_primitives.h"
#  include "tests/support/array_maker.h"
#  include "tests/support/test.h"

extern hs_context *twin_gpu;    /* context on the GPU; null if there is none */
extern cuda_stream twin_stream; /* stream of the copies */

#  define GPU_TEST(NAME) TEST_WHERE(twin_gpu, NEEDS_GPU, NAME)

/* Set-up of a group of tests. HARTSIFT_TEST_ELEMENTS skips larger arrays, for runs under a memory checker. */
int twins_set_up(void **state);
int twins_tear_down(void **state);

typedef struct twin_shape {
  size_t width, height, gap; /* size and row padding (gap), in elements */
  size_t offset;             /* position of the first element in its memory, in elements */
} twin_shape;

/* The memory ends with the array, so that a memory checker detects a read beyond it. */
typedef struct twin {
  unsigned char *host, *device; /* memory of offset + span bytes */
  size_t bytes;
  hs_array on_host, on_device;
} twin;

enum { TWIN_SHAPES = 17 };
extern const twin_shape twin_shapes[TWIN_SHAPES]; /* unusual shapes, with row padding and offsets */

bool twin_left_out(const twin_shape *s);
twin twin_make(hs_element type, const twin_shape *s, array_content content);
/* Copies the array's device memory to its host memory. */
void twin_fetch(twin *t);
void twin_free(twin *t);

/* Allocates pinned memory for results, at the same address on both sides, filled with 0xa5. device_free_pinned releases
 * it. */
void *twin_pinned(size_t bytes);

#endif

#endif
