/* Defaults, ranges and descriptions of options, from options_table.inc, and the stages' thresholds that are computed
   from them. */
#include "pipeline/context/options.h"

#include <math.h>
#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/text.h"
#include "stages/table_math.h"

#define OPTIONS_TABLE "pipeline/context/options_table.inc"
#define UINT64_LIMIT  18446744073709551615.0

/* The same structs, made from the table. If a field is missing in the table, the assertions below fail. No padding
   follows the last field; otherwise a field appended later would read the padding's bytes. */
typedef struct option_fields {
  size_t struct_size;
#define OPTION(kind, type, field, ...) type field;
#define FIELD                          OPTION
#include OPTIONS_TABLE
  char end;
} option_fields;
typedef struct rule_fields {
  size_t struct_size;
#define RULE(kind, type, field, ...) type field;
#include OPTIONS_TABLE
  char end;
} rule_fields;
#define TABLE_HAS_ALL(fields, type)                                                                                    \
  _Static_assert(offsetof(fields, end) == sizeof(type), "options_table.inc has not the fields of " #type)
TABLE_HAS_ALL(option_fields, hs_options);
TABLE_HAS_ALL(rule_fields, hs_expert_options);
#define FIELD_FITS(fields, type, of, field)                                                                            \
  _Static_assert(offsetof(fields, field) == offsetof(type, field) &&                                                   \
                     _Generic(((type *)0)->field, of : 1, default : 0),                                                \
                 "options_table.inc has " #type "." #field " at another position or of another type");
#define OPTION(kind, type, field, ...) FIELD_FITS(option_fields, hs_options, type, field)
#define FIELD                          OPTION
#define RULE(kind, type, field, ...)   FIELD_FITS(rule_fields, hs_expert_options, type, field)
#include OPTIONS_TABLE

static const options_kind kind = OPTIONS_KIND(hs_options, profile);
static const options_kind expert_kind = OPTIONS_KIND(hs_expert_options, octave_rule);

/* ------------------------------------------------------------------ defaults */

#define APPLY(macro, list) macro list
#define BRACED(lowe, opencv, vlfeat, colmap)                                                                           \
  { lowe, opencv, vlfeat, colmap }
#define OF_LOWE(lowe, opencv, vlfeat, colmap)   lowe
#define OF_OPENCV(lowe, opencv, vlfeat, colmap) opencv
#define OF_VLFEAT(lowe, opencv, vlfeat, colmap) vlfeat
#define OF_COLMAP(lowe, opencv, vlfeat, colmap) colmap

static hs_options defaults_of(hs_profile profile) {
  hs_options o = {.struct_size = sizeof o};
#define OPTION(kind, type, field, low, high, values, defaults, ...)                                                    \
  {                                                                                                                    \
    static type const of_profiles[] = APPLY(BRACED, defaults);                                                         \
    o.field = of_profiles[profile];                                                                                    \
  }
#define FIELD OPTION
#include OPTIONS_TABLE
  return o;
}

static const hs_expert_options rules_of_profiles[] = {
#define RULE(kind, type, field, low, high, values, defaults, ...) .field = APPLY(OF_LOWE, defaults),
    {
        .struct_size = sizeof(hs_expert_options),
#include OPTIONS_TABLE
    },
#define RULE(kind, type, field, low, high, values, defaults, ...) .field = APPLY(OF_OPENCV, defaults),
    {
        .struct_size = sizeof(hs_expert_options),
#include OPTIONS_TABLE
    },
#define RULE(kind, type, field, low, high, values, defaults, ...) .field = APPLY(OF_VLFEAT, defaults),
    {
        .struct_size = sizeof(hs_expert_options),
#include OPTIONS_TABLE
    },
#define RULE(kind, type, field, low, high, values, defaults, ...) .field = APPLY(OF_COLMAP, defaults),
    {
        .struct_size = sizeof(hs_expert_options),
#include OPTIONS_TABLE
    },
};

const hs_expert_options *options_rules(const hs_options *o) {
  return o->expert ? o->expert : &rules_of_profiles[o->profile];
}

hs_status hs_options_init_sized(hs_options *options, size_t struct_size, hs_profile profile) {
  if ((unsigned)profile > HS_PROFILE_COLMAP) return HS_ERR_ARGUMENT;
  const hs_options defaults = defaults_of(profile);
  return options_give(options, struct_size, &defaults, kind);
}

hs_status hs_expert_options_init_sized(hs_expert_options *options, size_t struct_size, hs_profile profile) {
  if ((unsigned)profile > HS_PROFILE_COLMAP) return HS_ERR_ARGUMENT;
  return options_give(options, struct_size, &rules_of_profiles[profile], expert_kind);
}

hs_status options_complete(hs_options *mine, hs_expert_options *expert, const hs_options *callers, char *message,
                           size_t message_bytes) {
  char reason[ADOPT_REASON_BYTES];
  hs_options known = {0};
  hs_status st = options_adopt(&known, callers, kind, reason);
  hs_message_set(message, message_bytes, "%s", reason);
  if (st != HS_OK) return st;
  if ((unsigned)known.profile > HS_PROFILE_COLMAP)
    return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "options.profile is %d, expected 0..%d",
                           (int)known.profile, HS_PROFILE_COLMAP);
  const hs_options defaults = defaults_of(known.profile);
  *mine = defaults;
  st = options_adopt(mine, callers, kind, reason);
  if (mine->max_pixels == 0) mine->max_pixels = defaults.max_pixels;
  if (st != HS_OK || !mine->expert) return st;
  *expert = rules_of_profiles[mine->profile];
  st = options_adopt(expert, mine->expert, expert_kind, reason);
  mine->expert = expert;
  return hs_message_fail(st, message, message_bytes, "%s", reason);
}

/* ------------------------------------------------------------------ ranges */

static const hs_option_info option_infos[] = {
#define INFO(command_, of_expert_, structure, kind_, field_, low_, high_, values_, group_, help_)                      \
  {.name = #field_,                                                                                                    \
   .command = command_,                                                                                                \
   .help = help_,                                                                                                      \
   .values = values_,                                                                                                  \
   .type = HS_OPTION_##kind_,                                                                                          \
   .group = HS_OPTIONS_##group_,                                                                                       \
   .of_expert = of_expert_,                                                                                            \
   .offset = offsetof(structure, field_),                                                                              \
   .low = low_,                                                                                                        \
   .high = high_},
#define OPTION(kind, type, field, low, high, values, defaults, group, help, id, name, commands)                        \
  INFO(name, 0, hs_options, kind, field, low, high, values, group, help)
#define FIELD(kind, type, field, low, high, values, defaults, group, help)                                             \
  INFO(NULL, 0, hs_options, kind, field, low, high, values, group, help)
#define RULE(kind, type, field, low, high, values, defaults, group, help)                                              \
  INFO(NULL, 1, hs_expert_options, kind, field, low, high, values, group, help)
#include OPTIONS_TABLE
};
enum { OPTION_INFOS = sizeof option_infos / sizeof option_infos[0] };

const hs_option_info *hs_option_describe(size_t index) { return index < OPTION_INFOS ? &option_infos[index] : NULL; }

/* Narrows a field's range if it depends on other fields. */
static void limits_of(const hs_options *o, const hs_option_info *info, double *low, double *high) {
  *low = info->low;
  *high = info->high;
  if (info->of_expert) return;
  if (info->offset == offsetof(hs_options, input_blur))
    *high = (double)(o->first_octave < 0 ? 0.5f * o->sigma : o->sigma);
  if (info->offset == offsetof(hs_options, region_height)) *low = o->region_width > 0 ? 1 : 0;
  if (info->offset == offsetof(hs_options, grid_columns)) *low = o->grid_rows > 0 ? 1 : 0;
  if (info->offset == offsetof(hs_options, grid_rows)) *low = o->grid_columns > 0 ? 1 : 0;
}

static hs_status check_integer(const hs_option_info *info, int32_t value, double low, double high, char *message,
                               size_t message_bytes) {
  if (value >= low && value <= high) return HS_OK;
  return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "%s.%s is %d, expected %.0f..%.0f",
                         info->of_expert ? "expert" : "options", info->name, (int)value, low, high);
}

static hs_status check_number(const hs_option_info *info, double value, double low, double high, char *message,
                              size_t message_bytes) {
  if (value >= low && value <= high) return HS_OK; /* false for NaN */
  return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "options.%s is %g, expected %g..%g", info->name, value,
                         low, high);
}

static hs_status check_range(const hs_options *o, const hs_option_info *info, char *message, size_t message_bytes) {
  const char *field = (info->of_expert ? (const char *)options_rules(o) : (const char *)o) + info->offset;
  double low = 0, high = 0;
  limits_of(o, info, &low, &high);
  if (info->type == HS_OPTION_NUMBER) {
    float number = 0;
    memcpy(&number, field, sizeof number);
    return check_number(info, (double)number, low, high, message, message_bytes);
  }
  if (info->type != HS_OPTION_INTEGER && info->type != HS_OPTION_FLAG && info->type != HS_OPTION_CHOICE) return HS_OK;
  int32_t integer = 0;
  memcpy(&integer, field, sizeof integer);
  return check_integer(info, integer, low, high, message, message_bytes);
}
_Static_assert(sizeof(hs_norm) == sizeof(int32_t), "a CHOICE is read as an int32_t");
_Static_assert(OCTAVES_MAX == 32 && SCALES_MAX == 8 && DOMAIN_SIZES_MAX == 16, "options_table.inc has these ranges");

hs_status options_validate(const hs_options *o, char *message, size_t message_bytes) {
  for (size_t i = 0; i < OPTION_INFOS; i++) {
    const hs_status st = check_range(o, &option_infos[i], message, message_bytes);
    if (st != HS_OK) return st;
  }
  if (o->grid_columns > 0 && o->max_features == 0)
    return hs_message_fail(HS_ERR_OPTION, message, message_bytes,
                           "options.max_features is 0, expected how many features the grid is to spread");
  if (o->allocator && (!o->allocator->alloc || !o->allocator->release))
    return hs_message_fail(HS_ERR_OPTION, message, message_bytes, "options.allocator lacks alloc or release");
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

/* Returns the next smaller float, which turns "at least t" into "greater than the result". */
static float below(float t) { return nextafterf(t, -1.0f); }

static float candidate_threshold(const hs_options *o) {
  const hs_expert_options *rules = options_rules(o);
  const double contrast = (double)o->contrast / (double)o->scales;
  if (rules->candidate_rule == HS_RULE_OPENCV) return (float)((double)(int32_t)(127.5 * contrast) / 255.0);
  if (rules->candidate_rule == HS_RULE_VLFEAT) return below((float)(0.8 * contrast));
  return (float)(0.5 * contrast);
}

/* Returns the sizes of domain-size pooling, and for each the level offset at which it is sampled. Adjacent levels
   differ in scale by a factor of 2^(1/S). */
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
  return o->device == HS_DEVICE_HYBRID || cells > OPTIONS_DEVICE_CELLS_MAX ? 0 : (uint32_t)cells;
}

uint32_t options_device_max(const hs_options *o) {
  return options_use_grid(o) && options_device_cells(o) == 0 ? 0 : (uint32_t)o->max_features;
}
