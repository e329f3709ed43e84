/* Making and ending contexts; their slab; their report. */
#include "pipeline/context/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/float_environment.h"
#include "cpu/threads.h"
#include "pipeline/device/cuda_frame.h"
#include "pipeline/base/features.h"
#include "pipeline/frame/grid_choice.h"
#include "pipeline/frame/in_flight.h"
#include "pipeline/device/cuda_match.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/run_frame.h"

hs_status context_fail(hs_context *context, hs_status status, const char *file, int line, const char *format, ...) {
  char text[ERROR_TEXT_BYTES / 2];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char *slash = strrchr(file, '/');
  hs_message_set(context->error, sizeof context->error, "%s (%s, %s:%d)", text, hs_status_name(status),
                 slash ? slash + 1 : file, line);
  return status;
}

/* The filters of the options: base, and steps [1..S+2]. Returns their largest radius. */
static int32_t make_filters(const hs_options *o, gaussian_filter *base, gaussian_filter step[LEVELS_MAX]) {
  const author_rule rule = (author_rule)o->blur_radius_rule;
  scalespace_filter(scalespace_base_sigma((double)o->sigma, (double)o->input_blur, o->first_octave), rule, base);
  int32_t radius = base->radius;
  for (int32_t s = 1; s <= o->scales + 2; s++) {
    scalespace_filter(scalespace_step_sigma((double)o->sigma, o->scales, s), rule, &step[s]);
    if (step[s].radius > radius) radius = step[s].radius;
  }
  return radius;
}

static void make_tables(hs_context *c) {
  c->params = options_params(&c->options);
  c->rules = options_pyramid_rules(&c->options);
  c->radius_max = make_filters(&c->options, &c->base_filter, c->step_filter);
  vote_scales_init(&c->scales);
}

static int32_t thread_count(const hs_options *o) { return o->threads > 0 ? o->threads : cpu_usable_threads(); }

/* What the CPU's part of a frame is worked on by. */
static void write_hybrid_report(const hs_context *c, char *text, size_t bytes) {
  char split[32] = "measured for each size";
  if (c->options.split > 0) snprintf(split, sizeof split, "%d on the device", c->options.split);
  snprintf(text, bytes, "octaves: %s, the smaller ones by the CPU (descriptors: %s)\n", split,
           c->ops.variant[STAGE_DESCRIBE]);
}

static void write_report(hs_context *c) {
  if (c->cuda) {
    const int head = cuda_frame_report(c, c->report, sizeof c->report);
    const size_t at = head > 0 && (size_t)head < sizeof c->report ? (size_t)head : 0;
    if (c->options.device == HS_DEVICE_HYBRID) write_hybrid_report(c, c->report + at, sizeof c->report - at);
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

int32_t context_threads(const hs_context *c) { return thread_count(&c->options); }

static hs_status start_queue(hs_context *c, char *message, size_t bytes) {
  const int32_t threads = thread_count(&c->options);
  stage_queue *queue = hs_memory_alloc(c->options.allocator, queue_bytes(threads));
  if (!queue) {
    hs_message_set(message, bytes, "out of memory: %zu bytes for %d threads", queue_bytes(threads), threads);
    return HS_ERR_MEMORY;
  }
  if (!queue_start(queue, threads)) {
    hs_memory_release(c->options.allocator, queue);
    hs_message_set(message, bytes, "cannot start %d threads", threads);
    return HS_ERR_THREAD;
  }
  c->queue = queue;
  return HS_OK;
}

hs_status context_start_queue(hs_context *c) {
  char why[ERROR_TEXT_BYTES / 2] = "";
  if (c->queue) return HS_OK;
  const hs_status st = start_queue(c, why, sizeof why);
  return st == HS_OK ? st : CONTEXT_FAIL(c, st, "%s", why);
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

/* The CPU's stages, and the device if one is asked for or, with HS_DEVICE_AUTO, usable. The CPU's stand in a device
   context too: they describe given keypoints. */
static hs_status choose_backend(hs_context *c, const char *variant, char *message, size_t bytes) {
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

static hs_status create(hs_context **context, const hs_options *options, char *message, size_t message_bytes) {
  hs_options adopted;
  hs_status st = options_adopt(&adopted, options, message, message_bytes);
  if (st == HS_OK) st = options_validate(&adopted, message, message_bytes);
  if (st != HS_OK) return st;
  hs_context *c = hs_memory_alloc(adopted.allocator, sizeof *c);
  if (!c) {
    hs_message_set(message, message_bytes, "out of memory: %zu bytes for a context", sizeof *c);
    return HS_ERR_MEMORY;
  }
  memset(c, 0, sizeof *c);
  c->options = adopted;
  c->options.variant = NULL;
  make_tables(c);
  char why[ERROR_TEXT_BYTES] = "";
  c->splits = &c->own_splits;
  if (pthread_mutex_init(&c->own_splits.lock, NULL) != 0) {
    hs_memory_release(adopted.allocator, c);
    hs_message_set(message, message_bytes, "cannot make a lock");
    return HS_ERR_THREAD;
  }
  st = choose_backend(c, adopted.variant, why, sizeof why);
  if (st != HS_OK) hs_message_set(message, message_bytes, "%s", why);
  if (st == HS_OK && !c->cuda) st = start_queue(c, message, message_bytes);
  if (st != HS_OK) {
    hs_destroy(c);
    return st;
  }
  write_report(c);
  *context = c;
  return HS_OK;
}

hs_status context_clone(hs_context *owner, int32_t threads, hs_context **clone) {
  char why[ERROR_TEXT_BYTES / 2] = "";
  hs_context *c = hs_memory_alloc(owner->options.allocator, sizeof *c);
  *clone = NULL;
  if (!c) return CONTEXT_FAIL(owner, HS_ERR_MEMORY, "out of memory: %zu bytes for a context", sizeof *c);
  memset(c, 0, sizeof *c);
  c->options = owner->options;
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
  hs_status st = owner->cuda ? cuda_frame_clone(c, owner, why, sizeof why) : start_queue(c, why, sizeof why);
  if (st != HS_OK) {
    hs_destroy(c);
    return CONTEXT_FAIL(owner, st, "%s", why);
  }
  *clone = c;
  return HS_OK;
}

hs_status hs_create_explained(hs_context **context, const hs_options *options, char *message, size_t message_bytes) {
  hs_message_set(message, message_bytes, "%s", "");
  if (context) *context = NULL;
  if (!context || !options) {
    hs_message_set(message, message_bytes, "hs_create: context or options is null");
    return HS_ERR_ARGUMENT;
  }
  /* Filters and thresholds are rounded here, so the caller's rounding must not reach them. */
  float_environment saved;
  float_environment_enter(&saved);
  const hs_status st = create(context, options, message, message_bytes);
  float_environment_leave(&saved);
  return st;
}

hs_status hs_create(hs_context **context, const hs_options *options) {
  return hs_create_explained(context, options, NULL, 0);
}

void hs_destroy(hs_context *c) {
  if (!c) return;
  const hs_allocator *a = c->options.allocator;
  context_end_flight(c);
  if (c->queue) queue_stop(c->queue);
  hs_memory_release(a, c->queue);
  match_cuda_destroy(c);
  cuda_frame_destroy(c);
  hs_memory_release(a, c->match_memory);
  hs_features_free(&c->view);
  hs_memory_release(a, c->slab);
  for (int use = 0; use < SCRATCH_COUNT; use++) hs_memory_release(a, c->scratch.memory[use]);
  if (c->splits == &c->own_splits) pthread_mutex_destroy(&c->own_splits.lock);
  hs_memory_release(a, c);
}

void context_end_flight(hs_context *c) {
  flight_stop(c->flight);
  hs_memory_release(c->options.allocator, c->flight);
  c->flight = NULL;
}

hs_status context_give_up_room(hs_context *c, hs_status status) {
  c->keypoint_capacity = c->feature_capacity = 0;
  return status;
}

hs_status context_scratch(hs_context *c, scratch_use use, size_t count, size_t item, void **memory) {
  host_scratch *s = &c->scratch;
  size_t bytes;
  if (!hs_size_mul(count, item, &bytes))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu x %zu bytes of scratch", count, item);
  if (bytes > s->bytes[use]) {
    hs_memory_release(c->options.allocator, s->memory[use]);
    s->bytes[use] = 0;
    s->memory[use] = hs_memory_alloc(c->options.allocator, bytes);
    if (!s->memory[use]) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes of scratch", bytes);
    s->bytes[use] = bytes;
  }
  *memory = s->memory[use];
  return HS_OK;
}

/* Scratch that a frame of this plan uses besides the slab. */
static uint64_t scratch_wanted(const hs_options *o, const frame_plan *plan) {
  const uint64_t pixels = (uint64_t)plan->request.width * (uint64_t)plan->request.height;
  return (o->equalize ? pixels : 0) + (grid_is_on(o) ? grid_bytes(plan->request.feature_capacity) : 0);
}

hs_status context_prepare(hs_context *c, const frame_request *r) {
  hs_status st = context_start_queue(c);
  if (st != HS_OK) return st;
  const int32_t width = r->source.width, height = r->source.height;
  const plan_request request = {.width = width,
                                .height = height,
                                .rules = c->rules,
                                .skipped_octaves = r->skipped_octaves,
                                .keypoint_capacity = c->keypoint_capacity,
                                .feature_capacity = c->feature_capacity,
                                .source_capacity = r->given_count,
                                .descriptor_bytes = r->descriptor_bytes,
                                .threads = queue_threads(c->queue),
                                .radius_max = c->radius_max,
                                .pyramid_work_floats = c->ops.pyramid_work_floats,
                                .pyramid_work_plane = c->ops.pyramid_work_plane};
  st = plan_make(&request, &c->plan);
  if (st != HS_OK)
    return context_give_up_room(c,
                                CONTEXT_FAIL(c, st, "a %d x %d image does not fit the address space", width, height));
  const uint64_t limit = c->options.max_memory_bytes,
                 wanted = c->plan.host_bytes + scratch_wanted(&c->options, &c->plan);
  if (limit > 0 && wanted > limit)
    return context_give_up_room(
        c, CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d image needs %llu bytes of workspace, max_memory_bytes is %llu",
                        width, height, (unsigned long long)wanted, (unsigned long long)limit));
  if (c->plan.host_bytes <= c->slab_bytes) return HS_OK;
  hs_memory_release(c->options.allocator, c->slab);
  c->slab_bytes = 0;
  c->slab = hs_memory_alloc(c->options.allocator, c->plan.host_bytes);
  if (!c->slab)
    return context_give_up_room(
        c, CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes of workspace", c->plan.host_bytes));
  c->slab_bytes = c->plan.host_bytes;
  return HS_OK;
}

/* What a context holds besides its slab; threads 0: none have been started. */
static uint64_t fixed_bytes(int32_t threads) { return sizeof(hs_context) + (threads > 0 ? queue_bytes(threads) : 0); }

/* On a device the plan follows from what the device's context chose, so one is made for the question. */
static hs_status query_device(hs_context *c, int32_t width, int32_t height, uint64_t *host_bytes,
                              uint64_t *device_bytes) {
  uint64_t pinned = 0;
  const hs_status st = cuda_frame_query(c, width, height, device_bytes, &pinned);
  *host_bytes = fixed_bytes(0) + pinned;
  return st;
}

static hs_status query(const hs_options *options, int32_t width, int32_t height, uint64_t *host_bytes,
                       uint64_t *device_bytes) {
  hs_options o;
  hs_status st = options_adopt(&o, options, NULL, 0);
  if (st == HS_OK) st = options_validate(&o, NULL, 0);
  if (HARTSIFT_HAVE_CUDA && st == HS_OK && o.device != HS_DEVICE_CPU) {
    hs_context *c = NULL;
    hs_options asking = o;
    asking.threads = 1;
    st = hs_create(&c, &asking);
    const bool on_device = c && c->cuda;
    if (on_device) st = query_device(c, width, height, host_bytes, device_bytes);
    hs_destroy(c);
    if (st != HS_OK || on_device) return st;
  }
  stage_ops ops;
  if (st == HS_OK) st = cpu_choose_ops(&ops, o.variant, NULL, 0) ? HS_OK : HS_ERR_OPTION;
  if (st != HS_OK) return st;
  frame_plan plan;
  gaussian_filter base, step[LEVELS_MAX];
  const plan_request request = {.width = width,
                                .height = height,
                                .rules = options_pyramid_rules(&o),
                                .descriptor_bytes = features_descriptor_bytes(o.descriptor),
                                .threads = thread_count(&o),
                                .radius_max = make_filters(&o, &base, step),
                                .pyramid_work_floats = ops.pyramid_work_floats,
                                .pyramid_work_plane = ops.pyramid_work_plane};
  st = plan_make(&request, &plan);
  if (st != HS_OK) return st;
  *host_bytes = plan.host_bytes + scratch_wanted(&o, &plan) + fixed_bytes(request.threads);
  *device_bytes = plan.device_bytes;
  return HS_OK;
}

hs_status hs_workspace_query(const hs_options *options, int32_t width, int32_t height, uint64_t *host_bytes,
                             uint64_t *device_bytes) {
  if (!options || !host_bytes || !device_bytes || width < 1 || height < 1) return HS_ERR_ARGUMENT;
  float_environment saved;
  float_environment_enter(&saved);
  const hs_status st = query(options, width, height, host_bytes, device_bytes);
  float_environment_leave(&saved);
  return st;
}

const char *hs_last_error(const hs_context *c) { return c ? c->error : ""; }

const char *hs_backend_report(const hs_context *c) { return c ? c->report : ""; }

hs_status hs_get_statistics(const hs_context *c, hs_statistics *statistics) {
  if (!c || !statistics || statistics->struct_size < sizeof(size_t)) return HS_ERR_ARGUMENT;
  const size_t size = statistics->struct_size, known = size < sizeof *statistics ? size : sizeof *statistics;
  hs_statistics s = c->statistics;
  s.struct_size = size;
  uint64_t pinned;
  cuda_frame_memory(c, &s.device_bytes, &pinned);
  s.workspace_bytes = fixed_bytes(c->queue ? queue_threads(c->queue) : 0) + c->slab_bytes + c->match_bytes + pinned;
  for (int use = 0; use < SCRATCH_COUNT; use++) s.workspace_bytes += c->scratch.bytes[use];
  uint64_t match_device_bytes;
  match_cuda_memory(c, &match_device_bytes, &pinned);
  s.device_bytes += match_device_bytes;
  s.workspace_bytes += pinned;
  flight_add_statistics(c->flight, &s);
  memcpy(statistics, &s, known);
  if (size > known) memset((unsigned char *)statistics + known, 0, size - known); /* fields of a later library */
  return HS_OK;
}
