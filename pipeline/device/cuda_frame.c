/* Opening of a context's device, and the run of one frame. Its memory is in cuda_memory.c. */
#include "pipeline/device/cuda_engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/options.h"

#include "cpu/schedule/threads.h"
#include "cuda/jpeg/jpeg_cuda.h"
#include "cuda/pyramid/pyramid_cuda.h"
#include "pipeline/device/cuda_state.h"

_Static_assert(sizeof(cuda_feature_record) == sizeof(hs_keypoint) && sizeof(cuda_feature_frame) == sizeof(hs_frame),
               "records are keypoints");

int32_t cuda_frame_devices(char *reason, size_t bytes) { return device_count(reason, bytes); }

/* If GPU `index` seems to be missing, all stay visible, so that the message can name their number. */
void cuda_frame_show_only(int32_t index) {
  if (index == 0 || index < device_count_files()) device_show_only(index);
}

static stage_status open_streams(cuda_state *s, const vote_scales *scales) {
  /* Priorities: first the levels that other octaves wait for, then the searches, then the keypoints. With several
     frames in flight, a long kernel on one frame's keypoints must not delay another frame's chain of short kernels. */
  stage_status st = device_stream_create_urgent(&s->stream, 2);
  if (st == STAGE_OK) st = device_stream_create_urgent(&s->keypoint, 0);
  if (st == STAGE_OK) st = device_event_create(&s->begun, false);
  if (st == STAGE_OK) st = device_event_create(&s->listed, false);
  if (st == STAGE_OK) st = device_event_create(&s->searched, false);
  if (st == STAGE_OK) st = device_event_create(&s->described, false);
  if (st == STAGE_OK) st = device_event_create(&s->crossed, false);
  if (st == STAGE_OK) st = device_event_create(&s->equalizing, false);
  if (st == STAGE_OK) st = device_event_create_sleeping(&s->ended);
  if (st == STAGE_OK) st = device_stream_create(&s->upload);
  for (int i = 0; i < UPLOAD_BANDS_MAX && st == STAGE_OK; i++) st = device_event_create(&s->uploaded[i], false);
  for (int i = 0; i < STAGING_SLOTS && st == STAGE_OK; i++) st = device_event_create(&s->slot_copied[i], false);
  for (int i = 0; i < TILE_SLOTS && st == STAGE_OK; i++) st = device_event_create(&s->tile_ended[i], false);
  for (int i = 0; i < SIDE_STREAMS && st == STAGE_OK; i++) {
    st = device_stream_create_urgent(&s->side[i], 1);
    if (st == STAGE_OK) st = device_event_create(&s->joined[i], false);
  }
  for (int32_t o = 0; o < OCTAVES_MAX && st == STAGE_OK; o++) st = device_event_create(&s->forked[o], false);
  void *memory = NULL, *device = NULL;
  if (st == STAGE_OK) st = device_alloc(&memory, sizeof *scales);
  s->scales = memory;
  if (st == STAGE_OK) st = device_copy_to(memory, scales, sizeof *scales, s->stream);
  if (st == STAGE_OK) st = device_stream_wait(s->stream);
  if (st == STAGE_OK) st = device_alloc_pinned(&memory, &device, sizeof *s->readback);
  if (st != STAGE_OK) return st;
  s->readback = memory;
  s->d_readback = device;
  return st;
}

/* Creates the context's streams, events and tables on the device. This also shows that the device is usable and runs
   this build's code. */
static hs_status start_device(hs_context *c, char *message, size_t bytes) {
  cuda_state *s = cuda_of(c);
  char reason[320];
  int32_t previous = -1;
  stage_status st = device_enter(s->device, &previous);
  if (st == STAGE_OK) st = open_streams(s, &c->scales);
  if (st == STAGE_OUT_OF_MEMORY)
    cuda_memory_reason(s, "a context's streams and tables", 0, reason, sizeof reason);
  else if (st != STAGE_OK)
    hs_message_set(reason, sizeof reason, "it does not start: %s", device_error_text());
  if (st != STAGE_OK) hs_message_set(message, bytes, "CUDA device %d (%s): %s", s->device, s->info.name, reason);
  device_leave(previous);
  return st == STAGE_OK ? HS_OK : HS_ERR_NO_DEVICE;
}

static hs_status create(hs_context *c, const char *variant, char *message, size_t bytes) {
  char reason[320];
  const int32_t index = c->options.device_index, count = device_count(reason, sizeof reason);
  if (count == 0) {
    c->device_shown = device_is_lost();
    hs_message_set(message, bytes, "CUDA device %d: %s", index, reason);
    return HS_ERR_NO_DEVICE;
  }
  if (index >= count) {
    hs_message_set(message, bytes, "options.device_index is %d, but there are %d CUDA devices", index, count);
    return HS_ERR_NO_DEVICE;
  }
  c->device_shown = true;
  cuda_state *s = hs_memory_alloc(c->options.allocator, sizeof *s);
  if (!s) {
    hs_message_set(message, bytes, "out of memory: %zu bytes for a device context", sizeof *s);
    return HS_ERR_MEMORY;
  }
  memset(s, 0, sizeof *s);
  s->device = index;
  c->engine_state = s;
  if (!c->is_worker) s->jpeg = hs_memory_alloc(c->options.allocator, sizeof *s->jpeg);
  if (!c->is_worker && !s->jpeg) {
    hs_message_set(message, bytes, "out of memory for a device context");
    cuda_frame_close(c);
    return HS_ERR_MEMORY;
  }
  if (s->jpeg) memset(s->jpeg, 0, sizeof *s->jpeg);
  hs_status st = cuda_variants_parse(&s->variants, variant, message, bytes) ? HS_OK : HS_ERR_OPTION;
  if (st == HS_OK && device_query(index, &s->info, reason, sizeof reason) != STAGE_OK) {
    hs_message_set(message, bytes, "CUDA device %d (%s): %s", index, s->info.name, reason);
    st = HS_ERR_NO_DEVICE;
  }
  s->pool = cuda_result_pool_create(index);
  if (st == HS_OK && !s->pool) {
    hs_message_set(message, bytes, "out of memory for the results of a device context");
    st = HS_ERR_MEMORY;
  }
  if (st == HS_OK) st = start_device(c, message, bytes);
  if (st != HS_OK) cuda_frame_close(c);
  return st;
}

void cuda_frame_close(hs_context *c) {
  cuda_state *s = cuda_of(c);
  int32_t previous = -1;
  if (!s) return;
  cuda_match_destroy(c);
  if (device_enter(s->device, &previous) == STAGE_OK) {
    if (s->stream) (void)device_stream_wait(s->stream);
    if (s->upload) (void)device_stream_wait(s->upload);
    cuda_graphs_free(s);
    cuda_jpeg_drop(s);
    for (int32_t o = 0; o < OCTAVES_MAX; o++) device_event_destroy(s->forked[o]);
    device_event_destroy(s->begun);
    device_event_destroy(s->listed);
    device_stream_destroy(s->upload);
    device_stream_destroy(s->keypoint);
    device_event_destroy(s->searched);
    device_event_destroy(s->described);
    device_event_destroy(s->crossed);
    device_event_destroy(s->equalizing);
    device_event_destroy(s->ended);
    for (int i = 0; i < UPLOAD_BANDS_MAX; i++) device_event_destroy(s->uploaded[i]);
    for (int i = 0; i < STAGING_SLOTS; i++) device_event_destroy(s->slot_copied[i]);
    for (int i = 0; i < TILE_SLOTS; i++) device_event_destroy(s->tile_ended[i]);
    for (int i = 0; i < SIDE_STREAMS; i++) {
      device_event_destroy(s->joined[i]);
      device_stream_destroy(s->side[i]);
    }
    cuda_primitives_free(&s->primitives, c->options.allocator);
    device_stream_destroy(s->stream);
    device_free(s->scales);
    device_free(s->zeros);
    device_free(s->slab);
    device_free_pinned(s->readback);
    device_free_pinned(s->handover);
    device_free_pinned(s->user_lists);
    device_free_pinned(s->slots);
    for (int i = 0; i < RESULT_SETS; i++) cuda_result_pool_drop(s->pool, s->results[i].block);
    cuda_result_pool_leave(s->pool);
  }
  device_leave(previous);
  if (!c->is_worker) hs_memory_release(c->options.allocator, s->jpeg);
  hs_memory_release(c->options.allocator, s->launches);
  if (s->copiers) queue_stop(s->copiers);
  hs_memory_release(c->options.allocator, s->copiers);
  hs_memory_release(c->options.allocator, s);
  c->engine_state = NULL;
}

hs_status cuda_frame_open(hs_context *c, const hs_context *owner, const char *variant, char *message, size_t bytes) {
  const hs_status st = create(c, variant, message, bytes);
  if (st != HS_OK || !owner) return st;
  cuda_state *s = cuda_of(c);
  const cuda_state *shared = cuda_of(owner);
  s->variants = shared->variants;
  s->jpeg = shared->jpeg;
  cuda_result_pool_leave(s->pool);
  s->pool = cuda_result_pool_share(shared->pool);
  return HS_OK;
}

/* Results with fewer bytes are copied, which takes about 10 us: a borrowed block would not be available for other
 * results. */
enum { BORROWED_BYTES_MIN = 128 << 10 };

hs_status cuda_frame_give(hs_context *c, int32_t set, const hs_features *found, hs_features *features) {
  cuda_state *s = cuda_of(c);
  const hs_allocator *allocator = c->options.allocator;
  const uint32_t arrays = 1u + (found->descriptors != NULL) + (found->frames != NULL);
  const size_t frame_bytes = found->frames ? sizeof *found->frames : 0;
  const size_t bytes =
      found->count * (sizeof *found->keypoints + frame_bytes + features_descriptor_bytes(found->descriptor_type));
  const uint32_t most = context_for_throughput(c) ? RESULT_BLOCKS_BORROWED_THROUGHPUT : RESULT_BLOCKS_BORROWED;
  if (allocator || bytes < BORROWED_BYTES_MIN ||
      !cuda_result_pool_hand_out(s->pool, s->results[set].block, arrays, most, &allocator))
    return features_copy(features, found, allocator);
  features_adopt(features, found, allocator);
  return HS_OK;
}

void cuda_frame_use_results(hs_context *c, int32_t set) { cuda_of(c)->set = set; }

/* Returns the addresses of the frame's picture and of its results. */
static record_target target_of(const cuda_state *s, const frame_request *r, const frame_placement *placement) {
  record_target t = {
      .source = r->source, .group = (int32_t)cuda_group_of(placement), .user_keypoints = placement->user_keypoints};
  t.source.data = cuda_slab_buffer(s, BUFFER_PICTURE);
  t.source.stride_bytes = s->picture_pitch;
  t.base = t.source;
  if (r->equalize && t.source.layout != SOURCE_GRAY) {
    t.base.data = cuda_slab_buffer(s, BUFFER_GRAY);
    t.base.stride_bytes = cuda_equalized_pitch(&t.source);
    t.base.layout = SOURCE_GRAY;
  }
  if (placement->octaves > 0) t.handover = cuda_handover_plane(s, s->d_handover);
  if (placement->resident) {
    t.outputs.records = (cuda_feature_record *)(void *)cuda_slab_buffer(s, BUFFER_RECORDS);
    t.outputs.descriptors = cuda_slab_buffer(s, BUFFER_DESCRIPTORS);
    t.outputs.frames = (cuda_feature_frame *)(void *)cuda_slab_buffer(s, BUFFER_FRAMES);
  } else {
    const result_set *pinned = &s->results[s->set];
    unsigned char *device = pinned->block->device;
    t.outputs.records = (cuda_feature_record *)(void *)device;
    if (pinned->descriptors) t.outputs.descriptors = device + (pinned->descriptors - pinned->block->host);
    if (pinned->frames)
      t.outputs.frames =
          (cuda_feature_frame *)(void *)(device + ((unsigned char *)(void *)pinned->frames - pinned->block->host));
  }
  return t;
}

static cuda_stream stream_of(const cuda_state *s, const frame_placement *placement) {
  return placement->stream ? placement->stream : s->stream;
}

/* Starts a frame whose memory is allocated. */
static hs_status launch(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  cuda_graph graph = NULL;
  const cuda_stream stream = stream_of(s, placement);
  record_target target = target_of(s, r, placement);
  const int32_t bands = r->equalize ? 1 : cuda_upload_bands(c, placement, &target.base);
  target.base_apart = bands > 1;
  const hs_status st = cuda_graph_of(c, r, placement, &target, &graph);
  if (st != HS_OK) return st;
  s->readback->handed_over = 0;
  s->readback->outputs = target.outputs;
  stage_status done = cuda_upload(c, r, &target, bands, stream);
  if (done == STAGE_OK && placement->user_keypoints.count > 0)
    done = cuda_user_keypoints_upload(s, &placement->user_keypoints, stream);
  if (done == STAGE_OK) done = cuda_launch_frame(c, r, &target, graph, stream);
  if (done == STAGE_OK) return HS_OK;
  const hs_status failed = cuda_failure(c, done, "starting the frame");
  /* Waits: copies may still be reading the caller's picture, and kernels launched before the failure may run. */
  (void)device_stream_wait(stream);
  (void)device_stream_wait(s->upload);
  (void)device_stream_wait(s->stream);
  (void)device_stream_wait(s->keypoint);
  for (int i = 0; i < SIDE_STREAMS; i++) (void)device_stream_wait(s->side[i]);
  return failed;
}

/* Clears the masks whenever their layout changes: refinement also reads the words between octaves, where a frame of
   another size may have left bits. */
static hs_status clear_masks(hs_context *c, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  const plan_entry *e = plan_find(&s->plan, BUFFER_CANDIDATES, 0);
  mask_layout layout;
  memset(&layout, 0, sizeof layout); /* clears the padding too: layouts are compared as bytes */
  layout.first_byte = e->offset;
  layout.picture_bytes = s->plan.device_bytes;
  layout.group = (int32_t)cuda_group_of(placement);
  layout.octaves_searched = s->octaves_searched;
  layout.words = s->mask_words;
  memcpy(layout.offset, s->mask_offset, sizeof layout.offset[0] * (size_t)s->plan.geometry.octave_count);
  if (memcmp(&layout, &s->cleared_masks, sizeof layout) == 0) return HS_OK;
  for (int32_t i = 0; i < layout.group; i++) {
    unsigned char *words = s->slab + (size_t)i * layout.picture_bytes + layout.first_byte;
    const stage_status st = device_clear(words, sizeof(uint32_t) * (size_t)layout.words, stream_of(s, placement));
    if (st != STAGE_OK) return cuda_failure(c, st, "clearing masks");
  }
  s->cleared_masks = layout;
  return HS_OK;
}

static hs_status begin(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  hs_status st = cuda_make_memory(c, r, placement);
  if (st == HS_OK && !placement->resident)
    st = cuda_make_result_memory(c, cuda_group_of(placement), r->descriptor_bytes);
  if (st == HS_OK && placement->octaves > 0) st = cuda_make_handover_memory(c);
  if (st == HS_OK) {
    const stage_status staging = cuda_upload_memory(c, r, placement);
    if (staging != STAGE_OK) st = cuda_failure(c, staging, "pinned memory for the picture");
  }
  if (st == HS_OK && r->equalize) {
    const stage_status zeros = cuda_equalize_memory(s);
    if (zeros != STAGE_OK) st = cuda_failure(c, zeros, "device memory for a histogram");
  }
  if (st != HS_OK) return context_reset_capacities(c, st);
  if (s->plan.geometry.octave_count > 0) {
    if (placement->user_keypoints.count > 0)
      memset(&s->cleared_masks, 0, sizeof s->cleared_masks); /* its lists may have overwritten masks */
    else
      st = clear_masks(c, placement);
    return st == HS_OK ? launch(c, r, placement) : st;
  }
  const way_choice nothing = {HS_WAY_GPU_KERNELS, false, "the picture has no octave: nothing is launched"};
  context_note_way(c, &nothing);
  memset(s->readback->counts, 0, sizeof s->readback->counts);
  s->readback->handed_over = 0;
  return HS_OK;
}

hs_status cuda_frame_begin(hs_context *c, const frame_request *r, const frame_placement *placement) {
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = cuda_check_stream(c, placement->stream);
  if (st == HS_OK) st = begin(c, r, placement);
  device_leave(previous);
  return st;
}

/* Waits for the enqueued work. Spins unless the context works for throughput, because spinning ends sooner. */
static stage_status finish(const hs_context *c, cuda_stream stream) {
  if (!context_for_throughput(c)) return device_stream_wait(stream);
  const stage_status st = device_event_record(cuda_of(c)->ended, stream);
  return st == STAGE_OK ? device_event_finish(cuda_of(c)->ended) : st;
}

static hs_status end(hs_context *c, const frame_placement *placement, bool *repeat) {
  cuda_state *s = cuda_of(c);
  *repeat = false;
  if (s->plan.geometry.octave_count == 0 && !placement->decoded) return HS_OK;
  const stage_status done = finish(c, stream_of(s, placement));
  if (done != STAGE_OK) {
    const hs_status failed = cuda_failure(c, done, "running the frame");
    (void)device_stream_wait(s->upload);
    return failed;
  }
  if (placement->decoded && cuda_jpeg_refused(c) >= 0) return HS_OK; /* wrong pixels: no list is grown */
  cuda_frame_counts most = {0};
  for (size_t i = 0; i < cuda_group_of(placement); i++) {
    const cuda_frame_counts *counts = &s->readback->counts[i];
    if (counts->keypoints > most.keypoints) most.keypoints = counts->keypoints;
    if (counts->oriented > most.oriented) most.oriented = counts->oriented;
    if (counts->features > most.features) most.features = counts->features;
  }
  const plan_request *capacity = &s->plan.request;
  if (placement->user_keypoints.count > 0) {
    *repeat = most.oriented > capacity->feature_capacity;
    if (*repeat) s->user_overflow = most.oriented;
    c->statistics.regrown_frames += *repeat;
    return HS_OK;
  }
  *repeat =
      context_grow_lists(c, most.keypoints, most.oriented, capacity->keypoint_capacity, capacity->feature_capacity) ||
      cuda_outgrows_results(c, most.features);
  return HS_OK;
}

hs_status cuda_frame_finish(hs_context *c, const frame_placement *placement, frame_result *result, bool *repeat) {
  cuda_state *s = cuda_of(c);
  int32_t previous;
  if (device_enter(s->device, &previous) != STAGE_OK) return cuda_failure(c, STAGE_DEVICE, "entering the device");
  const hs_status st = end(c, placement, repeat);
  device_leave(previous);
  if (st != HS_OK || *repeat || (placement->decoded && cuda_jpeg_refused(c) >= 0)) return st;
  const result_set *pinned = &s->results[s->set];
  const size_t capacity = s->kept_capacity, descriptor_bytes = s->plan.request.descriptor_bytes;
  for (size_t i = 0; i < cuda_group_of(placement); i++) {
    const unsigned char *descriptors = pinned->descriptors;
    result[i].lists = NULL;
    result[i].count = s->readback->counts[i].features;
    result[i].keypoints =
        placement->resident ? (const void *)cuda_slab_buffer(s, BUFFER_RECORDS) : pinned->records + i * capacity;
    if (descriptors) descriptors += i * capacity * descriptor_bytes;
    result[i].descriptors = placement->resident ? cuda_slab_buffer(s, BUFFER_DESCRIPTORS) : descriptors;
    result[i].frames = placement->resident ? (const void *)cuda_slab_buffer(s, BUFFER_FRAMES)
                       : pinned->frames    ? pinned->frames + i * capacity
                                           : NULL;
  }
  const cuda_frame_counts *last = &s->readback->counts[cuda_group_of(placement) - 1];
  c->statistics.frames += cuda_group_of(placement);
  c->statistics.candidates = last->candidates;
  c->statistics.keypoints = last->keypoints;
  c->statistics.features = last->features;
  return HS_OK;
}

bool cuda_frame_groups(const hs_context *c) {
  const cuda_variants *v = &cuda_of(c)->variants, defaults = {0};
  return c->options.scales == 3 && !cuda_wants_blur_work(c) && v->pyramid == defaults.pyramid &&
         v->refine == defaults.refine && v->orient == defaults.orient && v->describe == defaults.describe;
}

hs_status cuda_frame_run(hs_context *c, const frame_request *r, const frame_placement *placement,
                         frame_result *result) {
  bool repeat = true;
  hs_status st = HS_OK;
  while (st == HS_OK && repeat) {
    st = cuda_frame_begin(c, r, placement);
    if (st == HS_OK) st = cuda_frame_finish(c, placement, result, &repeat);
  }
  return st;
}

/* Spins, because the device sets the flag within a fraction of a millisecond. Queries the stream now and then, to
   notice a frame that failed. */
hs_status cuda_frame_level(hs_context *c, plane_view *level) {
  cuda_state *s = cuda_of(c);
  const volatile uint32_t *flag = &s->readback->handed_over;
  spin_wait wait = {0};
  while (!*flag) {
    if (!spin_wait_pause(&wait)) continue;
    int32_t previous;
    bool busy = false;
    stage_status st = device_enter(s->device, &previous);
    if (st == STAGE_OK) st = device_stream_query(s->stream, &busy);
    device_leave(previous);
    if (st != STAGE_OK) return cuda_failure(c, st, "running the frame");
    if (!busy && !*flag)
      return CONTEXT_FAIL(c, HS_ERR_INTERNAL, "a frame ended before the level that the CPU waits for");
  }
  atomic_thread_fence(memory_order_acquire);
  *level = cuda_handover_plane(s, s->handover);
  return HS_OK;
}

/* Writes the line on the JPEG decoder, once it has been asked for. */
static void write_decoder(const hs_context *c, char *text, size_t bytes) {
  const cuda_jpeg *j = cuda_of(c)->jpeg;
  if (j->state == DECODER_READY)
    snprintf(text, bytes, "JPEG: the GPU (%s)\n", j->reason);
  else if (!c->engine->decoder)
    snprintf(text, bytes, "JPEG: libjpeg (the GPU: %s)\n", c->engine->no_decoder);
  else if (j->state != DECODER_UNKNOWN)
    snprintf(text, bytes, "JPEG: libjpeg (the GPU: %s)\n", j->reason);
}

size_t cuda_frame_report(const hs_context *c, char *text, size_t bytes) {
  const cuda_state *s = cuda_of(c);
  const int n = snprintf(text, bytes, "device: CUDA %d, %s, compute capability %d.%d, driver %d.%d, %s\n", s->device,
                         s->info.name, s->info.major, s->info.minor, s->info.driver / 1000, s->info.driver % 1000 / 10,
                         s->info.code == DEVICE_CODE_PTX ? "code from PTX" : "machine code");
  size_t at = n > 0 && (size_t)n < bytes ? (size_t)n : 0;
  const int variants = cuda_variants_report(&s->variants, text + at, bytes - at);
  if (variants > 0 && (size_t)variants < bytes - at) at += (size_t)variants;
  write_decoder(c, text + at, bytes - at);
  return at + strlen(text + at);
}
