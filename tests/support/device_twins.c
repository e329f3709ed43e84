#include "tests/support/device_twins.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#if HARTSIFT_HAVE_CUDA

hs_context *twin_gpu;
cuda_stream twin_stream;
static size_t elements_max = SIZE_MAX;

int twins_set_up(void **state) {
  (void)state;
  const char *most = getenv("HARTSIFT_TEST_ELEMENTS");
  if (most) elements_max = (size_t)strtoull(most, NULL, 10);
  if (device_count(NULL, 0) == 0) return 0;
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  return hs_create(&twin_gpu, &o) == HS_OK && device_stream_create(&twin_stream) == STAGE_OK ? 0 : -1;
}

int twins_tear_down(void **state) {
  (void)state;
  hs_destroy(twin_gpu);
  device_stream_destroy(twin_stream);
  return 0;
}

static size_t span_of(const twin_shape *s, size_t element) {
  return ((s->height - 1) * (s->width + s->gap) + s->width) * element;
}

twin twin_make(hs_element type, const twin_shape *s, array_content content) {
  const size_t element = prim_element_bytes((prim_element)type), before = s->offset * element;
  twin t = {.bytes = before + span_of(s, element)};
  void *device = NULL;
  t.host = malloc(t.bytes);
  assert_non_null(t.host);
  assert_int_equal(device_alloc(&device, t.bytes), STAGE_OK);
  t.device = device;
  array_fill(t.host, (prim_element)type, t.bytes / element, content, s->width * 31 + s->height);
  assert_int_equal(device_copy_to(device, t.host, t.bytes, twin_stream), STAGE_OK);
  assert_int_equal(device_stream_wait(twin_stream), STAGE_OK);
  t.on_host = (hs_array){t.host + before, s->width, s->height, (s->width + s->gap) * element, type};
  t.on_device = t.on_host;
  t.on_device.data = t.device + before;
  return t;
}

void twin_fetch(twin *t) {
  assert_int_equal(device_copy_from(t->host, t->device, t->bytes, twin_stream), STAGE_OK);
  assert_int_equal(device_stream_wait(twin_stream), STAGE_OK);
}

void twin_free(twin *t) {
  free(t->host);
  device_free(t->device);
}

void *twin_pinned(size_t bytes) {
  void *host = NULL, *device = NULL;
  assert_int_equal(device_alloc_pinned(&host, &device, bytes), STAGE_OK);
  memset(host, 0xa5, bytes);
  return host;
}

const twin_shape twin_shapes[TWIN_SHAPES] = {
    {1, 1, 0, 0},     {2, 1, 0, 1},     {7, 3, 2, 3},       {31, 5, 0, 1},     {33, 1, 0, 0},     {1023, 1, 0, 0},
    {1024, 1, 0, 5},  {1025, 1, 0, 1},  {5, 700, 0, 0},     {1, 900, 3, 0},    {40, 40, 24, 2},   {641, 37, 3, 1},
    {2048, 33, 0, 0}, {1000, 17, 1, 0}, {4096, 300, 16, 0}, {1500, 901, 0, 3}, {2100007, 1, 0, 0}};

bool twin_left_out(const twin_shape *s) { return s->width * s->height > elements_max; }

#endif
