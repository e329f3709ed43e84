/*
 * The histogram of an 8-bit picture with several tables, so that equal neighbours do not wait for each other.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_HISTOGRAM_TABLES_H
#define HARTSIFT_CPU_PRIMITIVES_HISTOGRAM_TABLES_H

#include "stages/primitive_ops.h"

void histogram_tables(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]);

#endif
