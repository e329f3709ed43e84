/*
 * Lists of different lengths from chunks that finish in any order, appended in the order of the chunks.
 *
 * A chunk that finishes early leaves its list in one of a fixed number of places. The thread that finishes the next chunk
 * in order appends its list and all finished lists that follow it. So nothing needs memory beyond the stage's own frame,
 * and a thread waits only when it is far ahead of the slowest.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_ORDERED_H
#define HARTSIFT_CPU_SCHEDULE_ORDERED_H

#include <pthread.h>
#include <stdatomic.h>

#include "stages/orient.h"

enum {
  ORDERED_ITEMS = 16, /* keypoints of a chunk */
  ORDERED_PLACES = 128,
  ORDERED_PLACE_ANGLES = 48 /* a longer list waits for its turn; usual are 1.3 a keypoint */
};

/* The orientations of one chunk's keypoints. */
typedef struct ordered_chunk {
  uint32_t first;               /* keypoint */
  int32_t items, angles;        /* how many */
  uint8_t count[ORDERED_ITEMS]; /* angles of each item */
  float angle[ORDERED_ITEMS * ORIENT_PEAKS_MAX];
} ordered_chunk;

/* One that waits. */
typedef struct ordered_place {
  bool ready;
  uint32_t first;
  int32_t items, angles;
  uint8_t count[ORDERED_ITEMS];
  float angle[ORDERED_PLACE_ANGLES];
} ordered_place;

typedef struct ordered_list {
  pthread_mutex_t lock;
  pthread_cond_t moved;
  feature_list features;
  int32_t next; /* the chunk whose turn it is */
  /* What threads may read without the lock: features in the list, at most its capacity, and the chunks they are of. Who
     reads the chunks first reads no fewer features than theirs. */
  atomic_uint appended;
  atomic_int appended_chunks;
  ordered_place places[ORDERED_PLACES];
} ordered_list;

bool ordered_start(ordered_list *list, const feature_list *features);
void ordered_end(ordered_list *list);
/* Takes the features of chunk number `chunk`; every number from 0 on comes once. */
void ordered_append(ordered_list *list, int32_t chunk, const ordered_chunk *features);

#endif
