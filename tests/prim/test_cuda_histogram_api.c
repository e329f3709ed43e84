/*
 * hs_cuda_histogram256 and hs_cuda_equalize against the CPU's, byte for byte: odd sizes, strides, masks, any alignment,
 * sizes around the switches of kernel. Skipped without a device.
 */
#include "tests/support/test.h"

#include "tests/support/device_twins.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/primitives/primitives_cuda.h"

/* A mask that leaves a third of the elements. */
static twin mask_make(const twin_shape *s) {
  twin m = twin_make(HS_ELEMENT_U8, s, CONTENT_RANDOM);
  for (size_t i = 0; i < m.bytes; i++) m.host[i] &= (unsigned char)(i % 3);
  assert_int_equal(device_copy_to(m.device, m.host, m.bytes, twin_stream), STAGE_OK);
  assert_int_equal(device_stream_wait(twin_stream), STAGE_OK);
  return m;
}

GPU_TEST(histograms_agree) {
  uint64_t *got = twin_pinned(256 * sizeof *got), expected[256];
  for (size_t s = 0; s < TWIN_SHAPES; s++)
    for (int content = CONTENT_RANDOM; content <= CONTENT_CONSTANT && !twin_left_out(&twin_shapes[s]); content++)
      for (size_t mask_offset = 0; mask_offset < 3; mask_offset++) {
        twin_shape masked = twin_shapes[s];
        masked.gap = mask_offset == 0 ? masked.gap : 7;
        masked.offset = mask_offset == 0 ? masked.offset : mask_offset;
        SCOPED_BY(twin_free) twin t = twin_make(HS_ELEMENT_U8, &twin_shapes[s], (array_content)content);
        SCOPED_BY(twin_free) twin m = mask_make(&masked);
        assert_int_equal(hs_histogram256(NULL, &t.on_host, NULL, expected), HS_OK);
        assert_int_equal(hs_cuda_histogram256(twin_gpu, &t.on_device, NULL, NULL, got), HS_OK);
        assert_memory_equal(got, expected, sizeof expected);
        assert_int_equal(hs_histogram256(NULL, &t.on_host, &m.on_host, expected), HS_OK);
        assert_int_equal(hs_cuda_histogram256(twin_gpu, &t.on_device, &m.on_device, NULL, got), HS_OK);
        assert_memory_equal(got, expected, sizeof expected);
      }
  device_free_pinned(got);
}

/* Pictures below and above the switches of kernel, alternating with a mask and without, on two streams and on the
 * context's. */
GPU_TEST(histograms_of_all_sizes) {
  enum { SIZES = 6, ROUNDS = 7 };
  device_info info;
  assert_int_equal(device_query(0, &info, NULL, 0), STAGE_OK);
  const size_t small = (size_t)info.multiprocessors * HISTOGRAM_SMALL_VECTORS * 16;
  const size_t medium = (size_t)info.multiprocessors * HISTOGRAM_MEDIUM_VECTORS * 16;
  const twin_shape sizes[SIZES] = {{640, 480, 5, 3},       {small - 16, 1, 0, 0},
                                   {small, 1, 0, 0},       {1000, small / 1000 + 1, 24, 1},
                                   {medium - 16, 1, 0, 0}, {1000, medium / 1000 + 1, 24, 1}};
  int kept = 0;
  while (kept < SIZES && !twin_left_out(&sizes[kept])) kept++;
  if (kept == 0) skip_because(NEEDS_GPU);
  cuda_stream streams[2];
  twin pictures[2 * SIZES], masks[2 * SIZES];
  uint64_t(*got)[2 * SIZES][2][256] = twin_pinned(ROUNDS * sizeof *got), expected[2][256];
  for (int i = 0; i < 2; i++) assert_int_equal(device_stream_create(&streams[i]), STAGE_OK);
  for (int p = 0; p < 2 * kept; p++) {
    pictures[p] = twin_make(HS_ELEMENT_U8, &sizes[p % kept], p < kept ? CONTENT_RANDOM : CONTENT_CONSTANT);
    masks[p] = mask_make(&sizes[p % kept]);
  }
  for (int r = 0; r < ROUNDS; r++)
    for (int p = 0; p < 2 * kept; p++) {
      void *on = (r + p) % 5 == 4 ? NULL : (void *)streams[(r + p) % 2];
      assert_int_equal(hs_cuda_histogram256(twin_gpu, &pictures[p].on_device, NULL, on, got[r][p][0]), HS_OK);
      assert_int_equal(hs_cuda_histogram256(twin_gpu, &pictures[p].on_device, &masks[p].on_device, on, got[r][p][1]),
                       HS_OK);
    }
  for (int i = 0; i < 2; i++) assert_int_equal(device_stream_wait(streams[i]), STAGE_OK);
  for (int p = 0; p < 2 * kept; p++) {
    assert_int_equal(hs_histogram256(NULL, &pictures[p].on_host, NULL, expected[0]), HS_OK);
    assert_int_equal(hs_histogram256(NULL, &pictures[p].on_host, &masks[p].on_host, expected[1]), HS_OK);
    for (int r = 0; r < ROUNDS; r++) assert_memory_equal(got[r][p], expected, sizeof expected);
    twin_free(&pictures[p]);
    twin_free(&masks[p]);
  }
  for (int i = 0; i < 2; i++) device_stream_destroy(streams[i]);
  device_free_pinned(got);
}

/* out null: in place. */
static void check_equalized(twin *t, twin *out) {
  const hs_array *to = out ? &out->on_host : &t->on_host;
  uint8_t *device_to = (uint8_t *)(uintptr_t)(out ? out->on_device.data : t->on_device.data);
  assert_int_equal(hs_cuda_equalize(twin_gpu, &t->on_device, NULL, device_to, to->stride_bytes), HS_OK);
  assert_int_equal(hs_equalize(NULL, &t->on_host, (uint8_t *)(uintptr_t)to->data, to->stride_bytes), HS_OK);
  twin *written = out ? out : t;
  unsigned char *expected = malloc(written->bytes);
  assert_non_null(expected);
  memcpy(expected, written->host, written->bytes);
  twin_fetch(written);
  assert_memory_equal(written->host, expected, written->bytes); /* the padding is unchanged */
  free(expected);
}

GPU_TEST(equalized_pictures_agree) {
  for (size_t s = 0; s < TWIN_SHAPES; s++)
    for (int content = CONTENT_RANDOM; content <= CONTENT_CONSTANT && !twin_left_out(&twin_shapes[s]); content++)
      for (size_t turn = 0; turn < 3; turn++) {
        twin_shape apart = twin_shapes[s];
        apart.offset += turn;
        apart.gap += turn * 3;
        SCOPED_BY(twin_free) twin t = twin_make(HS_ELEMENT_U8, &twin_shapes[s], (array_content)content);
        if (content == CONTENT_RANDOM) { /* few levels, some of them frequent */
          for (size_t i = 0; i < t.bytes; i++) t.host[i] = (unsigned char)(t.host[i] % 40 * (turn + 1) + 3);
          assert_int_equal(device_copy_to(t.device, t.host, t.bytes, twin_stream), STAGE_OK);
          assert_int_equal(device_stream_wait(twin_stream), STAGE_OK);
        }
        SCOPED_BY(twin_free) twin out = twin_make(HS_ELEMENT_U8, &apart, CONTENT_CONSTANT);
        check_equalized(&t, &out);
        check_equalized(&t, NULL);
      }
}

TESTS_BETWEEN(twins_set_up, twins_tear_down)

#else

TEST(built_without_cuda) { skip_because(NEEDS_GPU); }

#endif
