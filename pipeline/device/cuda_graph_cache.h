/*
 * The kinds of frames that a context has run, and their graphs.
 *
 * Recording a graph and making it ready takes milliseconds, which a frame that does not come again never earns back. So only
 * the second frame of a kind becomes a graph. The entry used least recently is dropped first: where more sizes
 * alternate than the table has entries, none is ever recorded.
 *
 * The first frame of a kind is launched kernel by kernel where its context works on one frame at a time. Workers would
 * wait for each other at each of these launches, because the driver takes one at a time. They list the frame's
 * launches, which needs no driver, and change a spare graph to them, in a tenth of the time of making one.
 */
#ifndef HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H
#define HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H

#include "cuda/runtime/launch_list.h"
#include "cuda/keypoints/frame_view.h"

/* What a recorded graph depends on. Compared as bytes: padding is zero. */
typedef struct graph_key {
  int32_t width, height, type, layout;
  float range_low, range_high;
  bool masked, equalized, described, resident, base_apart;
  uint32_t keypoint_capacity, feature_capacity, kept_capacity;
  int32_t octaves, group;     /* as in frame_placement */
  int32_t user_keypoints;     /* keypoints: 0 none, 1 with their orientations, 2 without */
  uint64_t memory_generation; /* raised when the slab or the handover's memory moves */
} graph_key;

typedef struct graph_entry {
  graph_key key;
  uint64_t met;     /* number of the frame that was the last of this key; 0: none was */
  uint64_t first;   /* and of the first one */
  cuda_graph graph; /* null until the key is met again */
  /* Device memory for the views of a group, FRAME_GROUP_MAX of them; null until a group needs it. It stays when the entry
     is taken over, because freeing device memory waits for all work on the device. */
  cuda_frame_view *views;
} graph_entry;

/* A graph that frames met first share, each of which changes it. */
typedef struct graph_spare {
  listed_graph listed;
  uint64_t shape; /* of its list; 0: there is no graph */
  uint64_t frame; /* number of the frame that it runs; 0: there is none */
} graph_spare;

/* Lists of one context have about two shapes for each number of octaves. */
enum { GRAPHS_KEPT = 32, SPARES_KEPT = 16 };

typedef struct graph_cache {
  graph_entry entries[GRAPHS_KEPT];
  graph_spare spares[SPARES_KEPT];
  uint64_t frames;
} graph_cache;

/* The entry of a frame of this key; *again: the key has been seen before. If not, the least recently used entry is reused
   for it; the entry still holds the old graph, which the caller destroys. */
graph_entry *graph_cache_meet(graph_cache *cache, const graph_key *key, bool *again);
/* The spare of this shape, else the one used least recently. */
graph_spare *graph_cache_spare(graph_cache *cache, uint64_t shape);
/* For an entry met again: the spare that still runs its first frame, which the caller takes the graph of; null: none
   does. */
graph_spare *graph_cache_spare_of(graph_cache *cache, const graph_entry *entry);

#endif
