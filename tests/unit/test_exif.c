/*
 * EXIF: orientation, focal length by COLMAP's rule, GPS position. No byte of the segment is trusted.
 */

#include "tests/support/test.h"

#include "pipeline/base/number_tools.h"
#include "pipeline/image_io/image_io.h"
#include "tests/support/exif_maker.h"

enum { WIDTH = 60, HEIGHT = 40, MUTANTS = 200000 };

/* A photograph with all fields: 7 mm, 28 mm equivalent, southern and western hemisphere, below sea level. */
static const exif_field everything[] = {
    {IN_FIRST, 0x0112, FIELD_SHORT, 1, {6}},
    {IN_EXIF, 0x920A, FIELD_RATIONAL, 1, {70, 10}},
    {IN_EXIF, 0xA002, FIELD_SHORT, 1, {WIDTH}},
    {IN_EXIF, 0xA003, FIELD_LONG, 1, {HEIGHT}},
    {IN_EXIF, 0xA20E, FIELD_RATIONAL, 1, {25400, 5}},
    {IN_EXIF, 0xA210, FIELD_SHORT, 1, {2}},
    {IN_EXIF, 0xA405, FIELD_SHORT, 1, {28}},
    {IN_GPS, 1, FIELD_ASCII, 2, {'S', 0}},
    {IN_GPS, 2, FIELD_RATIONAL, 3, {33, 1, 51, 1, 3150, 100}},
    {IN_GPS, 3, FIELD_ASCII, 2, {'W', 0}},
    {IN_GPS, 4, FIELD_RATIONAL, 3, {70, 1, 40, 1, 0, 1}},
    {IN_GPS, 5, FIELD_BYTE, 1, {1}},
    {IN_GPS, 6, FIELD_RATIONAL, 1, {125, 10}},
};
enum { FIELDS = sizeof everything / sizeof everything[0] };
enum {
  AT_FOCAL = 1,
  AT_WIDTH,
  AT_HEIGHT,
  AT_RESOLUTION,
  AT_UNIT,
  AT_35MM,
  AT_SOUTH,
  AT_LATITUDE,
  AT_WEST,
  AT_LONGITUDE,
  AT_BELOW,
  AT_ALTITUDE
};

static exif_tags parse(char order, const exif_field *fields, size_t count) {
  uint8_t segment[EXIF_MAKER_BYTES];
  exif_tags tags;
  assert_true(exif_parse(segment, exif_maker_make(order, fields, count, segment), &tags));
  return tags;
}

/* Parses the photograph's tags with one field replaced. */
static exif_tags parse_with(size_t which, exif_field field) {
  exif_field fields[FIELDS];
  memcpy(fields, everything, sizeof fields);
  fields[which] = field;
  return parse('I', fields, FIELDS);
}

TEST(test_orientation) {
  for (uint32_t value = 0; value < 12; value++) {
    const int expected = value >= 1 && value <= 8 ? (int)value : 1;
    for (int i = 0; i < 2; i++) {
      const char order = "MI"[i];
      assert_int_equal(parse(order, &(exif_field){IN_FIRST, 0x0112, FIELD_SHORT, 1, {value}}, 1).orientation, expected);
      assert_int_equal(parse(order, &(exif_field){IN_FIRST, 0x0112, FIELD_LONG, 1, {value}}, 1).orientation, expected);
      assert_int_equal(parse(order, &(exif_field){IN_FIRST, 0x0112, FIELD_SHORT, 2, {value}}, 1).orientation, 1);
      assert_int_equal(parse(order, &(exif_field){IN_FIRST, 0x0112, FIELD_ASCII, 1, {value}}, 1).orientation, 1);
    }
  }
}

TEST(test_everything) {
  for (int i = 0; i < 2; i++) {
    const exif_tags tags = parse("MI"[i], everything, FIELDS);
    assert_int_equal(tags.orientation, 6);
    assert_true(tags.focal_length_mm == 7.0 && tags.focal_length_35mm == 28.0);
    assert_true(tags.plane_resolution == 5080.0 && tags.plane_unit == 2.0);
    assert_true(tags.pixel_width == WIDTH && tags.pixel_height == HEIGHT);
    assert_true(fabs(tags.latitude + (33.0 + 51.0 / 60.0 + 31.5 / 3600.0)) < 1e-12);
    assert_true(fabs(tags.longitude + (70.0 + 40.0 / 60.0)) < 1e-12);
    assert_true(tags.altitude == -12.5);
  }
  const exif_tags tags = parse('M', everything, 1);
  assert_true(isnan(tags.latitude) && isnan(tags.longitude) && isnan(tags.altitude));
  assert_true(exif_focal_length(&tags, WIDTH, WIDTH, HEIGHT) == 0.0);
}

static double focal_with(size_t which, exif_field field, int32_t width, int32_t height) {
  const exif_tags tags = parse_with(which, field);
  return exif_focal_length(&tags, 4 * WIDTH, width, height);
}

static void assert_near(double value, double expected) { assert_true(fabs(value - expected) <= 1e-9 * expected); }

TEST(test_focal_length) {
  const exif_field none = {IN_EXIF, 0x9999, FIELD_SHORT, 1, {0}};
  const double diagonal = sqrt((double)(WIDTH * WIDTH + HEIGHT * HEIGHT));
  const exif_tags tags = parse('M', everything, FIELDS);
  assert_near(exif_focal_length(&tags, WIDTH, WIDTH, HEIGHT), 28.0 / 43.27 * diagonal);
  assert_near(exif_focal_length(&tags, WIDTH, HEIGHT / 2, WIDTH / 2),
              14.0 / 43.27 * diagonal); /* for a picture that was rotated and scaled down */
  /* The file has no equivalent focal length: 5080 pixels per inch are 200 per millimetre. */
  assert_near(focal_with(AT_35MM, none, WIDTH, HEIGHT), 1400.0);
  assert_near(focal_with(AT_35MM, (exif_field){IN_EXIF, 0xA405, FIELD_SHORT, 1, {0}}, WIDTH, HEIGHT), 1400.0);
  assert_near(focal_with(AT_35MM, none, WIDTH / 4, HEIGHT / 4), 350.0);
  exif_field fields[FIELDS];
  memcpy(fields, everything, sizeof fields);
  fields[AT_35MM] = none;
  static const struct {
    uint32_t unit;
    double expected;
  } units[] = {{1, 0.0}, {2, 1400.0}, {3, 3556.0}, {4, 35560.0}, {5, 35560000.0}, {6, 0.0}};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    fields[AT_UNIT].numbers[0] = units[i].unit;
    const exif_tags of_unit = parse('I', fields, FIELDS);
    assert_near(exif_focal_length(&of_unit, WIDTH, WIDTH, HEIGHT), units[i].expected);
  }
  fields[AT_UNIT].numbers[0] = 2;
  fields[AT_WIDTH] = none; /* without this field the resolution refers to the file's stored pixels */
  const exif_tags unsized_tags = parse('I', fields, FIELDS);
  assert_near(exif_focal_length(&unsized_tags, 2 * WIDTH, WIDTH, HEIGHT), 700.0);
  fields[AT_RESOLUTION].numbers[1] = 0;
  const exif_tags divided = parse('I', fields, FIELDS);
  assert_true(exif_focal_length(&divided, WIDTH, WIDTH, HEIGHT) == 0.0);
}

TEST(test_positions_that_cannot_be) {
  assert_true(isnan(parse_with(AT_LATITUDE, (exif_field){IN_GPS, 2, FIELD_RATIONAL, 3, {90, 1, 1, 1, 0, 1}}).latitude));
  assert_true(isnan(parse_with(AT_LATITUDE, (exif_field){IN_GPS, 2, FIELD_RATIONAL, 3, {9, 0, 1, 1, 0, 1}}).latitude));
  assert_true(isnan(parse_with(AT_LATITUDE, (exif_field){IN_GPS, 2, FIELD_RATIONAL, 2, {9, 1, 1, 1}}).latitude));
  assert_true(isnan(parse_with(AT_LATITUDE, (exif_field){IN_GPS, 2, FIELD_SHORT, 3, {91, 1, 1}}).latitude));
  assert_true(
      isnan(parse_with(AT_LONGITUDE, (exif_field){IN_GPS, 4, FIELD_RATIONAL, 3, {181, 1, 0, 1, 0, 1}}).longitude));
  assert_true(isnan(parse_with(AT_ALTITUDE, (exif_field){IN_GPS, 6, FIELD_RATIONAL, 1, {1, 0}}).altitude));
  assert_true(parse_with(AT_SOUTH, (exif_field){IN_GPS, 1, FIELD_ASCII, 2, {'N'}}).latitude > 33.0);
  assert_true(parse_with(AT_WEST, (exif_field){IN_GPS, 3, FIELD_ASCII, 2, {'E'}}).longitude > 70.0);
  assert_true(parse_with(AT_BELOW, (exif_field){IN_GPS, 5, FIELD_BYTE, 1, {0}}).altitude == 12.5);
}

/* Parses a copy of exactly this size, so that a sanitizer sees every byte read beyond it. */
static bool parse_exactly(const uint8_t *segment, size_t size, exif_tags *tags) {
  uint8_t *copy = malloc(size + 1);
  assert_non_null(copy);
  memcpy(copy + 1, segment, size);
  const bool is_exif = exif_parse(copy + 1, size, tags);
  free(copy);
  assert_in_range(tags->orientation, 1, 8);
  assert_true(isnan(tags->latitude) || fabs(tags->latitude) <= 90.0);
  assert_true(isnan(tags->longitude) || fabs(tags->longitude) <= 180.0);
  const double focal = exif_focal_length(tags, WIDTH, WIDTH, HEIGHT);
  assert_true(isfinite(focal) && focal >= 0.0);
  return is_exif;
}

TEST(test_cut_anywhere) {
  uint8_t segment[EXIF_MAKER_BYTES];
  const size_t size = exif_maker_make('M', everything, FIELDS, segment);
  exif_tags tags;
  for (size_t cut = 0; cut < size; cut++) {
    (void)parse_exactly(segment, cut, &tags);
    if (cut < size - 8) assert_true(isnan(tags.altitude)); /* the altitude is the last value of the segment */
  }
  assert_true(parse_exactly(segment, size, &tags));
  assert_true(tags.altitude == -12.5);
}

/* Directories are at any offset, and counts exceed the segment. */
TEST(test_hostile_offsets) {
  uint8_t segment[EXIF_MAKER_BYTES];
  exif_tags tags;
  const size_t size = exif_maker_make('M', everything, 1, segment);
  for (uint32_t offset = 0; offset < 64; offset++) {
    segment[13] = (uint8_t)offset;
    assert_true(parse_exactly(segment, size, &tags));
    assert_true(tags.orientation == (offset == 8 ? 6 : 1));
  }
  memset(segment + 10, 0xFF, 4);
  assert_true(parse_exactly(segment, size, &tags) && tags.orientation == 1);
  exif_maker_make('M', everything, 1, segment);
  segment[14] = segment[15] = 0xFF; /* the directory claims 65535 entries */
  assert_true(parse_exactly(segment, size, &tags) && tags.orientation == 6);
  /* One directory links to itself; values lie at the end of the 32-bit range. */
  const exif_field loops[] = {{IN_FIRST, 0x8769, FIELD_LONG, 1, {8}},
                              {IN_FIRST, 0x8825, FIELD_LONG, 1, {8}},
                              {IN_FIRST, 2, FIELD_RATIONAL, 0x1FFFFFFF, {0}},
                              {IN_FIRST, 4, 0xFFFF, 0xFFFFFFFF, {0xFFFFFFFF}}};
  tags = parse('I', loops, 2);
  assert_true(isnan(tags.latitude) && tags.orientation == 1);
  uint8_t wide[EXIF_MAKER_BYTES];
  memset(wide, 0, sizeof wide);
  exif_maker_make('I', loops, 2, wide);
  memcpy(wide + 6 + 8 + 2 + 24, "\x02\0\x05\0\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  wide[14] = 3;
  (void)parse_exactly(wide, 6 + 8 + 2 + 36 + 4, &tags);
  assert_true(isnan(tags.latitude));
}

static uint64_t next_random(uint64_t *seed) {
  *seed += SPLITMIX64_STEP;
  return splitmix64_mix(*seed);
}

TEST(test_mutants) {
  uint8_t whole[2][EXIF_MAKER_BYTES], mutant[EXIF_MAKER_BYTES];
  const size_t size = exif_maker_make('M', everything, FIELDS, whole[0]);
  exif_maker_make('I', everything, FIELDS, whole[1]);
  uint64_t seed = 5;
  exif_tags tags;
  for (int i = 0; i < MUTANTS; i++) {
    memcpy(mutant, whole[i % 2], size);
    for (uint64_t changes = 1 + next_random(&seed) % 4; changes > 0; changes--) {
      const uint64_t random = next_random(&seed);
      static const uint8_t extremes[] = {0, 1, 0x7F, 0x80, 0xFF, 8};
      mutant[random % size] = random >> 60 < 8 ? extremes[(random >> 40) % sizeof extremes] : (uint8_t)(random >> 32);
    }
    (void)parse_exactly(mutant, i % 3 == 0 ? 14 + next_random(&seed) % (size - 14) : size, &tags);
  }
}

static hs_exif load(const exif_field *fields, size_t count, int32_t scale, hs_status expected) {
  uint8_t segment[EXIF_MAKER_BYTES], samples[WIDTH * HEIGHT];
  for (int i = 0; i < WIDTH * HEIGHT; i++) samples[i] = (uint8_t)(i % WIDTH);
  const jpeg_spec spec = {.space = JPEG_GRAY,
                          .quality = 90,
                          .luma_sampling = 1,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .app1 = count > 0 ? segment : NULL,
                          .app1_size = count > 0 ? exif_maker_make('M', fields, count, segment) : 0};
  scoped_file file = jpeg_spec_make(&spec, samples);
  hs_exif exif;
  memset(&exif, 0xAA, sizeof exif);
  const hs_load_options options = {
      .struct_size = sizeof options, .jpeg_scale = scale, .exif = &exif, .max_pixels = expected == HS_OK ? 0 : 10};
  scoped_image image;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), expected);
  if (expected == HS_OK) assert_int_equal(image.width, scale > 1 ? HEIGHT / scale : count > 0 ? HEIGHT : WIDTH);
  return exif;
}

TEST(test_loading) {
#if HARTSIFT_HAVE_JPEG
  static const hs_exif nothing;
  const double diagonal = sqrt((double)(WIDTH * WIDTH + HEIGHT * HEIGHT));
  hs_exif exif = load(everything, FIELDS, 1, HS_OK);
  assert_near(exif.focal_length, 28.0 / 43.27 * diagonal);
  assert_true(exif.has_place == 1 && exif.has_altitude == 1);
  assert_true(exif.latitude < -33.85 && exif.longitude < -70.6 && exif.altitude == -12.5);
  assert_near(load(everything, FIELDS, 2, HS_OK).focal_length, 14.0 / 43.27 * diagonal);
  exif = load(everything, AT_BELOW, 1, HS_OK); /* every field but the altitude */
  assert_true(exif.has_place == 1 && exif.has_altitude == 0 && exif.altitude == 0.0);
  exif = load(everything, AT_LONGITUDE, 1, HS_OK);
  assert_true(exif.has_place == 0 && exif.latitude == 0.0 && exif.focal_length > 0.0);
  exif = load(everything, 0, 1, HS_OK);
  assert_memory_equal(&exif, &nothing, sizeof exif);
  exif = load(everything, FIELDS, 1, HS_ERR_LIMIT);
  assert_memory_equal(&exif, &nothing, sizeof exif);
  memset(&exif, 0xAA, sizeof exif);
  hs_image image;
  const hs_load_options options = {.struct_size = sizeof options, .exif = &exif};
  assert_int_equal(hs_load_image("@scene:20x20", &options, &image), HS_OK);
  assert_memory_equal(&exif, &nothing, sizeof exif);
  hs_image_free(&image);
#else
  (void)load;
  skip_because("built without JPEG");
#endif
}
