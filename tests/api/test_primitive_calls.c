/* The primitives refuse bad arguments with a status and a message, and leave outputs unwritten. */
#include "tests/support/test.h"

typedef struct fixture {
  hs_context *context;
  double data[64], out[64];
  double one, two;
  hs_tile tiles[4];
  uint64_t counts[256];
  size_t count;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  hs_options options;
  assert_non_null(f);
  assert_int_equal(hs_options_init(&options, HS_PROFILE_LOWE), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 2;
  assert_int_equal(hs_create(&f->context, &options), HS_OK);
  for (int i = 0; i < 64; i++) f->data[i] = i;
  f->one = f->two = -5.0;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  hs_destroy(f->context);
  return 0;
}

#define TEST_ON_FIXTURE(NAME) TEST_GIVEN(NAME, fixture, f, setup, teardown)

static hs_array good(const fixture *f, hs_element type) { return (hs_array){f->data, 8, 4, 0, type}; }

/* Every function that takes an array of this type refuses it, with and without a context, and leaves its outputs
 * unchanged. */
static void assert_refused(fixture *f, const hs_array *a, hs_status status, const char *word) {
  const hs_tiling tiling = {2, 2, 0.0};
  const double taps[3] = {1, 1, 1};
  for (int i = 0; i < 2; i++) {
    hs_context *c = i == 0 ? f->context : NULL;
    assert_int_equal(hs_reduce_sum(c, a, &f->one), status);
    if (c) assert_non_null(strstr(hs_last_error(c), word));
    assert_int_equal(hs_reduce_mean(c, a, &f->one), status);
    assert_int_equal(hs_reduce_min(c, a, &f->one), status);
    assert_int_equal(hs_reduce_max(c, a, &f->one), status);
    assert_int_equal(hs_reduce_range(c, a, &f->one, &f->two), status);
    assert_int_equal(hs_tile_stats(c, a, &tiling, f->tiles, 4, &f->count), status);
    assert_int_equal(hs_histogram256(c, a, NULL, f->counts), status);
    assert_int_equal(hs_equalize(c, a, (uint8_t *)f->out, 0), status);
    assert_int_equal(hs_convolve1d(c, a, taps, 3, HS_ENDS_ZERO, f->out, 0), status);
  }
  assert_true(f->one == -5.0 && f->two == -5.0 && f->count == 0 && f->counts[0] == 0 && f->tiles[0].max == 0.0);
  for (int i = 0; i < 64; i++) assert_true(f->out[i] == 0.0);
}

TEST_ON_FIXTURE(test_arrays) {
  hs_array a = good(f, HS_ELEMENT_F64);
  assert_refused(f, NULL, HS_ERR_ARGUMENT, "null");
  a.data = NULL;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "null");
  a = good(f, (hs_element)4);
  assert_refused(f, &a, HS_ERR_ARGUMENT, "type is 4");
  a = good(f, HS_ELEMENT_F64);
  a.width = 0;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "0 x 4");
  a = good(f, HS_ELEMENT_F64);
  a.height = 0;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "8 x 0");
  a = good(f, HS_ELEMENT_F32);
  a.stride_bytes = 31;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "stride_bytes is 31");
  a.stride_bytes = 34;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "multiple of 4");
  a = good(f, HS_ELEMENT_F32);
  a.data = (const char *)a.data + 2;
  assert_refused(f, &a, HS_ERR_ARGUMENT, "aligned");
  a = good(f, HS_ELEMENT_U8);
  a.width = SIZE_MAX;
  assert_refused(f, &a, HS_ERR_LIMIT, "2^40");
  a.width = (size_t)1 << 21;
  a.height = ((size_t)1 << 19) + 1;
  assert_refused(f, &a, HS_ERR_LIMIT, "2^40");
  a = good(f, HS_ELEMENT_U8);
  a.stride_bytes = SIZE_MAX / 2;
  assert_refused(f, &a, HS_ERR_LIMIT, "address space");
}

TEST_ON_FIXTURE(test_null_outputs) {
  const hs_array a = good(f, HS_ELEMENT_F64), bytes = good(f, HS_ELEMENT_U8);
  const hs_tiling tiling = {2, 2, 0.0};
  const double taps[3] = {1, 1, 1};
  assert_int_equal(hs_reduce_sum(f->context, &a, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_reduce_mean(f->context, &a, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_reduce_min(f->context, &a, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_reduce_max(f->context, &a, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_reduce_range(f->context, &a, &f->one, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_reduce_range(f->context, &a, NULL, &f->one), HS_ERR_ARGUMENT);
  assert_int_equal(hs_tile_stats(f->context, &a, &tiling, f->tiles, 4, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_tile_stats(f->context, &a, &tiling, NULL, 4, &f->count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_tile_stats(f->context, &a, NULL, f->tiles, 4, &f->count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_histogram256(f->context, &bytes, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_equalize(f->context, &bytes, NULL, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, NULL, 3, HS_ENDS_ZERO, f->out, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, NULL, 0), HS_ERR_ARGUMENT);
  assert_true(f->one == -5.0);
}

TEST_ON_FIXTURE(test_tilings) {
  const hs_array a = good(f, HS_ELEMENT_F64);
  const hs_tiling none = {0, 2, 0.0}, flat = {2, 0, 0.0}, huge = {SIZE_MAX, SIZE_MAX, 3.0};
  assert_int_equal(hs_tile_stats(f->context, &a, &none, f->tiles, 4, &f->count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_tile_stats(f->context, &a, &flat, f->tiles, 4, &f->count), HS_ERR_ARGUMENT);
  assert_int_equal(hs_tile_stats(f->context, &a, &huge, f->tiles, 4, &f->count), HS_OK);
  assert_int_equal(f->count, 1);
  assert_true(f->tiles[0].sum == 31.0 * 16.0 && f->tiles[0].above == 28);
}

TEST_ON_FIXTURE(test_bytes_only) {
  const hs_array words = good(f, HS_ELEMENT_U16), bytes = good(f, HS_ELEMENT_U8);
  hs_array mask = bytes;
  assert_int_equal(hs_histogram256(f->context, &words, NULL, f->counts), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(f->context), "HS_ELEMENT_U8"));
  assert_int_equal(hs_equalize(f->context, &words, (uint8_t *)f->out, 0), HS_ERR_ARGUMENT);
  mask.width = 7;
  assert_int_equal(hs_histogram256(f->context, &bytes, &mask, f->counts), HS_ERR_ARGUMENT);
  assert_int_equal(hs_histogram256(f->context, &bytes, &words, f->counts), HS_ERR_ARGUMENT);
  assert_int_equal(f->counts[0], 0);
}

TEST_ON_FIXTURE(test_filters) {
  const double taps[4] = {1, 2, 3, 4};
  const hs_array a = good(f, HS_ELEMENT_F64), bytes = good(f, HS_ELEMENT_U8);
  assert_int_equal(hs_convolve1d(f->context, &bytes, taps, 3, HS_ENDS_ZERO, f->out, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 0, HS_ENDS_ZERO, f->out, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 4, HS_ENDS_ZERO, f->out, 0), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(f->context), "odd"));
  assert_int_equal(hs_convolve1d(f->context, &a, taps, ((size_t)1 << 24) + 1, HS_ENDS_ZERO, f->out, 0),
                   HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, (hs_ends)3, f->out, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, f->out, 63), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, f->out, SIZE_MAX - 7), HS_ERR_LIMIT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, (char *)f->out + 4, 0), HS_ERR_ARGUMENT);
}

/* Only equalisation works in place; a partial overlap is always refused. */
TEST_ON_FIXTURE(test_overlaps) {
  const double taps[3] = {1, 2, 3};
  uint8_t *bytes = (uint8_t *)f->data;
  const hs_array a = good(f, HS_ELEMENT_F64), picture = {bytes, 8, 4, 16, HS_ELEMENT_U8};
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, f->data, 0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, f->data + 31, 0), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(f->context), "overlaps"));
  assert_int_equal(hs_convolve1d(f->context, &a, taps, 3, HS_ENDS_ZERO, f->data + 32, 0), HS_OK);
  assert_int_equal(hs_equalize(f->context, &picture, bytes, 8), HS_ERR_ARGUMENT);
  assert_int_equal(hs_equalize(f->context, &picture, bytes + 1, 16), HS_ERR_ARGUMENT);
  assert_int_equal(hs_equalize(f->context, &picture, bytes, 16), HS_OK);
}

/* The context stays usable, and its message is cleared by the next success. */
TEST_ON_FIXTURE(test_use_after_failure) {
  const hs_array a = {f->data, 64, 1, 0, HS_ELEMENT_F64};
  assert_int_equal(hs_reduce_sum(f->context, NULL, &f->one), HS_ERR_ARGUMENT);
  assert_true(hs_last_error(f->context)[0] != '\0');
  assert_int_equal(hs_reduce_max(f->context, &a, &f->one), HS_OK);
  assert_true(hs_last_error(f->context)[0] == '\0');
}

/* The call is refused with the same status as by hs_create and hs_match. */
TEST(test_instruction_set_that_is_not_there) {
  const float values[4] = {1, 2, 3, 4};
  const hs_array array = {.data = values, .width = 4, .height = 1, .type = HS_ELEMENT_F32};
  double sum = 0;
  hs_options o;
  hs_context *c = NULL;
  assert_int_equal(hs_options_init(&o, HS_PROFILE_LOWE), HS_OK);
  assert_int_equal(setenv("HARTSIFT_CPU", "nonsense", 1), 0);
  const hs_status created = hs_create(&c, &o), summed = hs_reduce_sum(NULL, &array, &sum);
  assert_int_equal(unsetenv("HARTSIFT_CPU"), 0);
  assert_int_equal(created, HS_ERR_OPTION);
  assert_int_equal(summed, HS_ERR_OPTION);
  assert_int_equal(hs_reduce_sum(NULL, &array, &sum), HS_OK);
}
