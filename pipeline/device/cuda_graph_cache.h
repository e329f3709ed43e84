/*
 * The kinds of frames that a context has run, and their graphs.
 *
 * Recording a graph and making it ready takes milliseconds. A frame that does not come again never earns them back, so
 * only the second frame of a kind is recorded. The entry used least recently is replaced first: if more kinds alternate
 * than the table has entries, none is ever recorded.
 *
 * The first frame of a kind is launched kernel by kernel if its context works on one frame at a time. Workers would
 * wait for each other at each launch, because the driver takes one launch at a time. Instead they list the frame's
 * launches, which needs no driver, and change a spare graph to that list. This takes a tenth of the time of making a
 * graph.
 */
#ifndef HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H
#define HARTSIFT_DEVICE_CUDA_GRAPH_CACHE_H

#include "cuda/runtime/launch_list.h"
#include "cuda/keypoints/frame_view.h"

/* The properties of a frame that its graph depends on. Keys are compared as bytes, so their padding must be zero. */
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
  uint64_t met;     /* number of the last frame of this key; 0: there was none */
  uint64_t first;   /* number of the first frame of this key */
  cuda_graph graph; /* null until the key is met again */
  /* Device memory for the views of a group: FRAME_GROUP_MAX of them; null until a group needs it. It stays when another
     key takes the entry, because freeing device memory waits for all work on the device. */
  cuda_frame_view *views;
} graph_entry;

/* A graph shared by frames met for the first time; each frame changes it to the frame's launches. */
typedef struct graph_spare {
  listed_graph listed;
  uint64_t shape; /* shape of the list that it was made from; 0: there is no graph */
  uint64_t frame; /* number of the frame whose launches it has; 0: none */
} graph_spare;

/* Launch lists of one context have about two shapes for each number of octaves. */
enum { GRAPHS_KEPT = 32, SPARES_KEPT = 16 };

typedef struct graph_cache {
  graph_entry entries[GRAPHS_KEPT];
  graph_spare spares[SPARES_KEPT];
  uint64_t frames;
} graph_cache;

/* Finds the entry of this key; *again: the key was met before. Otherwise reuses the entry used least recently, which
   still holds its old graph: the caller destroys that. */
graph_entry *graph_cache_meet(graph_cache *cache, const graph_key *key, bool *again);
/* Returns the spare of this shape, else the one used least recently. */
graph_spare *graph_cache_spare(graph_cache *cache, uint64_t shape);
/* Returns the spare that still has the launches of the entry's first frame, for an entry met again. The caller takes
   its graph. Null: there is none. */
graph_spare *graph_cache_spare_of(graph_cache *cache, const graph_entry *entry);

#endif
