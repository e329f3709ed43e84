/* Which variants there are, which of them this machine can run, and which the caller or the environment asked for. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cpu/dispatch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/stages_ref.h"

/* One instruction set's variants; a null entry falls back to the table before. */
typedef struct cpu_variant {
  const char *name;
  bool (*usable)(void);
  stage_ops ops;
} cpu_variant;

static bool always(void) { return true; }

/* Weakest first. */
static const cpu_variant variants[] = {
    {"ref", always, {{NULL}, base_ref, blur_ref, halve_ref, extrema_ref, refine_ref, locate_ref, orient_ref, select_ref, describe_ref}},
};

enum { VARIANT_COUNT = sizeof variants / sizeof variants[0] };

const char *cpu_level_name(void) {
  const char *best = "ref";
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (variants[i].usable()) best = variants[i].name;
  return best;
}

int32_t cpu_usable_threads(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

/* Takes a stage from a variant, if it has that stage. */
static void take(stage_ops *ops, const cpu_variant *v, stage_id id) {
  const stage_ops *from = &v->ops;
  switch (id) {
#define TAKE(ID, FIELD)              \
  case ID:                           \
    if (!from->FIELD) return;        \
    ops->FIELD = from->FIELD;        \
    break
    TAKE(STAGE_BASE, base);
    TAKE(STAGE_BLUR, blur);
    TAKE(STAGE_HALVE, halve);
    TAKE(STAGE_EXTREMA, extrema);
    TAKE(STAGE_REFINE, refine);
    TAKE(STAGE_LOCATE, locate);
    TAKE(STAGE_ORIENT, orient);
    TAKE(STAGE_SELECT, select);
    TAKE(STAGE_DESCRIBE, describe);
#undef TAKE
    case STAGE_COUNT: return;
  }
  ops->variant[id] = v->name;
}

static const cpu_variant *find_variant(const char *name, size_t length) {
  for (size_t i = 0; i < VARIANT_COUNT; i++)
    if (strlen(variants[i].name) == length && memcmp(variants[i].name, name, length) == 0) return &variants[i];
  return NULL;
}

static bool refuse(char *message, size_t bytes, const char *what, const char *text, size_t length) {
  if (message && bytes > 0) {
    size_t at = (size_t)snprintf(message, bytes, "%s \"%.*s\" is not usable here; there is", what, (int)length, text);
    for (size_t i = 0; i < VARIANT_COUNT; i++)
      if (variants[i].usable() && at < bytes) at += (size_t)snprintf(message + at, bytes - at, " %s", variants[i].name);
  }
  return false;
}

/* One "stage=name" of the variant string. */
static bool apply_choice(stage_ops *ops, const char *text, size_t length, char *message, size_t bytes) {
  const char *equals = memchr(text, '=', length);
  if (!equals) return refuse(message, bytes, "variant", text, length);
  const size_t stage_length = (size_t)(equals - text), name_length = length - stage_length - 1;
  const cpu_variant *v = find_variant(equals + 1, name_length);
  if (!v || !v->usable()) return refuse(message, bytes, "variant", text, length);
  for (int id = 0; id < STAGE_COUNT; id++) {
    const char *name = stage_name((stage_id)id);
    if (strlen(name) != stage_length || memcmp(name, text, stage_length) != 0) continue;
    take(ops, v, (stage_id)id);
    if (strcmp(ops->variant[id], v->name) == 0) return true;
  }
  return refuse(message, bytes, "variant", text, length);
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
  return true;
}
