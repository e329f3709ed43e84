/*
 * The public primitives on device memory against those of the CPU, byte for byte: every type, odd sizes, strides, any
 * alignment, streams, pinned memory, wrong arguments; histograms in test_cuda_histogram_api.c. Skipped where there is
 * no device.
 *
 * Arrays end where their memory ends, so that a memory checker detects a read beyond them. HARTSIFT_TEST_ELEMENTS skips
 * larger arrays, for runs under such a checker.
 */

#include "tests/support/test.h"

#include "pipeline/include/hartsift_primitives.h"
#include "tests/support/device_twins.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"

static hs_tiling whole(const twin_shape *s) { return (hs_tiling){s->width, s->height, 1.0}; }

/* ------------------------------------------------------------------ reductions */

static void check_reductions(const twin *t, double *got) {
  double sum, mean, low, high;
  assert_int_equal(hs_reduce_sum(NULL, &t->on_host, &sum), HS_OK);
  assert_int_equal(hs_reduce_mean(NULL, &t->on_host, &mean), HS_OK);
  assert_int_equal(hs_reduce_range(NULL, &t->on_host, &low, &high), HS_OK);
  const double expected[6] = {sum, mean, low, high, low, high};
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &t->on_device, NULL, &got[0]), HS_OK);
  assert_int_equal(hs_cuda_reduce_mean(twin_gpu, &t->on_device, NULL, &got[1]), HS_OK);
  assert_int_equal(hs_cuda_reduce_min(twin_gpu, &t->on_device, NULL, &got[2]), HS_OK);
  assert_int_equal(hs_cuda_reduce_max(twin_gpu, &t->on_device, NULL, &got[3]), HS_OK);
  assert_int_equal(hs_cuda_reduce_range(twin_gpu, &t->on_device, NULL, &got[4], &got[5]), HS_OK);
  if (memcmp(got, expected, sizeof expected) != 0)
    fail_msg("type %d, %zu x %zu, stride %zu: sum %a %a, mean %a %a, range %a %a, %a %a", (int)t->on_host.type,
             t->on_host.width, t->on_host.height, t->on_host.stride_bytes, got[0], sum, got[1], mean, got[4], low,
             got[5], high);
}

GPU_TEST(reductions_agree) {
  double *got = twin_pinned(6 * sizeof *got);
  for (size_t s = 0; s < TWIN_SHAPES; s++)
    for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64 && !twin_left_out(&twin_shapes[s]); type++)
      for (int content = 0; content < CONTENT_COUNT; content++) {
        SCOPED_BY(twin_free) twin t = twin_make((hs_element)type, &twin_shapes[s], (array_content)content);
        check_reductions(&t, got);
      }
  device_free_pinned(got);
}

/* Bytes start at every offset within a vector, and lengths are close to its size. */
GPU_TEST(bytes_at_any_address) {
  double *got = twin_pinned(6 * sizeof *got);
  uint64_t *counts = twin_pinned(256 * sizeof *counts), expected[256];
  for (size_t offset = 0; offset < 17; offset++)
    for (size_t length = 1; length < 50; length += offset % 4 + 1) {
      const twin_shape s = {length, 3, offset % 3, offset};
      SCOPED_BY(twin_free) twin t = twin_make(HS_ELEMENT_U8, &s, CONTENT_RANDOM);
      check_reductions(&t, got);
      assert_int_equal(hs_histogram256(NULL, &t.on_host, NULL, expected), HS_OK);
      assert_int_equal(hs_cuda_histogram256(twin_gpu, &t.on_device, NULL, NULL, counts), HS_OK);
      assert_memory_equal(counts, expected, sizeof expected);
    }
  device_free_pinned(got);
  device_free_pinned(counts);
}

/* ------------------------------------------------------------------ tiles */

static void check_tiles(const twin *t, const hs_tiling *tiling) {
  size_t count = 0, counted = 0;
  assert_int_equal(hs_tile_stats(NULL, &t->on_host, tiling, NULL, 0, &count), HS_ERR_CAPACITY);
  hs_tile *expected = malloc(count * sizeof *expected), *got = twin_pinned(count * sizeof *got);
  assert_non_null(expected);
  assert_int_equal(hs_tile_stats(NULL, &t->on_host, tiling, expected, count, &count), HS_OK);
  assert_int_equal(hs_cuda_tile_stats(twin_gpu, &t->on_device, tiling, NULL, got, count, &counted), HS_OK);
  assert_int_equal(counted, count);
  for (size_t i = 0; i < count; i++)
    if (memcmp(&got[i], &expected[i], sizeof *got) != 0)
      fail_msg(
          "type %d, %zu x %zu in tiles of %zu x %zu, threshold %g, tile %zu: %a %a %g %g %llu, not %a %a %g %g %llu",
          (int)t->on_host.type, t->on_host.width, t->on_host.height, tiling->width, tiling->height, tiling->threshold,
          i, got[i].sum, got[i].mean, got[i].min, got[i].max, (unsigned long long)got[i].above, expected[i].sum,
          expected[i].mean, expected[i].min, expected[i].max, (unsigned long long)expected[i].above);
  free(expected);
  device_free_pinned(got);
}

GPU_TEST(tiles_agree) {
  static const hs_tiling tilings[] = {{40, 40, 100.5}, {37, 13, 0.0}, {8, 5, 127.0},     {64, 64, -1.0},
                                      {5, 300, 254.0}, {3, 2, 255.0}, {1000, 1, -1e300}, {130, 7, NAN},
                                      {16, 16, 17.25}, {1, 1, 1e9},   {2000, 100, 30.0}};
  for (size_t s = 0; s < TWIN_SHAPES; s++)
    for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64 && !twin_left_out(&twin_shapes[s]); type++) {
      SCOPED_BY(twin_free)
      twin t = twin_make((hs_element)type, &twin_shapes[s], s % 2 ? CONTENT_SOME_NAN : CONTENT_RANDOM);
      const hs_tiling all = whole(&twin_shapes[s]);
      check_tiles(&t, &all);
      for (size_t i = 0; i < sizeof tilings / sizeof tilings[0]; i++)
        if (tilings[i].width * tilings[i].height > 6 || twin_shapes[s].width * twin_shapes[s].height < 100000)
          check_tiles(&t, &tilings[i]);
    }
}

/* There are so many small tiles that none is split. They have two, three and four chunks, some of them narrower or
 * lower. */
GPU_TEST(many_tiles_of_several_chunks) {
  static const hs_tiling tilings[] = {{40, 40, 100.5}, {33, 35, 0.5}, {47, 53, 7.0}, {60, 60, 31.25}};
  static const twin_shape s = {4003, 3851, 3, 1};
  if (twin_left_out(&s)) skip_because(NEEDS_GPU);
  for (int type = HS_ELEMENT_U16; type <= HS_ELEMENT_F64; type++) {
    SCOPED_BY(twin_free) twin t = twin_make((hs_element)type, &s, CONTENT_SOME_NAN);
    for (size_t i = 0; i < sizeof tilings / sizeof tilings[0]; i++) check_tiles(&t, &tilings[i]);
  }
}

/* Rows of tiles hold whole chunks, or chunks wrap from a row to the next one. */
GPU_TEST(tiles_of_wide_rows) {
  static const hs_tiling tilings[] = {
      {9001, 150, 1.0}, {4100, 33, 100.5}, {4500, 1, 0.0}, {5000, 150, NAN}, {9001, 7, 12.5}};
  for (size_t gap = 0; gap < 6; gap += 5) {
    const twin_shape s = {9001, 150, gap, 1};
    if (twin_left_out(&s)) skip_because(NEEDS_GPU);
    for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64; type++) {
      SCOPED_BY(twin_free) twin t = twin_make((hs_element)type, &s, CONTENT_SOME_NAN);
      for (size_t i = 0; i < sizeof tilings / sizeof tilings[0]; i++) check_tiles(&t, &tilings[i]);
    }
  }
}

/* Columns of u8 tiles start at every offset within a word, in units of one, two and three words. */
GPU_TEST(byte_tiles_at_any_address) {
  for (size_t offset = 0; offset < 9; offset++)
    for (size_t gap = 0; gap < 9; gap += 1 + offset % 2) {
      const twin_shape s = {203, 19, gap, offset};
      SCOPED_BY(twin_free) twin t = twin_make(HS_ELEMENT_U8, &s, CONTENT_RANDOM);
      for (size_t width = 1; width <= 48; width += 1 + width / 8) {
        const hs_tiling tiling = {width, 1 + width % 11, (double)(width * 5)};
        check_tiles(&t, &tiling);
      }
    }
}

/* The array has capacity for fewer tiles than there are: the first ones are stored, and the full number is returned. */
GPU_TEST(tiles_beyond_capacity) {
  const twin_shape s = {200, 90, 0, 0};
  const hs_tiling tiling = {16, 16, 5.0};
  hs_tile *got = twin_pinned(80 * sizeof *got), expected[30], untouched;
  memset(&untouched, 0xa5, sizeof untouched);
  size_t count = 0;
  for (int type = HS_ELEMENT_U8; type <= HS_ELEMENT_F64; type++) {
    SCOPED_BY(twin_free) twin t = twin_make((hs_element)type, &s, CONTENT_RANDOM);
    memset(got, 0xa5, 80 * sizeof *got);
    assert_int_equal(hs_cuda_tile_stats(twin_gpu, &t.on_device, &tiling, NULL, got, 30, &count), HS_ERR_CAPACITY);
    assert_int_equal(count, 78);
    assert_int_equal(hs_tile_stats(NULL, &t.on_host, &tiling, expected, 30, &count), HS_ERR_CAPACITY);
    assert_memory_equal(got, expected, sizeof expected);
    assert_memory_equal(&got[30], &untouched, sizeof untouched);
    assert_int_equal(hs_cuda_tile_stats(twin_gpu, &t.on_device, &tiling, NULL, NULL, 0, &count), HS_ERR_CAPACITY);
    assert_int_equal(count, 78);
  }
  device_free_pinned(got);
}

/* ------------------------------------------------------------------ convolution */

static void check_convolution(const twin *t, const twin_shape *out_shape, const double *taps, size_t tap_count) {
  for (int ends = HS_ENDS_ZERO; ends <= HS_ENDS_REFLECT_101; ends++) {
    SCOPED_BY(twin_free) twin out = twin_make(t->on_host.type, out_shape, CONTENT_CONSTANT);
    void *to = (void *)(uintptr_t)out.on_host.data, *device_to = (void *)(uintptr_t)out.on_device.data;
    const size_t stride = out.on_host.stride_bytes;
    assert_int_equal(
        hs_cuda_convolve1d(twin_gpu, &t->on_device, taps, tap_count, (hs_ends)ends, NULL, device_to, stride), HS_OK);
    assert_int_equal(hs_convolve1d(NULL, &t->on_host, taps, tap_count, (hs_ends)ends, to, stride), HS_OK);
    unsigned char *expected = malloc(out.bytes);
    assert_non_null(expected);
    memcpy(expected, out.host, out.bytes);
    twin_fetch(&out);
    if (memcmp(out.host, expected, out.bytes) != 0)
      fail_msg("type %d, %zu x %zu, %zu taps, ends %d, output at %zu with gaps of %zu", (int)t->on_host.type,
               t->on_host.width, t->on_host.height, tap_count, ends, out_shape->offset, out_shape->gap);
    free(expected);
  }
}

GPU_TEST(convolutions_agree) {
  static const size_t counts[] = {1, 3, 5, 7, 9, 15, 17, 255, 257, 1001};
  static double taps[1001];
  /* bounds the time on the CPU */
  const size_t products_max = extraction_is_fake() ? 5000000 : 80000000;
  for (size_t j = 0; j < 1001; j++) taps[j] = sin((double)j * 1.7) * (j % 5 == 0 ? 1e3 : 0.37);
  for (size_t s = 0; s < TWIN_SHAPES; s++)
    for (int type = HS_ELEMENT_F32; type <= HS_ELEMENT_F64 && !twin_left_out(&twin_shapes[s]); type++)
      for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (twin_shapes[s].width * twin_shapes[s].height * counts[i] > products_max) continue;
        const array_content content = (array_content)((s + i) % 3 == 0 ? CONTENT_SOME_NAN : CONTENT_RANDOM);
        SCOPED_BY(twin_free) twin t = twin_make((hs_element)type, &twin_shapes[s], content);
        const twin_shape apart = {twin_shapes[s].width, twin_shapes[s].height, twin_shapes[s].gap + i % 2, (s + i) % 3};
        check_convolution(&t, &twin_shapes[s], taps, counts[i]);
        check_convolution(&t, &apart, taps, counts[i]);
      }
}

/* ------------------------------------------------------------------ streams and memory */

/* Calls on two streams and on the context's stream, with different scratch sizes, follow each other with one wait at
 * the end. */
GPU_TEST(calls_follow_one_another) {
  enum { ROUNDS = 40 };
  const twin_shape s = {1500, 901, 0, 3};
  if (twin_left_out(&s)) skip_because(NEEDS_GPU);
  cuda_stream streams[2];
  twin floats = twin_make(HS_ELEMENT_F32, &s, CONTENT_RANDOM), bytes = twin_make(HS_ELEMENT_U8, &s, CONTENT_RANDOM);
  double *got = twin_pinned(3 * ROUNDS * sizeof *got), sum, low;
  uint64_t *counts = twin_pinned(ROUNDS * 256 * sizeof *counts), expected[256];
  for (int i = 0; i < 2; i++) assert_int_equal(device_stream_create(&streams[i]), STAGE_OK);
  for (int i = 0; i < ROUNDS; i++) {
    void *on = i % 5 == 4 ? NULL : (void *)streams[i % 2];
    assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &floats.on_device, on, &got[3 * i]), HS_OK);
    assert_int_equal(hs_cuda_histogram256(twin_gpu, &bytes.on_device, NULL, on, counts + (size_t)i * 256), HS_OK);
    assert_int_equal(hs_cuda_reduce_min(twin_gpu, &floats.on_device, (void *)streams[1], &got[3 * i + 1]), HS_OK);
    assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &bytes.on_device, (void *)streams[0], &got[3 * i + 2]), HS_OK);
  }
  for (int i = 0; i < 2; i++) assert_int_equal(device_stream_wait(streams[i]), STAGE_OK);
  assert_int_equal(hs_reduce_sum(NULL, &floats.on_host, &sum), HS_OK);
  assert_int_equal(hs_reduce_min(NULL, &floats.on_host, &low), HS_OK);
  assert_int_equal(hs_histogram256(NULL, &bytes.on_host, NULL, expected), HS_OK);
  double byte_sum;
  assert_int_equal(hs_reduce_sum(NULL, &bytes.on_host, &byte_sum), HS_OK);
  for (int i = 0; i < ROUNDS; i++) {
    assert_memory_equal(&got[3 * i], &sum, sizeof sum);
    assert_memory_equal(&got[3 * i + 1], &low, sizeof low);
    assert_memory_equal(&got[3 * i + 2], &byte_sum, sizeof byte_sum);
    assert_memory_equal(counts + (size_t)i * 256, expected, sizeof expected);
  }
  for (int i = 0; i < 2; i++) device_stream_destroy(streams[i]);
  twin_free(&floats);
  twin_free(&bytes);
  device_free_pinned(got);
  device_free_pinned(counts);
}

/* Input is in pinned host memory, results are in device memory. */
GPU_TEST(memory_of_either_side) {
  enum { N = 3001 };
  float *in = twin_pinned(N * sizeof *in);
  void *d_sum = NULL;
  double sum, got;
  array_fill(in, PRIM_F32, N, CONTENT_RANDOM, 9);
  const hs_array array = {in, N, 1, 0, HS_ELEMENT_F32};
  assert_int_equal(device_alloc(&d_sum, sizeof sum), STAGE_OK);
  assert_int_equal(hs_reduce_sum(NULL, &array, &sum), HS_OK);
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &array, NULL, d_sum), HS_OK);
  assert_int_equal(device_copy_from(&got, d_sum, sizeof got, twin_stream), STAGE_OK);
  assert_int_equal(device_stream_wait(twin_stream), STAGE_OK);
  assert_memory_equal(&got, &sum, sizeof sum);
  device_free(d_sum);
  double *out = NULL;
  assert_int_equal(hs_cuda_alloc_host(twin_gpu, sizeof *out, (void **)&out), HS_OK);
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &array, twin_stream, out), HS_OK);
  assert_int_equal(hs_cuda_finish(twin_gpu), HS_OK);
  assert_memory_equal(out, &sum, sizeof sum);
  hs_cuda_free_host(twin_gpu, out);
  device_free_pinned(in);
}

/* Makes one call of each kind. */
static void call_all(hs_context *c, const twin *floats, const twin *bytes, const twin *out, double *got,
                     hs_tile *tiles) {
  static const double taps[301] = {1.0, 2.0};
  const hs_tiling tiling = {100, 100, 0.0};
  size_t count;
  assert_int_equal(hs_cuda_reduce_sum(c, &floats->on_device, NULL, got), HS_OK);
  assert_int_equal(hs_cuda_reduce_range(c, &bytes->on_device, NULL, got, got + 1), HS_OK);
  assert_int_equal(hs_cuda_tile_stats(c, &floats->on_device, &tiling, NULL, tiles, 1000, &count), HS_OK);
  assert_int_equal(hs_cuda_equalize(c, &bytes->on_device, NULL, bytes->device + 3, 0), HS_OK);
  assert_int_equal(hs_cuda_convolve1d(c, &floats->on_device, taps, 301, HS_ENDS_ZERO, NULL, out->device, 0), HS_OK);
}

GPU_TEST(nothing_allocated_again) {
  const twin_shape s = {1500, 901, 0, 3}, flat = {1500, 901, 0, 0};
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options o;
  scoped_context *c = NULL;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  o.allocator = &allocator;
  assert_int_equal(hs_create(&c, &o), HS_OK);
  twin floats = twin_make(HS_ELEMENT_F32, &s, CONTENT_RANDOM), bytes = twin_make(HS_ELEMENT_U8, &s, CONTENT_RANDOM);
  twin out = twin_make(HS_ELEMENT_F32, &flat, CONTENT_CONSTANT);
  double *got = twin_pinned(2 * sizeof *got);
  hs_tile *tiles = twin_pinned(1000 * sizeof *tiles);
  call_all(c, &floats, &bytes, &out, got, tiles);
  const size_t made = counter.made;
  hs_statistics before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  assert_int_equal(hs_get_statistics(c, &before), HS_OK);
  for (int i = 0; i < 3; i++) call_all(c, &floats, &bytes, &out, got, tiles);
  assert_int_equal(hs_get_statistics(c, &after), HS_OK);
  assert_int_equal(counter.made, made);
  assert_true(before.device_bytes > 0 && after.device_bytes == before.device_bytes);
  twin_free(&floats);
  twin_free(&bytes);
  twin_free(&out);
  device_free_pinned(got);
  device_free_pinned(tiles);
}

/* ------------------------------------------------------------------ wrong arguments */

GPU_TEST(wrong_arguments) {
  const twin_shape s = {64, 8, 0, 0};
  SCOPED_BY(twin_free) twin t = twin_make(HS_ELEMENT_F32, &s, CONTENT_RANDOM);
  double *got = twin_pinned(2 * sizeof *got), taps[4] = {1.0, 1.0, 1.0, 1.0};
  hs_array a = t.on_device;
  a.width = 0;
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &a, NULL, got), HS_ERR_ARGUMENT);
  a = t.on_device;
  a.height = 0;
  assert_int_equal(hs_cuda_reduce_range(twin_gpu, &a, NULL, got, got + 1), HS_ERR_ARGUMENT);
  a = t.on_device;
  a.stride_bytes = 255;
  assert_int_equal(hs_cuda_reduce_min(twin_gpu, &a, NULL, got), HS_ERR_ARGUMENT);
  a = t.on_device;
  a.data = t.device + 2;
  assert_int_equal(hs_cuda_reduce_max(twin_gpu, &a, NULL, got), HS_ERR_ARGUMENT);
  a = t.on_device;
  a.width = (size_t)1 << 41;
  assert_int_equal(hs_cuda_reduce_mean(twin_gpu, &a, NULL, got), HS_ERR_LIMIT);
  assert_int_equal(hs_cuda_reduce_sum(NULL, &t.on_device, NULL, got), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, NULL, NULL, got), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &t.on_device, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_reduce_range(twin_gpu, &t.on_device, NULL, got, NULL), HS_ERR_ARGUMENT);
  const hs_tiling none = {0, 4, 0.0};
  size_t count;
  hs_tile tile;
  assert_int_equal(hs_cuda_tile_stats(twin_gpu, &t.on_device, &none, NULL, &tile, 1, &count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_histogram256(twin_gpu, &t.on_device, NULL, NULL, (uint64_t *)(void *)got), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_equalize(twin_gpu, &t.on_device, NULL, t.device, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_convolve1d(twin_gpu, &t.on_device, taps, 4, HS_ENDS_ZERO, NULL, t.device + 4096, 0),
                   HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_convolve1d(twin_gpu, &t.on_device, taps, 3, HS_ENDS_ZERO, NULL, t.device, 0),
                   HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_convolve1d(twin_gpu, &t.on_device, NULL, 3, HS_ENDS_ZERO, NULL, t.device + 4096, 0),
                   HS_ERR_ARGUMENT);
  assert_int_equal(hs_cuda_reduce_sum(twin_gpu, &t.on_device, NULL, got), HS_OK); /* the context is still usable */
  device_free_pinned(got);
}

TESTS_BETWEEN(twins_set_up, twins_tear_down)

#else

TEST(built_without_cuda) { skip_because(NEEDS_GPU); }

#endif
