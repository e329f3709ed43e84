/*
 * The kinds of frames that a context has run, and their graphs.
 *
 * Recording a graph and making it ready takes milliseconds, which a frame that does not come again never earns back. So the
 * first frame of a kind is launched kernel by kernel, and only the second becomes a graph. The entry used least recently
 * is dropped first: where more sizes alternate than the table has entries, none is ever recorded.
 */
#ifndef HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H
#define HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H

#include "cuda/device/device.h"
#include "cuda/keypoints/frame_view.h"

/* What a recorded graph depends on. Compared as bytes: padding is zero. */
typedef struct graph_key {
  int32_t width, height, type, layout;
  float range_low, range_high;
  bool masked, equalized, described, resident, base_apart;
  uint32_t keypoint_capacity, feature_capacity, kept_capacity;
  int32_t octaves, group;     /* as in cuda_frame_place */
  int32_t given;              /* keypoints: 0 none, 1 with their orientations, 2 without */
  uint64_t memory_generation; /* raised when the slab or the handover's memory moves */
} graph_key;

typedef struct graph_entry {
  graph_key key;
  uint64_t met;     /* number of the frame that was the last of this key; 0: none was */
  cuda_graph graph; /* null until the key is met again */
  /* Device memory for the views of a group, CUDA_GROUP_MAX of them; null until a group needs it. It stays when the entry
     is taken over, because freeing device memory waits for all work on the device. */
  cuda_frame_view *views;
} graph_entry;

enum { GRAPHS_KEPT = 32 };

typedef struct graph_cache {
  graph_entry entries[GRAPHS_KEPT];
  uint64_t frames;
} graph_cache;

/* The entry of a frame of this key; *again: the key has been seen before. If not, the least recently used entry is reused
   for it; the entry still holds the old graph, which the caller destroys. */
graph_entry *graph_cache_meet(graph_cache *cache, const graph_key *key, bool *again);

#endif
