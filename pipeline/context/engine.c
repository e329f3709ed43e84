/* Use of a context's engine: reports, contexts that share an engine, statistics. */
#include "pipeline/context/engine.h"

#include <stdio.h>
#include <string.h>

#include "os/os_threads.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

size_t backend_report_cpu(const hs_context *c, char *text, size_t bytes) {
  const int head = snprintf(text, bytes, c->no_device[0] ? "device: CPU (%s)\n" : "device: CPU\n", c->no_device);
  size_t at = head > 0 ? (size_t)head : 0;
  for (int i = 0; i < STAGE_COUNT && at < bytes; i++) {
    const int n = snprintf(text + at, bytes - at, "%s: %s\n", stage_name((stage_id)i), c->ops.variant[i]);
    if (n > 0) at += (size_t)n;
  }
  return at < bytes ? at : bytes - 1;
}

void backend_report(hs_context *c) {
  const size_t bytes = sizeof c->report, at = c->engine->report(c, c->report, bytes);
  if (c->engine->offloads && c->no_device[0])
    snprintf(c->report + at, bytes - at, "fallback: images that do not fit are processed by the CPU (%s)\n",
             c->no_device);
}

bool backend_falls_back(const hs_context *c, hs_status status) {
  return status == HS_ERR_MEMORY && c->engine->offloads && c->options.device == HS_DEVICE_AUTO;
}

void backend_note_fallback(hs_context *c, const char *reason) {
  if (c->no_device[0] || !reason[0]) return;
  snprintf(c->no_device, sizeof c->no_device, "%s", reason);
  backend_report(c);
}

hs_status backend_clone(hs_context *owner, int32_t threads, hs_context **clone) {
  char why[ERROR_TEXT_BYTES / 2] = "";
  hs_context *c = hs_memory_alloc(owner->options.allocator, sizeof *c);
  *clone = NULL;
  if (!c) return CONTEXT_FAIL(owner, HS_ERR_MEMORY, "out of memory: %zu bytes for a context", sizeof *c);
  memset(c, 0, sizeof *c);
  c->process = owner->process;
  c->options = owner->options;
  c->expert = owner->expert;
  if (owner->options.expert) c->options.expert = &c->expert;
  c->options.threads = threads > 0 ? threads : 1;
  c->params = owner->params;
  c->rules = owner->rules;
  c->base_filter = owner->base_filter;
  memcpy(c->step_filter, owner->step_filter, sizeof c->step_filter);
  c->radius_max = owner->radius_max;
  c->scales = owner->scales;
  c->ops = owner->ops;
  c->is_worker = true;
  c->keypoint_capacity = owner->keypoint_capacity;
  c->feature_capacity = owner->feature_capacity;
  c->engine = owner->engine;
  const hs_status st = c->engine->open(c, owner, NULL, why, sizeof why);
  if (st != HS_OK) {
    backend_release(c);
    return CONTEXT_FAIL(owner, st, "%s", why);
  }
  *clone = c;
  return HS_OK;
}

void backend_release(hs_context *c) {
  const hs_allocator *a = c->options.allocator;
  if (c->process == os_process_id()) {
    if (c->queue) queue_stop(c->queue);
    if (c->engine && c->engine->close) c->engine->close(c);
  }
  hs_memory_release(a, c->queue);
  hs_memory_release(a, c->match_memory);
  hs_features_free(&c->view);
  hs_memory_release(a, c->slab);
  for (int use = 0; use < SCRATCH_COUNT; use++) hs_memory_release(a, c->scratch.memory[use]);
  hs_memory_release(a, c);
}

void backend_statistics(const hs_context *c, hs_statistics *statistics) {
  const size_t size = statistics->struct_size;
  uint64_t pinned = 0;
  *statistics = c->statistics;
  statistics->struct_size = size;
  statistics->device_bytes = 0;
  if (c->engine->memory) c->engine->memory(c, &statistics->device_bytes, &pinned);
  statistics->workspace_bytes =
      context_fixed_bytes(c->queue ? queue_threads(c->queue) : 0) + c->slab_bytes + c->match_bytes + pinned;
  for (int use = 0; use < SCRATCH_COUNT; use++) statistics->workspace_bytes += c->scratch.bytes[use];
}
