/*
 * Compares the GPU's JPEG decoder with libjpeg and with the host's copy of the decoder.
 *
 * Thousands of synthetic files of every kind, pixel by pixel and in every orientation. Damaged and extreme files are
 * refused or decoded as by libjpeg, with the same answers as on the host. Skipped without a GPU.
 */
#include "tests/support/test.h"

#include "cuda/runtime/device.h"
#include "cuda/jpeg/jpeg_cuda.h"
#include "tests/support/jpeg_cases.h"
#include "tests/support/jpeg_on_host.h"

#if HARTSIFT_HAVE_CUDA

enum { MADE = 4000, MUTATED = 4000, ROOM_BYTES = 64 << 20 };

static struct {
  bool is_there;
  cuda_stream stream;
  void *packed, *scratch, *gray, *refused, *mapped;
  uint8_t *pixels;
} gpu;

BEFORE_TESTS() {
  char reason[300];
  if (device_count(reason, sizeof reason) == 0) return;
  gpu.is_there = device_stream_create(&gpu.stream) == STAGE_OK && device_alloc(&gpu.scratch, ROOM_BYTES) == STAGE_OK &&
                 device_alloc(&gpu.gray, ROOM_BYTES) == STAGE_OK && device_alloc(&gpu.refused, 256) == STAGE_OK &&
                 device_alloc_pinned(&gpu.packed, &gpu.mapped, ROOM_BYTES) == STAGE_OK;
  gpu.pixels = malloc(ROOM_BYTES);
  assert_true(gpu.is_there && gpu.pixels);
}

AFTER_TESTS() {
  if (!gpu.is_there) return;
  device_free(gpu.scratch);
  device_free(gpu.gray);
  device_free(gpu.refused);
  device_free_pinned(gpu.packed);
  device_stream_destroy(gpu.stream);
  free(gpu.pixels);
}

/* Decodes the packed file on the GPU. Returns the initial value of `refused`; the pixels go to gpu.pixels, without row
 * padding. */
static uint32_t decode(const jpeg_shape *shape, exif_placement to) {
  const jpeg_decode_args args = {.shape = *shape,
                                 .packed = gpu.packed,
                                 .scratch = gpu.scratch,
                                 .gray = gpu.gray,
                                 .start = to.start,
                                 .step_x = to.step_x,
                                 .step_y = to.step_y,
                                 .refused = gpu.refused};
  const size_t pixels = (size_t)shape->width * (size_t)shape->height;
  uint32_t refused = 0;
  assert_true(jpeg_scratch_bytes(shape) <= ROOM_BYTES && pixels <= ROOM_BYTES);
  assert_int_equal(jpeg_decode_launch(&args, gpu.stream), STAGE_OK);
  assert_int_equal(device_copy_from(gpu.pixels, gpu.gray, pixels, gpu.stream), STAGE_OK);
  assert_int_equal(device_copy_from(&refused, gpu.refused, sizeof refused, gpu.stream), STAGE_OK);
  if (device_stream_wait(gpu.stream) != STAGE_OK) fail_msg("%s", device_error_text());
  return refused;
}

/* Decodes a file on the GPU, on the host and by libjpeg, and compares. Returns whether the decoder accepts the file. */
static bool decode_both(uint32_t number, const uint8_t *bytes, size_t size, int orientation) {
  jpeg_shape shape;
  hs_image expected = {0};
  if (!jpeg_case_pack(bytes, size, gpu.packed, ROOM_BYTES, &shape)) return false;
  const size_t pixels = (size_t)shape.width * (size_t)shape.height;
  SCOPED_MEMORY uint8_t *on_host = malloc(pixels), *turned = malloc(pixels);
  const exif_placement to = exif_place(orientation, shape.width, shape.height);
  jpeg_host_effort effort;
  const jpeg_decode_args args = {
      .shape = shape, .packed = gpu.packed, .gray = on_host, .step_x = 1, .step_y = shape.width};
  const uint32_t host_refused = jpeg_on_host(&args, &effort);
  const uint32_t refused = decode(&shape, to);
  if ((refused == 0) != (host_refused == 0))
    fail_msg("file %u: refused %u, on the host %u", number, refused, host_refused);
  if (refused == 0) {
    assert_int_equal(jpeg_case_load(bytes, size, &expected), HS_OK);
    for (int32_t y = 0; y < shape.height; y++)
      exif_put_row(&to, y, (const uint8_t *)expected.data + (size_t)y * (size_t)shape.width, (size_t)shape.width, 1,
                   turned);
    if (memcmp(turned, gpu.pixels, pixels) != 0) fail_msg("file %u differs from libjpeg's", number);
  }
  hs_image_free(&expected);
  return refused == 0;
}

TEST_WHERE(gpu.is_there, NEEDS_GPU, test_made_files) {
  for (uint32_t i = 0; i < MADE; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, i % 50 == 49 ? 1500 : 200, JPEG_SUM_MAX, &size);
    if (!decode_both(i, bytes, size, (int)(1 + i % 8))) fail_msg("made file %u is refused", i);
    free(bytes);
  }
}

TEST_WHERE(gpu.is_there, NEEDS_GPU, test_changed_files) {
  int equal = 0;
  for (uint32_t i = 0; i < MUTATED; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, i % 40 == 39 ? 1200 : 150, i % 3 ? 3000 : 64000, &size);
    size = jpeg_case_change(bytes, size, i);
    equal += decode_both(i, bytes, size, 1);
    free(bytes);
  }
  print_message("%d of %d changed files were decoded\n", equal, MUTATED);
  assert_true(equal > MUTATED / 50 && equal < MUTATED / 2);
}

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
