/* A frame's launch: as a graph, or kernel by kernel; see cuda_graph_cache.h. */
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/device/cuda_state.h"

static graph_key key_of(const cuda_state *s, const frame_request *r, const frame_placement *placement,
                        const record_target *target) {
  graph_key k;
  memset(&k, 0, sizeof k); /* clears the padding too: keys are compared as bytes */
  k.width = r->source.width;
  k.height = r->source.height;
  k.type = (int32_t)r->source.type;
  k.layout = (int32_t)r->source.layout;
  k.range_low = r->source.range_low;
  k.range_high = r->source.range_high;
  k.masked = r->filter.mask != NULL;
  k.equalized = r->equalize;
  k.described = r->descriptor_bytes > 0;
  k.resident = placement->resident;
  k.octaves = placement->octaves;
  k.user_keypoints = target->user_keypoints.count == 0 ? 0 : target->user_keypoints.oriented ? 1 : 2;
  if (k.user_keypoints) k.octaves = target->user_keypoints.octaves;
  k.group = target->group;
  k.base_apart = target->base_apart;
  k.keypoint_capacity = s->plan.request.keypoint_capacity;
  k.feature_capacity = s->plan.request.feature_capacity;
  k.kept_capacity = s->kept_capacity;
  k.memory_generation = s->memory_generation;
  return k;
}

/* Makes the views of a group, which its kernels read, in device memory. */
static hs_status make_views(hs_context *c, const frame_request *r, const record_target *target, graph_entry *e) {
  const cuda_state *s = cuda_of(c);
  const size_t bytes = sizeof(cuda_frame_view) * (size_t)target->group;
  cuda_frame_view *views = hs_memory_alloc(c->options.allocator, bytes);
  if (!views) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes for a group", bytes);
  cuda_record_views(c, r, target, views);
  stage_status st = STAGE_OK;
  if (!e->views) {
    void *memory = NULL;
    st = device_alloc(&memory, sizeof(cuda_frame_view) * FRAME_GROUP_MAX);
    e->views = memory;
  }
  if (st == STAGE_OK) st = device_copy_to(e->views, views, bytes, s->stream);
  if (st == STAGE_OK) st = device_stream_wait(s->stream);
  hs_memory_release(c->options.allocator, views);
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "device memory for a group");
}

/* Makes the graph of an entry met for the second time: takes a spare's graph or records one. */
static hs_status make_graph(hs_context *c, const frame_request *r, const record_target *target, graph_entry *e) {
  const cuda_stream stream = cuda_of(c)->stream;
  graph_spare *spare = graph_cache_spare_of(&cuda_of(c)->graphs, e);
  if (spare) {
    e->graph = listed_graph_take(&spare->listed);
    spare->shape = spare->frame = 0;
    return HS_OK;
  }
  stage_status st = device_capture_begin(stream);
  if (st != STAGE_OK) return cuda_failure(c, st, "recording the frame");
  st = cuda_record_frame(c, r, target);
  if (st == STAGE_OK) {
    st = device_capture_end(stream, &e->graph);
    return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "making the frame's graph");
  }
  const hs_status failed = cuda_failure(c, st, "recording the frame");
  device_capture_abandon(stream);
  return failed;
}

static launch_list *list_of(const hs_context *c) {
  cuda_state *s = cuda_of(c);
  if (s->launches) return s->launches;
  s->launches = hs_memory_alloc(c->options.allocator, launch_list_bytes());
  if (s->launches) memset(s->launches, 0, launch_list_bytes());
  return s->launches;
}

/* Changes a spare graph to a frame met for the first time. *graph stays null if the frame has more launches than a list
   holds or there is no memory for a list; the frame is then launched kernel by kernel. */
static hs_status change_spare(hs_context *c, const frame_request *r, const record_target *target, uint64_t frame,
                              cuda_graph *graph) {
  cuda_state *s = cuda_of(c);
  if (!list_of(c)) return HS_OK;
  stage_status st = launch_list_begin(s->launches);
  if (st == STAGE_OK) st = launch_list_end(s->launches, cuda_record_frame(c, r, target));
  if (st != STAGE_OK) return cuda_failure(c, st, "listing the frame's launches");
  const uint64_t shape = launch_list_shape(s->launches);
  if (shape == 0) return HS_OK;
  graph_spare *spare = graph_cache_spare(&s->graphs, shape);
  if (spare->shape != shape) listed_graph_free(&spare->listed);
  st = launch_list_to_graph(s->launches, s->stream, &spare->listed);
  spare->shape = st == STAGE_OK ? shape : 0;
  spare->frame = st == STAGE_OK ? frame : 0;
  *graph = spare->listed.graph;
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "making the frame's graph");
}

hs_status cuda_graph_of(hs_context *c, const frame_request *r, const frame_placement *placement, record_target *target,
                        cuda_graph *graph) {
  cuda_state *s = cuda_of(c);
  const graph_key key = key_of(s, r, placement, target);
  bool again;
  graph_entry *e = graph_cache_meet(&s->graphs, &key, &again);
  const way_request request = {.on_device = true, .group = target->group, .seen = again, .is_worker = c->is_worker};
  way_choice choice = plan_choose_way(&request);
  hs_status st = HS_OK;
  if (!again) {
    device_graph_destroy(e->graph);
    e->graph = NULL;
    if (target->group > 1) st = make_views(c, r, target, e);
  }
  if (target->group > 1) target->group_views = e->views;
  if (again && !e->graph) st = make_graph(c, r, target, e);
  *graph = e->graph;
  if (choice.way == HS_WAY_GPU_LISTED && st == HS_OK) st = change_spare(c, r, target, e->first, graph);
  if (choice.way == HS_WAY_GPU_LISTED && !*graph)
    choice = (way_choice){HS_WAY_GPU_KERNELS, false, "a frame with more launches than a list has"};
  context_note_way(c, &choice);
  if (st != HS_OK) e->met = 0; /* its views may be missing */
  return st;
}

stage_status cuda_launch_frame(const hs_context *c, const frame_request *r, const record_target *target,
                               cuda_graph graph, cuda_stream stream) {
  const cuda_state *s = cuda_of(c);
  if (graph) return device_graph_launch(graph, stream);
  if (stream == s->stream) return cuda_record_frame(c, r, target);
  /* The frame runs on the context's streams: these wait for the caller's stream, which then waits for them. */
  stage_status st = device_event_record(s->crossed, stream);
  if (st == STAGE_OK) st = device_event_wait(s->crossed, s->stream);
  if (st == STAGE_OK) st = cuda_record_frame(c, r, target);
  if (st == STAGE_OK) st = device_event_record(s->crossed, s->stream);
  return st == STAGE_OK ? device_event_wait(s->crossed, stream) : st;
}

void cuda_graphs_drop(cuda_state *s) {
  for (int i = 0; i < GRAPHS_KEPT; i++) {
    graph_entry *e = &s->graphs.entries[i];
    device_graph_destroy(e->graph);
    e->graph = NULL;
    e->met = 0;
  }
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *spare = &s->graphs.spares[i];
    listed_graph_free(&spare->listed);
    spare->shape = spare->frame = 0;
  }
}

void cuda_graphs_free(cuda_state *s) {
  cuda_graphs_drop(s);
  for (int i = 0; i < GRAPHS_KEPT; i++) device_free(s->graphs.entries[i].views);
}
