/*
 * Tests which JPEGs the readers of a batch decode. The choice affects nothing else in a file's results.
 */
#include "tests/support/test.h"

#include "pipeline/batch/batch_run.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

#if HARTSIFT_HAVE_JPEG

enum { READERS = 2, WIDTH = 40, HEIGHT = 30 };

typedef struct jpeg_case {
  const char *what;
  int waiting; /* number of images waiting for the devices */
  hs_decoder decoder;
  bool is_large;
  uint64_t max_memory_bytes;
  hs_source_kind kind; /* kind of the source after reading */
} jpeg_case;

static const jpeg_case cases[] = {
    {.what = "none waits", .waiting = 0, .kind = HS_SOURCE_JPEG},
    {.what = "fewer wait than there are readers", .waiting = READERS - 1, .kind = HS_SOURCE_JPEG},
    {.what = "as many wait", .waiting = READERS, .kind = HS_SOURCE_PIXELS},
    {.what = "the GPU was asked for", .waiting = READERS, .decoder = HS_DECODER_GPU, .kind = HS_SOURCE_JPEG},
    {.what = "a larger file", .waiting = READERS, .is_large = true, .kind = HS_SOURCE_JPEG},
    {.what = "no memory for it", .waiting = READERS, .max_memory_bytes = 1, .kind = HS_SOURCE_JPEG},
};

/* Returns in `slot` a JPEG that stays encoded and has a focal length in its EXIF. */
static void keep_jpeg(const unsigned char *file, size_t size, batch_slot *slot) {
  const hs_load_options keep = {.struct_size = sizeof keep, .keep_encoded = 1};
  *slot = (batch_slot){.exif.focal_length = 35};
  hs_source source = hs_source_encoded(file, size);
  source.load = &keep;
  assert_int_equal(hs_load_source(&source, &slot->source), HS_OK);
  assert_int_equal(slot->source.kind, HS_SOURCE_JPEG);
}

static void check_case(const jpeg_case *c, const unsigned char *file, size_t size, const hs_image *pixels) {
  SCOPED_MEMORY batch_feeder *feeder = calloc(1, sizeof *feeder);
  assert_non_null(feeder);
  feeder->options.decoder = c->decoder;
  hs_batch batch = {
      .options = {.readers = READERS, .device_count = 1},
      .feeders = feeder,
      .load = {.struct_size = sizeof batch.load, .keep_encoded = 1, .max_memory_bytes = c->max_memory_bytes}};
  int waiting[READERS];
  batch_slot slot;
  assert_true(bounded_queue_make(&batch.ready, READERS));
  for (int i = 0; i < c->waiting; i++) bounded_queue_push(&batch.ready, &waiting[i]);
  keep_jpeg(file, size, &slot);
  batch_decode_small(&batch, &slot);
  if (slot.source.kind != c->kind) fail_msg("%s", c->what);
  assert_true(slot.exif.focal_length == 35); /* the file's EXIF is kept */
  if (c->kind == HS_SOURCE_PIXELS) assert_memory_equal(slot.source.image.data, pixels->data, WIDTH * HEIGHT);
  hs_source_free(&slot.source);
  bounded_queue_free(&batch.ready);
}

TEST(test_readers_decode_small_files) {
  const synthetic_jpeg made = {
      .width = WIDTH, .height = HEIGHT, .amplitude = 300, .sum = 2000, .quality = 80, .seed = 5};
  unsigned char *bytes, *large = calloc(1, BATCH_SMALL_BYTES + 1);
  size_t size;
  scoped_image pixels;
  assert_non_null(large);
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, &size), HS_OK);
  assert_int_equal(hs_load_image_memory(bytes, size, NULL, &pixels), HS_OK);
  memcpy(large, bytes, size);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_case(&cases[i], cases[i].is_large ? large : bytes, cases[i].is_large ? BATCH_SMALL_BYTES + 1 : size, &pixels);
  free(bytes);
  free(large);
}

#else

SKIPPED_PROGRAM("built without libjpeg")

#endif
