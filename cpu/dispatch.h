/*
 * The CPU backend's choice: which variant of each stage this machine runs.
 */
#ifndef HARTSIFT_CPU_DISPATCH_H
#define HARTSIFT_CPU_DISPATCH_H

#include <stdbool.h>

#include "stages/ops.h"

/* Fills the table with the best variants the machine has, narrowed by the environment variable HARTSIFT_CPU
   (ref|sse2|avx2|avx512|avx512vnni|neon) and by `variant` ("stage=name,..." or null). False: a name is unknown or not
   usable on this machine; message (zero-terminated, may be null) says which, and lists the usable ones. */
bool cpu_choose_ops(stage_ops *ops, const char *variant, char *message, size_t message_bytes);

/* The stages that one variant has (others null); null when the name is unknown or not usable on this machine. For tests
   and benches that compare variants. */
const stage_ops *cpu_variant_ops(const char *name);

/* The highest instruction set of this machine, of those built in that have the frame's stages: "ref", "avx2", ... */
const char *cpu_level_name(void);

#endif
