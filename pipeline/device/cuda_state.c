/* Parts of the state of a device: names of variants, failures as errors of the context, memory of decoded pictures. */
#include "pipeline/device/cuda_state.h"

#include <stdio.h>
#include <string.h>

#include "cuda/runtime/device.h"
#include "pipeline/base/text.h"

typedef struct variant_name {
  const char *stage, *name;
  int value;
} variant_name;

static const variant_name names[] = {
    {"pyramid", "split", PYRAMID_SPLIT},
    {"pyramid", "levels", PYRAMID_LEVELS},
    {"pyramid", "dog", PYRAMID_DOG},
    {"pyramid", "uber", PYRAMID_UBER},
    {"pyramid", "uber-chains", PYRAMID_UBER_CHAINS},
    {"refine", "rebalanced", CUDA_REFINE_REBALANCED},
    {"refine", "plain", CUDA_REFINE_PLAIN},
    {"orient", "atomic", CUDA_ORIENT_ATOMIC},
    {"orient", "warp-histogram", CUDA_ORIENT_WARP_HISTOGRAM},
    {"orient", "thread", CUDA_ORIENT_THREAD},
    {"orient", "warp", CUDA_ORIENT_WARP},
    {"orient", "block", CUDA_ORIENT_BLOCK},
    {"describe", "atomic4", CUDA_DESCRIBE_ATOMIC4},
    {"describe", "atomic2", CUDA_DESCRIBE_ATOMIC2},
    {"describe", "multi-key", CUDA_DESCRIBE_MULTI_KEY},
};

enum { NAME_COUNT = sizeof names / sizeof names[0] };

static int value_of(const cuda_variants *v, const char *stage) {
  if (strcmp(stage, "pyramid") == 0) return (int)v->pyramid;
  if (strcmp(stage, "refine") == 0) return (int)v->refine;
  return strcmp(stage, "orient") == 0 ? (int)v->orient : (int)v->describe;
}

static void set_value(cuda_variants *v, const variant_name *n) {
  if (strcmp(n->stage, "pyramid") == 0)
    v->pyramid = (pyramid_variant)n->value;
  else if (strcmp(n->stage, "refine") == 0)
    v->refine = (cuda_refine_variant)n->value;
  else if (strcmp(n->stage, "orient") == 0)
    v->orient = (cuda_orient_variant)n->value;
  else
    v->describe = (cuda_describe_variant)n->value;
}

/* Returns the entry whose "stage=name" equals text[0..length-1], or null. */
static const variant_name *find(const char *text, size_t length) {
  for (int i = 0; i < NAME_COUNT; i++) {
    const size_t stage = strlen(names[i].stage), name = strlen(names[i].name);
    if (stage + 1 + name == length && memcmp(text, names[i].stage, stage) == 0 && text[stage] == '=' &&
        memcmp(text + stage + 1, names[i].name, name) == 0)
      return &names[i];
  }
  return NULL;
}

bool cuda_variants_parse(cuda_variants *v, const char *text, char *message, size_t bytes) {
  *v = (cuda_variants){PYRAMID_SPLIT, CUDA_REFINE_REBALANCED, CUDA_ORIENT_ATOMIC, CUDA_DESCRIBE_ATOMIC4};
  while (text && *text) {
    const size_t length = strcspn(text, ",");
    const variant_name *n = find(text, length);
    if (!n && length > 0) {
      char known[384];
      size_t at = 0;
      for (int i = 0; i < NAME_COUNT && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, " %s=%s", names[i].stage, names[i].name);
      hs_message_set(message, bytes, "variant \"%.*s\" is unknown on a CUDA device; there is%s", (int)length, text,
                     known);
      return false;
    }
    if (n) set_value(v, n);
    text += length + (text[length] == ',');
  }
  return true;
}

int cuda_variants_report(const cuda_variants *v, char *text, size_t bytes) {
  size_t at = 0;
  for (int i = 0; i < NAME_COUNT && at < bytes; i++)
    if (value_of(v, names[i].stage) == names[i].value)
      at += (size_t)snprintf(text + at, bytes - at, "%s: %s\n", names[i].stage, names[i].name);
  return (int)at;
}

/* ------------------------------------------------- failed calls of the device */

void cuda_memory_reason(const struct cuda_state *s, const char *what, size_t needed, char *reason, size_t bytes) {
  device_answer a = {.index = s->device, .name = s->info.name};
  int32_t previous = -1;
  if (device_enter(s->device, &previous) == STAGE_OK) (void)device_memory(&a.free_bytes, &a.memory_bytes);
  device_leave(previous);
  device_reason_memory(&a, what, needed, reason, bytes);
}

hs_status cuda_failure(hs_context *c, stage_status st, const char *what) {
  if (st == STAGE_OVERFLOW) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%s: too large for a grid of the device", what);
  const char *why = device_error_text();
  if (st == STAGE_OUT_OF_MEMORY) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "%s: %s", what, why);
  return CONTEXT_FAIL(c, HS_ERR_DEVICE, "CUDA device %d (%s), %s: %s", cuda_of(c)->device, cuda_of(c)->info.name, what,
                      why);
}

hs_status cuda_memory_failure(hs_context *c, stage_status st, const char *what, size_t needed) {
  char reason[ERROR_TEXT_BYTES / 2];
  if (st != STAGE_OUT_OF_MEMORY) return cuda_failure(c, st, what);
  (void)device_error_text(); /* clears the error */
  cuda_memory_reason(cuda_of(c), what, needed, reason, sizeof reason);
  return CONTEXT_FAIL(c, HS_ERR_MEMORY, "CUDA device %d: %s", cuda_of(c)->device, reason);
}

hs_status cuda_check_stream(hs_context *c, cuda_stream stream) {
  if (!stream || !device_stream_is_foreign(stream)) return HS_OK;
  return CONTEXT_FAIL(c, HS_ERR_ARGUMENT,
                      "the stream is not of the primary context of CUDA device %d: create it on this device with "
                      "cudaStreamCreate, PyTorch or CuPy",
                      cuda_of(c)->device);
}

/* ------------------------------------------------- memory of decoded pictures */

void cuda_jpeg_drop_decoded(cuda_state *s) {
  device_free(s->decoded);
  s->decoded = NULL;
  s->decoded_bytes = 0;
}

void cuda_jpeg_drop(cuda_state *s) {
  cuda_jpeg_drop_decoded(s); /* freeing waits for the device */
  device_free_pinned(s->packed);
  s->packed = NULL;
  s->packed_bytes = 0;
}
