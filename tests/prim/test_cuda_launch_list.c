/*
 * Launch lists and graphs made from them: listing runs nothing, a graph can be updated to other addresses and sizes,
 * another shape is detected, and a list that is too long fails. Skipped without a device.
 */
#include "tests/support/test.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/launch_list.h"

enum { BYTES = 4096 };

static struct {
  cuda_stream stream, side;
  cuda_event forked, joined;
  unsigned char *device, *host; /* BYTES each */
  launch_list *list;
} t;

BEFORE_TESTS() {
  void *device = NULL, *host = NULL, *mapped = NULL;
  if (device_count(NULL, 0) == 0) return;
  assert_int_equal(device_stream_create(&t.stream), STAGE_OK);
  assert_int_equal(device_stream_create(&t.side), STAGE_OK);
  assert_int_equal(device_event_create(&t.forked, false), STAGE_OK);
  assert_int_equal(device_event_create(&t.joined, false), STAGE_OK);
  assert_int_equal(device_alloc(&device, BYTES), STAGE_OK);
  assert_int_equal(device_alloc_pinned(&host, &mapped, BYTES), STAGE_OK);
  t.device = device;
  t.host = host;
  t.list = calloc(1, launch_list_bytes());
  assert_true(t.list);
}

AFTER_TESTS() {
  if (!t.list) return;
  free(t.list);
  device_free(t.device);
  device_free_pinned(t.host);
  device_event_destroy(t.forked);
  device_event_destroy(t.joined);
  device_stream_destroy(t.side);
  device_stream_destroy(t.stream);
}

/* On the side stream `bytes` from `first` on are cleared and come to the host. */
static stage_status clear_aside(size_t first, size_t bytes) {
  stage_status st = device_event_record(t.forked, t.stream);
  if (st == STAGE_OK) st = device_event_wait(t.forked, t.side);
  if (st == STAGE_OK) st = device_clear(t.device + first, bytes, t.side);
  if (st == STAGE_OK) st = device_copy_from(t.host + first, t.device + first, bytes, t.side);
  if (st == STAGE_OK) st = device_event_record(t.joined, t.side);
  return st == STAGE_OK ? device_event_wait(t.joined, t.stream) : st;
}

/* Both memories full of 7. */
static void fill(void) {
  memset(t.host, 7, BYTES);
  assert_int_equal(device_copy_to(t.device, t.host, BYTES, t.stream), STAGE_OK);
  assert_int_equal(device_stream_wait(t.stream), STAGE_OK);
}

/* Lists the clearing, and makes or updates the graph. */
static uint64_t list_clearing(size_t first, size_t bytes, listed_graph *graph) {
  assert_int_equal(launch_list_begin(t.list), STAGE_OK);
  assert_int_equal(launch_list_end(t.list, clear_aside(first, bytes)), STAGE_OK);
  assert_int_equal(launch_list_to_graph(t.list, t.stream, graph), STAGE_OK);
  return launch_list_shape(t.list);
}

static void check_cleared(cuda_graph graph, size_t first, size_t bytes) {
  fill();
  assert_int_equal(device_graph_launch(graph, t.stream), STAGE_OK);
  assert_int_equal(device_stream_wait(t.stream), STAGE_OK);
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(t.host[i], i >= first && i < first + bytes ? 0 : 7);
}

static void need_device(void) {
  if (device_count(NULL, 0) == 0) skip_because(NEEDS_GPU);
}

TEST(test_changed) {
  need_device();
  listed_graph graph = {0};
  fill();
  const uint64_t shape = list_clearing(256, 1024, &graph);
  const cuda_graph first = graph.graph;
  assert_int_equal(device_stream_wait(t.side), STAGE_OK);
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(t.host[i], 7); /* listed, not run */
  check_cleared(graph.graph, 256, 1024);
  assert_true(list_clearing(1000, 77, &graph) == shape);
  assert_ptr_equal(graph.graph, first);
  check_cleared(graph.graph, 1000, 77);
  assert_true(list_clearing(0, BYTES, &graph) == shape);
  check_cleared(graph.graph, 0, BYTES);
  const cuda_graph taken = listed_graph_take(&graph);
  assert_null(graph.graph);
  check_cleared(taken, 0, BYTES);
  device_graph_destroy(taken);
}

/* One more launch, or a launch on another stream, gives another shape. A failure while listing is reported. */
TEST(test_shapes) {
  need_device();
  listed_graph graph = {0};
  const uint64_t shape = list_clearing(0, 64, &graph);
  listed_graph_free(&graph);
  assert_int_equal(launch_list_begin(t.list), STAGE_OK);
  stage_status st = clear_aside(0, 64);
  if (st == STAGE_OK) st = device_clear(t.device, 64, t.stream);
  assert_int_equal(launch_list_end(t.list, st), STAGE_OK);
  assert_true(launch_list_shape(t.list) != shape);
  uint64_t on[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(launch_list_begin(t.list), STAGE_OK);
    assert_int_equal(launch_list_end(t.list, device_clear(t.device, 64, i == 0 ? t.stream : t.side)), STAGE_OK);
    on[i] = launch_list_shape(t.list);
  }
  assert_true(on[0] != on[1] && on[0] != 0 && on[1] != 0);
  assert_int_equal(launch_list_begin(t.list), STAGE_OK);
  assert_int_equal(launch_list_end(t.list, STAGE_DEVICE), STAGE_DEVICE);
}

TEST(test_too_long) {
  need_device();
  for (int launches = LISTED_NODES_MAX; launches <= LISTED_NODES_MAX + 1; launches++) {
    assert_int_equal(launch_list_begin(t.list), STAGE_OK);
    stage_status st = STAGE_OK;
    for (int i = 0; i < launches && st == STAGE_OK; i++) st = device_clear(t.device, 16, t.stream);
    assert_int_equal(launch_list_end(t.list, st), STAGE_OK);
    assert_int_equal(launch_list_shape(t.list) == 0, launches > LISTED_NODES_MAX);
  }
}

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
