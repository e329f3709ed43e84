/*
 * Versioned option structs of other headers: programs with shorter and longer structs than the library's, told apart by
 * struct_size.
 */
#include "tests/support/test.h"

#include "pipeline/base/adopt.h"
#include "pipeline/include/hartsift_expert.h"

/* A struct in two versions. */
typedef struct early_options {
  size_t struct_size;
  int32_t first, second;
} early_options;

typedef struct late_options {
  size_t struct_size;
  int32_t first, second;
  double third;
} late_options;

static const options_kind early_kind = OPTIONS_KIND(early_options, first);
static const options_kind late_kind = OPTIONS_KIND(late_options, first);
static const early_options early_defaults = {.struct_size = sizeof early_defaults, .first = 1, .second = 2};
static const late_options late_defaults = {.struct_size = sizeof late_defaults, .first = 1, .second = 2, .third = 3.0};

/* A program with the early header runs on the late library: nothing after its struct is written, and missing fields get
 * the late default. */
TEST(test_early_program_on_late_library) {
  struct {
    early_options options;
    unsigned char guard[64];
  } program, untouched;
  late_options mine = late_defaults;
  char reason[ADOPT_REASON_BYTES];
  memset(&program, 0xee, sizeof program);
  memset(&untouched, 0xee, sizeof untouched);
  assert_int_equal(options_give(&program.options, sizeof program.options, &late_defaults, late_kind), HS_OK);
  assert_memory_equal(program.guard, untouched.guard, sizeof program.guard);
  assert_int_equal(program.options.struct_size, sizeof program.options);
  assert_int_equal(program.options.second, 2);
  program.options.first = 7;
  assert_int_equal(options_adopt(&mine, &program.options, late_kind, reason), HS_OK);
  assert_string_equal(reason, "");
  assert_int_equal(mine.struct_size, sizeof mine);
  assert_int_equal(mine.first, 7);
  assert_true(mine.third == 3.0);
}

/* A program with the late header runs on the early library: it may leave the late field unset, but must not set it. */
TEST(test_late_program_on_early_library) {
  late_options program;
  early_options mine = early_defaults;
  char reason[ADOPT_REASON_BYTES];
  memset(&program, 0xee, sizeof program);
  assert_int_equal(options_give(&program, sizeof program, &early_defaults, early_kind), HS_OK);
  assert_int_equal(program.struct_size, sizeof program);
  assert_true(program.second == 2 && program.third == 0.0);
  program.first = 9;
  assert_int_equal(options_adopt(&mine, &program, early_kind, reason), HS_OK);
  assert_int_equal(mine.first, 9);
  program.third = 4.0;
  program.second = 5;
  assert_int_equal(options_adopt(&mine, &program, early_kind, reason), HS_ERR_OPTION);
  assert_non_null(strstr(reason, "early_options sets a field at offset 2")); /* this is a non-zero byte of the double */
  assert_int_equal(mine.second, 5); /* the common fields are filled, for example the pointer for a message */
}

TEST(test_wrong_sizes) {
  early_options program = early_defaults, mine = early_defaults;
  char reason[ADOPT_REASON_BYTES];
  const size_t wrong[] = {0, 1, sizeof(size_t), early_kind.least - 1, 65537, SIZE_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    program.struct_size = wrong[i];
    program.first = 77;
    assert_int_equal(options_adopt(&mine, &program, early_kind, reason), HS_ERR_OPTION);
    assert_non_null(strstr(reason, "call early_options_init first"));
    assert_int_equal(mine.first, 1); /* nothing was copied */
    assert_int_equal(options_give(&program, wrong[i], &early_defaults, early_kind), HS_ERR_ARGUMENT);
    assert_int_equal(program.first, 77);
  }
  assert_int_equal(options_give(NULL, sizeof program, &early_defaults, early_kind), HS_ERR_ARGUMENT);
}

static hs_status init_options(void *o, size_t size) { return hs_options_init_sized(o, size, HS_PROFILE_COLMAP); }
static hs_status init_expert(void *o, size_t size) { return hs_expert_options_init_sized(o, size, HS_PROFILE_OPENCV); }
static hs_status init_match(void *o, size_t size) { return hs_match_options_init_sized(o, size); }
static hs_status init_verify(void *o, size_t size) { return hs_verify_options_init_sized(o, size, HS_ESSENTIAL); }
static hs_status init_load(void *o, size_t size) { return hs_load_options_init_sized(o, size); }
static hs_status init_file(void *o, size_t size) { return hs_file_options_init_sized(o, size); }
static hs_status init_colmap(void *o, size_t size) { return hs_colmap_options_init_sized(o, size); }
static hs_status init_patches(void *o, size_t size) { return hs_patch_options_init_sized(o, size); }
static hs_status init_judge(void *o, size_t size) { return hs_judge_options_init_sized(o, size); }
static hs_status init_retrieval(void *o, size_t size) { return hs_retrieval_options_init_sized(o, size); }
static hs_status init_statistics(void *o, size_t size) { return hs_statistics_init_sized(o, size); }

/* Calls every public function that fills a versioned struct, with structs of every length. */
TEST(test_every_struct_at_every_length) {
  static const struct {
    hs_status (*init)(void *options, size_t struct_size);
    size_t bytes, least;
  } structs[] = {
      {init_options, sizeof(hs_options), offsetof(hs_options, profile) + sizeof(hs_profile)},
      {init_expert, sizeof(hs_expert_options), offsetof(hs_expert_options, octave_rule) + sizeof(hs_rule)},
      {init_match, sizeof(hs_match_options), offsetof(hs_match_options, ratio) + sizeof(double)},
      {init_verify, sizeof(hs_verify_options), offsetof(hs_verify_options, model) + sizeof(hs_geometry_model)},
      {init_load, sizeof(hs_load_options), offsetof(hs_load_options, max_pixels) + sizeof(uint64_t)},
      {init_file, sizeof(hs_file_options), offsetof(hs_file_options, format) + sizeof(hs_format)},
      {init_colmap, sizeof(hs_colmap_options), offsetof(hs_colmap_options, read_only) + sizeof(int32_t)},
      {init_judge, sizeof(hs_judge_options), offsetof(hs_judge_options, sure_inliers) + sizeof(size_t)},
      {init_retrieval, sizeof(hs_retrieval_options), offsetof(hs_retrieval_options, centres) + sizeof(int32_t)},
      {init_patches, sizeof(hs_patch_options), offsetof(hs_patch_options, size) + sizeof(int32_t)},
      {init_statistics, sizeof(hs_statistics), offsetof(hs_statistics, frames) + sizeof(uint64_t)},
  };
  _Alignas(16) unsigned char full[1024], other[1024];
  for (size_t i = 0; i < sizeof structs / sizeof structs[0]; i++) {
    assert_int_equal(structs[i].init(full, structs[i].bytes), HS_OK);
    assert_int_equal(structs[i].init(NULL, structs[i].bytes), HS_ERR_ARGUMENT);
    assert_int_equal(structs[i].init(other, structs[i].least - 1), HS_ERR_ARGUMENT);
    for (size_t size = structs[i].least; size <= structs[i].bytes + 64; size++) {
      size_t stated;
      const size_t known = size < structs[i].bytes ? size : structs[i].bytes;
      memset(other, 0xee, sizeof other);
      assert_int_equal(structs[i].init(other, size), HS_OK);
      memcpy(&stated, other, sizeof stated);
      assert_int_equal(stated, size);
      assert_memory_equal(other + sizeof stated, full + sizeof stated, known - sizeof stated);
      for (size_t k = known; k < size; k++) assert_int_equal(other[k], 0);
      for (size_t k = size; k < sizeof other; k++) assert_int_equal(other[k], 0xee);
    }
  }
}
