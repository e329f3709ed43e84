/*
 * The GPU's JPEG decoder without a GPU: synthetic files of every kind are packed, decoded by the same functions, and
 * compared with libjpeg pixel by pixel; changed files are refused or decoded as by libjpeg.
 */
#include "tests/support/test.h"

#include "stages/jpeg_transform.h"
#include "tests/support/jpeg_cases.h"
#include "tests/support/jpeg_on_host.h"

#if HARTSIFT_HAVE_JPEG

enum { MADE = 600, CHANGED = 4000, ROOM_BYTES = 8 << 20 };

static void *room;

BEFORE_TESTS() {
  room = malloc(ROOM_BYTES);
  assert_non_null(room);
}

/* Decodes a file that was packed into memory of exactly its size, so that a sanitizer detects reads past the end. */
static uint32_t decode(const jpeg_shape *shape, uint8_t *gray) {
  jpeg_host_effort effort;
  SCOPED_MEMORY void *exact = malloc(shape->packed_bytes);
  memcpy(exact, room, shape->packed_bytes);
  const jpeg_decode_args args = {.shape = *shape, .packed = exact, .gray = gray, .step_x = 1, .step_y = shape->width};
  const uint32_t refused = jpeg_on_host(&args, &effort);
  return refused;
}

/* Compares the decoder with libjpeg. Returns false if the file is left to libjpeg. */
static bool decodes_equal(uint32_t number, const uint8_t *bytes, size_t size) {
  jpeg_shape shape;
  hs_image expected;
  uint8_t *exact = malloc(size);
  memcpy(exact, bytes, size);
  const bool packed = jpeg_case_pack(exact, size, room, ROOM_BYTES, &shape);
  free(exact);
  if (!packed) return false;
  const size_t pixels = (size_t)shape.width * (size_t)shape.height;
  SCOPED_MEMORY uint8_t *gray = malloc(pixels);
  const bool whole = decode(&shape, gray) == 0;
  if (whole) {
    assert_int_equal(jpeg_case_load(bytes, size, &expected), HS_OK);
    assert_int_equal(expected.width, shape.width);
    assert_int_equal(expected.height, shape.height);
    if (memcmp(gray, expected.data, pixels) != 0) fail_msg("file %u differs from libjpeg's", number);
    hs_image_free(&expected);
  }
  return whole;
}

TEST(test_made_files) {
  for (uint32_t i = 0; i < MADE; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, i % 50 == 49 ? 700 : 90, JPEG_SUM_MAX, &size);
    assert_non_null(bytes);
    if (!decodes_equal(i, bytes, size)) fail_msg("made file %u is left to libjpeg", i);
    free(bytes);
  }
}

TEST(test_changed_files) {
  int whole = 0;
  for (uint32_t i = 0; i < CHANGED; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, 60, i % 3 ? 700 : 64000, &size);
    size = jpeg_case_change(bytes, size, i);
    whole += decodes_equal(i, bytes, size);
    free(bytes);
  }
  assert_true(whole > CHANGED / 20 && whole < CHANGED / 2);
}

/* Returns the position of a segment's payload. */
static size_t find_segment(const uint8_t *bytes, size_t size, uint8_t marker) {
  for (size_t at = 2; at + 4 < size && bytes[at] == 0xFF; at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]))
    if (bytes[at + 1] == marker) return at + 4;
  return 0;
}

/* Memory is too small, an interval has no data, or a restart marker is out of order: nothing is packed, and libjpeg
 * decodes. */
TEST(test_what_is_not_packed) {
  size_t size;
  jpeg_shape shape;
  const synthetic_jpeg made = {.width = 64,
                               .height = 64,
                               .across = 1,
                               .down = 1,
                               .restart_interval = 8,
                               .amplitude = 300,
                               .sum = 2000,
                               .quality = 90,
                               .content = SYNTHETIC_NOISE};
  unsigned char *bytes;
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, &size), HS_OK);
  jpeg_stream *stream = malloc(sizeof *stream);
  assert_true(jpeg_stream_open(bytes, size, stream));
  const size_t need = jpeg_pack_bytes(stream, size);
  assert_true(need > 0 && need < sizeof(jpeg_tables) + 2 * size + 200);
  assert_true(jpeg_pack(bytes, size, stream, room, need, &shape));
  assert_true(shape.packed_bytes <= need && shape.intervals == 8 && shape.subsequences >= 8);
  assert_int_equal(stream->end, size);
  assert_false(jpeg_pack(bytes, size, stream, room, need - 1, &shape));
  free(stream);

  size_t marker = find_segment(bytes, size, 0xDA);
  while (!(bytes[marker] == 0xFF && bytes[marker + 1] == 0xD0)) marker++;
  bytes[marker + 1] = 0xD1;
  assert_false(jpeg_case_pack(bytes, size, room, ROOM_BYTES, &shape));
  bytes[marker + 1] = 0xD0;
  bytes[marker + 2] = 0xFF; /* the next marker follows at once */
  bytes[marker + 3] = 0xD1;
  assert_false(jpeg_case_pack(bytes, size, room, ROOM_BYTES, &shape));
  free(bytes);
}

static unsigned char *blank_page(int32_t width, int32_t across, int32_t restart_interval, size_t *size) {
  const synthetic_jpeg made = {.width = width,
                               .height = 1000,
                               .across = across,
                               .down = across,
                               .restart_interval = restart_interval,
                               .amplitude = 1,
                               .quality = 75};
  unsigned char *bytes;
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, size), HS_OK);
  return bytes;
}

/* In most kinds of files, a blank page gives the parallel decoders no content at which to synchronise. A small page is
 * decoded nevertheless. A large page goes to libjpeg at once, unless restart markers divide it. */
TEST(test_blank_pages) {
  size_t size;
  jpeg_shape shape;
  for (int32_t across = 0; across <= 2; across++) {
    unsigned char *bytes = blank_page(1000, across, 0, &size);
    assert_true(decodes_equal((uint32_t)across, bytes, size));
    free(bytes);
    bytes = blank_page(4000, across, 0, &size);
    if (across == 1) /* in 4:4:4, codes of luma and chroma differ from the first bits on */
      assert_true(decodes_equal(1, bytes, size));
    else
      assert_false(jpeg_case_pack(bytes, size, room, ROOM_BYTES, &shape));
    free(bytes);
    bytes = blank_page(4000, across, 1000, &size);
    assert_true(decodes_equal((uint32_t)across, bytes, size));
    free(bytes);
  }
}

/* If luma and chroma have the same codes, nothing distinguishes their blocks. */
TEST(test_shared_codes) {
  size_t size;
  jpeg_shape shape;
  synthetic_jpeg made = {
      .height = 64, .across = 1, .down = 1, .amplitude = 300, .sum = 2000, .content = SYNTHETIC_NOISE};
  SCOPED_MEMORY jpeg_stream *stream = malloc(sizeof *stream), *shared = malloc(sizeof *shared);
  made.quality = 90;
  for (int large = 0; large < 2; large++) {
    unsigned char *bytes;
    made.width = large ? 2000 : 64;
    assert_int_equal(synthetic_jpeg_write(&made, &bytes, &size), HS_OK);
    assert_true(jpeg_stream_open(bytes, size, stream));
    for (int kind = 0; kind < 3; kind++) { /* tables are shared by number, by content, or only those for DC */
      *shared = *stream;
      for (int c = 1; c < 3 && kind == 0; c++) shared->components[c].dc = shared->components[c].ac = 0;
      if (kind > 0) shared->dc[1] = shared->dc[0];
      if (kind == 1) shared->ac[1] = shared->ac[0];
      assert_int_equal(jpeg_pack(bytes, size, shared, room, ROOM_BYTES, &shape), !large || kind == 2);
    }
    assert_true(jpeg_pack(bytes, size, stream, room, ROOM_BYTES, &shape));
    free(bytes);
  }
}

/* Each block has at least two bits, which bounds the size of the picture. */
TEST(test_size_without_data) {
  size_t size;
  jpeg_shape shape;
  unsigned char *bytes;
  const synthetic_jpeg made = {.width = 64, .height = 64, .amplitude = 300, .sum = 2000, .quality = 90};
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, &size), HS_OK);
  assert_true(jpeg_case_pack(bytes, size, room, ROOM_BYTES, &shape));
  const size_t frame = find_segment(bytes, size, 0xC0);
  assert_true(frame > 0);
  bytes[frame + 1] = bytes[frame + 3] = 0xFF; /* height and width become 65344 */
  assert_false(jpeg_case_pack(bytes, size, room, ROOM_BYTES, &shape));
  free(bytes);
}

#endif

/* For a single frequency every sample is within half a value of the exact transform. A gray block is exact. */
TEST(test_transform) {
  for (int32_t dc = -5600; dc <= 5600; dc += 7) {
    int32_t v[JPEG_BLOCK_SIDE] = {dc};
    jpeg_transform_8(v, JPEG_COLUMN_SHIFT);
    for (int i = 0; i < JPEG_BLOCK_SIDE; i++) assert_int_equal(v[i], 4 * dc);
  }
  for (int frequency = 1; frequency < JPEG_BLOCK_SIDE; frequency++) {
    int32_t v[JPEG_BLOCK_SIDE] = {0};
    v[frequency] = 1000;
    jpeg_transform_8(v, JPEG_COLUMN_SHIFT);
    for (int i = 0; i < JPEG_BLOCK_SIDE; i++) {
      const double exact = 4000 * sqrt(2) * cos((2 * i + 1) * frequency * 3.14159265358979323846 / 16);
      assert_true(fabs(v[i] - exact) < 1.5);
    }
  }
  assert_int_equal(jpeg_pixel(-129), 0);
  assert_int_equal(jpeg_pixel(-128), 0);
  assert_int_equal(jpeg_pixel(127), 255);
  assert_int_equal(jpeg_pixel(300), 255);
}
