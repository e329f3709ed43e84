/* Lists the variants of this build, finds those that this machine can run, and chooses among them by the caller's
 * string or the environment variable.
 *
 * To add a variant of a stage for an instruction set that exists already: cpu/simd/<stage>_simd.c over cpu/simd/simd.h,
 * its prototype in cpu/simd/stages_simd.h, its line in SIMD_VARIANT; tests/agree then compares it with the reference.
 *
 * To add an instruction set (tests/api/check_places.py names what was forgotten):
 * 1. its vectors: cpu/simd/simd_<isa>.h, chosen in cpu/simd/simd.h;
 * 2. its flags, and its name in both lists of cpu/CMakeLists.txt;
 * 3. its prototypes in cpu/simd/stages_simd.h; a has_<isa> and an entry, weakest first, in the table below;
 * 4. its name where HARTSIFT_CPU is described: hartsift.h, cpu/dispatch.h, README.md. */
#include "cpu/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/primitives/primitive_variants.h"
#include "cpu/ref/stages_ref.h"
#include "cpu/simd/stages_simd.h"
#include "os/os_process.h"

/* Variants of one instruction set. For a null entry the entry of the next weaker set is used. */
typedef struct cpu_variant {
  const char *name;
  bool (*usable)(void);
  stage_jobs jobs; /* jobs of every stage except matching and selection, or all null */
  stage_ops ops;
} cpu_variant;

static bool always(void) { return true; }

#if HARTSIFT_HAVE_ISA_AVX2
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

#if HARTSIFT_HAVE_ISA_AVX512
static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

#if HARTSIFT_HAVE_ISA_AVX512VNNI
static bool has_avx512vnni(void) { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }
#endif

#if HARTSIFT_HAVE_ISA_NEONDOT
static bool has_neondot(void) { return os_has_dot_instructions(); }
#endif

/* The functions of one variant of matching. */
#define MATCH_OPS(ISA)                                                                                                 \
  .match_work_bytes = match_work_bytes_##ISA, .squares_work_bytes = squares_work_bytes_##ISA,                          \
  .pack_second = pack_second_##ISA, .squares = squares_##ISA

/* Stages that have vector or threaded implementations. All other stages are null. */
#define SIMD_VARIANT(ISA, USABLE)                                                                                      \
  {                                                                                                                    \
    .name = #ISA, .usable = USABLE, .jobs = {begin_base_##ISA,   begin_blur_##ISA,   begin_halve_##ISA,                \
                                             begin_detect_##ISA, begin_orient_##ISA, begin_describe_##ISA},            \
    .ops = {                                                                                                           \
      .base = base_##ISA,                                                                                              \
      .blur = blur_##ISA,                                                                                              \
      .halve = halve_##ISA,                                                                                            \
      .detect = detect_##ISA,                                                                                          \
      .orient = orient_##ISA,                                                                                          \
      .describe = describe_##ISA,                                                                                      \
      .affine_moments = affine_moments_##ISA,                                                                          \
      .affine_patch = affine_patch_##ISA,                                                                              \
      .match = match_##ISA,                                                                                            \
      .match_without_second = match_without_second_##ISA,                                                              \
      .pyramid_work_floats = pyramid_work_floats,                                                                      \
      .detect_work_bytes = detect_work_bytes,                                                                          \
      .octave = octave_##ISA,                                                                                          \
      MATCH_OPS(ISA)                                                                                                   \
    }                                                                                                                  \
  }

/* A variant of matching alone. Other stages take the next weaker variant. */
#define MATCH_VARIANT(ISA, USABLE)                                                                                     \
  {                                                                                                                    \
    .name = #ISA, .usable = USABLE, .ops = {                                                                           \
      .match = match_##ISA,                                                                                            \
      .match_without_second = match_without_second_##ISA,                                                              \
      MATCH_OPS(ISA)                                                                                                   \
    }                                                                                                                  \
  }

/* Variants in ascending order, the weakest instruction set first. */
static const cpu_variant variants[] = {
    {.name = "ref",
     .usable = always,
     .ops = {.base = base_ref,
             .blur = blur_ref,
             .halve = halve_ref,
             .detect = detect_ref,
             .orient = orient_ref,
             .select = select_ref,
             .describe = describe_ref,
             .affine_moments = affine_moments_ref,
             .affine_patch = affine_patch_ref,
             .match = match_ref,
             .match_without_second = match_ref,
             .detect_work_bytes = detect_work_bytes_ref,
             .detect_reads_top = true,
             MATCH_OPS(ref)}},
#if HARTSIFT_HAVE_ISA_SSE2
    SIMD_VARIANT(sse2, always),
#endif
#if HARTSIFT_HAVE_ISA_AVX2
    SIMD_VARIANT(avx2, has_avx2),
#endif
#if HARTSIFT_HAVE_ISA_AVX512
    SIMD_VARIANT(avx512, has_avx512),
#endif
#if HARTSIFT_HAVE_ISA_AVX512VNNI
    MATCH_VARIANT(avx512vnni, has_avx512vnni),
#endif
#if HARTSIFT_HAVE_ISA_NEON
    SIMD_VARIANT(neon, always),
#endif
#if HARTSIFT_HAVE_ISA_NEONDOT
    MATCH_VARIANT(neondot, has_neondot),
#endif
};

enum { VARIANT_COUNT = sizeof variants / sizeof variants[0] };

static const cpu_variant *find_variant(const char *name, size_t length) {
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (strlen(variants[i].name) == length && memcmp(variants[i].name, name, length) == 0) return &variants[i];
  return NULL;
}

const stage_ops *cpu_variant_ops(const char *name) {
  const cpu_variant *v = find_variant(name, strlen(name));
  return v && v->usable() ? &v->ops : NULL;
}

const char *cpu_level_name(void) {
  const char *best = "ref";
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (variants[i].usable() && variants[i].ops.blur) best = variants[i].name;
  return best;
}

/* Takes a stage's function from a variant; if the variant lacks it, the table stays as it is. */
static void take(stage_ops *ops, const cpu_variant *v, stage_id id) {
  const stage_ops *from = &v->ops;
  switch (id) {
#define TAKE(ID, FIELD)                                                                                                \
  case ID:                                                                                                             \
    if (!from->FIELD) return;                                                                                          \
    ops->FIELD = from->FIELD;                                                                                          \
    ops->jobs[ID] = v->jobs.blur ? &v->jobs : NULL;                                                                    \
    break
    TAKE(STAGE_BASE, base);
    TAKE(STAGE_BLUR, blur);
    TAKE(STAGE_HALVE, halve);
    TAKE(STAGE_DETECT, detect);
    TAKE(STAGE_ORIENT, orient);
    TAKE(STAGE_SELECT, select);
    TAKE(STAGE_DESCRIBE, describe);
    TAKE(STAGE_MATCH, match);
#undef TAKE
  case STAGE_COUNT:
    return;
  }
  if (id == STAGE_DETECT) {
    ops->detect_work_bytes = from->detect_work_bytes;
    ops->detect_reads_top = from->detect_reads_top;
    ops->octave = from->octave;
  }
  if (id == STAGE_DESCRIBE) {
    ops->affine_moments = from->affine_moments;
    ops->affine_patch = from->affine_patch;
  }
  if (id == STAGE_MATCH) {
    ops->match_without_second = from->match_without_second;
    ops->match_work_bytes = from->match_work_bytes;
    ops->squares_work_bytes = from->squares_work_bytes;
    ops->pack_second = from->pack_second;
    ops->squares = from->squares;
  }
  ops->variant[id] = v->name;
}

/* Writes the message for a stage that only a GPU implements, or that does not exist. Returns false. */
static bool refuse_stage(char *message, size_t bytes, const char *text, size_t length) {
  if (message && bytes > 0) {
    size_t at =
        (size_t)snprintf(message, bytes, "variant \"%.*s\" names no stage of the CPU; these are", (int)length, text);
    for (int id = 0; id < STAGE_COUNT && at < bytes; id++)
      at += (size_t)snprintf(message + at, bytes - at, " %s", stage_name((stage_id)id));
  }
  return false;
}

static bool refuse(char *message, size_t bytes, const char *what, const char *text, size_t length) {
  if (message && bytes > 0) {
    size_t at = (size_t)snprintf(message, bytes, "%s \"%.*s\" is not usable here; there is", what, (int)length, text);
    for (size_t i = 0; i < VARIANT_COUNT; i++)
      if (variants[i].usable() && at < bytes) at += (size_t)snprintf(message + at, bytes - at, " %s", variants[i].name);
  }
  return false;
}

static int find_stage(const char *name, size_t length) {
  int id = 0;
  for (; id < STAGE_COUNT; id++) {
    const char *own = stage_name((stage_id)id);
    if (strlen(own) == length && memcmp(own, name, length) == 0) break;
  }
  return id;
}

/* Applies one "stage=name" of the variant string. */
static bool apply_choice(stage_ops *ops, const char *text, size_t length, char *message, size_t bytes) {
  const char *equals = memchr(text, '=', length);
  if (!equals) return refuse(message, bytes, "variant", text, length);
  const size_t stage_length = (size_t)(equals - text), name_length = length - stage_length - 1;
  const int id = find_stage(text, stage_length);
  if (id == STAGE_COUNT) return refuse_stage(message, bytes, text, length);
  const cpu_variant *v = find_variant(equals + 1, name_length);
  if (!v || !v->usable()) return refuse(message, bytes, "variant", text, length);
  take(ops, v, (stage_id)id);
  return strcmp(ops->variant[id], v->name) == 0 || refuse(message, bytes, "variant", text, length);
}

bool cpu_choose_ops(stage_ops *ops, const char *variant, char *message, size_t bytes) {
  const char *limit = getenv("HARTSIFT_CPU");
  const cpu_variant *highest = NULL;
  if (limit && *limit) {
    highest = find_variant(limit, strlen(limit));
    if (!highest || !highest->usable()) return refuse(message, bytes, "HARTSIFT_CPU", limit, strlen(limit));
  }
  memset(ops, 0, sizeof *ops);
  for (size_t i = 0; i < VARIANT_COUNT; i++) {
    if (variants[i].usable())
      for (int id = 0; id < STAGE_COUNT; id++) take(ops, &variants[i], (stage_id)id);
    if (&variants[i] == highest) break;
  }
  while (variant && *variant) {
    const size_t length = strcspn(variant, ",");
    if (length > 0 && !apply_choice(ops, variant, length, message, bytes)) return false;
    variant += length + (variant[length] == ',');
  }
  /* Work memory of the reference is a plane. Work memory of the vector backend is scratch, which for a small picture is
   * larger than a plane. */
  const bool base_plane = ops->base == base_ref, blur_plane = ops->blur == blur_ref;
  ops->pyramid_work_floats = base_plane && blur_plane ? NULL : pyramid_work_floats;
  ops->pyramid_work_plane = base_plane || blur_plane;
  const char *const *names = ops->variant;
  for (int id = STAGE_BASE; id < STAGE_DETECT; id++) /* the stages base, level step and halving */
    if (strcmp(names[id], names[STAGE_DETECT]) != 0) ops->octave = NULL;
  return true;
}

/* ------------------------------------------------------------------ functions outside the stages of a frame */

typedef struct function_variant {
  const char *name;
  const prim_ops *prims;
  const two_view_ops *two_view;
  dot_bytes_function dot;
  project_function project;
} function_variant;

#define FUNCTION_VARIANT(ISA)                                                                                          \
  { #ISA, &prim_ops_##ISA, &two_view_ops_##ISA, dot_bytes_##ISA, project_##ISA }

/* Variants of these functions, weakest first. The variants of stages above define which of them the machine can run. */
static const function_variant function_variants[] = {
    FUNCTION_VARIANT(ref),
#if HARTSIFT_HAVE_ISA_SSE2
    FUNCTION_VARIANT(sse2),
#endif
#if HARTSIFT_HAVE_ISA_AVX2
    FUNCTION_VARIANT(avx2),
#endif
#if HARTSIFT_HAVE_ISA_AVX512
    FUNCTION_VARIANT(avx512),
#endif
#if HARTSIFT_HAVE_ISA_AVX512VNNI
    {"avx512vnni", &prim_ops_avx512, &two_view_ops_avx512, dot_bytes_avx512vnni, project_avx512},
#endif
#if HARTSIFT_HAVE_ISA_NEON
    FUNCTION_VARIANT(neon),
#endif
#if HARTSIFT_HAVE_ISA_NEONDOT
    {"neondot", &prim_ops_neon, &two_view_ops_neon, dot_bytes_neondot, project_neon},
#endif
};

/* Returns the functions of a variant; all are null if the name is unknown or not usable. */
static function_variant functions_of(const char *name) {
  for (size_t i = 0; i < sizeof function_variants / sizeof function_variants[0]; i++)
    if (strcmp(function_variants[i].name, name) == 0 && cpu_variant_ops(name)) return function_variants[i];
  return (function_variant){0};
}

static const char *limit_of_environment(void) {
  const char *limit = getenv("HARTSIFT_CPU");
  return limit && *limit ? limit : NULL;
}

/* Returns the functions of the variant that HARTSIFT_CPU names. If that variant lacks them, or the variable is not set,
 * returns the machine's best. */
static function_variant chosen_functions(void) {
  const char *limit = limit_of_environment();
  const function_variant chosen = limit ? functions_of(limit) : (function_variant){0};
  return chosen.name ? chosen : functions_of(cpu_level_name());
}

static bool limit_is_usable(void) {
  const char *limit = limit_of_environment();
  return !limit || cpu_variant_ops(limit);
}

const prim_ops *cpu_prims_of(const char *name) { return functions_of(name).prims; }
const two_view_ops *cpu_two_view_of(const char *name) { return functions_of(name).two_view; }
dot_bytes_function cpu_dot_of(const char *name) { return functions_of(name).dot; }
project_function cpu_project_of(const char *name) { return functions_of(name).project; }

const prim_ops *cpu_choose_prims(void) { return limit_is_usable() ? chosen_functions().prims : NULL; }
const two_view_ops *cpu_choose_two_view(void) { return chosen_functions().two_view; }
project_function cpu_choose_project(void) { return chosen_functions().project; }
dot_bytes_function cpu_choose_dot(void) {
  if (!limit_is_usable()) return NULL;
  if (limit_of_environment()) return chosen_functions().dot;
  /* cpu_level_name ignores variants of matching alone, so the table is searched for the last usable one */
  dot_bytes_function best = NULL;
  for (size_t i = 0; i < sizeof function_variants / sizeof function_variants[0]; i++)
    if (cpu_variant_ops(function_variants[i].name)) best = function_variants[i].dot;
  return best;
}
