/*
 * Selection among finished features, in place: what stages/select.h does for lists within a frame.
 */
#ifndef HARTSIFT_FRAME_SELECT_RECORDS_H
#define HARTSIFT_FRAME_SELECT_RECORDS_H

#include "pipeline/base/features.h"

/* Keeps the `most` best of count features in their order and returns how many those are: by response or by sigma,
   the larger first, ties by the order. */
uint32_t select_records(const feature_records *records, uint32_t count, uint32_t most, hs_selection selection);

#endif
