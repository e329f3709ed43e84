/*
 * Histogram of bytes on the device against the CPU, through the launcher.
 *
 * Covers sizes around the switches of kernel, one block with more elements than a 32-bit count holds, and scratch
 * memory that must be zero after each launch. Skipped without a device.
 */
#include "tests/support/test.h"

#include "pipeline/include/hartsift_primitives.h"
#include "tests/support/array_maker.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "cuda/primitives/primitives_cuda.h"

enum { VECTOR = 16, BLOCKS_MAX = 255, BYTES_MAX = BLOCKS_MAX * HISTOGRAM_MEDIUM_VECTORS * VECTOR + 64, LANES = 2 };

/* Memory of one stream. */
typedef struct lane {
  cuda_stream stream;
  void *scratch;
  void *counts; /* host, pinned: [256] */
} lane;

static bool present;
static lane lanes[LANES];
static unsigned char *picture, *mask; /* host */
static void *d_picture, *d_mask;

BEFORE_TESTS() {
  if (device_count(NULL, 0) == 0) return;
  present = true;
  picture = malloc(BYTES_MAX);
  mask = malloc(BYTES_MAX);
  assert_true(picture && mask);
  array_fill(mask, PRIM_U8, BYTES_MAX, CONTENT_RANDOM, 5);
  for (size_t i = 0; i < BYTES_MAX; i++) mask[i] &= (unsigned char)(i % 3);
  bool made = device_alloc(&d_picture, BYTES_MAX) == STAGE_OK && device_alloc(&d_mask, BYTES_MAX) == STAGE_OK;
  for (int i = 0; i < LANES; i++) {
    lane *l = &lanes[i];
    void *same;
    made = made && device_stream_create(&l->stream) == STAGE_OK &&
           device_alloc(&l->scratch, sizeof(histogram_scratch)) == STAGE_OK &&
           device_alloc_pinned(&l->counts, &same, 256 * sizeof(uint64_t)) == STAGE_OK &&
           device_clear(l->scratch, sizeof(histogram_scratch), l->stream) == STAGE_OK;
  }
  made = made && device_copy_to(d_mask, mask, BYTES_MAX, lanes[0].stream) == STAGE_OK;
  for (int i = 0; i < LANES; i++) made = made && device_stream_wait(lanes[i].stream) == STAGE_OK;
  assert_true(made);
}

AFTER_TESTS() {
  for (int i = 0; i < LANES && present; i++) {
    device_stream_destroy(lanes[i].stream);
    device_free(lanes[i].scratch);
    device_free_pinned(lanes[i].counts);
  }
  device_free(d_picture);
  device_free(d_mask);
  free(picture);
  free(mask);
}

static void fill_picture(array_content content) {
  array_fill(picture, PRIM_U8, BYTES_MAX, content, 3);
  assert_int_equal(device_copy_to(d_picture, picture, BYTES_MAX, lanes[0].stream), STAGE_OK);
  assert_int_equal(device_stream_wait(lanes[0].stream), STAGE_OK);
}

typedef struct sample {
  size_t width, height, gap, offset; /* gap: bytes of row padding */
  bool masked;
  int32_t processors;
} sample;

static void start(const lane *l, const sample *s) {
  const size_t stride = s->width + s->gap;
  memset(l->counts, 0xa5, 256 * sizeof(uint64_t));
  const histogram_args args = {.view = {(unsigned char *)d_picture + s->offset, s->width, s->height, stride, PRIM_U8},
                               .mask = s->masked ? d_mask : NULL,
                               .mask_stride_bytes = stride,
                               .counts = l->counts,
                               .scratch = l->scratch,
                               .processors = s->processors};
  assert_int_equal(histogram_launch(&args, l->stream), STAGE_OK);
}

static void finish(const lane *l, const sample *s) {
  const size_t stride = s->width + s->gap;
  const hs_array array = {picture + s->offset, s->width, s->height, stride, HS_ELEMENT_U8};
  const hs_array kept = {mask, s->width, s->height, stride, HS_ELEMENT_U8};
  static const histogram_scratch zero;
  histogram_scratch after;
  uint64_t expected[256];
  assert_int_equal(device_copy_from(&after, l->scratch, sizeof after, l->stream), STAGE_OK);
  assert_int_equal(device_stream_wait(l->stream), STAGE_OK);
  assert_int_equal(hs_histogram256(NULL, &array, s->masked ? &kept : NULL, expected), HS_OK);
  if (memcmp(l->counts, expected, sizeof expected) != 0 || memcmp(&after, &zero, sizeof zero) != 0)
    fail_msg("%zu x %zu, gaps of %zu, at %zu, mask %d, %d blocks: %s", s->width, s->height, s->gap, s->offset,
             (int)s->masked, (int)s->processors,
             memcmp(&after, &zero, sizeof zero) != 0 ? "the scratch memory is not zero" : "wrong counts");
}

static const int32_t processors[] = {1, 2, 7, 132, 255, 256, 1000};
enum { GRIDS = sizeof processors / sizeof processors[0] };

/* Bytes of the largest small picture without padding whose first byte is aligned, and of the largest medium one. */
static size_t most_small(int32_t blocks) {
  return ((size_t)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX) * HISTOGRAM_SMALL_VECTORS - 1) * VECTOR + 1;
}
static size_t most_medium(int32_t blocks) { return ((size_t)blocks * HISTOGRAM_MEDIUM_VECTORS - 1) * VECTOR + 1; }

static void sizes_around(size_t most, int32_t blocks, bool masked) {
  for (size_t offset = 0; offset < 2; offset++) {
    const size_t widths[] = {1, most / 3, most - 1, most, most + 1, most + 15, most + 33};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
      const sample flat = {widths[w], 1, 0, offset * 5, masked, blocks};
      start(&lanes[0], &flat);
      finish(&lanes[0], &flat);
    }
    for (size_t gap = 1; gap < 18; gap += 16) {
      const sample rows = {101, most / 128 + offset * 60, gap, offset, masked, blocks};
      start(&lanes[0], &rows);
      finish(&lanes[0], &rows);
    }
  }
}

TEST_WHERE(present, NEEDS_GPU, sizes_around_the_boundaries) {
  for (int content = CONTENT_RANDOM; content <= CONTENT_CONSTANT; content++) {
    fill_picture((array_content)content);
    for (size_t g = 0; g < GRIDS; g++)
      for (int masked = 0; masked < 2; masked++) {
        sizes_around(most_small(processors[g]), processors[g], masked != 0);
        if (processors[g] <= BLOCKS_MAX) sizes_around(most_medium(processors[g]), processors[g], masked != 0);
      }
  }
}

/* Small, medium and large pictures in sequence on each of two streams. */
TEST_WHERE(present, NEEDS_GPU, streams_with_scratch_of_their_own) {
  fill_picture(CONTENT_RANDOM);
  for (size_t i = 0; i < 40; i++) {
    const size_t sizes[] = {most_small(132) - i, most_small(132) + VECTOR + i, most_medium(132) + VECTOR + i};
    const sample first = {sizes[i % 3], 1, 0, i % 2, i % 5 == 0, 132};
    const sample second = {sizes[(i / 3 + i) % 3], 1, 0, i % 4, i % 7 == 0, 132};
    for (int turn = 0; turn < 3; turn++) {
      start(&lanes[0], &first);
      start(&lanes[1], &second);
      finish(&lanes[0], &first);
      finish(&lanes[1], &second);
    }
  }
}

#else

TEST(built_without_cuda) { skip_because(NEEDS_GPU); }

#endif
