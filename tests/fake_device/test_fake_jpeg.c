/*
 * JPEGs stay encoded until a fake GPU decodes them. Features equal those of pixels, in every orientation, alone and in
 * groups. libjpeg decodes if the device gives wrong pixels, refuses or is not used.
 */
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/image_io/jpeg/synthetic_jpeg.h"
#include "tests/support/exif_maker.h"
#include "tests/support/fake_device/fake_device.h"

enum { WIDTH = 150, HEIGHT = 110, ORIENTATIONS = 8, TAG_ORIENTATION = 0x0112 };

static image_file files[ORIENTATIONS + 1]; /* [o]: file with EXIF orientation o; [0]: file without EXIF */
static hs_features expected[ORIENTATIONS + 1];

static hs_source load(const image_file *file, int keep_encoded) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_encoded = keep_encoded};
  hs_source source = hs_source_encoded(file->bytes, file->size), loaded;
  source.load = &options;
  assert_int_equal(hs_load_source(&source, &loaded), HS_OK);
  return loaded;
}

static image_file make_file(uint32_t orientation) {
  const exif_field field = {IN_FIRST, TAG_ORIENTATION, FIELD_SHORT, 1, {orientation}};
  uint8_t app1[EXIF_MAKER_BYTES];
  scoped_image scene = extraction_scene(WIDTH, HEIGHT, 7, NULL);
  const jpeg_spec spec = {.space = JPEG_GRAY,
                          .quality = 90,
                          .luma_sampling = 1,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .app1 = orientation > 0 ? app1 : NULL,
                          .app1_size = exif_maker_make('I', &field, 1, app1)};
  const image_file file = jpeg_spec_make(&spec, scene.data);
  return file;
}

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  for (uint32_t i = 0; i <= ORIENTATIONS; i++) {
    files[i] = make_file(i);
    scoped_source pixels = load(&files[i], 0);
    expected[i] = extraction_once(&o, &pixels.image);
    assert_true(expected[i].count > 20);
  }
}

AFTER_TESTS() {
  for (int i = 0; i <= ORIENTATIONS; i++) {
    image_file_free(&files[i]);
    hs_features_free(&expected[i]);
  }
}

static hs_context *context_on(fake_jpeg decoding, hs_device device) {
  fake_reset(1);
  fake.jpeg = decoding;
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = device;
  o.in_flight = 6;
  return extraction_context(&o);
}

TEST(test_asked) {
  static const struct {
    fake_jpeg decoding;
    int32_t ready;
    const char *said;
  } cases[] = {{FAKE_JPEG_RIGHT, 1, "on its multiprocessors"},
               {FAKE_JPEG_DIFFERS, -1, "differ from libjpeg's: 1 of synthetic picture 0"},
               {FAKE_JPEG_REFUSES, -1, "refuses synthetic picture 0"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char message[200];
    hs_context *c = context_on(cases[i].decoding, HS_DEVICE_CUDA);
    assert_null(strstr(hs_backend_report(c), "JPEG: ")); /* the decoder has not been tested yet */
    for (int again = 0; again < 2; again++) {
      assert_int_equal(hs_decodes_jpeg(c, message, sizeof message), cases[i].ready);
      assert_non_null(strstr(message, cases[i].said));
    }
    assert_non_null(strstr(hs_backend_report(c), cases[i].ready > 0 ? "JPEG: the GPU (" : "JPEG: libjpeg ("));
    assert_non_null(strstr(hs_backend_report(c), cases[i].said));
    hs_destroy(c);
    assert_int_equal(fake.alive, 0);
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.device = HS_DEVICE_CUDA;
    o.decoder = HS_DECODER_GPU;
    assert_int_equal(hs_create_explained(&c, &o, message, sizeof message),
                     cases[i].ready > 0 ? HS_OK : HS_ERR_NO_DEVICE);
    if (cases[i].ready < 1) assert_non_null(strstr(message, cases[i].said));
    hs_destroy(c);
    o.decoder = HS_DECODER_CPU;
    c = extraction_context(&o);
    assert_int_equal(hs_decodes_jpeg(c, message, sizeof message), 0);
    hs_destroy(c);
    assert_int_equal(fake.alive, 0);
  }
}

enum { CALL_OF_START = 3 }; /* a call that makes a context's streams */

/* A device that fails while a context is made is not used at all. */
FAKE_TEST(test_no_start) {
  char message[200];
  scoped_context *c = NULL;
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  fake_reset(1);
  fake.fail_at = CALL_OF_START;
  fake.lost_at = true;
  o.device = HS_DEVICE_CUDA;
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_ERR_NO_DEVICE);
  assert_null(c);
  assert_non_null(strstr(message, "it does not start"));
  assert_int_equal(fake.alive, 0);
  fake_reset(1);
  fake.fail_at = CALL_OF_START;
  fake.lost_at = true;
  o.device = HS_DEVICE_AUTO;
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_OK);
  assert_non_null(strstr(message, "it does not start"));
  assert_non_null(strstr(hs_backend_report(c), "device: CPU (CUDA device 0 (fake GPU 0): it does not start"));
}

/* Compares the calls that take a source on a stored file. */
static void check_calls(hs_context *c, int orientation) {
  scoped_source kept = load(&files[orientation], 1);
  const hs_features *want = &expected[orientation];
  scoped_features found = {0};
  assert_int_equal(kept.kind, HS_SOURCE_JPEG);
  assert_int_equal(hs_extract_source(c, &kept, &found), HS_OK);
  extraction_check_equal(want, &found, "hs_extract_source");
  assert_int_equal(found.origin.exif_orientation, orientation > 1 ? orientation : 0);
  scoped_image mask = extraction_scene(kept.image.width, kept.image.height, 1, NULL);
  memset((void *)(uintptr_t)mask.data, 1, (size_t)mask.width * (size_t)mask.height);
  kept.mask = &mask;
  assert_int_equal(hs_extract_source(c, &kept, &found), HS_OK);
  extraction_check_equal(want, &found, "with a mask");
}

FAKE_TEST(test_orientations) {
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
  const uint64_t checked = fake.decoded;
  for (int o = 0; o <= ORIENTATIONS; o++) check_calls(c, o);
  assert_int_equal(fake.decoded, checked + ORIENTATIONS + 1); /* the device does not decode if there is a mask */
}

/* Files are decoded on the CPU, on a hybrid context, and on a device that gives wrong pixels. */
TEST(test_without_the_device) {
  static const hs_device devices[] = {HS_DEVICE_CPU, HS_DEVICE_HYBRID, HS_DEVICE_CUDA, HS_DEVICE_CUDA};
  static const fake_jpeg decoding[] = {FAKE_JPEG_RIGHT, FAKE_JPEG_RIGHT, FAKE_JPEG_DIFFERS, FAKE_JPEG_REFUSES};
  for (int i = 0; i < 4; i++) {
    hs_context *c = context_on(decoding[i], devices[i]);
    assert_true(hs_decodes_jpeg(c, NULL, 0) < 1);
    for (int o = 0; o <= ORIENTATIONS; o += 3) check_calls(c, o);
    hs_destroy(c);
    assert_int_equal(fake.alive, 0);
  }
}

/* Images of two sizes are encoded or decoded, alone and in groups. Half way the device begins to refuse. */
FAKE_TEST(test_in_flight) {
  enum { IMAGES = 60 };
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  hs_source sources[IMAGES];
  scoped_features found = {0};
  int submitted = 0;
  for (int i = 0; i < IMAGES; i++) sources[i] = load(&files[i / 4 % (ORIENTATIONS + 1)], i % 7 != 6);
  for (int done = 0; done < IMAGES; done++) {
    while (submitted < IMAGES && hs_submit_source(c, &sources[submitted]) == HS_OK) submitted++;
    if (done == IMAGES / 2) fake.jpeg = FAKE_JPEG_REFUSES;
    assert_int_equal(hs_wait(c, &found), HS_OK);
    extraction_check_equal(&expected[done / 4 % (ORIENTATIONS + 1)], &found, "in flight");
    hs_source_free(&sources[done]);
  }
  assert_true(fake.decoded > 3);
}

enum { SIZES = 13, MANY = 6 * SIZES };

/* JPEGs of different sizes, and the features of each. */
typedef struct sizes {
  unsigned char *bytes[SIZES];
  size_t size[SIZES];
  hs_source kept[SIZES];
  hs_features wanted[SIZES];
} sizes;

static void sizes_make(sizes *s) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  fake_reset(1);
  for (int i = 0; i < SIZES; i++) {
    const synthetic_jpeg made = {
        .width = 60 + 5 * i, .height = 70, .amplitude = 900, .sum = 2000, .quality = 80, .seed = 3};
    assert_int_equal(synthetic_jpeg_write(&made, &s->bytes[i], &s->size[i]), HS_OK);
    const image_file file = {s->bytes[i], s->size[i]};
    scoped_source pixels = load(&file, 0);
    s->kept[i] = load(&file, 1);
    assert_int_equal(s->kept[i].kind, HS_SOURCE_JPEG);
    s->wanted[i] = extraction_once(&o, &pixels.image);
  }
}

static void sizes_free(sizes *s) {
  for (int i = 0; i < SIZES; i++) {
    hs_features_free(&s->wanted[i]);
    hs_source_free(&s->kept[i]);
    free(s->bytes[i]);
  }
}

/* Submits all sizes several times, as encoded sources or as files. */
static void check_sizes(hs_context *c, const sizes *s, const hs_load_options *as_files) {
  scoped_features found = {0};
  for (int done = 0, submitted = 0; done < MANY; done++) {
    for (; submitted < MANY; submitted++) {
      const int i = submitted % SIZES;
      const hs_status st =
          as_files ? hs_submit_encoded(c, s->bytes[i], s->size[i], as_files, NULL) : hs_submit_source(c, &s->kept[i]);
      if (st == HS_ERR_CAPACITY) break;
      assert_int_equal(st, HS_OK);
    }
    assert_int_equal(hs_wait(c, &found), HS_OK);
    extraction_check_equal(&s->wanted[done % SIZES], &found, "of many sizes");
  }
}

/* Many sizes alternate, also within a memory limit, which includes the memory for decoding. */
TEST(test_many_sizes) {
  sizes s;
  sizes_make(&s);
  const hs_load_options keep = {.struct_size = sizeof keep, .keep_encoded = 1}, plain = {.struct_size = sizeof plain};
  const hs_load_options *const loads[] = {NULL, &keep, &plain};
  for (int l = 0; l < 3; l++) {
    for (int in_flight = 0; in_flight < 40; in_flight += 20) {
      const bool is_limited = in_flight == 20;
      hs_options o = extraction_options(HS_PROFILE_LOWE);
      fake_reset(1);
      fake.jpeg = FAKE_JPEG_RIGHT;
      o.device = HS_DEVICE_CUDA;
      o.in_flight = in_flight;
      o.threads = 3;
      o.max_memory_bytes = is_limited ? (uint64_t)1 << 30 : 0;
      hs_context *c = extraction_context(&o);
      if (l < 2) assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
      const uint64_t compared = fake.decoded;
      check_sizes(c, &s, loads[l]);
      if (l == 2)
        assert_int_equal(fake.decoded, compared);
      else
        assert_true(fake.decoded > compared);
      hs_destroy(c);
      assert_int_equal(fake.alive, 0);
    }
  }
  sizes_free(&s);
}

/* Files in every orientation are decoded on the device if options or load request it, and by libjpeg if there is a mask
 * or a reduced size. */
TEST(test_files) {
  hs_load_options load = {.struct_size = sizeof load};
  scoped_features found = {0};
  for (int way = 0; way < 4; way++) {
    fake_reset(1);
    fake.jpeg = FAKE_JPEG_RIGHT;
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.device = HS_DEVICE_CUDA;
    o.decoder = way == 1 ? HS_DECODER_GPU : way == 2 ? HS_DECODER_CPU : HS_DECODER_AUTO;
    load.keep_encoded = way != 1;
    load.max_image_size = way == 3 ? WIDTH : 0; /* the picture keeps its size, but the call requests pixels */
    hs_context *c = extraction_context(&o);
    const bool on_device = way < 2;
    if (way == 0) assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
    uint64_t decoded = fake.decoded;
    for (int i = 0; i <= ORIENTATIONS; i++) {
      assert_int_equal(hs_extract_encoded(c, files[i].bytes, files[i].size, &load, NULL, &found), HS_OK);
      extraction_check_equal(&expected[i], &found, "hs_extract_encoded");
      assert_int_equal(found.origin.exif_orientation, i > 1 ? i : 0);
    }
    if (way < 3) assert_int_equal(fake.decoded - decoded, on_device ? ORIENTATIONS + 1 : 0);
    for (int i = 0; i <= ORIENTATIONS; i++)
      assert_int_equal(hs_submit_encoded(c, files[i].bytes, files[i].size, &load, NULL), HS_OK);
    for (int i = 0; i <= ORIENTATIONS; i++) {
      assert_int_equal(hs_wait(c, &found), HS_OK);
      extraction_check_equal(&expected[i], &found, "in flight");
    }
    hs_image mask = extraction_scene(expected[6].image_width, expected[6].image_height, 1, NULL);
    memset((void *)(uintptr_t)mask.data, 1, (size_t)mask.width * (size_t)mask.height);
    decoded = fake.decoded;
    assert_int_equal(hs_submit_encoded(c, files[6].bytes, files[6].size, &load, &mask), HS_OK);
    assert_int_equal(hs_wait(c, &found), HS_OK);
    extraction_check_equal(&expected[6], &found, "with a mask");
    assert_int_equal(fake.decoded, decoded);
    hs_image_free(&mask);
    hs_destroy(c);
    assert_int_equal(fake.alive, 0);
  }
}

/* The device begins to refuse, and some files are unreadable. */
FAKE_TEST(test_files_refused) {
  const hs_load_options load = {.struct_size = sizeof load, .keep_encoded = 1};
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 6; i++)
      assert_int_equal(hs_submit_encoded(c, files[i].bytes, i == 3 ? files[i].size / 2 : files[i].size, &load, NULL),
                       HS_OK);
    for (int i = 0; i < 6; i++) {
      assert_int_equal(hs_wait(c, &found), i == 3 ? HS_ERR_FORMAT : HS_OK);
      extraction_check_equal(&expected[i == 3 ? 2 : i], &found, "beside a damaged one");
    }
    fake.jpeg = FAKE_JPEG_REFUSES;
  }
}

/* Data from a pipe cannot be read again, so its fault is not explained further. */
TEST(test_pipe) {
  const hs_load_options load = {.struct_size = sizeof load, .keep_encoded = 1};
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  for (int whole = 0; whole < 2; whole++) {
    const size_t bytes = whole ? files[6].size : files[6].size / 2;
    char path[32];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], files[6].bytes, bytes), bytes);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(hs_extract_file(c, path, &load, NULL, &found), whole ? HS_OK : HS_ERR_FORMAT);
    if (whole)
      extraction_check_equal(&expected[6], &found, "out of a pipe");
    else
      assert_non_null(strstr(hs_last_error(c), "damaged JPEG"));
    close(ends[0]);
  }
}

/* A damaged picture is reported even if it is too small for any octave. */
FAKE_TEST(test_tiny_file) {
  const hs_load_options load = {.struct_size = sizeof load, .keep_encoded = 1};
  const synthetic_jpeg made = {.width = 1, .height = 1, .amplitude = 900, .sum = 2000, .quality = 80, .seed = 3};
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  hs_image pixels;
  unsigned char *bytes;
  size_t size;
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, &size), HS_OK);
  assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
  assert_int_equal(hs_extract_encoded(c, bytes, size, &load, NULL, &found), HS_OK);
  assert_int_equal(found.count, 0);
  memmove(bytes + size - 3, bytes + size - 2, 2); /* drops the last byte of the coded data */
  assert_int_equal(hs_load_image_memory(bytes, size - 1, NULL, &pixels), HS_ERR_FORMAT);
  assert_int_equal(hs_extract_encoded(c, bytes, size - 1, &load, NULL, &found), HS_ERR_FORMAT);
  free(bytes);
}

/* Data after a picture is not decoded, but packing allocates pinned memory for the whole file. A file this long is
 * therefore decoded by libjpeg. */
FAKE_TEST(test_long_file) {
  enum { BEYOND_THE_LIMIT = 65 << 20 };
  const hs_load_options load = {.struct_size = sizeof load, .keep_encoded = 1};
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
  const uint64_t checked = fake.decoded;
  for (int longer = 0; longer < 2; longer++) {
    const size_t size = files[6].size + (longer ? BEYOND_THE_LIMIT : 1000);
    SCOPED_MEMORY uint8_t *bytes = calloc(1, size);
    assert_non_null(bytes);
    memcpy(bytes, files[6].bytes, files[6].size);
    assert_int_equal(hs_extract_encoded(c, bytes, size, &load, NULL, &found), HS_OK);
    extraction_check_equal(&expected[6], &found, "with bytes behind it");
    assert_int_equal(fake.decoded, checked + 1); /* the device decodes only the shorter file */
  }
}

/* The source is changed after it was loaded. */
FAKE_TEST(test_refused) {
  hs_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  const uint8_t pixel = 0;
  hs_source kept = load(&files[0], 1), wrong = kept;
  wrong.image.width--;
  assert_int_equal(hs_extract_source(c, &wrong, &found), HS_ERR_IMAGE);
  wrong = kept;
  wrong.size = 50;
  assert_int_equal(hs_extract_source(c, &wrong, &found), HS_ERR_IMAGE);
  wrong.size = kept.size / 2;
  assert_int_equal(hs_extract_source(c, &wrong, &found), HS_ERR_FORMAT);
  wrong = kept;
  wrong.image.type = HS_U16;
  assert_int_equal(hs_submit_source(c, &wrong), HS_ERR_IMAGE);
  wrong = kept;
  wrong.image.data = &pixel;
  assert_int_equal(hs_submit_source(c, &wrong), HS_ERR_IMAGE);
  wrong = kept;
  wrong.bytes = NULL;
  assert_int_equal(hs_extract_source(c, &wrong, &found), HS_ERR_ARGUMENT);
  hs_destroy(c);
  hs_source_free(&kept);
}

/* The source claims fewer pixels than its file has, so a decoder would write beyond its memory. */
FAKE_TEST(test_other_sides) {
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  scoped_source kept = load(&files[6], 1);
  assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
  for (int i = 0; i < 4; i++) {
    hs_source wrong = kept;
    if (i == 0) wrong.image.height -= 20;
    if (i == 1) wrong.image.width += 1;
    if (i == 2) wrong.image.exif_orientation = 3;
    if (i == 3) wrong.image.exif_orientation = 9;
    assert_int_equal(hs_extract_source(c, &wrong, &found), HS_ERR_IMAGE);
    assert_string_equal(hs_last_error(c), "an encoded image is not as it was loaded");
    assert_int_equal(hs_submit_source(c, &wrong), HS_ERR_IMAGE);
  }
  assert_int_equal(hs_extract_source(c, &kept, &found), HS_OK);
  extraction_check_equal(&expected[6], &found, "after wrong ones");
}

/* Each call of the device fails once, for lack of memory or permanently. The call gives an error or the right features,
 * and nothing leaks. */
TEST(test_failures) {
  scoped_source kept = load(&files[6], 1);
  bool reached = true;
  for (uint64_t at = 1; reached; at += 7) {
    for (int lost = 0; lost < 2; lost++) {
      hs_features found = {0};
      hs_options o = extraction_options(HS_PROFILE_LOWE);
      hs_context *c = NULL;
      fake_reset(1);
      fake.jpeg = FAKE_JPEG_RIGHT;
      fake.fail_at = at;
      fake.lost_at = lost;
      o.device = HS_DEVICE_CUDA;
      if (hs_create(&c, &o) == HS_OK) {
        (void)hs_decodes_jpeg(c, NULL, 0);
        if (hs_extract_source(c, &kept, &found) == HS_OK) extraction_check_equal(&expected[6], &found, "a call failed");
      }
      reached = fake.calls >= at;
      hs_destroy(c);
      hs_features_free(&found);
      assert_int_equal(fake.alive, 0);
    }
  }
}

/* Progress begins once, even if the device refuses a JPEG and libjpeg then decodes it. */
static int32_t count_progress(void *user, uint64_t done, uint64_t total) {
  *(int *)user += done == 0 && total > 0;
  return 0;
}

FAKE_TEST(test_progress) {
  scoped_context *c = context_on(FAKE_JPEG_RIGHT, HS_DEVICE_CUDA);
  scoped_features found = {0};
  scoped_source kept = load(&files[6], 1);
  int begun = 0;
  assert_int_equal(hs_decodes_jpeg(c, NULL, 0), 1);
  assert_int_equal(hs_set_progress(c, count_progress, &begun), HS_OK);
  for (int refused = 0; refused < 2; refused++) {
    begun = 0;
    assert_int_equal(hs_extract_source(c, &kept, &found), HS_OK);
    extraction_check_equal(&expected[6], &found, "with progress");
    assert_int_equal(begun, 1);
    fake.jpeg = FAKE_JPEG_REFUSES;
  }
}
