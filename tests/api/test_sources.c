/*
 * Sources of pictures: pixels, a file, the bytes of a file, rows, and each of these prefetched. All give the same
 * features on every use, and errors of a source are reported as soon as they are known.
 */
#include "tests/support/test.h"

#include "pipeline/include/hartsift_batch.h"
#include "tests/support/rows_check.h"

enum { WIDTH = 150, HEIGHT = 110, SMALLER = 90, TALL = 400 };

static scratch_folder folder;
static char path[SCRATCH_PATH_BYTES];
static image_file file;
static hs_image pixels; /* pixels of the decoded file */
static hs_features expected;

BEFORE_TESTS() {
  const png_spec spec = {.depth = 8, .width = WIDTH, .height = HEIGHT};
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  file = png_spec_make(&spec);
  if (!file.bytes) return;
  scratch_folder_make(&folder);
  scratch_write_file(scratch_folder_path(&folder, "picture", path), file.bytes, file.size);
  assert_int_equal(hs_load_image(path, NULL, &pixels), HS_OK);
  expected = extraction_once(&o, &pixels);
  assert_true(expected.count > 5);
}

AFTER_TESTS() {
  if (!file.bytes) return;
  image_file_free(&file);
  hs_image_free(&pixels);
  hs_features_free(&expected);
  scratch_folder_remove(&folder);
}

/* Gives rows of a picture in memory. fail_at: number of the read that fails, counted from 1 over all reads of rows; 0:
 * none. */
typedef struct row_giver {
  const hs_image *image;
  size_t row_bytes;
  int32_t next;
  int rewinds, reads, fail_at;
  hs_status rewind_status;
} row_giver;

static hs_status rewind_rows(void *user) {
  row_giver *g = user;
  g->next = 0;
  g->rewinds++;
  return g->rewind_status;
}

static hs_status read_row(void *user, void *row) {
  row_giver *g = user;
  assert_true(g->next < g->image->height);
  if (++g->reads == g->fail_at) return HS_ERR_IO;
  memcpy(row, (const uint8_t *)g->image->data + (size_t)g->next++ * g->image->stride_bytes, g->row_bytes);
  return HS_OK;
}

static row_giver giver_of(const hs_image *image) {
  const size_t sample = image->type == HS_U8 ? 1 : image->type == HS_U16 ? 2 : 4;
  return (row_giver){.image = image, .row_bytes = (size_t)image->width * sample};
}

static hs_source rows_of(row_giver *giver) {
  const hs_row_reader reader = {.rewind = rewind_rows, .read = read_row, .user = giver};
  return hs_source_rows(giver->image->width, giver->image->height, giver->image->type, &reader);
}

static void need_file(void) {
  if (!file.bytes) skip_because("a build that writes PNG");
}

/* Extracts twice from the source, prefetches it and extracts twice again; the features must be equal. */
static void check_source(hs_context *c, const hs_source *source, const hs_features *wanted, const char *what) {
  scoped_features found = {0};
  scoped_source loaded;
  assert_int_equal(hs_load_source(source, &loaded), HS_OK);
  assert_int_equal(loaded.kind, HS_SOURCE_PIXELS);
  assert_null(loaded.load);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(hs_extract_source(c, i < 2 ? source : &loaded, &found), HS_OK);
    extraction_check_equal(wanted, &found, what);
  }
  hs_source_free(&loaded);
  assert_null(loaded.image.data);
  assert_int_equal(hs_extract_source(c, &loaded, &found), HS_ERR_IMAGE); /* the freed source has no pixels */
}

TEST(test_kinds) {
  need_file();
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  row_giver giver = giver_of(&pixels);
  const hs_source sources[] = {hs_source_pixels(&pixels), hs_source_file(path),
                               hs_source_encoded(file.bytes, file.size), rows_of(&giver)};
  const char *const names[] = {"pixels", "a file", "encoded bytes", "rows"};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(sources[i].kind, i);
    check_source(c, &sources[i], &expected, names[i]);
  }
  assert_int_equal(giver.rewinds, 3); /* two extractions and one prefetch */
}

TEST(test_in_flight) {
  need_file();
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.in_flight = 6;
  scoped_context *c = extraction_context(&o);
  scoped_features found = {0};
  hs_source loaded,
      sources[] = {hs_source_pixels(&pixels), hs_source_file(path), hs_source_encoded(file.bytes, file.size)};
  assert_int_equal(hs_load_source(&sources[1], &loaded), HS_OK);
  for (int i = 0; i < 6; i++) /* each source is submitted twice at the same time */
    assert_int_equal(hs_submit_source(c, &sources[i % 3]), HS_OK);
  assert_int_equal(hs_submit_source(c, &loaded), HS_ERR_CAPACITY);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(hs_wait(c, &found), HS_OK);
    extraction_check_equal(&expected, &found, "in flight");
  }
  assert_int_equal(hs_submit_source(c, &loaded), HS_OK);
  assert_int_equal(hs_wait(c, &found), HS_OK);
  extraction_check_equal(&expected, &found, "loaded, in flight");
  row_giver giver = giver_of(&pixels);
  const hs_source rows = rows_of(&giver);
  assert_int_equal(hs_submit_source(c, &rows), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(hs_last_error(c), "hs_extract_source"));
  assert_int_equal(hs_count_in_flight(c), 0);
  assert_int_equal(giver.rewinds, 0);
  hs_source_free(&loaded);
}

/* Returns a tall picture with samples of the given type. */
static hs_image tall_picture(hs_sample_type type) {
  hs_image bytes = extraction_scene(WIDTH, TALL, 4, NULL);
  if (type == HS_U8) return bytes;
  hs_image image = bytes;
  const size_t count = (size_t)WIDTH * TALL, sample = type == HS_U16 ? 2 : 4;
  void *memory = malloc(count * sample);
  assert_non_null(memory);
  for (size_t i = 0; i < count; i++) {
    const uint8_t value = ((const uint8_t *)bytes.data)[i];
    if (type == HS_U16) ((uint16_t *)memory)[i] = (uint16_t)(value * 257);
    if (type == HS_F32) ((float *)memory)[i] = (float)value - 128.0f;
  }
  image.data = image.memory = memory;
  image.stride_bytes = WIDTH * sample;
  image.type = type;
  if (type == HS_F32) image.range_low = -128.0f;
  if (type == HS_F32) image.range_high = 127.0f;
  hs_image_free(&bytes);
  image.allocator = NULL;
  return image;
}

/* Under a memory limit the picture is never in memory as a whole: the workspace holds a band of rows. */
TEST(test_rows_in_tiles) {
  for (int type = HS_U8; type <= HS_F32; type++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    scoped_image image = tall_picture((hs_sample_type)type);
    scoped_features whole = extraction_once(&o, &image), found = {0};
    row_giver giver = giver_of(&image);
    hs_source rows = rows_of(&giver);
    hs_statistics s = {.struct_size = sizeof s};
    uint64_t promised = 0, device = 0;
    rows.image.range_low = image.range_low;
    rows.image.range_high = image.range_high;
    o.max_memory_bytes = rows_cap(o, WIDTH, TALL);
    scoped_context *c = extraction_context(&o);
    for (int again = 0; again < 2; again++) {
      assert_int_equal(hs_extract_source(c, &rows, &found), HS_OK);
      extraction_check_equal(&whole, &found, "rows in tiles");
    }
    assert_int_equal(giver.reads, 2 * TALL);
    assert_int_equal(hs_get_statistics(c, &s), HS_OK);
    if (type != HS_F32) {
      assert_int_equal(hs_workspace_query_rows(&o, WIDTH, TALL, (hs_sample_type)type, &promised, &device), HS_OK);
      assert_int_equal(s.workspace_bytes, promised);
    }
  }
}

/* The status returned by the row function becomes the call's status, whether rows are kept or not. The rows are usable
 * again afterwards. */
TEST(test_rows_that_fail) {
  scoped_image image = tall_picture(HS_U8);
  for (int in_tiles = 0; in_tiles < 2; in_tiles++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    scoped_features whole = extraction_once(&o, &image), found = {0};
    row_giver giver = giver_of(&image);
    const hs_source rows = rows_of(&giver);
    if (in_tiles) o.max_memory_bytes = rows_cap(o, WIDTH, TALL);
    scoped_context *c = extraction_context(&o);
    giver.fail_at = TALL / 2;
    assert_int_equal(hs_extract_source(c, &rows, &found), HS_ERR_IO);
    assert_string_equal(hs_last_error(c), "the source: reading its rows ended with HS_ERR_IO");
    giver.rewind_status = HS_ERR_CANCELLED;
    assert_int_equal(hs_extract_source(c, &rows, &found), HS_ERR_CANCELLED);
    assert_non_null(strstr(hs_last_error(c), "HS_ERR_CANCELLED"));
    assert_int_equal(found.count, 0);
    giver.rewind_status = HS_OK;
    giver.fail_at = 0;
    assert_int_equal(hs_extract_source(c, &rows, &found), HS_OK);
    extraction_check_equal(&whole, &found, "after a failure");
  }
}

/* Limits and sizes of `load` apply to rows as they do to files. */
TEST(test_rows_with_load) {
  need_file();
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  hs_load_options load = {.struct_size = sizeof load, .max_image_size = SMALLER};
  row_giver giver = giver_of(&pixels);
  hs_source rows = rows_of(&giver), of_file = hs_source_file(path);
  scoped_features wanted = {0}, found = {0};
  rows.load = of_file.load = &load;
  assert_int_equal(hs_extract_source(c, &of_file, &wanted), HS_OK);
  assert_int_equal(hs_extract_source(c, &rows, &found), HS_OK);
  assert_int_equal(found.image_width, WIDTH);
  extraction_check_equal(&wanted, &found, "rows made smaller");
  load = (hs_load_options){.struct_size = sizeof load, .max_pixels = 100};
  assert_int_equal(hs_extract_source(c, &rows, &found), HS_ERR_LIMIT);
  load = (hs_load_options){.struct_size = sizeof load, .jpeg_scale = 2};
  assert_int_equal(hs_extract_source(c, &rows, &found), HS_ERR_UNSUPPORTED);
}

/* The mask drops the left half. A mask of another size is refused; for a file, as soon as its size is known. */
TEST(test_masks) {
  need_file();
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  scoped_image mask = extraction_scene(WIDTH, HEIGHT, 1, NULL);
  for (int32_t i = 0; i < WIDTH * HEIGHT; i++) ((uint8_t *)(uintptr_t)mask.data)[i] = i % WIDTH < WIDTH / 2 ? 0 : 255;
  hs_image wrong = mask;
  scoped_features wanted = {0}, found = {0};
  wrong.width--;
  assert_int_equal(hs_extract(c, &pixels, &mask, &wanted), HS_OK);
  assert_true(wanted.count < expected.count);
  row_giver giver = giver_of(&pixels);
  hs_source sources[] = {hs_source_pixels(&pixels), hs_source_file(path), hs_source_encoded(file.bytes, file.size),
                         rows_of(&giver)};
  for (int i = 0; i < 4; i++) {
    hs_source *source = &sources[i];
    source->mask = &mask;
    check_source(c, source, &wanted, "masked");
    if (i < 3) {
      assert_int_equal(hs_submit_source(c, source), HS_OK);
      assert_int_equal(hs_wait(c, &found), HS_OK);
      extraction_check_equal(&wanted, &found, "masked, in flight");
    }
    source->mask = &wrong;
    assert_int_equal(hs_extract_source(c, source, &found), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(c), "mask is 149 x 110"));
    if (i == 0) assert_int_equal(hs_submit_source(c, source), HS_ERR_ARGUMENT);
    if (i == 0 || i == 3) continue;
    assert_int_equal(hs_submit_source(c, source), HS_OK);
    assert_int_equal(hs_wait(c, &found), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(c), "mask is 149 x 110"));
  }
}

static void check_refused(hs_context *c, hs_source source, hs_status status, const char *said) {
  hs_features found = {0};
  assert_int_equal(hs_extract_source(c, &source, &found), status);
  if (!strstr(hs_last_error(c), said)) fail_msg("\"%s\" does not say \"%s\"", hs_last_error(c), said);
  assert_int_equal(found.count, 0);
}

/* A batch scales a mask of the original's size with the file, as hs_extract_source does. */
TEST(test_masks_of_a_batch) {
  enum { SIDE = 200 };
  static unsigned char right[SIDE * SIDE];
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  const hs_options *const devices[] = {&o};
  const hs_load_options load = {.struct_size = sizeof load, .max_image_size = SIDE / 2};
  const hs_batch_options options = {
      .struct_size = sizeof options, .devices = devices, .device_count = 1, .load = &load};
  scoped_context *c = extraction_context(&o);
  scoped_features single = {0};
  hs_batch *batch;
  const hs_batch_result *result;
  for (int i = 0; i < SIDE * SIDE; i++) right[i] = i % SIDE >= SIDE / 2;
  const hs_image mask = {.data = right, .width = SIDE, .height = SIDE};
  assert_int_equal(hs_extract_file(c, "@scene:200x200:4", &load, &mask, &single), HS_OK);
  assert_true(single.count > 0);
  assert_int_equal(hs_batch_open(&batch, &options, NULL, 0), HS_OK);
  hs_batch_image added = {.source = hs_source_file("@scene:200x200:4")};
  added.source.mask = &mask;
  assert_int_equal(hs_batch_add(batch, &added), HS_OK);
  assert_int_equal(hs_batch_end(batch), HS_OK);
  assert_int_equal(hs_batch_next(batch, -1, &result), HS_OK);
  assert_string_equal(result->message, "");
  assert_int_equal(result->status, HS_OK);
  extraction_check_equal(&single, result->features, "masked in a batch");
  hs_batch_destroy(batch);
}

TEST(test_wrong_use) {
  need_file();
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  hs_features found = {0};
  row_giver giver = giver_of(&pixels);
  const hs_source good = hs_source_file(path), rows = rows_of(&giver);
  hs_source wrong, loaded;
  assert_int_equal(hs_extract_source(NULL, &good, &found), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_source(NULL, &good), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_source(c, NULL, &found), HS_ERR_ARGUMENT);
  assert_int_equal(hs_extract_source(c, &good, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_submit_source(c, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_source(NULL, &loaded), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_source(&good, NULL), HS_ERR_ARGUMENT);
  hs_source_free(NULL);
  check_refused(c, hs_source_pixels(NULL), HS_ERR_IMAGE, "image.data is null");
  check_refused(c, hs_source_file(NULL), HS_ERR_ARGUMENT, "source.path is null or empty");
  check_refused(c, hs_source_file(""), HS_ERR_ARGUMENT, "source.path is null or empty");
  check_refused(c, hs_source_encoded(NULL, 10), HS_ERR_ARGUMENT, "source.bytes is null");
  check_refused(c, hs_source_encoded(file.bytes, 0), HS_ERR_FORMAT, "the file is empty");
  check_refused(c, hs_source_of(HS_SOURCE_JPEG), HS_ERR_ARGUMENT, "source.bytes is null");
  check_refused(c, hs_source_of((hs_source_kind)9), HS_ERR_ARGUMENT, "source.kind is 9");
  check_refused(c, hs_source_rows(WIDTH, HEIGHT, HS_U8, NULL), HS_ERR_ARGUMENT, "source.rows");
  check_refused(c, hs_source_rows(0, HEIGHT, HS_U8, &rows.rows), HS_ERR_IMAGE, "0 x 110");
  check_refused(c, hs_source_rows(WIDTH, -1, HS_U8, &rows.rows), HS_ERR_IMAGE, "150 x -1");
  check_refused(c, hs_source_rows(WIDTH, HEIGHT, (hs_sample_type)7, &rows.rows), HS_ERR_IMAGE, "type 7");
  check_refused(c, hs_source_rows(INT32_MAX, INT32_MAX, HS_U8, &rows.rows), HS_ERR_LIMIT, "pixels");
  wrong = rows;
  wrong.image.data = pixels.data;
  check_refused(c, wrong, HS_ERR_IMAGE, "expected no data");
  wrong = good;
  wrong.reserved[3] = 1;
  check_refused(c, wrong, HS_ERR_ARGUMENT, "source.reserved is set");
  assert_int_equal(hs_submit_source(c, &wrong), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_source(&wrong, &loaded), HS_ERR_ARGUMENT);
  const hs_source_kind empty_kinds[] = {(hs_source_kind)-1, HS_SOURCE_FILE, HS_SOURCE_ENCODED, HS_SOURCE_ROWS,
                                        HS_SOURCE_JPEG};
  for (size_t i = 0; i < sizeof empty_kinds / sizeof empty_kinds[0]; i++) {
    wrong = hs_source_of(empty_kinds[i]);
    assert_int_equal(hs_load_source(&wrong, &loaded), HS_ERR_ARGUMENT);
  }
  wrong = hs_source_encoded(file.bytes, file.size / 2);
  assert_int_equal(hs_load_source(&wrong, &loaded), HS_ERR_FORMAT);
  assert_null(loaded.image.memory);
  assert_int_equal(giver.reads, 0);
  assert_int_equal(hs_count_in_flight(c), 0);
}

/* A prefetch takes memory from the allocator of `load` and returns it there. A source of pixels needs no memory. A
 * failure is explained. */
TEST(test_memory_and_message) {
  need_file();
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  char message[200] = "";
  const hs_load_options load = {
      .struct_size = sizeof load, .allocator = &allocator, .message = message, .message_bytes = sizeof message};
  row_giver giver = giver_of(&pixels);
  hs_source loaded, sources[] = {hs_source_file(path), hs_source_encoded(file.bytes, file.size), rows_of(&giver)};
  for (int i = 0; i < 3; i++) {
    sources[i].load = &load;
    assert_int_equal(hs_load_source(&sources[i], &loaded), HS_OK);
    assert_int_equal(counter.alive, 1);
    assert_memory_equal(loaded.image.data, pixels.data, WIDTH * HEIGHT);
    hs_source_free(&loaded);
    assert_int_equal(counter.alive, 0);
  }
  sources[0] = hs_source_pixels(&pixels);
  assert_int_equal(hs_load_source(&sources[0], &loaded), HS_OK);
  hs_source_free(&loaded); /* the source is a view, so the pixels stay */
  assert_int_equal(((const uint8_t *)pixels.data)[0], *(const uint8_t *)sources[0].image.data);
  sources[0] = hs_source_file("absent.png");
  sources[0].load = &load;
  assert_int_equal(hs_load_source(&sources[0], &loaded), HS_ERR_IO);
  assert_non_null(strstr(message, "absent.png: cannot be opened"));
  giver.fail_at = giver.reads + 1;
  assert_int_equal(hs_load_source(&sources[2], &loaded), HS_ERR_IO);
  assert_non_null(strstr(message, "reading its rows ended with HS_ERR_IO"));
}
