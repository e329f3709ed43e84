/* Computes the memory that a context would need, before it is created. */
#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/frame_graph.h"
#include "cpu/schedule/fused_pass.h"
#include "cpu/schedule/stage_jobs.h"
#include "pipeline/base/features.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/options.h"
#include "pipeline/lifetime/engines.h"

/* Computes the bytes of a frame on a device. The plan depends on properties of the device, so a context is created for
   the query. sample_bytes: as for query_host. */
static hs_status query_device(hs_context *c, int32_t threads, int32_t width, int32_t height, size_t sample_bytes,
                              uint64_t *host_bytes, uint64_t *device_bytes) {
  uint64_t pinned = 0;
  row_feed feed = {.row_bytes = (size_t)width * sample_bytes};
  frame_request request = {.source = {.width = width,
                                      .height = height,
                                      .type = sample_bytes == 2 ? SOURCE_U16 : SOURCE_U8,
                                      .layout = SOURCE_GRAY},
                           .feed = &feed,
                           .descriptor_bytes = features_descriptor_bytes(c->options.descriptor)};
  bool is_tiled = sample_bytes > 0 && context_may_take_rows(&c->options, &c->params) &&
                  c->engine->tiles->query_rows(c, &request, device_bytes, &pinned);
  hs_status st = HS_OK;
  if (!is_tiled) {
    request.feed = NULL;
    request.source.type = SOURCE_U8;
    st = c->engine->query(c, width, height, device_bytes, &pinned);
    is_tiled = st == HS_OK && c->engine->tiles->query(c, &request, device_bytes, &pinned);
  }
  *host_bytes = context_fixed_bytes(is_tiled ? threads : 0) + pinned;
  return st;
}

/* Plans a frame on the CPU and computes its bytes. sample_bytes: bytes per sample if the picture is read row by row and
   the options allow that; 0: the picture is in memory. */
static hs_status query_host(const hs_options *o, const stage_ops *ops, int32_t width, int32_t height,
                            size_t sample_bytes, uint64_t *host_bytes, uint64_t *device_bytes) {
  frame_plan plan;
  uint64_t wanted;
  gaussian_filter base, step[LEVELS_MAX];
  const sift_params params = options_params(o);
  const int32_t threads = options_threads(o);
  plan_request request = {.width = width,
                          .height = height,
                          .rules = options_pyramid_rules(o),
                          .descriptor_bytes = features_descriptor_bytes(o->descriptor),
                          .threads = threads,
                          .radius_max = options_filters(o, &base, step),
                          .row_bytes = context_may_take_rows(o, &params) ? (size_t)width * sample_bytes : 0,
                          .affine = o->affine != 0,
                          .warped_floats = o->affine ? affine_work_floats(threads) : 0,
                          .pyramid_work_floats = ops->pyramid_work_floats,
                          .pyramid_work_plane = ops->pyramid_work_plane,
                          .detect_work_bytes = ops->detect_work_bytes,
                          .detect_reads_top = ops->detect_reads_top,
                          .octave_floats = fused_pass_floats(ops, threads, &base, step, o->scales),
                          .octave_bytes_min = PASS_BYTES_MIN,
                          .graph_bytes = frame_graph_sizes(ops, threads),
                          .params = &params,
                          .base_filter = &base,
                          .step_filter = step};
  hs_status st = context_plan(o, &request, &plan, &wanted);
  /* if the band of rows does not fit, the picture is decoded before processing */
  if (request.row_bytes > 0 && (st != HS_OK || wanted > o->max_memory_bytes)) {
    request.row_bytes = 0;
    st = context_plan(o, &request, &plan, &wanted);
  }
  if (st != HS_OK) return st;
  *host_bytes = wanted + context_fixed_bytes(threads);
  *device_bytes = plan.device_bytes;
  return HS_OK;
}

static hs_status query(const hs_options *options, int32_t width, int32_t height, size_t sample_bytes,
                       uint64_t *host_bytes, uint64_t *device_bytes) {
  hs_options o;
  hs_expert_options expert;
  hs_status st = options_complete(&o, &expert, options, NULL, 0);
  if (st == HS_OK) st = options_validate(&o, NULL, 0);
  if (engine_device_is_built() && st == HS_OK && o.device != HS_DEVICE_CPU) {
    hs_context *c = NULL;
    hs_options asking = o;
    asking.threads = 1;
    st = hs_create(&c, &asking);
    const bool on_device = c && c->engine->query;
    if (on_device) st = query_device(c, options_threads(&o), width, height, sample_bytes, host_bytes, device_bytes);
    hs_destroy(c);
    if (st != HS_OK || on_device) return st;
  }
  stage_ops ops;
  if (st == HS_OK) st = cpu_choose_ops(&ops, options_rules(&o)->variant, NULL, 0) ? HS_OK : HS_ERR_OPTION;
  return st == HS_OK ? query_host(&o, &ops, width, height, sample_bytes, host_bytes, device_bytes) : st;
}

hs_status hs_workspace_query(const hs_options *options, int32_t width, int32_t height, uint64_t *host_bytes,
                             uint64_t *device_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!options || !host_bytes || !device_bytes || width < 1 || height < 1) return HS_ERR_ARGUMENT;
  return query(options, width, height, 0, host_bytes, device_bytes);
}

hs_status hs_workspace_query_rows(const hs_options *options, int32_t width, int32_t height, hs_sample_type type,
                                  uint64_t *host_bytes, uint64_t *device_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!options || !host_bytes || !device_bytes || width < 1 || height < 1) return HS_ERR_ARGUMENT;
  if (type != HS_U8 && type != HS_U16) return HS_ERR_ARGUMENT;
  return query(options, width, height, type == HS_U8 ? 1 : 2, host_bytes, device_bytes);
}
