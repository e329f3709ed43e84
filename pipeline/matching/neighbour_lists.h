/*
 * Rows of squares to neighbours in order, and lists of them that grow.
 */
#ifndef HARTSIFT_MATCHING_NEIGHBOUR_LISTS_H
#define HARTSIFT_MATCHING_NEIGHBOUR_LISTS_H

#include "pipeline/context/context.h"
#include "stages/match.h"

/* ---- one row of squares, `count` of them, of which those below the bound are wanted */

/* The k nearest in order with their distances into nearest[k]; what is missing is neighbour_none. */
void neighbours_nearest(const float *squares, uint32_t count, float bound, uint32_t k, match_neighbour *nearest);

uint32_t neighbours_count(const float *squares, uint32_t count, float bound);

/* All of them, by index, with their squares. */
void neighbours_list(const float *squares, uint32_t count, float bound, match_neighbour *found);

/* Puts them in order and squares into distances. */
void neighbours_finish(match_neighbour *found, size_t count);

/* ---- the lists of a call; context: null, or where failures are recorded */

/* Empty lists for that many features. HS_ERR_MEMORY. */
hs_status neighbour_lists_begin(hs_context *context, hs_neighbour_lists *lists, size_t feature_count);

/* Room for so many neighbours in all; those that are there stay. HS_ERR_MEMORY. */
hs_status neighbour_lists_grow(hs_context *context, hs_neighbour_lists *lists, size_t count);

/* neighbours_take: the device hands its lists in row by row. */
hs_status neighbour_lists_take(hs_context *context, void *lists, uint32_t first_row, uint32_t rows,
                               const uint32_t *counts, match_neighbour **found);

#endif
