/*
 * JPEGs decoded on a CUDA device: from the file in memory to gray rows in device memory.
 *
 *   bench_hartsift jpeg [--repeats N] FILE ...
 *
 * Every picture is compared with libjpeg's before it is timed. Prints a Markdown table: packing on one core, one
 * picture at a time with a host wait for each, back to back on one stream, and on eight.
 */
#include "bench/hartsift/bench_modes.h"
#include "pipeline/image_io/jpeg/jpeg_stream.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "cuda/jpeg/jpeg_cuda.h"

enum { STREAMS = 8, REPEATS_MAX = 10000 };

typedef struct picture {
  uint8_t *bytes;
  size_t size;
  jpeg_stream stream;
  jpeg_shape shape;
  void *packed, *mapped, *scratch[STREAMS], *gray[STREAMS], *refused;
} picture;

static bool read_file(const char *name, picture *p) {
  FILE *file = fopen(name, "rb");
  if (!file) return false;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  p->size = size > 0 ? (size_t)size : 0;
  p->bytes = malloc(p->size + 1);
  const bool read = p->bytes && fread(p->bytes, 1, p->size, file) == p->size;
  fclose(file);
  return read;
}

static bool make_memory(picture *p) {
  const size_t room = jpeg_pack_bytes(&p->stream, p->size);
  bool made = room > 0 && device_alloc_pinned(&p->packed, &p->mapped, room) == STAGE_OK &&
              jpeg_pack(p->bytes, p->size, &p->stream, p->packed, room, &p->shape) &&
              device_alloc(&p->refused, 256) == STAGE_OK;
  for (int i = 0; i < STREAMS && made; i++)
    made = device_alloc(&p->scratch[i], jpeg_scratch_bytes(&p->shape)) == STAGE_OK &&
           device_alloc(&p->gray[i], (size_t)p->shape.width * (size_t)p->shape.height) == STAGE_OK;
  return made;
}

static void free_room(picture *p) {
  for (int i = 0; i < STREAMS; i++) {
    device_free(p->scratch[i]);
    device_free(p->gray[i]);
  }
  device_free(p->refused);
  if (p->packed) device_free_pinned(p->packed);
  free(p->bytes);
}

static bool launch(const picture *p, int set, cuda_stream stream) {
  const jpeg_decode_args args = {.shape = p->shape,
                                 .packed = p->packed,
                                 .scratch = p->scratch[set],
                                 .gray = p->gray[set],
                                 .step_x = 1,
                                 .step_y = p->shape.width,
                                 .refused = p->refused};
  return jpeg_decode_launch(&args, stream) == STAGE_OK;
}

/* Returns the reason why the decoder refuses the picture, or -1 if its pixels differ from libjpeg's. */
static int compare(const picture *p, cuda_stream stream) {
  const size_t count = (size_t)p->shape.width * (size_t)p->shape.height;
  const hs_load_options load = {.struct_size = sizeof load, .ignore_exif = 1};
  uint8_t *pixels = malloc(count);
  uint32_t refused = 0;
  hs_image expected = {0};
  bool done = pixels && launch(p, 0, stream) && device_copy_from(pixels, p->gray[0], count, stream) == STAGE_OK &&
              device_copy_from(&refused, p->refused, sizeof refused, stream) == STAGE_OK &&
              device_stream_wait(stream) == STAGE_OK;
  if (!done) fprintf(stderr, "%s\n", device_error_text());
  done = done && hs_load_image_memory(p->bytes, p->size, &load, &expected) == HS_OK;
  const bool equal = done && memcmp(expected.data, pixels, count) == 0;
  hs_image_free(&expected);
  free(pixels);
  return refused ? (int)refused : equal ? 0 : -1;
}

static double packing_us(picture *p, int repeats) {
  double times[REPEATS_MAX];
  jpeg_shape shape;
  const size_t room = jpeg_pack_bytes(&p->stream, p->size);
  for (int i = 0; i < repeats; i++) {
    const double start = bench_ms();
    if (!jpeg_stream_open(p->bytes, p->size, &p->stream) ||
        !jpeg_pack(p->bytes, p->size, &p->stream, p->packed, room, &shape))
      return 0;
    times[i] = bench_ms() - start;
  }
  return 1e3 * bench_summary(times, repeats).median;
}

static double alone_us(const picture *p, int repeats, cuda_stream stream) {
  double times[REPEATS_MAX];
  for (int i = 0; i < repeats; i++) {
    const double start = bench_ms();
    if (!launch(p, 0, stream) || device_stream_wait(stream) != STAGE_OK) return 0;
    times[i] = bench_ms() - start;
  }
  return 1e3 * bench_summary(times, repeats).median;
}

static double on_end_us(const picture *p, int repeats, const cuda_stream *streams, int count) {
  const double start = bench_ms();
  for (int i = 0; i < repeats * count; i++)
    if (!launch(p, i % count, streams[i % count])) return 0;
  for (int i = 0; i < count; i++)
    if (device_stream_wait(streams[i]) != STAGE_OK) return 0;
  return 1e3 * (bench_ms() - start) / (repeats * count);
}

static void bench(const char *name, int repeats, const cuda_stream *streams) {
  picture *p = calloc(1, sizeof *p);
  if (!p) return;
  printf("| %s | ", bench_base_name(name));
  if (!read_file(name, p) || !jpeg_stream_open(p->bytes, p->size, &p->stream) || !make_memory(p)) {
    printf("not taken |\n");
  } else {
    const int compared = compare(p, streams[0]);
    printf("%d x %d | %.2f | %s | ", p->shape.width, p->shape.height, (double)p->size * 1e-6,
           compared == 0  ? "equal"
           : compared < 0 ? "DIFFERENT"
                          : "refused");
    (void)on_end_us(p, 4, streams, STREAMS);
    printf("%.0f | %.0f | ", packing_us(p, repeats), alone_us(p, repeats, streams[0]));
    printf("%.0f | %.0f |\n", on_end_us(p, repeats, streams, 1), on_end_us(p, repeats, streams, STREAMS));
  }
  fflush(stdout);
  free_room(p);
  free(p);
}

int mode_jpeg(int argc, char **argv) {
  int repeats = 50, first = 1;
  cuda_stream streams[STREAMS];
  if (argc > 2 && strcmp(argv[1], "--repeats") == 0) {
    repeats = atoi(argv[2]);
    first = 3;
  }
  if (repeats < 1 || repeats > REPEATS_MAX || first >= argc) {
    fprintf(stderr, "usage: bench_hartsift jpeg [--repeats N] FILE ...\n");
    return 2;
  }
  for (int i = 0; i < STREAMS; i++) {
    if (device_stream_create(&streams[i]) != STAGE_OK) {
      fprintf(stderr, "jpeg: %s\n", device_error_text());
      return 1;
    }
  }
  printf("| file | pixels | MB | as libjpeg's | packing, us | alone, us | on end, us | on eight streams, us |\n");
  printf("|---|--:|--:|---|--:|--:|--:|--:|\n");
  for (int i = first; i < argc; i++) bench(argv[i], repeats, streams);
  for (int i = 0; i < STREAMS; i++) device_stream_destroy(streams[i]);
  return 0;
}

#endif
