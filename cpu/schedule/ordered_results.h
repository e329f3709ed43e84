/*
 * Results of chunks that finish in any order, put in the defined order.
 *
 * Orientations are lists of different lengths, appended in the order of the chunks. A chunk that finishes early leaves
 * its list in one of a fixed number of slots. The thread that finishes the next chunk in order appends its list and all
 * finished lists that follow it. So no memory beyond the stage's stack frame is needed, and a thread waits only when it
 * is far ahead of the slowest.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_ORDERED_RESULTS_H
#define HARTSIFT_CPU_SCHEDULE_ORDERED_RESULTS_H

#include <stdatomic.h>

#include "os/os_threads.h"
#include "stages/detect.h"
#include "stages/orient.h"

enum {
  ORDERED_ITEMS = 16, /* number of keypoints in a chunk */
  ORDERED_SLOTS = 128,
  /* capacity of a waiting list; a chunk with more angles waits until its list can be appended. 1.3 angles per keypoint
   * are usual */
  ORDERED_SLOT_ANGLES = 48
};

/* The orientations of one chunk's keypoints. */
typedef struct ordered_chunk {
  uint32_t first;               /* number of the first keypoint */
  int32_t items, angles;        /* items: keypoints; angles: features */
  uint8_t count[ORDERED_ITEMS]; /* [item]: number of its angles */
  float angle[ORDERED_ITEMS * ORIENT_PEAKS_MAX];
} ordered_chunk;

/* A finished list that waits for earlier chunks. */
typedef struct ordered_slot {
  bool ready;
  uint32_t first;
  int32_t items, angles;
  uint8_t count[ORDERED_ITEMS];
  float angle[ORDERED_SLOT_ANGLES];
} ordered_slot;

typedef struct ordered_list {
  pthread_mutex_t lock;
  pthread_cond_t moved;
  feature_list features;
  int32_t next; /* the next chunk to append */
  /* Values that threads may read without the lock: the number of features in the list (at most its capacity), and the
   * number of chunks appended. A thread that reads the number of chunks first sees at least the features of these
   * chunks. */
  atomic_uint appended;
  atomic_int appended_chunks;
  ordered_slot slots[ORDERED_SLOTS];
} ordered_list;

bool ordered_start(ordered_list *list, const feature_list *features);
void ordered_end(ordered_list *list);
/* Appends the features of chunk number `chunk`. Each number from 0 on must be appended exactly once. */
void ordered_append(ordered_list *list, int32_t chunk, const ordered_chunk *features);

/* Keypoints that threads find in any order, some of them twice. They are put into the defined order at the end. */

typedef struct keypoint_record {
  located at;
  int32_t octave_index, level, column, row; /* settled sample */
} keypoint_record;

/* Records appended by threads. The count continues past the capacity. */
typedef struct keypoint_records {
  keypoint_record *records;
  uint32_t capacity;
  atomic_uint count;
  uint32_t *scratch; /* memory for sorting, after the records */
} keypoint_records;

/* The first returns the size of a detection's work memory; the second divides that memory. */
size_t detect_work_bytes(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
void keypoint_records_begin(keypoint_records *found, const detect_args *args);

/* Appends `count` records. */
void keypoint_records_add(keypoint_records *found, const keypoint_record *records, uint32_t count);

/* Appends the records to the list of the arguments: sorted by octave, level, row and column; each sample only once. */
void keypoint_records_end(const keypoint_records *found, const detect_args *args);

#endif
