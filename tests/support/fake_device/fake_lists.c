/* Fake launch lists: a list is a recording that becomes a graph. All lists have one shape, except for every fifth list,
 * which is too long. */
#include "cuda/runtime/launch_list.h"
#include "tests/support/fake_device/fake_device.h"

enum { TOO_LONG_EVERY = 5 };

struct launch_list {
  cuda_graph graph; /* the recording between launch_list_end and launch_list_to_graph; null if the list is too long */
  uint32_t begun;
};

size_t launch_list_bytes(void) { return sizeof(launch_list); }

stage_status launch_list_begin(launch_list *list) {
  list->graph = NULL;
  list->begun++;
  return device_capture_begin(NULL);
}

stage_status launch_list_end(launch_list *list, stage_status recorded) {
  if (recorded == STAGE_OK && list->begun % TOO_LONG_EVERY != 0) return device_capture_end(NULL, &list->graph);
  device_capture_abandon(NULL);
  return recorded;
}

uint64_t launch_list_shape(const launch_list *list) { return list->graph ? 1 : 0; }

stage_status launch_list_to_graph(launch_list *list, cuda_stream stream, listed_graph *graph) {
  const stage_status st = fake_list_call();
  (void)stream;
  device_graph_destroy(graph->graph);
  if (st != STAGE_OK) device_graph_destroy(list->graph);
  graph->graph = st == STAGE_OK ? list->graph : NULL;
  list->graph = NULL;
  return st;
}

cuda_graph listed_graph_take(listed_graph *graph) {
  const cuda_graph taken = graph->graph;
  graph->graph = NULL;
  return taken;
}

void listed_graph_free(listed_graph *graph) {
  device_graph_destroy(graph->graph);
  graph->graph = NULL;
}
