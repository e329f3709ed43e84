/* The engines of this build. Only this file differs between builds with and without CUDA. */
#include "pipeline/lifetime/engines.h"

#include <stdlib.h>
#include <string.h>

#include "os/os_threads.h"
#include "cpu/dispatch.h"
#include "pipeline/base/text.h"
#include "pipeline/context/engine.h"
#include "pipeline/frame/run_frame.h"
#if HARTSIFT_HAVE_CUDA
#  include "pipeline/device/cuda_engine.h"
#endif

static const char without_cuda[] =
    "this build is without CUDA: build with -DHARTSIFT_CUDA=ON where a CUDA toolkit is installed, or work on the CPU";

static hs_status open_cpu(hs_context *c, const hs_context *owner, const char *variant, char *message, size_t bytes) {
  (void)owner;
  (void)variant;
  return context_start_queue_explained(c, message, bytes);
}

static const engine cpu_engine = {.name = "cpu",
                                  .reports_progress = true,
                                  .no_decoder = HARTSIFT_HAVE_CUDA ? "the context works on the CPU" : without_cuda,
                                  .open = open_cpu,
                                  .report = backend_report_cpu,
                                  .run = cpu_engine_run};

#if HARTSIFT_HAVE_CUDA

static const engine_tiles tiles = {.prepare = cuda_tiles_prepare,
                                   .rows = cuda_tiles_rows,
                                   .begin = cuda_tile_begin,
                                   .finish = cuda_tile_finish,
                                   .abandon = cuda_tiles_abandon,
                                   .query = cuda_tiles_query,
                                   .query_rows = cuda_tiles_query_rows};

static const engine_split split = {.open = cuda_frame_open,
                                   .close = cuda_frame_close,
                                   .report = cuda_frame_report,
                                   .run = cuda_frame_run,
                                   .begin = cuda_frame_begin,
                                   .level = cuda_frame_level,
                                   .finish = cuda_frame_finish,
                                   .want_capacity = cuda_frame_want_capacity,
                                   .records = cuda_frame_records};

static const engine_matching matching = {.nearest = cuda_match_nearest,
                                         .pairs = cuda_match_pairs,
                                         .k_nearest = cuda_match_k_nearest,
                                         .within = cuda_match_within};

static const engine_pairs pairs = {.free_bytes = cuda_pairs_free_bytes,
                                   .image_bytes = cuda_pairs_image_bytes,
                                   .pair_bytes = cuda_pairs_pair_bytes,
                                   .open = cuda_pairs_open,
                                   .close = cuda_pairs_close,
                                   .push = cuda_pairs_push,
                                   .pop = cuda_pairs_pop,
                                   .upload = cuda_pairs_upload,
                                   .free_image = cuda_pairs_free,
                                   .begin = cuda_pairs_begin,
                                   .finish = cuda_pairs_finish,
                                   .result = cuda_pairs_result,
                                   .error_text = cuda_pairs_error_text};

static const engine_decoder decoder = {.open = cuda_jpeg_open,
                                       .judge = cuda_jpeg_judge,
                                       .state = cuda_jpeg_state,
                                       .packed_memory = cuda_jpeg_packed_memory,
                                       .decode = cuda_jpeg_decode,
                                       .refused = cuda_jpeg_refused,
                                       .fetch = cuda_jpeg_fetch};

static const engine_primitives primitives = {.alloc_host = cuda_alloc_host,
                                             .free_host = cuda_free_host,
                                             .finish = cuda_primitives_finish,
                                             .reduce = cuda_reduce,
                                             .tile_stats = cuda_tile_stats,
                                             .histogram256 = cuda_histogram256,
                                             .equalize = cuda_equalize,
                                             .convolve1d = cuda_convolve1d};

/* Members that are equal in the CUDA engine and the hybrid engine. */
#  define ON_CUDA                                                                                                      \
    .offloads = true, .equalizes = true, .devices = cuda_frame_devices, .show_only = cuda_frame_show_only,             \
    .memory = cuda_frame_memory, .query = cuda_frame_query, .frames_in_memory = cuda_frames_in_memory,                 \
    .use_results = cuda_frame_use_results, .give = cuda_frame_give, .user_lists = cuda_user_lists,                     \
    .user_keypoints_of = cuda_user_keypoints_of, .tiles = &tiles, .matching = &matching, .pairs = &pairs,              \
    .primitives = &primitives

static const engine cuda_engine = {.name = "cuda",
                                   .open = cuda_frame_open,
                                   .close = cuda_frame_close,
                                   .report = cuda_frame_report,
                                   .run = cuda_frame_run,
                                   .groups = cuda_frame_groups,
                                   .decoder = &decoder,
                                   ON_CUDA};

/* The hybrid engine. It has no groups, because it divides each frame, and no decoder, because the CPU needs the pixels
   too. */
static const engine hybrid_engine = {.name = "hybrid",
                                     .no_decoder = "the context is a hybrid one",
                                     .open = gpu_cpu_split_open,
                                     .close = gpu_cpu_split_close,
                                     .report = gpu_cpu_split_report,
                                     .run = gpu_cpu_split_run,
                                     .split = &split,
                                     ON_CUDA};

static const engine *const device_engines[] = {
    [HS_DEVICE_AUTO] = &cuda_engine, [HS_DEVICE_CUDA] = &cuda_engine, [HS_DEVICE_HYBRID] = &hybrid_engine};
#else
static const engine *const device_engines[HS_DEVICE_HYBRID + 1];
#endif

bool engine_device_is_built(void) { return device_engines[HS_DEVICE_AUTO] != NULL; }

/* Signals are blocked meanwhile, and so in the threads that a driver starts: a program that later blocks and takes them
   would else be ended by one. */
int32_t engine_count_devices(char *reason, size_t bytes) {
  const engine *e = device_engines[HS_DEVICE_AUTO];
  if (e) {
    os_signal_mask saved;
    const bool is_masked = os_signals_block(&saved);
    const int32_t count = e->devices(reason, bytes);
    if (is_masked) os_signals_restore(&saved);
    return count;
  }
  hs_message_set(reason, bytes, "this build has no CUDA");
  return 0;
}

void engine_show_only(int32_t index) {
  const engine *e = device_engines[HS_DEVICE_AUTO];
  if (e) e->show_only(index);
}

static hs_status open_device(hs_context *c, const char *variant, char *message, size_t bytes) {
  c->engine = device_engines[c->options.device];
  if (c->engine) return c->engine->open(c, NULL, variant, message, bytes);
  return hs_message_fail(HS_ERR_NO_DEVICE, message, bytes, "CUDA device %d: %s", c->options.device_index, without_cuda);
}

/* Reads HARTSIFT_DEVICE (auto | cpu | cuda | cuda:N | hybrid), which narrows HS_DEVICE_AUTO. Without N,
   options.device_index is used. */
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
  return hs_message_fail(HS_ERR_OPTION, message, bytes,
                         "HARTSIFT_DEVICE is \"%s\", expected auto, cpu, cuda, cuda:0..9 or hybrid", text);
}

hs_status engine_choose(hs_context *c, const char *variant, char *message, size_t bytes) {
  hs_status st = narrow_device(&c->options, message, bytes);
  bool on_device = st == HS_OK && c->options.device != HS_DEVICE_CPU;
  if (on_device) {
    const bool is_auto = c->options.device == HS_DEVICE_AUTO;
    st = open_device(c, variant, message, bytes);
    on_device = st == HS_OK;
    if (st == HS_ERR_NO_DEVICE && is_auto) {
      hs_message_set(c->no_device, sizeof c->no_device, "%s", message ? message : "");
      st = HS_OK;
    }
    if (st == HS_ERR_OPTION && is_auto && cpu_choose_ops(&c->ops, variant, NULL, 0)) {
      hs_message_set(c->no_device, sizeof c->no_device,
                     "expert.variant names variants of the CPU, so the GPU is not used");
      st = HS_OK;
    }
  }
  if (st != HS_OK) return st;
  if (!on_device) c->engine = &cpu_engine;
  if (!cpu_choose_ops(&c->ops, on_device ? NULL : variant, message, bytes)) return HS_ERR_OPTION;
  return on_device ? HS_OK : c->engine->open(c, NULL, variant, message, bytes);
}
