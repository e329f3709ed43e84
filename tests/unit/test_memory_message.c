/*
 * Size arithmetic, allocation and failure messages of the pipeline.
 */
#include <errno.h>

#include "tests/support/test.h"

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

TEST(test_sizes_report_overflow) {
  size_t out = 77;
  assert_true(hs_size_mul(0, SIZE_MAX, &out));
  assert_int_equal(out, 0);
  assert_true(hs_size_mul(SIZE_MAX / 3, 3, &out));
  assert_true(out == SIZE_MAX / 3 * 3);
  out = 77;
  assert_false(hs_size_mul(SIZE_MAX / 2 + 1, 2, &out));
  assert_false(hs_size_mul(2, SIZE_MAX / 2 + 1, &out));
  assert_false(hs_size_add(SIZE_MAX, 1, &out));
  assert_int_equal(out, 77);
  assert_true(hs_size_add(SIZE_MAX - 1, 1, &out));
  assert_true(out == SIZE_MAX);
}

TEST(test_memory_is_aligned) {
  for (size_t bytes = 0; bytes < 200; bytes += 33) {
    unsigned char *pointer = hs_memory_alloc(NULL, bytes);
    assert_non_null(pointer);
    assert_int_equal((uintptr_t)pointer % HS_MEMORY_ALIGNMENT, 0);
    memset(pointer, 1, bytes);
    hs_memory_release(NULL, pointer);
  }
  hs_memory_release(NULL, NULL);
}

TEST(test_memory_comes_from_the_allocator) {
  scoped_counter counter = {.fail_at = 2};
  const hs_allocator allocator = counted_allocator_make(&counter);
  void *first = hs_memory_alloc(&allocator, 10);
  assert_non_null(first);
  assert_null(hs_memory_alloc(&allocator, 10));
  assert_int_equal(counter.made, 2);
  assert_int_equal(counter.alive, 1);
  hs_memory_release(&allocator, first);
  hs_memory_release(&allocator, NULL);
}

TEST(test_message_never_overruns) {
  char text[16];
  for (size_t bytes = 1; bytes <= sizeof text; bytes++) {
    memset(text, '~', sizeof text);
    hs_message_set(text, bytes, "%s", "abcdefghijklmnopqrstuvwxyz");
    assert_int_equal(strlen(text), bytes - 1);
    assert_memory_equal(text, "abcdefghijklmnop", bytes - 1);
    for (size_t i = bytes; i < sizeof text; i++) assert_int_equal(text[i], '~');
    memset(text, '~', sizeof text);
    hs_message_set_errno(text, bytes, ENOENT, "abcd");
    assert_true(memchr(text, 0, bytes) != NULL);
    for (size_t i = bytes; i < sizeof text; i++) assert_int_equal(text[i], '~');
  }
  text[0] = '~';
  hs_message_set(text, 0, "x");
  hs_message_set_errno(text, 0, ENOENT, "x");
  assert_int_equal(text[0], '~');
  hs_message_set(NULL, 10, "x");
  hs_message_set_errno(NULL, 10, ENOENT, "x");
}

TEST(test_message_gives_the_systems_reason) {
  char text[200], expected[200];
  hs_message_set_errno(text, sizeof text, ENOENT, "%s: cannot be opened", "name");
  hs_message_set(expected, sizeof expected, "name: cannot be opened: %s", strerror(ENOENT));
  assert_string_equal(text, expected);
}

static void set_about(char *message, size_t bytes, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(message, bytes, name, format, arguments);
  va_end(arguments);
}

TEST(test_message_has_its_reason_after_a_long_name) {
  char name[302], text[100];
  for (size_t i = 0; i + 1 < sizeof name; i++) name[i] = i % 2 == 0 ? '\xc3' : '\xa9';
  name[300] = 'x'; /* the cut would be within a character */
  name[301] = '\0';
  set_about(text, sizeof text, name, "is %s", "damaged");
  assert_memory_equal(text, "...\xc3\xa9", 5);
  assert_string_equal(text + strlen(text) - strlen("\xa9x: is damaged"), "\xa9x: is damaged");
  hs_message_set_errno(text, sizeof text, ENOENT, "%s: cannot be opened", name);
  assert_string_equal(text + strlen(text) - strlen(strerror(ENOENT)), strerror(ENOENT));
  assert_memory_equal(text, name, 40);
  set_about(text, sizeof text, "name", "is %s", "damaged");
  assert_string_equal(text, "name: is damaged");
}

TEST(test_message_has_no_control_characters) {
  char text[100];
  hs_message_set(text, sizeof text, "%s",
                 "a\x1b[31mb\nc\x7f"
                 "d\xc2\x9b"
                 "e\xc3\xa9");
  assert_string_equal(text, "a?[31mb?c?d??e\xc3\xa9");
}

TEST(test_message_cuts_between_characters) {
  char text[8];
  hs_message_set(text, 4, "%s", "ab\xc3\xa9");
  assert_string_equal(text, "ab");
  hs_message_set(text, 5, "%s", "ab\xc3\xa9 and more");
  assert_string_equal(text, "ab\xc3\xa9");
  hs_message_set(text, 6, "%s", "ab\xf0\x9f\x98\x80");
  assert_string_equal(text, "ab");
}
