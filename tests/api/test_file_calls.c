/*
 * hs_extract_file, hs_submit_file and related calls equal loading followed by extraction, for all load options, alone
 * and in flight. A file that cannot be read fails alone.
 */
#include "tests/support/test.h"

#include "tests/support/exif_maker.h"
#include "tests/support/extent.h"

enum { FILES = 9, TAG_ORIENTATION = 0x0112, SIZED = 70 };

static scratch_folder folder;
static image_file contents[FILES];
static char paths[FILES][SCRATCH_PATH_BYTES];
static int32_t widths[FILES], heights[FILES];
static hs_image mask; /* mask of the first file's size that drops the left half */

/* Makes file number i: JPEGs of different sizes, every third with a different orientation, and one PNG. */
static void make_file(int i) {
  const exif_field field = {IN_FIRST, TAG_ORIENTATION, FIELD_SHORT, 1, {6}};
  uint8_t app1[EXIF_MAKER_BYTES];
  const size_t app1_size = exif_maker_make('I', &field, 1, app1);
  const int32_t width = 90 + 7 * i, height = 80 + 3 * i;
  scoped_image scene = extraction_scene(width, height, (uint32_t)i + 1, NULL);
  const png_spec png = {.depth = 8, .width = width, .height = height};
  const jpeg_spec jpeg = {.space = JPEG_GRAY,
                          .quality = 90,
                          .luma_sampling = 1,
                          .width = width,
                          .height = height,
                          .app1 = i % 3 == 2 ? app1 : NULL,
                          .app1_size = app1_size};
  char name[32];
  snprintf(name, sizeof name, "%d.any", i);
  contents[i] = i == 4 ? png_spec_make(&png) : jpeg_spec_make(&jpeg, scene.data);
  widths[i] = i % 3 == 2 ? height : width;
  heights[i] = i % 3 == 2 ? width : height;
  scratch_write_file(scratch_folder_path(&folder, name, paths[i]), contents[i].bytes, contents[i].size);
}

BEFORE_TESTS() {
  scratch_folder_make(&folder);
  for (int i = 0; i < FILES; i++) make_file(i);
  mask = extraction_scene(widths[0], heights[0], 1, NULL);
  for (int32_t i = 0; i < widths[0] * heights[0]; i++)
    ((uint8_t *)(uintptr_t)mask.data)[i] = i % widths[0] < widths[0] / 2 ? 0 : 255;
}

AFTER_TESTS() { scratch_folder_remove(&folder); }

static bool options_on(hs_device device, hs_options *o) {
  *o = extraction_options(HS_PROFILE_LOWE);
  o->device = device;
  o->threads = 3;
  return device == HS_DEVICE_CPU || extraction_has_gpu();
}

/* Returns the CPU's result of loading, extraction and hs_features_to_original. */
static hs_features separately(int file, const hs_load_options *load, const hs_image *masking) {
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  scoped_image image;
  hs_features found = {0};
  assert_int_equal(hs_load_image(paths[file], load, &image), HS_OK);
  assert_int_equal(hs_extract(c, &image, masking, &found), HS_OK);
  assert_int_equal(hs_features_to_original(&found, &image), HS_OK);
  return found;
}

static const hs_load_options loads[] = {{.struct_size = sizeof(hs_load_options)},
                                        {.struct_size = sizeof(hs_load_options), .ignore_exif = 1},
                                        {.struct_size = sizeof(hs_load_options), .max_image_size = SIZED},
                                        {.struct_size = sizeof(hs_load_options), .keep_encoded = 1}};
enum { LOADS = sizeof loads / sizeof *loads };

/* Submits file names and bytes alternately. Returns false if the maximum number is in flight. */
static bool submit(hs_context *c, int number, const hs_load_options *load) {
  const int i = number % FILES;
  const hs_status st = number % 2 == 0 ? hs_submit_file(c, paths[i], load, NULL)
                                       : hs_submit_encoded(c, contents[i].bytes, contents[i].size, load, NULL);
  assert_true(st == HS_OK || st == HS_ERR_CAPACITY);
  return st == HS_OK;
}

static void check_device(hs_device device) {
  hs_options o;
  if (!options_on(device, &o)) skip_because(NEEDS_GPU);
  scoped_context *c = extraction_context(&o);
  hs_features wanted[FILES], found = {0};
  const hs_features *view = NULL;
  for (int l = 0; l < LOADS; l++) {
    for (int i = 0; i < FILES; i++) {
      wanted[i] = separately(i, &loads[l], NULL);
      if (!extent_pairs((size_t)i, (size_t)l, LOADS)) continue;
      assert_int_equal(hs_extract_file(c, paths[i], &loads[l], NULL, &found), HS_OK);
      extraction_check_equal(&wanted[i], &found, "hs_extract_file");
      assert_int_equal(found.origin.exif_orientation, wanted[i].origin.exif_orientation);
      assert_int_equal(hs_extract_encoded(c, contents[i].bytes, contents[i].size, &loads[l], NULL, &found), HS_OK);
      extraction_check_equal(&wanted[i], &found, "hs_extract_encoded");
    }
    /* in the short form one round, in which files and bytes change places with the next load options */
    const int begin = extent_is_short() ? l % 2 * FILES : 0, end = extent_is_short() ? begin + FILES : 2 * FILES;
    for (int done = begin, submitted = begin; done < end; done++) {
      while (submitted < end && submit(c, submitted, &loads[l])) submitted++;
      if (done % 5 == 4) {
        assert_int_equal(hs_wait_view(c, &view), HS_OK);
        extraction_check_equal(&wanted[done % FILES], view, "a view in flight");
      } else {
        assert_int_equal(hs_wait(c, &found), HS_OK);
        extraction_check_equal(&wanted[done % FILES], &found, "in flight");
      }
    }
    for (int i = 0; i < FILES; i++) hs_features_free(&wanted[i]);
  }
  hs_features_free(&found);
}

TEST(test_cpu) { check_device(HS_DEVICE_CPU); }

TEST(test_cuda) { check_device(HS_DEVICE_CUDA); }

TEST(test_hybrid) { check_device(HS_DEVICE_HYBRID); }

/* Returns a mask for a reduced picture: the original's mask sampled at the centres of the reduced pixels. */
static hs_image smaller_mask(const hs_image *picture) {
  hs_image small = extraction_scene(picture->width, picture->height, 1, NULL);
  uint8_t *to = (uint8_t *)(uintptr_t)small.data;
  for (int32_t y = 0; y < small.height; y++)
    for (int32_t x = 0; x < small.width; x++)
      to[y * small.width + x] =
          ((const uint8_t *)mask.data)[(2 * y + 1) * mask.height / (2 * small.height) * mask.width +
                                       (2 * x + 1) * mask.width / (2 * small.width)];
  return small;
}

static void check_masks(hs_device device) {
  hs_options o;
  if (!options_on(device, &o)) skip_because(NEEDS_GPU);
  scoped_context *c = extraction_context(&o);
  scoped_features found = {0};
  for (int l = 0; l < LOADS; l++) {
    scoped_image image;
    assert_int_equal(hs_load_image(paths[0], &loads[l], &image), HS_OK);
    scoped_image fitted = smaller_mask(&image);
    scoped_features wanted = separately(0, &loads[l], &fitted), whole = separately(0, &loads[l], NULL);
    assert_true(wanted.count > 5 && wanted.count < whole.count);
    const hs_image *masks[] = {&mask, &fitted};
    for (int m = 0; m < 2; m++) {
      assert_int_equal(hs_extract_file(c, paths[0], &loads[l], masks[m], &found), HS_OK);
      extraction_check_equal(&wanted, &found, "masked");
      assert_int_equal(hs_submit_file(c, paths[0], &loads[l], masks[m]), HS_OK);
      assert_int_equal(hs_submit_encoded(c, contents[0].bytes, contents[0].size, &loads[l], NULL), HS_OK);
      assert_int_equal(hs_wait(c, &found), HS_OK);
      extraction_check_equal(&wanted, &found, "masked, in flight");
      assert_int_equal(hs_wait(c, &found), HS_OK);
      extraction_check_equal(&whole, &found, "beside a masked one");
    }
    /* the mask has another picture's size, so this call alone fails */
    assert_int_equal(hs_extract_file(c, paths[3], &loads[l], &mask, &found), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(c), "mask is"));
    assert_int_equal(hs_submit_file(c, paths[3], &loads[l], &mask), HS_OK);
    assert_int_equal(hs_wait(c, &found), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(c), "mask is"));
  }
}

TEST(test_masks_cpu) { check_masks(HS_DEVICE_CPU); }

TEST(test_masks_cuda) { check_masks(HS_DEVICE_CUDA); }

/* Files that cannot be read, or exceed a limit, fail alone and in order, with the message of loading. */
static void check_failures(hs_device device) {
  hs_options o;
  if (!options_on(device, &o)) skip_because(NEEDS_GPU);
  o.max_pixels = (uint64_t)widths[6] * (uint64_t)heights[6] - 1;
  scoped_context *c = extraction_context(&o);
  scoped_features wanted = separately(0, NULL, NULL), found = {0};
  char absent[SCRATCH_PATH_BYTES], cut[SCRATCH_PATH_BYTES];
  scratch_folder_path(&folder, "absent.jpg", absent);
  scratch_write_file(scratch_folder_path(&folder, "cut.jpg", cut), contents[0].bytes, contents[0].size / 2);
  const struct {
    const char *path;
    hs_status status;
    const char *said;
  } cases[] = {{absent, HS_ERR_IO, "absent.jpg: cannot be opened"},
               {cut, HS_ERR_FORMAT, "cut.jpg: "},
               {paths[6], HS_ERR_LIMIT, "pixels"}};
  enum { CASES = sizeof cases / sizeof *cases };
  for (int i = 0; i < CASES; i++) {
    assert_int_equal(hs_extract_file(c, cases[i].path, NULL, NULL, &found), cases[i].status);
    assert_non_null(strstr(hs_last_error(c), cases[i].said));
  }
  for (int i = 0; i < 2 * CASES; i++)
    assert_int_equal(hs_submit_file(c, i % 2 ? cases[i / 2].path : paths[0], NULL, NULL), HS_OK);
  assert_int_equal(hs_count_in_flight(c), 2 * CASES);
  for (int i = 0; i < 2 * CASES; i++) {
    assert_int_equal(hs_wait(c, &found), i % 2 ? cases[i / 2].status : HS_OK);
    if (i % 2) assert_non_null(strstr(hs_last_error(c), cases[i / 2].said));
    if (i % 2) assert_non_null(strstr(hs_last_error_location(c), hs_status_name(cases[i / 2].status)));
    /* the other images are correct although some fail */
    extraction_check_equal(&wanted, &found, "beside files that cannot be read");
  }
  /* The context is destroyed while files are being read. */
  for (int i = 0; i < 5; i++) assert_int_equal(hs_submit_file(c, paths[i], NULL, NULL), HS_OK);
}

TEST(test_failures_cpu) { check_failures(HS_DEVICE_CPU); }

TEST(test_failures_cuda) { check_failures(HS_DEVICE_CUDA); }

/* Each damage is put into a valid JPEG: surplus data before the end marker, no end marker, or a header of an unknown
 * version. libjpeg decodes all of them to the same picture and reports the fault. */
enum { DAMAGES = 3, SURPLUS = 40 };

static image_file damaged_file(int kind) {
  const image_file *sound = &contents[0];
  const size_t end = sound->size - 2;
  image_file file = {.bytes = calloc(1, sound->size + SURPLUS), .size = sound->size};
  assert_non_null(file.bytes);
  assert_memory_equal(sound->bytes + end, "\xFF\xD9", 2);
  memcpy(file.bytes, sound->bytes, end);
  if (kind == 1) file.size -= 2;
  if (kind == 0) file.size += SURPLUS;
  if (kind != 1) memcpy(file.bytes + file.size - 2, "\xFF\xD9", 2);
  if (kind == 2) {
    assert_memory_equal(sound->bytes + 6, "JFIF", 5);
    file.bytes[11] = 7;
  }
  return file;
}

/* Each decoder gives the features of the valid file and a note, or refuses the file. */
static void check_damage(hs_device device) {
  hs_options o;
  if (!options_on(device, &o)) skip_because(NEEDS_GPU);
  scoped_context *c = extraction_context(&o);
  scoped_features wanted = separately(0, &loads[0], NULL), found = {0};
  hs_load_notes notes;
  for (int i = 0; i < 2 * DAMAGES; i++) {
    scoped_file file = damaged_file(i / 2);
    hs_load_options load = {.struct_size = sizeof load, .keep_encoded = i % 2, .notes = &notes};
    assert_int_equal(hs_extract_encoded(c, contents[0].bytes, contents[0].size, &load, NULL, &found), HS_OK);
    assert_int_equal(notes.damages, 0);
    assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, &load, NULL, &found), HS_OK);
    extraction_check_equal(&wanted, &found, "a damaged file");
    assert_int_equal(notes.damages, 1);
    assert_non_null(strstr(notes.damage, "the image in memory: "));
    memset(&notes, 0, sizeof notes);
    assert_int_equal(hs_submit_encoded(c, file.bytes, file.size, &load, NULL), HS_OK);
    assert_int_equal(hs_wait(c, &found), HS_OK);
    extraction_check_equal(&wanted, &found, "a damaged file in flight");
    assert_int_equal(notes.damages, 1);
    load.notes = NULL;
    assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, &load, NULL, &found), HS_OK);
    extraction_check_equal(&wanted, &found, "a damaged file without notes");
    load.strict = 1;
    assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, &load, NULL, &found), HS_ERR_FORMAT);
    assert_non_null(strstr(hs_last_error(c), "strict"));
    assert_int_equal(hs_submit_encoded(c, file.bytes, file.size, &load, NULL), HS_OK);
    assert_int_equal(hs_wait(c, &found), HS_ERR_FORMAT);
  }
}

TEST(test_damage_cpu) { check_damage(HS_DEVICE_CPU); }

TEST(test_damage_cuda) { check_damage(HS_DEVICE_CUDA); }

/* The caller's buffer explains failures, including failures of the call itself. */
TEST(test_reasons_of_loading) {
  char message[256] = "";
  const hs_load_options load = {.struct_size = sizeof load, .message = message, .message_bytes = sizeof message};
  const hs_load_options backwards = {.struct_size = sizeof load,
                                     .message = message,
                                     .message_bytes = sizeof message,
                                     .range_low = 2.0f,
                                     .range_high = 1.0f};
  hs_image image;
  assert_int_equal(hs_load_image("absent.png", &load, &image), HS_ERR_IO);
  assert_non_null(strstr(message, "absent.png: "));
  assert_int_equal(hs_load_image(paths[0], &load, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "null"));
  assert_int_equal(hs_load_image_memory(contents[0].bytes, 9, &load, &image), HS_ERR_FORMAT);
  assert_non_null(strstr(message, "the image in memory: "));
  assert_int_equal(hs_load_image(paths[0], &backwards, &image), HS_ERR_OPTION);
  assert_non_null(strstr(message, "the value range is 2 to 1"));
}

TEST(test_arguments) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.in_flight = 2;
  scoped_context *c = extraction_context(&o);
  hs_features f = {0};
  hs_load_options wrong = loads[0];
  const uint8_t *bytes = contents[0].bytes;
  assert_int_equal(hs_extract_file(NULL, paths[0], NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_encoded(NULL, bytes, 4, NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_file(NULL, paths[0], NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_encoded(NULL, bytes, 4, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_file(c, NULL, NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_file(c, "", NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_file(c, paths[0], NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_encoded(c, NULL, 0, NULL, NULL, &f), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_encoded(c, bytes, 4, NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_file(c, NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_file(c, "", NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_encoded(c, NULL, 0, NULL, NULL), HS_ERR_ARGUMENT);
  wrong.jpeg_scale = 3;
  assert_int_equal(hs_extract_file(c, paths[0], &wrong, NULL, &f), HS_ERR_OPTION);
  assert_int_equal(hs_submit_file(c, paths[0], &wrong, NULL), HS_ERR_OPTION);
  assert_non_null(strstr(hs_last_error(c), "jpeg_scale is 3"));
  wrong = loads[0];
  wrong.max_image_size = -1;
  assert_int_equal(hs_submit_encoded(c, bytes, 4, &wrong, NULL), HS_ERR_OPTION);
  wrong.struct_size = 3;
  assert_int_equal(hs_submit_file(c, paths[0], &wrong, NULL), HS_ERR_OPTION);
  assert_int_equal(hs_count_in_flight(c), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(hs_submit_file(c, paths[0], NULL, NULL), HS_OK);
  assert_int_equal(hs_submit_file(c, paths[0], NULL, NULL), HS_ERR_CAPACITY);
  assert_int_equal(hs_count_in_flight(c), 2);
  hs_destroy(c);
  o.region_width = o.region_height = 50;
  c = extraction_context(&o);
  /* refused: a mask is ambiguous together with a region */
  assert_int_equal(hs_submit_file(c, paths[0], &loads[2], NULL), HS_ERR_OPTION);
  assert_non_null(strstr(hs_last_error(c), "region"));
}

/* EXIF is available with the features. Limits of `load` apply, or the context's if load has none. */
TEST(test_exif_and_limits) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_context *c = extraction_context(&o);
  hs_exif exif = {.focal_length = 1, .reserved = {0}};
  hs_load_options load = loads[0];
  scoped_features f = {0};
  load.exif = &exif;
  assert_int_equal(hs_submit_file(c, paths[0], &load, NULL), HS_OK);
  load.exif = NULL; /* the arguments are copied */
  assert_int_equal(hs_wait(c, &f), HS_OK);
  assert_true(exif.focal_length == 0); /* cleared, because the file has no EXIF */
  load.max_memory_bytes = 2000;
  assert_int_equal(hs_extract_file(c, paths[0], &load, NULL, &f), HS_ERR_LIMIT);
  load.max_memory_bytes = 0;
  load.jpeg_scale = 2;
  assert_int_equal(hs_extract_file(c, paths[0], &load, NULL, &f), HS_OK);
  assert_int_equal(f.image_width, (widths[0] + 1) / 2); /* coordinates refer to the decoded picture, as after loading */
  assert_int_equal(hs_extract_file(c, paths[4], &load, NULL, &f), HS_ERR_UNSUPPORTED);
  hs_destroy(c);
  o.max_memory_bytes = 2000;
  c = extraction_context(&o);
  assert_int_equal(hs_submit_file(c, paths[0], NULL, NULL), HS_OK);
  assert_int_equal(hs_wait(c, &f), HS_ERR_LIMIT);
}

/* Each allocation fails once: the image fails, the next one succeeds, and nothing leaks. */
TEST(test_allocations) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_features expected = separately(0, &loads[2], NULL), f = {0};
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  o.allocator = &allocator;
  o.in_flight = 1;
  o.threads = 1;
  bool failed = true;
  for (size_t n = 1; failed; n++) {
    hs_context *c = extraction_context(&o);
    counter.fail_at = counter.made + n;
    hs_status st = hs_submit_file(c, paths[0], &loads[2], NULL);
    if (st == HS_OK) st = hs_wait(c, &f);
    failed = counter.made >= counter.fail_at;
    counter.fail_at = 0;
    assert_int_equal(st, failed ? HS_ERR_MEMORY : HS_OK);
    assert_int_equal(hs_submit_file(c, paths[0], &loads[2], NULL), HS_OK);
    assert_int_equal(hs_wait(c, &f), HS_OK);
    extraction_check_equal(&expected, &f, "after a failed allocation");
    hs_features_free(&f);
    hs_destroy(c);
    assert_int_equal(counter.alive, 0);
    assert_true(n < 200);
  }
  hs_features_free(&expected);
}
