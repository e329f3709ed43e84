/* Profiles as presets of plain options, validation by a table of ranges, and the thresholds the stages compare with. */
#include "pipeline/context/options.h"

#include <math.h>
#include <string.h>

#include "cpu/schedule/usable_threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/message.h"
#include "stages/table_math.h"

OPTIONS_END_WITH(hs_options, unused);
OPTIONS_END_WITH(hs_expert_options, variant);
static const options_kind kind = OPTIONS_KIND(hs_options, profile);
static const options_kind expert_kind = OPTIONS_KIND(hs_expert_options, octave_rule);

/* What makes up a profile besides the plain options. */
static const hs_expert_options lowe_rules = {.struct_size = sizeof(hs_expert_options),
                                             .octave_rule = HS_RULE_LOWE,
                                             .blur_radius_rule = HS_RULE_LOWE,
                                             .border_rule = HS_BORDER_REFLECT_101,
                                             .candidate_rule = HS_RULE_LOWE,
                                             .refine_rule = HS_RULE_LOWE,
                                             .orientation_rule = HS_RULE_LOWE,
                                             .descriptor_rule = HS_RULE_LOWE};
static const hs_expert_options opencv_rules = {.struct_size = sizeof(hs_expert_options),
                                               .octave_rule = HS_RULE_OPENCV,
                                               .blur_radius_rule = HS_RULE_OPENCV,
                                               .border_rule = HS_BORDER_REFLECT_101,
                                               .candidate_rule = HS_RULE_OPENCV,
                                               .refine_rule = HS_RULE_OPENCV,
                                               .orientation_rule = HS_RULE_OPENCV,
                                               .descriptor_rule = HS_RULE_OPENCV};
static const hs_expert_options vlfeat_rules = {.struct_size = sizeof(hs_expert_options),
                                               .octave_rule = HS_RULE_VLFEAT,
                                               .blur_radius_rule = HS_RULE_VLFEAT,
                                               .border_rule = HS_BORDER_REPLICATE,
                                               .candidate_rule = HS_RULE_VLFEAT,
                                               .refine_rule = HS_RULE_VLFEAT,
                                               .orientation_rule = HS_RULE_VLFEAT,
                                               .descriptor_rule = HS_RULE_LOWE};

static const hs_expert_options *rules_of(hs_profile profile) {
  if (profile == HS_PROFILE_LOWE) return &lowe_rules;
  return profile == HS_PROFILE_OPENCV ? &opencv_rules : &vlfeat_rules;
}

const hs_expert_options *options_rules(const hs_options *o) { return o->expert ? o->expert : rules_of(o->profile); }

#define MAX_PIXELS_DEFAULT ((uint64_t)1 << 31)

static void set_lowe(hs_options *o) {
  o->first_octave = -1;
  o->scales = 3;
  o->upsample = HS_UPSAMPLE_HALF_PIXEL;
  o->sigma = 1.6f;
  o->input_blur = 0.5f;
  o->border = 5;
  o->contrast = 0.04f;
  o->settle = 0.6f;
  o->edge = 10.0f;
  o->norm = HS_NORM_L2;
  o->layout = HS_LAYOUT_UBC;
  o->descriptor = HS_DESCRIPTOR_U8;
  o->selection = HS_SELECT_RESPONSE;
  o->max_pixels = MAX_PIXELS_DEFAULT;
  o->device = HS_DEVICE_AUTO;
  o->dsp_sizes = 4;
  o->dsp_smallest = (float)(2.0 / 3.0);
  o->dsp_largest = (float)(7.0 / 3.0);
}

static void set_opencv(hs_options *o) {
  o->upsample = HS_UPSAMPLE_OPENCV;
  o->settle = 0.5f;
  o->descriptor = HS_DESCRIPTOR_F32;
}

static void set_vlfeat(hs_options *o) {
  o->upsample = HS_UPSAMPLE_ALIGNED;
  o->border = 1;
  o->contrast = 0.0f;
  o->max_orientations = 4;
  o->layout = HS_LAYOUT_VLFEAT;
  o->descriptor = HS_DESCRIPTOR_F32;
}

static void set_colmap(hs_options *o) {
  set_vlfeat(o);
  o->octaves = 4;
  o->contrast = 0.02f;
  o->max_orientations = 2;
  o->layout = HS_LAYOUT_UBC;
  o->norm = HS_NORM_ROOT;
  o->descriptor = HS_DESCRIPTOR_U8;
  o->max_features = 8192;
  o->selection = HS_SELECT_LEVELS;
  o->dsp_sizes = 10;
  o->dsp_smallest = (float)(1.0 / 6.0);
  o->dsp_largest = 3.0f;
}

static hs_options defaults_of(hs_profile profile) {
  hs_options o = {.struct_size = sizeof o, .profile = profile};
  set_lowe(&o);
  if (profile == HS_PROFILE_OPENCV) set_opencv(&o);
  if (profile == HS_PROFILE_VLFEAT) set_vlfeat(&o);
  if (profile == HS_PROFILE_COLMAP) set_colmap(&o);
  return o;
}

hs_status hs_options_init_sized(hs_options *options, size_t struct_size, hs_profile profile) {
  if ((unsigned)profile > HS_PROFILE_COLMAP) return HS_ERR_ARGUMENT;
  const hs_options defaults = defaults_of(profile);
  return options_give(options, struct_size, &defaults, kind);
}

hs_status hs_expert_options_init_sized(hs_expert_options *options, size_t struct_size, hs_profile profile) {
  if ((unsigned)profile > HS_PROFILE_COLMAP) return HS_ERR_ARGUMENT;
  return options_give(options, struct_size, rules_of(profile), expert_kind);
}

hs_status options_complete(hs_options *mine, hs_expert_options *expert, const hs_options *callers, char *message,
                           size_t message_bytes) {
  char reason[ADOPT_REASON_BYTES];
  hs_options known = {0};
  hs_status st = options_adopt(&known, callers, kind, reason);
  hs_message_set(message, message_bytes, "%s", reason);
  if (st != HS_OK) return st;
  if ((unsigned)known.profile > HS_PROFILE_COLMAP) {
    hs_message_set(message, message_bytes, "options.profile is %d, expected 0..%d", (int)known.profile,
                   HS_PROFILE_COLMAP);
    return HS_ERR_OPTION;
  }
  *mine = defaults_of(known.profile);
  st = options_adopt(mine, callers, kind, reason);
  if (mine->max_pixels == 0) mine->max_pixels = MAX_PIXELS_DEFAULT;
  if (st != HS_OK || !mine->expert) return st;
  *expert = *rules_of(mine->profile);
  st = options_adopt(expert, mine->expert, expert_kind, reason);
  mine->expert = expert;
  hs_message_set(message, message_bytes, "%s", reason);
  return st;
}

/* One field's range. */
typedef struct int_range {
  const char *name;
  int64_t value, low, high;
} int_range;

typedef struct float_range {
  const char *name;
  float value, low, high;
} float_range;

/* prefix: the struct's, as the caller knows it. */
static hs_status check_ranges(const int_range *ranges, size_t count, const char *prefix, char *message,
                              size_t message_bytes) {
  for (size_t i = 0; i < count; i++) {
    const int_range *r = &ranges[i];
    if (r->value >= r->low && r->value <= r->high) continue;
    hs_message_set(message, message_bytes, "%s.%s is %lld, expected %lld..%lld", prefix, r->name, (long long)r->value,
                   (long long)r->low, (long long)r->high);
    return HS_ERR_OPTION;
  }
  return HS_OK;
}

static hs_status check_rules(const hs_expert_options *e, char *message, size_t message_bytes) {
  const int_range ranges[] = {
      {"octave_rule", (int64_t)e->octave_rule, 0, HS_RULE_VLFEAT},
      {"blur_radius_rule", (int64_t)e->blur_radius_rule, 0, HS_RULE_VLFEAT},
      {"border_rule", (int64_t)e->border_rule, 0, HS_BORDER_REPLICATE},
      {"candidate_rule", (int64_t)e->candidate_rule, 0, HS_RULE_VLFEAT},
      {"refine_rule", (int64_t)e->refine_rule, 0, HS_RULE_VLFEAT},
      {"orientation_rule", (int64_t)e->orientation_rule, 0, HS_RULE_VLFEAT},
      {"descriptor_rule", (int64_t)e->descriptor_rule, 0, HS_RULE_VLFEAT},
  };
  return check_ranges(ranges, sizeof ranges / sizeof ranges[0], "expert", message, message_bytes);
}

static hs_status check_ints(const hs_options *o, char *message, size_t message_bytes) {
  const int_range ranges[] = {
      {"first_octave", o->first_octave, -1, 3},
      {"octaves", o->octaves, 0, OCTAVES_MAX},
      {"scales", o->scales, 1, SCALES_MAX},
      {"upsample", (int64_t)o->upsample, 0, HS_UPSAMPLE_OPENCV},
      {"border", o->border, 1, 64},
      {"max_orientations", o->max_orientations, 0, 18},
      {"upright", o->upright, 0, 1},
      {"norm", (int64_t)o->norm, 0, HS_NORM_ROOT},
      {"layout", (int64_t)o->layout, 0, HS_LAYOUT_VLFEAT},
      {"descriptor", (int64_t)o->descriptor, 0, HS_DESCRIPTOR_NONE},
      {"max_features", o->max_features, 0, (int64_t)1 << 30},
      {"selection", (int64_t)o->selection, 0, HS_SELECT_LEVELS},
      {"region_width", o->region_width, 0, INT32_MAX},
      {"region_height", o->region_height, o->region_width > 0 ? 1 : 0, INT32_MAX},
      {"threads", o->threads, 0, 1024},
      {"device", (int64_t)o->device, 0, HS_DEVICE_HYBRID},
      {"device_index", o->device_index, 0, 1023},
      {"decoder", (int32_t)o->decoder, 0, HS_DECODER_GPU},
      {"split", o->split, 0, OCTAVES_MAX},
      {"in_flight", o->in_flight, 0, 256},
      {"images_per_launch", o->images_per_launch, 0, 64},
      {"equalize", o->equalize, 0, 1},
      {"dsp", o->dsp, 0, 1},
      {"affine", o->affine, 0, 1},
      {"workload", (int64_t)o->workload, 0, HS_WORKLOAD_THROUGHPUT},
      {"dsp_sizes", o->dsp_sizes, 2, DOMAIN_SIZES_MAX},
      {"grid_columns", o->grid_columns, o->grid_rows > 0 ? 1 : 0, 4096},
      {"grid_rows", o->grid_rows, o->grid_columns > 0 ? 1 : 0, 4096},
  };
  return check_ranges(ranges, sizeof ranges / sizeof ranges[0], "options", message, message_bytes);
}

hs_status options_validate(const hs_options *o, char *message, size_t message_bytes) {
  hs_status st = check_ints(o, message, message_bytes);
  if (st == HS_OK) st = check_rules(options_rules(o), message, message_bytes);
  if (st != HS_OK) return st;
  const float_range ranges[] = {
      {"sigma", o->sigma, 0.8f, 4.0f},
      {"input_blur", o->input_blur, 0.0f, o->first_octave < 0 ? 0.5f * o->sigma : o->sigma},
      {"contrast", o->contrast, 0.0f, 1.0f},
      {"settle", o->settle, 0.5f, 1.0f},
      {"edge", o->edge, 1.0f, 1000.0f},
      {"dsp_smallest", o->dsp_smallest, 0.125f, 1.0f},
      {"dsp_largest", o->dsp_largest, 1.0f, 4.0f},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    const float_range *r = &ranges[i];
    if (r->value >= r->low && r->value <= r->high) continue; /* NaN fails */
    hs_message_set(message, message_bytes, "options.%s is %g, expected %g..%g", r->name, (double)r->value,
                   (double)r->low, (double)r->high);
    return HS_ERR_OPTION;
  }
  if (o->grid_columns > 0 && o->max_features == 0) {
    hs_message_set(message, message_bytes,
                   "options.max_features is 0, expected how many features the grid is to spread");
    return HS_ERR_OPTION;
  }
  if (o->allocator && (!o->allocator->alloc || !o->allocator->release)) {
    hs_message_set(message, message_bytes, "options.allocator lacks alloc or release");
    return HS_ERR_OPTION;
  }
  return HS_OK;
}

pyramid_rules options_pyramid_rules(const hs_options *o) {
  const pyramid_rules pyramid = {.first_octave = o->first_octave,
                                 .scales = o->scales,
                                 .border = o->border,
                                 .octaves = o->octaves,
                                 .octave_rule = (author_rule)options_rules(o)->octave_rule};
  return pyramid;
}

/* The next smaller float: turns "at least t" into "above the result". */
static float below(float t) { return nextafterf(t, -1.0f); }

static float candidate_threshold(const hs_options *o) {
  const hs_expert_options *rules = options_rules(o);
  const double contrast = (double)o->contrast / (double)o->scales;
  if (rules->candidate_rule == HS_RULE_OPENCV) return (float)((double)(int32_t)(127.5 * contrast) / 255.0);
  if (rules->candidate_rule == HS_RULE_VLFEAT) return below((float)(0.8 * contrast));
  return (float)(0.5 * contrast);
}

/* The sizes, and how many levels off each is sampled: scale-space levels lie a factor of 2^(1/S) apart. */
static domain_sizes domain_sizes_of(const hs_options *o) {
  domain_sizes d = {.count = o->dsp ? o->dsp_sizes : 0};
  const double least = (double)o->dsp_smallest, step = ((double)o->dsp_largest - least) / (double)(o->dsp_sizes - 1);
  for (int32_t i = 0; i < d.count; i++) {
    d.size[i] = (float)(least + step * (double)i);
    d.levels[i] = (int32_t)floor((double)o->scales * table_log2((double)d.size[i]) + 0.5);
  }
  return d;
}

sift_params options_params(const hs_options *o) {
  const hs_expert_options *rules = options_rules(o);
  const float contrast = (float)((double)o->contrast / (double)o->scales);
  const sift_params p = {
      .scales = o->scales,
      .sigma0 = o->sigma,
      .grid_shift = o->upsample == HS_UPSAMPLE_HALF_PIXEL && o->first_octave < 0 ? 0.25f : 0.0f,
      .border = o->border,
      .candidate_above = candidate_threshold(o),
      .extremum_ties = rules->candidate_rule == HS_RULE_OPENCV,
      .refine_rule = (author_rule)rules->refine_rule,
      .settle = o->settle,
      .contrast_above = rules->refine_rule == HS_RULE_VLFEAT ? contrast : below(contrast),
      .edge = o->edge,
      .orientation_rule = (author_rule)rules->orientation_rule,
      .max_orientations = o->max_orientations,
      .upright = o->upright != 0,
      .descriptor_rule = (author_rule)rules->descriptor_rule,
      .root = o->norm == HS_NORM_ROOT,
      .vlfeat_layout = o->layout == HS_LAYOUT_VLFEAT,
      .descriptor_float = o->descriptor == HS_DESCRIPTOR_F32,
      .domain = domain_sizes_of(o),
  };
  return p;
}

upsample_grid options_upsample_grid(const hs_options *o) {
  return o->upsample == HS_UPSAMPLE_ALIGNED ? GRID_ALIGNED : GRID_HALF_PIXEL;
}

int32_t options_filters(const hs_options *o, gaussian_filter *base, gaussian_filter step[LEVELS_MAX]) {
  const author_rule rule = (author_rule)options_rules(o)->blur_radius_rule;
  scalespace_filter(scalespace_base_sigma((double)o->sigma, (double)o->input_blur, o->first_octave), rule, base);
  int32_t radius = base->radius;
  for (int32_t s = 1; s <= o->scales + 2; s++) {
    scalespace_filter(scalespace_step_sigma((double)o->sigma, o->scales, s), rule, &step[s]);
    if (step[s].radius > radius) radius = step[s].radius;
  }
  return radius;
}

int32_t options_threads(const hs_options *o) { return o->threads > 0 ? o->threads : cpu_usable_threads(); }

bool options_use_grid(const hs_options *o) { return o->grid_columns > 0; }

uint32_t options_device_cells(const hs_options *o) {
  const uint64_t cells = (uint64_t)o->grid_columns * (uint64_t)o->grid_rows;
  return o->device == HS_DEVICE_HYBRID || cells > OPTIONS_DEVICE_CELLS_MOST ? 0 : (uint32_t)cells;
}

uint32_t options_device_most(const hs_options *o) {
  return options_use_grid(o) && options_device_cells(o) == 0 ? 0 : (uint32_t)o->max_features;
}
