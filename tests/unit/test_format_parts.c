/*
 * Parts of the feature formats: checksums, angles, bin order, .npy values, JSON strings, zip records.
 */

#include "tests/support/test.h"

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/common/json_text.h"
#include "pipeline/formats/common/npy_array.h"
#include "os/os_files.h"
#include "pipeline/formats/common/zip_archive.h"

TEST(test_checksums) {
  /* The usual test words of both polynomials and their checksums. */
  assert_int_equal(crc_zip(0, "123456789", 9), 0xcbf43926u);
  assert_int_equal(crc_castagnoli(0, "123456789", 9), 0xe3069283u);
  assert_int_equal(crc_zip(crc_zip(0, "1234", 4), "56789", 5), 0xcbf43926u);
  /* Long inputs use another code path. The checksum of the whole equals that of its pieces, of any size, combined. */
  enum { LONG = 100003 };
  uint8_t *bytes = malloc(LONG);
  assert_non_null(bytes);
  uint32_t zip = 0, castagnoli = 0;
  for (uint32_t i = 0; i < LONG; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 24);
  for (size_t i = 0; i < LONG; i++) {
    zip = crc_zip(zip, bytes + i, 1);
    castagnoli = crc_castagnoli(castagnoli, bytes + i, 1);
  }
  assert_int_equal(crc_zip(0, bytes, LONG), zip);
  assert_int_equal(crc_castagnoli(0, bytes, LONG), castagnoli);
  assert_int_equal(crc_zip(crc_zip(0, bytes, 20001), bytes + 20001, LONG - 20001), zip);
  /* Covers every length and every alignment. */
  for (size_t size = 0; size < 300; size++) {
    const uint8_t *from = bytes + size % 17;
    zip = castagnoli = 0;
    for (size_t i = 0; i < size; i++) {
      zip = crc_zip(zip, from + i, 1);
      castagnoli = crc_castagnoli(castagnoli, from + i, 1);
    }
    assert_int_equal(crc_zip(0, from, size), zip);
    assert_int_equal(crc_castagnoli(0, from, size), castagnoli);
  }
  free(bytes);
  assert_int_equal(crc_zip(0, "", 0), 0);
}

TEST(test_angles) {
  const double two_pi = 6.283185307179586;
  assert_true(angle_wrap(0.0) == 0.0f);
  assert_true(angle_wrap(two_pi) == 0.0f);
  assert_true(angle_wrap(-1e-12) == 0.0f);
  assert_true(angle_wrap(two_pi - 1e-9) == 0.0f);
  assert_true(fabs((double)angle_wrap(-0.5) - (two_pi - 0.5)) < 1e-6);
  assert_true(fabs((double)angle_wrap(1000.0) - fmod(1000.0, two_pi)) < 1e-6);
  for (float a = 0.0f; a < 6.28f; a += 0.01f) assert_true(angle_wrap((double)a) == a);
  float largest = nextafterf(6.2831855f, 0.0f);
  assert_true(angle_wrap((double)largest) == largest);
}

TEST(test_bins_are_exchanged) {
  uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
  for (size_t k = 0; k < sizeof descriptor; k++) descriptor[k] = (uint8_t)k;
  descriptor_swap_bins(descriptor);
  const uint8_t last_cell[8] = {120, 127, 126, 125, 124, 123, 122, 121};
  assert_memory_equal(descriptor + 120, last_cell, 8);
  descriptor_swap_bins(descriptor);
  for (size_t k = 0; k < sizeof descriptor; k++) assert_int_equal(descriptor[k], k);
}

TEST(test_bytes_of_floats) {
  float values[HS_DESCRIPTOR_LENGTH] = {0.0f, 1.0f, 0.4990234375f, 0.001f, -0.5f, 0.00097656f, 0.5f};
  const uint8_t unit[7] = {0, 255, 255, 1, 0, 0, 255};
  const uint8_t scaled[7] = {0, 1, 0, 0, 0, 0, 1};
  uint8_t out[HS_DESCRIPTOR_LENGTH];
  hs_features features = {.count = 1, .descriptors = values, .descriptor_type = HS_DESCRIPTOR_F32};
  descriptor_codec codec = descriptor_codec_make(&features, HS_LAYOUT_UBC, HS_LAYOUT_UBC);
  descriptor_to_u8(&codec, 0, out);
  assert_memory_equal(out, unit, sizeof unit);
  values[7] = 300.0f;
  codec = descriptor_codec_make(&features, HS_LAYOUT_UBC, HS_LAYOUT_UBC);
  descriptor_to_u8(&codec, 0, out);
  assert_memory_equal(out, scaled, sizeof scaled);
  assert_int_equal(out[7], 255);
}

TEST(test_keypoint_values) {
  hs_keypoint keypoint;
  assert_null(keypoint_fill(&keypoint, 1.0, 2.0, 3.0, -1.0));
  assert_non_null(keypoint_fill(&keypoint, (double)NAN, 2.0, 3.0, 0.0));
  assert_non_null(keypoint_fill(&keypoint, 1.0, 1e300, 3.0, 0.0));
  assert_non_null(keypoint_fill(&keypoint, 1.0, 2.0, 1e-60, 0.0));
  assert_non_null(keypoint_fill(&keypoint, 1.0, 2.0, 3.0, (double)INFINITY));
  assert_null(keypoint_fill_origin(&keypoint, 0.5, -1.0, 3.0));
  assert_int_equal(keypoint.octave, -1);
  assert_non_null(keypoint_fill_origin(&keypoint, (double)NAN, 0.0, 1.0));
  assert_non_null(keypoint_fill_origin(&keypoint, 0.5, 40000.0, 1.0));
  assert_non_null(keypoint_fill_origin(&keypoint, 0.5, (double)NAN, 1.0));
  assert_non_null(keypoint_fill_origin(&keypoint, 0.5, 0.0, 1.5));
}

/* Writes an array's .npy bytes with the given header text; returns their number. */
static size_t make_npy(const char *header, const void *data, size_t size, uint8_t out[512]) {
  size_t length = strlen(header);
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (uint8_t)length;
  out[9] = 0;
  memcpy(out + 10, header, length);
  if (size > 0) memcpy(out + 10 + length, data, size);
  return 10 + length + size;
}

static double npy_single(const char *descr, const void *data, size_t size) {
  char header[128];
  uint8_t bytes[512];
  npy_array array;
  (void)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }\n", descr);
  size_t total = make_npy(header, data, size, bytes);
  assert_null(npy_parse(bytes, total, &array));
  assert_true(npy_is_numeric(&array));
  return npy_value(&array, 0, 0);
}

TEST(test_npy_items) {
  assert_true(npy_single("<i8", "\xfe\xff\xff\xff\xff\xff\xff\xff", 8) == -2.0);
  assert_true(npy_single(">i2", "\xff\xfe", 2) == -2.0);
  assert_true(npy_single("<i8", "\0\0\0\0\0\0\0\x80", 8) == -9223372036854775808.0);
  assert_true(npy_single("|i1", "\x80", 1) == -128.0);
  assert_true(npy_single("|u1", "\x80", 1) == 128.0);
  assert_true(npy_single(">u4", "\0\0\1\0", 4) == 256.0);
  assert_true(npy_single("<f2", "\x00\x3c", 2) == 1.0);
  assert_true(npy_single("<f2", "\x01\x00", 2) == ldexp(1.0, -24));
  assert_true(npy_single("<f2", "\x00\xfc", 2) == (double)-INFINITY);
  assert_true(isnan(npy_single("<f2", "\x01\x7c", 2)));
  assert_true(npy_single(">f4", "\xbf\x80\x00\x00", 4) == -1.0);
  assert_true(npy_single("<f8", "\0\0\0\0\0\0\xf8\x3f", 8) == 1.5);
}

TEST(test_npy_headers_that_are_wrong) {
  const char *const wrong[] = {
      "",
      "{}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1), }",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
      "{'descr': '<f4', 'shape': (1,), }",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
      "{'descr': '<f4",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    uint8_t bytes[512];
    npy_array array;
    size_t total = make_npy(wrong[i], "\0\0\0\0", 4, bytes);
    if (!npy_parse(bytes, total, &array)) fail_msg("accepted: %s", wrong[i]);
  }
}

static void check_json_string(const char *text, const char *expected) {
  os_text out;
  assert_true(os_text_open(&out));
  feature_sink sink;
  sink_begin(&sink, out.stream, NULL);
  json_put_string(&sink, text);
  sink_flush(&sink);
  assert_true(os_text_close(&out));
  assert_string_equal(out.text, expected);
  free(out.text);
}

TEST(test_json_strings) {
  check_json_string(NULL, "null");
  check_json_string("a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\"");
  check_json_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  check_json_string("\xc3(\xff\xed\xa0\x80", "\"\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\"");
  check_json_string("\xc0\x80\xe2\x82", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void produce_word(feature_sink *sink, const void *user) { sink_text(sink, user); }

/* Returns an archive from malloc. Its member "first" has some text; its member "second" is empty. */
static char *make_zip(size_t *size) {
  os_text out;
  assert_true(os_text_open(&out));
  zip_writer writer;
  zip_write_begin(&writer, out.stream, NULL);
  assert_true(zip_write_entry(&writer, "first", produce_word, "some text"));
  assert_true(zip_write_entry(&writer, "second", produce_word, ""));
  zip_write_end(&writer);
  assert_true(os_text_close(&out));
  *size = out.length;
  return out.text;
}

TEST(test_zip_entries) {
  size_t size = 0;
  SCOPED_MEMORY char *bytes = make_zip(&size);
  char message[128] = "";
  feature_source source = {.path = "zip",
                           .bytes = (const uint8_t *)bytes,
                           .size = size,
                           .message = message,
                           .message_bytes = sizeof message};
  zip_entry entry;
  assert_int_equal(zip_read_entry(&source, "first", 100, &entry), HS_OK);
  assert_int_equal(entry.size, 9);
  assert_memory_equal(entry.bytes, "some text", 9);
  assert_int_equal(zip_read_entry(&source, "first", 8, &entry), HS_ERR_LIMIT);
  assert_int_equal(zip_read_entry(&source, "second", 100, &entry), HS_OK);
  assert_non_null(entry.bytes);
  assert_int_equal(entry.size, 0);
  assert_int_equal(zip_read_entry(&source, "third", 100, &entry), HS_OK);
  assert_null(entry.bytes);
  bytes[36] ^= 1;
  assert_int_equal(zip_read_entry(&source, "first", 100, &entry), HS_ERR_FORMAT);
  assert_string_equal(message, "zip: first: the checksum is wrong");
}

/* A stated size that exceeds what deflate can produce from the packed bytes is refused before memory is allocated. */
TEST(test_zip_claims) {
  enum { METHOD = 10, PACKED_SIZE = 20, SIZE = 24, CLAIMED = 1 << 24 };
  size_t size = 0, at = 0;
  SCOPED_MEMORY char *bytes = make_zip(&size);
  while (memcmp(bytes + at, "PK\1\2", 4) != 0) at++; /* finds the first entry of the directory */
  assert_int_equal(bytes[at + PACKED_SIZE], 9);
  bytes[at + METHOD] = 8;
  bytes_put_u32((uint8_t *)bytes + at + SIZE, CLAIMED);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  char message[128] = "";
  feature_source source = {.path = "zip",
                           .bytes = (const uint8_t *)bytes,
                           .size = size,
                           .allocator = &allocator,
                           .message = message,
                           .message_bytes = sizeof message};
  zip_entry entry;
  assert_int_equal(zip_read_entry(&source, "first", CLAIMED, &entry), HS_ERR_FORMAT);
  assert_string_equal(message, "zip: first claims more bytes than its data can give");
  assert_int_equal(counter.made, 0);
}
