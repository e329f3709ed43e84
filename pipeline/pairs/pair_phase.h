/*
 * Which pairs a run works on next: a phase is a set of images that memory holds at a time, and all pairs among them.
 *
 * Where everything fits there is one phase. Where not, half of the memory is given to the first images of the next pairs
 * and half to second images, so that of n images with room for m each is read about 2 n / m times.
 */
#ifndef HARTSIFT_PAIRS_PAIR_PHASE_H
#define HARTSIFT_PAIRS_PAIR_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift_pairs.h"

/* Memory spaces that images take: the host's and the device's. */
enum { PAIR_SPACES = 2 };

typedef struct pair_phase_request {
  const hs_image_pair *pairs;
  const uint8_t *is_done;             /* of each pair; not 0: it is no candidate */
  size_t begin, end;                  /* those looked at, in order */
  size_t horizon;                     /* the end for pairs out of order, whose results must wait; at most `end` */
  const uint64_t *bytes[PAIR_SPACES]; /* that each image takes; null: nothing of this space */
  uint64_t budget[PAIR_SPACES];
  bool in_order; /* only candidates in a row from the first on */
} pair_phase_request;

/* marks [image_count]: the phase's images have its number, which is above those of all phases before. */
typedef struct pair_phase {
  uint32_t *marks, number;
  uint32_t *pairs; /* [number of candidates]: indices of the phase's, ascending */
  size_t count;
} pair_phase;

/* Fills the phase; it has at least the first candidate, if there is one, whether that fits or not. */
void pair_phase_plan(const pair_phase_request *request, pair_phase *phase);

#endif
