/*
 * Options: the profiles' table, ranges and their messages, and structs of older and newer headers.
 */

#include "tests/support/test.h"

#include "pipeline/context/options.h"

static hs_options options_of(hs_profile profile) {
  hs_options o;
  assert_int_equal(hs_options_init(&o, profile), HS_OK);
  return o;
}

/* ------------------------------------------------------------------ descriptions */

static size_t names_in(const char *values) {
  size_t count = 1;
  for (const char *at = strchr(values, '|'); at; at = strchr(at + 1, '|')) count++;
  return count;
}

TEST(every_field_is_described) {
  size_t end[2] = {sizeof(size_t), sizeof(size_t)}, count = 0;
  for (const hs_option_info *info; (info = hs_option_describe(count)) != NULL; count++) {
    assert_true(info->help[0] != '\0' && info->help[strlen(info->help) - 1] != '.');
    assert_true(info->group >= HS_OPTIONS_WORK && info->group <= HS_OPTIONS_METHOD);
    assert_true(info->offset >= end[info->of_expert] && info->offset < end[info->of_expert] + sizeof(void *));
    const bool is_pointer = info->type == HS_OPTION_TEXT || info->type == HS_OPTION_POINTER;
    const bool is_wide = info->type == HS_OPTION_COUNT || info->type == HS_OPTION_BYTES;
    end[info->of_expert] = info->offset + (is_wide ? sizeof(uint64_t) : is_pointer ? sizeof(void *) : sizeof(int32_t));
    if (info->type == HS_OPTION_CHOICE) assert_true((double)names_in(info->values) == info->high + 1);
    if (info->type < HS_OPTION_COUNT) assert_true(info->low < info->high);
  }
  assert_true(count > 40);
  assert_int_equal(end[0], sizeof(hs_options));
  assert_int_equal(end[1], sizeof(hs_expert_options));
  assert_null(hs_option_describe(count + 1));
}

/* ------------------------------------------------------------------ profiles */

/* A row of the table in stages/METHOD.md: an integer field for lowe, opencv, vlfeat, colmap. */
typedef struct int_row {
  const char *name;
  size_t offset;
  int32_t values[4];
} int_row;

typedef struct float_row {
  const char *name;
  size_t offset;
  float values[4];
} float_row;

#define ROW(FIELD, A, B, C, D)                                                                                         \
  {                                                                                                                    \
#    FIELD, offsetof(hs_options, FIELD), { A, B, C, D }                                                                \
  }

static const int_row int_rows[] = {
    ROW(first_octave, -1, -1, -1, -1),
    ROW(octaves, 0, 0, 0, 4),
    ROW(scales, 3, 3, 3, 3),
    ROW(upsample, HS_UPSAMPLE_HALF_PIXEL, HS_UPSAMPLE_OPENCV, HS_UPSAMPLE_ALIGNED, HS_UPSAMPLE_ALIGNED),
    ROW(border, 5, 5, 1, 1),
    ROW(max_orientations, 0, 0, 4, 2),
    ROW(upright, 0, 0, 0, 0),
    ROW(norm, HS_NORM_L2, HS_NORM_L2, HS_NORM_L2, HS_NORM_ROOT),
    ROW(layout, HS_LAYOUT_UBC, HS_LAYOUT_UBC, HS_LAYOUT_VLFEAT, HS_LAYOUT_UBC),
    ROW(descriptor, HS_DESCRIPTOR_U8, HS_DESCRIPTOR_F32, HS_DESCRIPTOR_F32, HS_DESCRIPTOR_U8),
    ROW(max_features, 0, 0, 0, 8192),
    ROW(region_x, 0, 0, 0, 0),
    ROW(region_y, 0, 0, 0, 0),
    ROW(region_width, 0, 0, 0, 0),
    ROW(region_height, 0, 0, 0, 0),
    ROW(threads, 0, 0, 0, 0),
    ROW(device, HS_DEVICE_AUTO, HS_DEVICE_AUTO, HS_DEVICE_AUTO, HS_DEVICE_AUTO),
    ROW(device_index, 0, 0, 0, 0),
    ROW(dsp, 0, 0, 0, 0),
    ROW(dsp_sizes, 4, 4, 4, 10),
};

static const float_row float_rows[] = {
    ROW(sigma, 1.6f, 1.6f, 1.6f, 1.6f),
    ROW(input_blur, 0.5f, 0.5f, 0.5f, 0.5f),
    ROW(contrast, 0.04f, 0.04f, 0.0f, 0.02f),
    ROW(settle, 0.6f, 0.5f, 0.6f, 0.6f),
    ROW(edge, 10.0f, 10.0f, 10.0f, 10.0f),
    ROW(dsp_smallest, 0.6666667f, 0.6666667f, 0.6666667f, 0.16666667f),
    ROW(dsp_largest, 2.3333333f, 2.3333333f, 2.3333333f, 3.0f),
    ROW(affine, 0, 0, 0, 0),
    ROW(workload, 0, 0, 0, 0),
};
enum { INT_ROWS = sizeof int_rows / sizeof int_rows[0], FLOAT_ROWS = sizeof float_rows / sizeof float_rows[0] };

static int32_t int_at(const hs_options *o, size_t offset) {
  int32_t v;
  memcpy(&v, (const unsigned char *)o + offset, sizeof v);
  return v;
}

static float float_at(const hs_options *o, size_t offset) {
  float v;
  memcpy(&v, (const unsigned char *)o + offset, sizeof v);
  return v;
}

TEST(test_profiles) {
  for (int p = 0; p < 4; p++) {
    const hs_options o = options_of((hs_profile)p);
    assert_int_equal(o.struct_size, sizeof o);
    assert_int_equal(o.profile, p);
    for (size_t i = 0; i < INT_ROWS; i++)
      if (int_at(&o, int_rows[i].offset) != int_rows[i].values[p])
        fail_msg("profile %d: %s is %d, expected %d", p, int_rows[i].name, int_at(&o, int_rows[i].offset),
                 int_rows[i].values[p]);
    for (size_t i = 0; i < FLOAT_ROWS; i++)
      if (float_at(&o, float_rows[i].offset) != float_rows[i].values[p])
        fail_msg("profile %d: %s is %g", p, float_rows[i].name, (double)float_at(&o, float_rows[i].offset));
    assert_int_equal(o.selection, p == HS_PROFILE_COLMAP ? HS_SELECT_LEVELS : HS_SELECT_RESPONSE);
    assert_true(o.max_pixels == (uint64_t)1 << 31 && o.max_memory_bytes == 0);
    assert_null(o.expert);
    assert_null(o.allocator);
    assert_int_equal(options_validate(&o, NULL, 0), HS_OK);
  }
}

TEST(test_init_arguments) {
  hs_options o;
  assert_int_equal(hs_options_init(NULL, HS_PROFILE_LOWE), HS_ERR_ARGUMENT);
  assert_int_equal(hs_options_init(&o, (hs_profile)4), HS_ERR_ARGUMENT);
  assert_int_equal(hs_options_init(&o, (hs_profile)-1), HS_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------ ranges */

/* Fails unless the public call, without a context, refuses the options with a message that names the field. */
static void expect_refused(const hs_options *o, const char *field) {
  char message[256], name[64];
  hs_context *context = (hs_context *)(void *)message;
  assert_int_equal(hs_create_explained(&context, o, message, sizeof message), HS_ERR_OPTION);
  assert_null(context);
  snprintf(name, sizeof name, "options.%s", field);
  if (!strstr(message, name)) fail_msg("\"%s\" does not name %s", message, name);
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, 64, 64, &host, &device), HS_ERR_OPTION);
}

static void expect_accepted(const hs_options *o, const char *field) {
  char message[256];
  if (options_validate(o, message, sizeof message) != HS_OK) fail_msg("%s: %s", field, message);
}

typedef struct int_range_case {
  const char *name;
  size_t offset;
  int32_t low, high;
} int_range_case;

#define RANGE(FIELD, LOW, HIGH)                                                                                        \
  { #FIELD, offsetof(hs_options, FIELD), LOW, HIGH }

static const int_range_case int_ranges[] = {
    RANGE(first_octave, -1, 3),
    RANGE(octaves, 0, 32),
    RANGE(scales, 1, 8),
    RANGE(upsample, 0, 2),
    RANGE(border, 1, 64),
    RANGE(max_orientations, 0, 18),
    RANGE(upright, 0, 1),
    RANGE(norm, 0, 1),
    RANGE(layout, 0, 1),
    RANGE(descriptor, 0, 2),
    RANGE(max_features, 0, 1 << 30),
    RANGE(selection, 0, 2),
    RANGE(region_width, 0, INT32_MAX),
    RANGE(region_height, 0, INT32_MAX),
    RANGE(threads, 0, 1024),
    RANGE(device, 0, 3),
    RANGE(split, 0, 32),
    RANGE(in_flight, 0, 256),
    RANGE(images_per_launch, 0, 64),
    RANGE(equalize, 0, 1),
    RANGE(dsp, 0, 1),
    RANGE(dsp_sizes, 2, 16),
    RANGE(affine, 0, 1),
    RANGE(workload, 0, 1),
};

static void put_int(hs_options *o, size_t offset, int32_t v) { memcpy((unsigned char *)o + offset, &v, sizeof v); }
static void put_float(hs_options *o, size_t offset, float v) { memcpy((unsigned char *)o + offset, &v, sizeof v); }

TEST(test_int_ranges) {
  for (size_t i = 0; i < sizeof int_ranges / sizeof int_ranges[0]; i++) {
    const int_range_case *c = &int_ranges[i];
    hs_options o = options_of(HS_PROFILE_LOWE);
    put_int(&o, c->offset, c->low - 1);
    expect_refused(&o, c->name);
    put_int(&o, c->offset, INT32_MIN);
    expect_refused(&o, c->name);
    if (c->high < INT32_MAX) {
      put_int(&o, c->offset, c->high + 1);
      expect_refused(&o, c->name);
      put_int(&o, c->offset, INT32_MAX);
      expect_refused(&o, c->name);
    }
    put_int(&o, c->offset, c->high);
    if (strcmp(c->name, "region_width") == 0) o.region_height = 1;
    if (strcmp(c->name, "first_octave") == 0) o.input_blur = 0.5f;
    expect_accepted(&o, c->name);
    put_int(&o, c->offset, c->low);
    expect_accepted(&o, c->name);
  }
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.device_index = -1;
  expect_refused(&o, "device_index");
  o = options_of(HS_PROFILE_LOWE);
  o.region_width = 10; /* a region needs both sides */
  expect_refused(&o, "region_height");
}

typedef struct float_range_case {
  const char *name;
  size_t offset;
  float low, high;
} float_range_case;

static const float_range_case float_ranges[] = {
    RANGE(sigma, 0.8f, 4.0f),  RANGE(input_blur, 0.0f, 0.8f), RANGE(contrast, 0.0f, 1.0f),
    RANGE(settle, 0.5f, 1.0f), RANGE(edge, 1.0f, 1000.0f),
};

TEST(test_float_ranges) {
  for (size_t i = 0; i < sizeof float_ranges / sizeof float_ranges[0]; i++) {
    const float_range_case *c = &float_ranges[i];
    hs_options o = options_of(HS_PROFILE_LOWE);
    if (strcmp(c->name, "sigma") == 0) o.input_blur = 0.1f;
    const float bad[] = {nextafterf(c->low, -INFINITY), nextafterf(c->high, INFINITY), -INFINITY, INFINITY, NAN, -NAN};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
      put_float(&o, c->offset, bad[k]);
      expect_refused(&o, c->name);
    }
    put_float(&o, c->offset, c->low);
    expect_accepted(&o, c->name);
    put_float(&o, c->offset, c->high);
    expect_accepted(&o, c->name);
  }
}

/* The assumed blur may reach the sigma of the first octave, which halves if the image is doubled. */
TEST(test_input_blur_follows_sigma) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.sigma = 2.0f;
  o.input_blur = 1.0f;
  expect_accepted(&o, "input_blur");
  o.input_blur = 1.01f;
  expect_refused(&o, "input_blur");
  o.first_octave = 0;
  expect_accepted(&o, "input_blur");
  o.input_blur = 2.01f;
  expect_refused(&o, "input_blur");
}

static void *no_memory(size_t bytes, void *user) {
  (void)bytes;
  (void)user;
  return NULL;
}

static void release_nothing(void *pointer, void *user) {
  (void)pointer;
  (void)user;
}

TEST(test_pointers) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  hs_allocator a = {.alloc = no_memory};
  o.allocator = &a;
  expect_refused(&o, "allocator");
  a = (hs_allocator){.release = release_nothing};
  expect_refused(&o, "allocator");
  o = options_of(HS_PROFILE_LOWE);
  hs_expert_options expert;
  hs_expert_options_init(&expert, HS_PROFILE_LOWE);
  const char *bad[] = {"blur=none", "none=ref", "blur", "blur=", "=ref", "blur=ref,blur=none", "blur=refx"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char message[256];
    hs_context *context;
    expert.variant = bad[i];
    o.expert = &expert;
    assert_int_equal(hs_create_explained(&context, &o, message, sizeof message), HS_ERR_OPTION);
    assert_non_null(strstr(message, "variant"));
    assert_non_null(strstr(message, "ref")); /* the message lists the available variants */
  }
}

/* ------------------------------------------------------------------ expert options */

static void expect_rules(hs_profile profile, hs_rule author, hs_rule descriptor, hs_border_rule border) {
  hs_expert_options e;
  memset(&e, 0xee, sizeof e);
  assert_int_equal(hs_expert_options_init(&e, profile), HS_OK);
  assert_int_equal(e.struct_size, sizeof e);
  assert_int_equal(e.octave_rule, author);
  assert_int_equal(e.blur_radius_rule, author);
  assert_int_equal(e.border_rule, border);
  assert_int_equal(e.candidate_rule, author);
  assert_int_equal(e.refine_rule, author);
  assert_int_equal(e.orientation_rule, author);
  assert_int_equal(e.descriptor_rule, descriptor);
  assert_null(e.variant);
  const hs_options o = options_of(profile);
  assert_memory_equal(options_rules(&o), &e, sizeof e); /* null means these defaults */
}

TEST(test_rules_of_profiles) {
  expect_rules(HS_PROFILE_LOWE, HS_RULE_LOWE, HS_RULE_LOWE, HS_BORDER_REFLECT_101);
  expect_rules(HS_PROFILE_OPENCV, HS_RULE_OPENCV, HS_RULE_OPENCV, HS_BORDER_REFLECT_101);
  expect_rules(HS_PROFILE_VLFEAT, HS_RULE_VLFEAT, HS_RULE_LOWE, HS_BORDER_REPLICATE);
  expect_rules(HS_PROFILE_COLMAP, HS_RULE_VLFEAT, HS_RULE_LOWE, HS_BORDER_REPLICATE);
  hs_expert_options e;
  assert_int_equal(hs_expert_options_init(NULL, HS_PROFILE_LOWE), HS_ERR_ARGUMENT);
  assert_int_equal(hs_expert_options_init(&e, (hs_profile)4), HS_ERR_ARGUMENT);
}

#define RULE(FIELD, HIGH)                                                                                              \
  { #FIELD, offsetof(hs_expert_options, FIELD), 0, HIGH }

static const int_range_case rule_ranges[] = {
    RULE(octave_rule, 2), RULE(blur_radius_rule, 2), RULE(border_rule, 1),     RULE(candidate_rule, 2),
    RULE(refine_rule, 2), RULE(orientation_rule, 2), RULE(descriptor_rule, 2),
};

TEST(test_rules_are_checked) {
  hs_expert_options e;
  char message[256], name[64];
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.expert = &e;
  for (size_t i = 0; i < sizeof rule_ranges / sizeof rule_ranges[0]; i++) {
    const int_range_case *c = &rule_ranges[i];
    const int32_t wrong[] = {-1, INT32_MIN, c->high + 1, INT32_MAX};
    snprintf(name, sizeof name, "expert.%s is", c->name);
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
      hs_context *context;
      hs_expert_options_init(&e, HS_PROFILE_LOWE);
      memcpy((unsigned char *)&e + c->offset, &wrong[k], sizeof wrong[k]);
      assert_int_equal(hs_create_explained(&context, &o, message, sizeof message), HS_ERR_OPTION);
      if (!strstr(message, name)) fail_msg("\"%s\" does not name %s", message, name);
    }
    memcpy((unsigned char *)&e + c->offset, &c->high, sizeof c->high);
    expect_accepted(&o, c->name);
  }
  e.struct_size = 0;
  hs_context *context;
  assert_int_equal(hs_create_explained(&context, &o, message, sizeof message), HS_ERR_OPTION);
  assert_non_null(strstr(message, "hs_expert_options.struct_size is 0"));
}

/* ------------------------------------------------------------------ structs of other headers */

TEST(test_older_header) {
  const hs_options given = options_of(HS_PROFILE_COLMAP);
  hs_options older = given, mine;
  hs_expert_options expert;
  char message[256];
  /* the header of this program ended before octaves, so the rest of the struct is not the caller's memory */
  older.struct_size = offsetof(hs_options, octaves);
  older.max_features = 5;
  memset((unsigned char *)&older + older.struct_size, 0xee, sizeof older - older.struct_size);
  assert_int_equal(options_complete(&mine, &expert, &older, message, sizeof message), HS_OK);
  assert_int_equal(mine.struct_size, sizeof mine);
  assert_int_equal(mine.max_features, 5);
  assert_true(mine.max_pixels == given.max_pixels);
  assert_int_equal(mine.octaves, 4);
  assert_int_equal(mine.norm, HS_NORM_ROOT);
  assert_true(mine.contrast == given.contrast);
  assert_null(mine.expert);
  older.struct_size = offsetof(hs_options, profile) + sizeof older.profile; /* smallest size that is accepted */
  assert_int_equal(options_complete(&mine, &expert, &older, message, sizeof message), HS_OK);
  assert_int_equal(mine.scales, 3);
}

TEST(test_newer_header) {
  struct {
    hs_options o;
    unsigned char tail[64];
  } newer;
  hs_options mine;
  hs_expert_options expert;
  char message[256] = "";
  memset(&newer, 0, sizeof newer);
  newer.o = options_of(HS_PROFILE_LOWE);
  newer.o.struct_size = sizeof newer;
  newer.o.border = 7;
  assert_int_equal(options_complete(&mine, &expert, &newer.o, message, sizeof message), HS_OK);
  assert_int_equal(mine.border, 7);
  assert_int_equal(mine.struct_size, sizeof mine);
  for (size_t i = 0; i < sizeof newer.tail; i += 21) {
    newer.tail[i] = 1;
    assert_int_equal(options_complete(&mine, &expert, &newer.o, message, sizeof message), HS_ERR_OPTION);
    assert_non_null(strstr(message, "does not know"));
    newer.tail[i] = 0;
  }
}

TEST(test_wrong_struct_sizes) {
  const size_t sizes[] = {0,     1,       sizeof(size_t), offsetof(hs_options, profile) + sizeof(hs_profile) - 1,
                          65537, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    hs_options o = options_of(HS_PROFILE_LOWE);
    o.struct_size = sizes[i];
    expect_refused(&o, "struct_size");
  }
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.profile = (hs_profile)77;
  expect_refused(&o, "profile");
}

/* ------------------------------------------------------------------ thresholds of the stages */

/* "At least t" becomes "above the float before t"; "above t" stays as it is. */
TEST(test_thresholds) {
  hs_options o = options_of(HS_PROFILE_LOWE);
  sift_params p = options_params(&o);
  const float contrast = (float)((double)0.04f / 3.0);
  assert_true(p.contrast_above < contrast && nextafterf(p.contrast_above, 1.0f) == contrast);
  assert_true(fabs((double)p.candidate_above - 0.02 / 3.0) < 1e-9);
  assert_false(p.extremum_ties);
  o = options_of(HS_PROFILE_OPENCV);
  p = options_params(&o);
  assert_true(p.contrast_above < contrast && nextafterf(p.contrast_above, 1.0f) == contrast);
  assert_true(p.candidate_above == (float)(1.0 / 255.0)); /* floor(127.5 * 0.04 / 3) = 1, in gray levels */
  assert_true(p.extremum_ties);
  o = options_of(HS_PROFILE_COLMAP);
  p = options_params(&o);
  assert_true(p.contrast_above == (float)((double)0.02f / 3.0));
  assert_true(nextafterf(p.candidate_above, 1.0f) == (float)(0.8 * (double)0.02f / 3.0));
  o = options_of(HS_PROFILE_VLFEAT); /* a threshold of 0 that |D| must reach, which every |D| does */
  p = options_params(&o);
  assert_true(p.candidate_above < 0.0f && p.contrast_above == 0.0f);
}

/* Only a picture doubled on the half-pixel grid is shifted: the position of its first sample is not 0. */
TEST(test_grids) {
  for (int32_t upsample = HS_UPSAMPLE_ALIGNED; upsample <= HS_UPSAMPLE_OPENCV; upsample++)
    for (int32_t first = -1; first <= 3; first++) {
      hs_options o = options_of(HS_PROFILE_LOWE);
      o.upsample = (hs_upsample)upsample;
      o.first_octave = first;
      assert_true(options_params(&o).grid_shift == (upsample == HS_UPSAMPLE_HALF_PIXEL && first < 0 ? 0.25f : 0.0f));
      assert_int_equal(options_upsample_grid(&o), upsample == HS_UPSAMPLE_ALIGNED ? GRID_ALIGNED : GRID_HALF_PIXEL);
    }
}
