/* The choice of what works for a context; see backend.h. */
#include "pipeline/device/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/dispatch.h"
#include "cpu/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/device/cuda_frame.h"
#include "pipeline/device/cuda_jpeg.h"
#include "pipeline/device/cuda_match.h"

/* What the CPU's part of a frame is worked on by. */
static void write_hybrid_report(const hs_context *c, char *text, size_t bytes) {
  char split[32] = "measured for each size";
  if (c->options.split > 0) snprintf(split, sizeof split, "%d on the device", c->options.split);
  snprintf(text, bytes, "octaves: %s, the smaller ones by the CPU (descriptors: %s)\n", split,
           c->ops.variant[STAGE_DESCRIBE]);
}

/* What decodes JPEGs, once somebody has asked. */
static void write_decoder_report(const hs_context *c, char *text, size_t bytes) {
  const char *reason;
  const cuda_jpeg_state state = cuda_jpeg_ask(c, &reason);
  if (state == CUDA_JPEG_READY)
    snprintf(text, bytes, "JPEG: the GPU (%s)\n", reason);
  else if (state != CUDA_JPEG_UNKNOWN)
    snprintf(text, bytes, "JPEG: libjpeg (the GPU: %s)\n", reason);
}

void backend_report(hs_context *c) {
  if (c->cuda) {
    const int head = cuda_frame_report(c, c->report, sizeof c->report);
    size_t at = head > 0 && (size_t)head < sizeof c->report ? (size_t)head : 0;
    write_decoder_report(c, c->report + at, sizeof c->report - at);
    at = strlen(c->report);
    if (c->options.device == HS_DEVICE_HYBRID) write_hybrid_report(c, c->report + at, sizeof c->report - at);
    const size_t end = strlen(c->report);
    if (c->no_device[0])
      snprintf(c->report + end, sizeof c->report - end,
               "fallback: images that do not fit are processed by the CPU (%s)\n", c->no_device);
    return;
  }
  const int head =
      snprintf(c->report, sizeof c->report, c->no_device[0] ? "device: CPU (%s)\n" : "device: CPU\n", c->no_device);
  size_t at = head > 0 ? (size_t)head : 0;
  for (int i = 0; i < STAGE_COUNT && at < sizeof c->report; i++) {
    const int n =
        snprintf(c->report + at, sizeof c->report - at, "%s: %s\n", stage_name((stage_id)i), c->ops.variant[i]);
    if (n > 0) at += (size_t)n;
  }
}

bool backend_falls_back(const hs_context *c, hs_status status) {
  return status == HS_ERR_MEMORY && c->cuda && c->options.device == HS_DEVICE_AUTO;
}

void backend_note_fallback(hs_context *c, const char *reason) {
  if (c->no_device[0] || !reason[0]) return;
  snprintf(c->no_device, sizeof c->no_device, "%s", reason);
  backend_report(c);
}

/* Reads HARTSIFT_DEVICE (auto | cpu | cuda | cuda:N | hybrid), which narrows HS_DEVICE_AUTO; without a number
   options.device_index stays. */
static hs_status narrow_device(hs_options *o, char *message, size_t bytes) {
  const char *text = getenv("HARTSIFT_DEVICE");
  if (o->device != HS_DEVICE_AUTO || !text || !*text || strcmp(text, "auto") == 0) return HS_OK;
  if (strcmp(text, "cpu") == 0) {
    o->device = HS_DEVICE_CPU;
    return HS_OK;
  }
  if (strncmp(text, "cuda", 4) == 0 &&
      (text[4] == '\0' || (text[4] == ':' && text[5] >= '0' && text[5] <= '9' && !text[6]))) {
    o->device = HS_DEVICE_CUDA;
    if (text[4]) o->device_index = text[5] - '0';
    return HS_OK;
  }
  if (strcmp(text, "hybrid") == 0) {
    o->device = HS_DEVICE_HYBRID;
    return HS_OK;
  }
  hs_message_set(message, bytes, "HARTSIFT_DEVICE is \"%s\", expected auto, cpu, cuda, cuda:0..9 or hybrid", text);
  return HS_ERR_OPTION;
}

/* A device context has the CPU's stages too: for octaves and images that the CPU does. */
hs_status backend_choose(hs_context *c, const char *variant, char *message, size_t bytes) {
  hs_status st = narrow_device(&c->options, message, bytes);
  if (st == HS_OK && c->options.device != HS_DEVICE_CPU) {
    st = cuda_frame_create(c, variant, message, bytes);
    if (st == HS_ERR_NO_DEVICE && c->options.device == HS_DEVICE_AUTO) {
      hs_message_set(c->no_device, sizeof c->no_device, "%s", message ? message : "");
      st = HS_OK;
    }
    if (st == HS_ERR_OPTION && c->options.device == HS_DEVICE_AUTO && cpu_choose_ops(&c->ops, variant, NULL, 0)) {
      hs_message_set(c->no_device, sizeof c->no_device, "the variants asked for are the CPU's");
      st = HS_OK;
    }
  }
  if (st != HS_OK) return st;
  return cpu_choose_ops(&c->ops, c->cuda ? NULL : variant, message, bytes) ? HS_OK : HS_ERR_OPTION;
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
  c->is_lane = true;
  c->keypoint_capacity = owner->keypoint_capacity;
  c->feature_capacity = owner->feature_capacity;
  c->splits = owner->splits;
  hs_status st =
      owner->cuda ? cuda_frame_clone(c, owner, why, sizeof why) : context_start_queue_explained(c, why, sizeof why);
  if (st != HS_OK) {
    backend_release(c);
    return CONTEXT_FAIL(owner, st, "%s", why);
  }
  *clone = c;
  return HS_OK;
}

void backend_release(hs_context *c) {
  const hs_allocator *a = c->options.allocator;
  if (c->process == getpid()) {
    if (c->queue) queue_stop(c->queue);
    cuda_match_destroy(c);
    cuda_frame_destroy(c);
  }
  hs_memory_release(a, c->queue);
  hs_memory_release(a, c->match_memory);
  hs_features_free(&c->view);
  hs_memory_release(a, c->slab);
  for (int use = 0; use < SCRATCH_COUNT; use++) hs_memory_release(a, c->scratch.memory[use]);
  if (c->splits == &c->own_splits) pthread_mutex_destroy(&c->own_splits.lock);
  hs_memory_release(a, c);
}

void backend_statistics(const hs_context *c, hs_statistics *statistics) {
  const size_t size = statistics->struct_size;
  uint64_t pinned, match_device_bytes;
  *statistics = c->statistics;
  statistics->struct_size = size;
  cuda_frame_memory(c, &statistics->device_bytes, &pinned);
  statistics->workspace_bytes =
      context_fixed_bytes(c->queue ? queue_threads(c->queue) : 0) + c->slab_bytes + c->match_bytes + pinned;
  for (int use = 0; use < SCRATCH_COUNT; use++) statistics->workspace_bytes += c->scratch.bytes[use];
  cuda_match_memory(c, &match_device_bytes, &pinned);
  statistics->device_bytes += match_device_bytes;
  statistics->workspace_bytes += pinned;
}
