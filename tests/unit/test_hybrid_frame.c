/*
 * The split of a frame between a device and the CPU, with a fake device.
 *
 * The fake device's pinned results come from a whole frame on the CPU, and its last level comes from the reference.
 */
#include "tests/support/test.h"

#include "pipeline/context/engine.h"
#include "pipeline/frame/run_frame.h"
#include "tests/support/reference_frame.h"

/* State of the fake device. */
static struct {
  const hs_features *whole;
  const reference_frame *reference;
  hs_keypoint *records;
  unsigned char *descriptors;
  uint32_t room;
  int32_t octaves;    /* number of octaves that the device makes in the current frame; 0: all */
  int32_t too_short;  /* number of further frames whose lists are too short */
  int32_t runs_whole; /* number of frames without the CPU */
} device;

static hs_status begin_on_device(hs_context *c, const frame_request *r, const frame_placement *place) {
  (void)c;
  (void)r;
  device.octaves = place->octaves;
  return HS_OK;
}

static hs_status hand_over(hs_context *c, plane_view *level) {
  (void)c;
  *level = octave_level(&device.reference->octaves[device.octaves], 0);
  return HS_OK;
}

static hs_status end_on_device(hs_context *c, const frame_placement *place, frame_result *result, bool *repeat) {
  const hs_features *f = device.whole;
  const int32_t end = f->keypoints[0].octave + (place->octaves > 0 ? place->octaves : OCTAVES_MAX);
  *repeat = device.too_short > 0;
  if (*repeat) {
    device.too_short--;
    c->statistics.regrown_frames++;
    return HS_OK;
  }
  uint32_t count = 0;
  while (count < f->count && f->keypoints[count].octave < end) count++;
  if (device.room < count) device.room = count;
  memcpy(device.records, f->keypoints, count * sizeof *f->keypoints);
  memcpy(device.descriptors, f->descriptors, count * (size_t)HS_DESCRIPTOR_LENGTH);
  const feature_records records = {device.records, NULL, device.descriptors, HS_DESCRIPTOR_LENGTH};
  if (c->options.max_features > 0)
    count = select_records(&records, count, (uint32_t)c->options.max_features, c->options.selection);
  *result = (frame_result){.count = count, .keypoints = device.records, .descriptors = device.descriptors};
  c->statistics.frames++;
  c->statistics.features = count;
  return HS_OK;
}

static hs_status run_on_device(hs_context *c, const frame_request *r, const frame_placement *place,
                               frame_result *result) {
  bool repeat = true;
  device.runs_whole++;
  while (repeat) {
    (void)begin_on_device(c, r, place);
    (void)end_on_device(c, place, result, &repeat);
  }
  return HS_OK;
}

static void want_room(hs_context *c, uint32_t features) {
  (void)c;
  device.room += features;
}

static uint32_t room_of_device(const hs_context *c, feature_records *records) {
  (void)c;
  *records = (feature_records){device.records, NULL, device.descriptors, HS_DESCRIPTOR_LENGTH};
  return device.room;
}

static hs_status open_nothing(hs_context *c, const hs_context *owner, const char *variant, char *message,
                              size_t bytes) {
  (void)c, (void)owner, (void)variant, (void)message, (void)bytes;
  return HS_OK;
}

static void close_nothing(hs_context *c) { (void)c; }

static const engine_split fake_split = {.open = open_nothing,
                                        .close = close_nothing,
                                        .run = run_on_device,
                                        .begin = begin_on_device,
                                        .level = hand_over,
                                        .finish = end_on_device,
                                        .want_capacity = want_room,
                                        .records = room_of_device};

static const engine fake_hybrid = {
    .name = "hybrid", .close = gpu_cpu_split_close, .run = gpu_cpu_split_run, .split = &fake_split};

static hs_context *hybrid_context(const hs_options *options) {
  hs_context *c = extraction_context(options);
  c->engine = &fake_hybrid;
  assert_int_equal(gpu_cpu_split_open(c, NULL, NULL, NULL, 0), HS_OK);
  return c;
}

/* The picture and its features from the CPU, computed once for all cases because the reference is slow. */
static struct {
  hs_image image;
  hs_options options;
  hs_features features;
  reference_frame reference;
} whole;

BEFORE_TESTS() {
  whole.image = extraction_scene(230, 190, 5, NULL);
  whole.options = extraction_options(HS_PROFILE_LOWE);
  whole.features = extraction_once(&whole.options, &whole.image);
  assert_true(reference_frame_make(&whole.reference, &whole.image, &whole.options, NULL, 0));
}

AFTER_TESTS() { reference_frame_free(&whole.reference); }

/* The requested results, and the fake device. */
typedef struct fake_frame {
  hs_options options;
  hs_features expected;
} fake_frame;

static void play_selected(fake_frame *p, int32_t max_features, hs_selection selection) {
  p->options = whole.options;
  p->options.max_features = max_features;
  p->options.selection = selection;
  p->expected = extraction_once(&p->options, &whole.image);
  memset(&device, 0, sizeof device);
  device.whole = &whole.features;
  device.reference = &whole.reference;
  device.records = calloc(whole.features.count, sizeof *device.records);
  device.descriptors = calloc(whole.features.count, HS_DESCRIPTOR_LENGTH);
  assert_true(device.records && device.descriptors && whole.reference.geometry.octave_count >= 3);
}

static void play(fake_frame *p, int32_t max_features) { play_selected(p, max_features, HS_SELECT_RESPONSE); }

static void play_ends(fake_frame *p) {
  free(device.records);
  free(device.descriptors);
  hs_features_free(&p->expected);
}

static void check_frame(const fake_frame *p, hs_context *c, const char *what) {
  const position_filter all = {.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX};
  const frame_request request = {.source = {.data = whole.image.data,
                                            .width = whole.image.width,
                                            .height = whole.image.height,
                                            .stride_bytes = (size_t)whole.image.width,
                                            .type = SOURCE_U8,
                                            .layout = SOURCE_GRAY},
                                 .filter = all,
                                 .descriptor_bytes = HS_DESCRIPTOR_LENGTH};
  frame_result result = {0};
  const frame_placement host = {0};
  assert_int_equal(c->engine->run(c, &request, &host, &result), HS_OK);
  hs_features got = p->expected;
  got.count = result.count;
  got.keypoints = (hs_keypoint *)(uintptr_t)result.keypoints;
  got.descriptors = (void *)(uintptr_t)result.descriptors;
  extraction_check_equal(&p->expected, &got, what);
}

/* Every split gives the same bytes and counts each frame once, with all features and with the best of both parts. */
TEST(test_splits) {
  static const struct {
    int32_t most;
    hs_selection selection;
  } cases[] = {{0, HS_SELECT_RESPONSE}, {20, HS_SELECT_RESPONSE}, {20, HS_SELECT_SCALE},
               {5, HS_SELECT_LEVELS},   {40, HS_SELECT_LEVELS},   {100, HS_SELECT_LEVELS}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fake_frame p;
    play_selected(&p, cases[i].most, cases[i].selection);
    assert_true(cases[i].most == 0 || p.expected.count < whole.features.count);
    for (p.options.split = 1; p.options.split <= whole.reference.geometry.octave_count; p.options.split++) {
      scoped_context *c = hybrid_context(&p.options);
      for (int frame = 0; frame < 2; frame++) check_frame(&p, c, "split");
      assert_int_equal(c->statistics.frames, 2);
    }
    play_ends(&p);
  }
}

/* A frame that is repeated because a list of the device, of the CPU or of the results is too short counts once. */
TEST(test_repeated_frames_count_once) {
  fake_frame p;
  play(&p, 0);
  p.options.split = 1;
  hs_context *c = hybrid_context(&p.options);
  device.too_short = 2;
  c->keypoint_capacity = c->feature_capacity = 32;
  check_frame(&p, c, "repeated");
  assert_true(c->statistics.regrown_frames >= 3); /* lists grow once more for the results */
  assert_int_equal(c->statistics.frames, 1);
  assert_int_equal(c->statistics.features, p.expected.count);
  check_frame(&p, c, "after it");
  assert_int_equal(c->statistics.frames, 2);
  hs_destroy(c);
  play_ends(&p);
}

/* Measurement frames are not counted, and each size is measured once. */
TEST(test_measured_split) {
  fake_frame p;
  play(&p, 0);
  hs_context *c = hybrid_context(&p.options);
  for (int frame = 0; frame < 3; frame++) check_frame(&p, c, "measured");
  assert_int_equal(c->statistics.frames, 3);
  assert_int_equal(((const split_table *)c->engine_shared)->next, 1);
  hs_destroy(c);
  play_ends(&p);
}

/* A split is chosen only if its median is better by more than the trials differ. */
TEST(test_gain_of_a_split) {
  static const double undivided[SPLIT_TRIALS] = {10, 10.5, 10, 9.5, 10, 10.2, 9.8, 40, 10};
  double divided[SPLIT_TRIALS];
  for (int i = 0; i < SPLIT_TRIALS; i++) divided[i] = undivided[i] - 0.15;
  assert_true(split_gain(undivided, divided) < 0.0); /* less than the spread of 0.2 */
  for (int i = 0; i < SPLIT_TRIALS; i++) divided[i] = undivided[i] - 2.0;
  assert_true(split_gain(undivided, divided) > 1.5 && split_gain(undivided, divided) < 2.0);
  assert_true(split_gain(divided, undivided) < -2.0);
  for (int i = 0; i < SPLIT_TRIALS; i++) divided[i] = i % 2 ? 3.0 : 9.0; /* faster, but nobody knows by how much */
  assert_true(split_gain(undivided, divided) < 0.0);
  for (int i = 0; i < SPLIT_TRIALS; i++) divided[i] = 5.0;
  divided[4] = 1000.0; /* a single late frame does not matter */
  assert_true(split_gain(undivided, divided) > 4.0);
}

/* A worker does not measure, nor use what its owner measured: with frames in flight, all octaves are the GPU's. */
TEST(test_no_split_in_flight) {
  fake_frame p;
  play(&p, 0);
  hs_context *c = hybrid_context(&p.options);
  c->is_worker = true;
  for (int frame = 1; frame <= 2; frame++) {
    check_frame(&p, c, "in flight");
    assert_int_equal(device.runs_whole, frame);
  }
  assert_int_equal(((const split_table *)c->engine_shared)->next, 0);
  c->options.split = 2; /* what the user asks for is done */
  check_frame(&p, c, "in flight, divided");
  assert_int_equal(device.runs_whole, 2);
  c->is_worker = false;
  hs_destroy(c);
  play_ends(&p);
}

/* If memory lacks for the CPU's part, the device extracts the whole frame. If the user requested the split, the frame
 * fails and names the missing memory. */
TEST(test_no_room_on_the_cpu) {
  fake_frame p;
  play(&p, 0);
  hs_context *c = hybrid_context(&p.options);
  c->options.max_memory_bytes = 1;
  check_frame(&p, c, "without room for the CPU's part");
  assert_string_equal(hs_last_error(c), "");
  assert_int_equal(((const split_table *)c->engine_shared)->kept[0].split, whole.reference.geometry.octave_count);
  const int32_t before = device.runs_whole;
  check_frame(&p, c, "the next one");
  assert_int_equal(device.runs_whole, before + 1);
  assert_int_equal(c->statistics.frames, 2);
  hs_destroy(c);
  play_ends(&p);
}
