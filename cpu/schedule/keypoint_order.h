/*
 * Keypoints that were found in any order, some of them twice, put in the defined order.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_KEYPOINT_ORDER_H
#define HARTSIFT_CPU_SCHEDULE_KEYPOINT_ORDER_H

#include <stdatomic.h>

#include "stages/detect.h"

typedef struct keypoint_record {
  located place;
  int32_t octave_index, level, column, row; /* the settled sample */
} keypoint_record;

/* Records that threads append; counting goes on past the capacity. */
typedef struct keypoint_records {
  keypoint_record *records;
  uint32_t capacity;
  atomic_uint count;
  uint32_t *scratch; /* behind the records */
} keypoint_records;

/* The work memory of a detection, and its division. */
size_t detect_work_bytes(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
void keypoint_records_begin(keypoint_records *found, const detect_args *args);

/* Appends `count` records. */
void keypoint_records_add(keypoint_records *found, const keypoint_record *records, uint32_t count);

/* Appends the records to the list of the arguments: by octave, level, row and column, each sample once. */
void keypoint_records_end(const keypoint_records *found, const detect_args *args);

#endif
