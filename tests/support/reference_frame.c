/* Runs the reference's stages one after another over whole lists. */
#include "tests/support/reference_frame.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/ref/stages_ref.h"
#include "pipeline/context/options.h"
#include "stages/pyramid.h"

enum { KEYPOINT_ROOM = 1 << 17, FEATURE_ROOM = 1 << 18 };

static void *room(size_t count, size_t size) { return calloc(count ? count : 1, size); }

/* Computes sizes and offsets of levels and masks. */
static bool lay_out(reference_frame *f, int32_t stride_padding) {
  const int32_t levels = f->options.scales + 3;
  size_t words = 0, floats = 0;
  for (int pass = 0; pass < 2; pass++) {
    words = floats = 0;
    for (int32_t o = 0; o < f->geometry.octave_count; o++) {
      const int32_t w = f->geometry.width[o], h = f->geometry.height[o];
      const size_t stride = (size_t)(w + 3) / 4 * 4 + (size_t)stride_padding;
      octave_view *v = &f->octaves[o];
      *v = (octave_view){.level_floats = stride * (size_t)h,
                         .stride = stride,
                         .width = w,
                         .height = h,
                         .octave = f->geometry.first_octave + o};
      v->levels = pass ? f->levels + floats : NULL;
      f->mask_offset[o] = (uint32_t)words;
      floats += (size_t)levels * v->level_floats;
      words += (size_t)f->options.scales * (size_t)h * (size_t)mask_words_per_row(w);
      words = (words + 3) / 4 * 4;
    }
    if (pass) break;
    f->levels = room(floats, sizeof(float));
    f->candidates = room(words, sizeof(uint32_t));
    f->settled = room(words, sizeof(uint32_t));
    if (!f->levels || !f->candidates || !f->settled) return false;
  }
  f->level_count = floats;
  f->mask_words = (uint32_t)words;
  return true;
}

static bool make_lists(reference_frame *f) {
  keypoint_list *k = &f->keypoints;
  *k = (keypoint_list){.count = &f->counts[0], .capacity = KEYPOINT_ROOM};
  k->x = room(KEYPOINT_ROOM, sizeof(float));
  k->y = room(KEYPOINT_ROOM, sizeof(float));
  k->sigma = room(KEYPOINT_ROOM, sizeof(float));
  k->response = room(KEYPOINT_ROOM, sizeof(float));
  k->column = room(KEYPOINT_ROOM, sizeof(int32_t));
  k->row = room(KEYPOINT_ROOM, sizeof(int32_t));
  k->octave = room(KEYPOINT_ROOM, sizeof(int16_t));
  k->level = room(KEYPOINT_ROOM, sizeof(int16_t));
  feature_list *lists[2] = {&f->oriented, &f->features};
  bool ok = k->x && k->y && k->sigma && k->response && k->column && k->row && k->octave && k->level;
  for (int i = 0; i < 2; i++) {
    *lists[i] = (feature_list){.count = &f->counts[1 + i], .capacity = FEATURE_ROOM};
    lists[i]->keypoint = room(FEATURE_ROOM, sizeof(uint32_t));
    lists[i]->orientation = room(FEATURE_ROOM, sizeof(float));
    ok = ok && lists[i]->keypoint && lists[i]->orientation;
  }
  return ok;
}

static void build_levels(reference_frame *f, const source_view *source, int32_t o, plane_view work, plane_view spare) {
  const hs_options *p = &f->options;
  const author_rule radius_rule = (author_rule)options_rules(p)->blur_radius_rule;
  const border_mode border = (border_mode)options_rules(p)->border_rule;
  gaussian_filter filter;
  octave_view *v = &f->octaves[o];
  if (o == 0) {
    scalespace_filter(scalespace_base_sigma((double)p->sigma, (double)p->input_blur, p->first_octave), radius_rule,
                      &filter);
    base_args base = {.source = *source,
                      .first_octave = p->first_octave,
                      .grid = p->upsample == HS_UPSAMPLE_ALIGNED ? GRID_ALIGNED : GRID_HALF_PIXEL,
                      .border = border,
                      .filter = &filter,
                      .gray = octave_level(v, 2),
                      .work = work,
                      .doubled = spare,
                      .out = octave_level(v, 0)};
    if (p->first_octave < 0) {
      base.gray.width = source->width;
      base.gray.height = source->height;
    }
    base_ref(NULL, &base);
  } else {
    const halve_args halve = {octave_level(&f->octaves[o - 1], p->scales), octave_level(v, 0), {0}};
    halve_ref(NULL, &halve);
  }
  for (int32_t s = 1; s <= p->scales + 2; s++) {
    scalespace_filter(scalespace_step_sigma((double)p->sigma, p->scales, s), radius_rule, &filter);
    work.width = v->width, work.height = v->height;
    const blur_args blur = {octave_level(v, s - 1), octave_level(v, s), work, border, &filter, {0}};
    blur_ref(NULL, &blur);
  }
}

static bool build_pyramid(reference_frame *f, const hs_image *image) {
  const source_view source = {.data = image->data,
                              .width = image->width,
                              .height = image->height,
                              .stride_bytes = image->stride_bytes ? image->stride_bytes : (size_t)image->width,
                              .type = SOURCE_U8,
                              .layout = SOURCE_GRAY};
  if (f->geometry.octave_count == 0) return true;
  const octave_view *first = &f->octaves[0];
  plane_view work = {room(first->level_floats, sizeof(float)), first->width, first->height, first->stride};
  plane_view spare = {room(first->level_floats, sizeof(float)), first->width, first->height, first->stride};
  const bool ok = work.data && spare.data;
  for (int32_t o = 0; o < f->geometry.octave_count && ok; o++) build_levels(f, &source, o, work, spare);
  free(work.data);
  free(spare.data);
  return ok;
}

static void detect(reference_frame *f) {
  for (int32_t o = 0; o < f->geometry.octave_count; o++) {
    const int32_t words = mask_words_per_row(f->octaves[o].width);
    const mask_view candidates = {f->candidates + f->mask_offset[o], words},
                    settled = {f->settled + f->mask_offset[o], words};
    uint64_t count = 0;
    const extrema_args extrema = {f->octaves[o], candidates, f->params, &count};
    const refine_args refine = {f->octaves[o], candidates, settled, f->params};
    const locate_args locate = {f->octaves[o], settled, f->params, f->filter, f->keypoints};
    extrema_ref(NULL, &extrema);
    refine_ref(NULL, &refine);
    locate_ref(NULL, &locate);
    f->candidate_count += count;
  }
}

static bool describe(reference_frame *f) {
  uint32_t kept = 0;
  memcpy(f->features.keypoint, f->oriented.keypoint, f->counts[1] * sizeof(uint32_t));
  memcpy(f->features.orientation, f->oriented.orientation, f->counts[1] * sizeof(float));
  f->counts[2] = f->counts[1];
  const select_args select = {.keypoints = f->keypoints,
                              .features = f->features,
                              .max_features = (uint32_t)f->options.max_features,
                              .rule = (select_rule)f->options.selection,
                              .kept_described = &kept};
  if (f->options.max_features > 0) select_ref(NULL, &select);
  f->descriptor_bytes = DESCRIBE_LENGTH * (f->params.descriptor_float ? sizeof(float) : 1);
  f->descriptors = room(f->counts[2], f->descriptor_bytes);
  const describe_args args = {f->octaves,
                              f->geometry.first_octave,
                              f->geometry.octave_count,
                              0,
                              f->keypoints,
                              f->features,
                              f->params,
                              f->scales,
                              f->descriptors};
  if (f->descriptors) describe_ref(NULL, &args);
  return f->descriptors != NULL;
}

bool reference_frame_make(reference_frame *f, const hs_image *image, const hs_options *options,
                          const position_filter *filter, int32_t stride_padding) {
  memset(f, 0, sizeof *f);
  f->options = *options;
  f->params = options_params(options);
  const pyramid_rules rules = options_pyramid_rules(options);
  if (pyramid_geometry_of(image->width, image->height, &rules, &f->geometry) != STAGE_OK) return false;
  f->filter = (position_filter){.width = image->width,
                                .height = image->height,
                                .x0 = INT32_MIN,
                                .y0 = INT32_MIN,
                                .x1 = INT32_MAX,
                                .y1 = INT32_MAX};
  if (filter) f->filter = *filter;
  f->scales = room(1, sizeof(vote_scales));
  if (!f->scales || !make_lists(f) || !lay_out(f, stride_padding) || !build_pyramid(f, image)) return false;
  vote_scales_init(f->scales);
  detect(f);
  const orient_args orient = {f->octaves, f->geometry.first_octave, 0, f->keypoints, f->oriented, f->params, f->scales};
  orient_ref(NULL, &orient);
  return f->counts[0] <= KEYPOINT_ROOM && f->counts[1] <= FEATURE_ROOM && describe(f);
}

void reference_frame_free(reference_frame *f) {
  void *all[] = {f->levels,
                 f->candidates,
                 f->settled,
                 f->scales,
                 f->keypoints.x,
                 f->keypoints.y,
                 f->keypoints.sigma,
                 f->keypoints.response,
                 f->keypoints.column,
                 f->keypoints.row,
                 f->keypoints.octave,
                 f->keypoints.level,
                 f->oriented.keypoint,
                 f->oriented.orientation,
                 f->features.keypoint,
                 f->features.orientation,
                 f->descriptors};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
  memset(f, 0, sizeof *f);
}

uint8_t *reference_noise(int32_t width, int32_t height, uint32_t seed, int32_t smooth) {
  const size_t count = (size_t)width * (size_t)height;
  uint8_t *pixels = malloc(count);
  if (!pixels) return NULL;
  uint32_t state = seed * 2654435761u + 1u;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    pixels[i] = (uint8_t)(state >> 24);
  }
  for (int32_t pass = 0; pass < smooth; pass++)
    for (size_t i = 0; i + (size_t)width + 1 < count; i++)
      pixels[i] =
          (uint8_t)((pixels[i] + pixels[i + 1] + pixels[i + (size_t)width] + pixels[i + (size_t)width + 1]) / 4);
  return pixels;
}
