/*
 * Choice of the CPU backend: which variant of each stage runs on this machine.
 */
#ifndef HARTSIFT_CPU_DISPATCH_H
#define HARTSIFT_CPU_DISPATCH_H

#include <stdbool.h>

#include "stages/ops.h"
#include "stages/primitives.h"
#include "stages/two_view.h"

/* Fills the table with the machine's best variants, restricted by the environment variable HARTSIFT_CPU
 * (ref|sse2|avx2|avx512|avx512vnni|neon|neondot) and by `variant` ("stage=name,..." or null). False: a name is unknown
 * or not usable on this machine; message (zero-terminated, may be null) says which, and lists the usable ones. */
bool cpu_choose_ops(stage_ops *ops, const char *variant, char *message, size_t message_bytes);

/* Returns the stages of one variant; stages that it lacks are null. Returns null if the name is unknown or not
 * usable on this machine. For tests and benches that compare variants. */
const stage_ops *cpu_variant_ops(const char *name);

/* Returns the name of the highest built instruction set that this machine can run and that has the frame's stages:
 * "ref", "avx2", ... */
const char *cpu_level_name(void);

/* Return functions outside the stages of a frame: the fastest variant of this machine, or the variant that HARTSIFT_CPU
 * names. Null: HARTSIFT_CPU names an instruction set that this machine cannot run. Two-view geometry and projection
 * ignore such a name. */
const prim_ops *cpu_choose_prims(void);
const two_view_ops *cpu_choose_two_view(void);
dot_bytes_function cpu_choose_dot(void);
project_function cpu_choose_project(void);

/* Return a variant by name, for tests. Null: it is not in this build, not usable on this machine, or has no
 * specialised functions. */
const prim_ops *cpu_prims_of(const char *name);
const two_view_ops *cpu_two_view_of(const char *name);
dot_bytes_function cpu_dot_of(const char *name);
project_function cpu_project_of(const char *name);

#endif
