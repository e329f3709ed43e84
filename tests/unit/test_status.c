/*
 * Statuses: each has a name, a sentence and the class given in the header.
 */
#include "tests/support/test.h"

typedef struct status_case {
  hs_status status;
  const char *name;
  hs_status_class group;
} status_case;

static const status_case cases[] = {
    {HS_OK, "HS_OK", HS_CLASS_OK},
    {HS_ERR_ARGUMENT, "HS_ERR_ARGUMENT", HS_CLASS_ARGUMENT},
    {HS_ERR_OPTION, "HS_ERR_OPTION", HS_CLASS_ARGUMENT},
    {HS_ERR_IMAGE, "HS_ERR_IMAGE", HS_CLASS_ARGUMENT},
    {HS_ERR_KEYPOINT, "HS_ERR_KEYPOINT", HS_CLASS_ARGUMENT},
    {HS_ERR_CAPACITY, "HS_ERR_CAPACITY", HS_CLASS_ARGUMENT},
    {HS_ERR_LIMIT, "HS_ERR_LIMIT", HS_CLASS_ARGUMENT},
    {HS_ERR_FORMAT, "HS_ERR_FORMAT", HS_CLASS_ARGUMENT},
    {HS_ERR_UNSUPPORTED, "HS_ERR_UNSUPPORTED", HS_CLASS_ARGUMENT},
    {HS_ERR_CANCELLED, "HS_ERR_CANCELLED", HS_CLASS_ARGUMENT},
    {HS_ERR_MEMORY, "HS_ERR_MEMORY", HS_CLASS_RESOURCE},
    {HS_ERR_IO, "HS_ERR_IO", HS_CLASS_RESOURCE},
    {HS_ERR_THREAD, "HS_ERR_THREAD", HS_CLASS_RESOURCE},
    {HS_ERR_NO_DEVICE, "HS_ERR_NO_DEVICE", HS_CLASS_RESOURCE},
    {HS_ERR_DEVICE, "HS_ERR_DEVICE", HS_CLASS_DEVICE},
    {HS_ERR_INTERNAL, "HS_ERR_INTERNAL", HS_CLASS_DEVICE},
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

TEST(test_names_and_classes) {
  for (size_t i = 0; i < CASE_COUNT; i++) {
    assert_string_equal(hs_status_name(cases[i].status), cases[i].name);
    assert_int_equal(hs_status_class_of(cases[i].status), cases[i].group);
  }
}

TEST(test_sentences) {
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const char *sentence = hs_status_string(cases[i].status);
    const size_t length = strlen(sentence);
    assert_true(length > 5 && sentence[length - 1] == '.');
    assert_true(sentence[0] >= 'A' && sentence[0] <= 'Z');
    for (size_t j = 0; j < i; j++) assert_string_not_equal(sentence, hs_status_string(cases[j].status));
  }
}

/* The names and numbers equal those of the header. */
TEST(test_names_of_the_header) {
  FILE *header = fopen(HARTSIFT_SOURCE_DIR "/pipeline/include/hartsift_types.h", "r");
  assert_non_null(header);
  char line[512], name[64];
  int number = 0;
  size_t found = 0;
  while (fgets(line, sizeof line, header)) {
    if (sscanf(line, " HS_ERR_%50[A-Z_] = %d", name, &number) != 2) continue;
    assert_string_equal(hs_status_name((hs_status)number) + strlen("HS_ERR_"), name);
    found++;
  }
  fclose(header);
  assert_int_equal(found, CASE_COUNT - 1); /* HS_OK is the remaining case */
}

/* The list above is complete: every other value is unknown. */
TEST(test_unknown_values) {
  for (int v = -3; v < 300; v++) {
    bool known = false;
    for (size_t i = 0; i < CASE_COUNT; i++) known = known || (int)cases[i].status == v;
    if (known) continue;
    assert_string_equal(hs_status_name((hs_status)v), "HS_ERR_?");
    assert_true(strlen(hs_status_string((hs_status)v)) > 0);
    assert_int_not_equal(hs_status_class_of((hs_status)v), HS_CLASS_OK);
  }
}

TEST(test_version_string) {
  char expected[64];
  snprintf(expected, sizeof expected, "%d.%d.%d (method %d)", HS_VERSION_MAJOR, HS_VERSION_MINOR, HS_VERSION_PATCH,
           HS_METHOD_VERSION);
  assert_string_equal(hs_version_string(), expected);
  assert_int_equal(hs_method_version(), HS_METHOD_VERSION);
  assert_int_equal(hs_method_version_affine(), HS_METHOD_VERSION_AFFINE);
}
