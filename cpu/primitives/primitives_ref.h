/*
 * The plain C primitives, which every variant must equal.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_REF_H
#define HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_REF_H

#include "stages/primitive_ops.h"

extern const prim_ops prim_ops_ref;

#endif
