/*
 * Reads PNG with libpng: every colour type, depth and interlacing, with the EXIF orientation applied. Gamma and colour
 * profiles are ignored, alpha is dropped. A wrong checksum of a chunk that the pixels need is an error.
 */
#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_PNG

#  include <png.h>
#  include <setjmp.h>
#  include <string.h>

#  include "pipeline/base/memory.h"

enum {
  READ_PNG_CHUNKS_CACHED = 128,
  /* maximum chunk that libpng may buffer; chunks that are needed have at most 768 bytes */
  READ_PNG_CHUNK_BYTES = 8 << 20,
  READ_PNG_DECODER_BYTES = 256 << 10, /* size of libpng's and zlib's state, rounded up */
  READ_PNG_DEFLATE_RATIO = 1032       /* maximum expansion of data by zlib */
};

/* State that survives a longjmp. It is owned by the caller of the function with the setjmp. */
typedef struct read_png_state {
  const image_request *request;
  byte_source bytes;
  png_structp png;
  png_infop info;
  size_t channels; /* number of channels after libpng's transformations */
  hs_sample_type type;
  bool interlaced, has_tags;
  exif_tags tags;
  exif_placement placement;
  uint8_t *rows;      /* one row, or the complete picture if it is interlaced */
  uint8_t *converted; /* one converted row; null: rows are not rotated */
  hs_image image;
  hs_status status;
  bool out_of_memory;
  bool has_pixels; /* whether all rows are decoded with a correct checksum, so that later damage is only noted */
  char reason[IMAGE_REASON_BYTES];
} read_png_state;

/* ---- callbacks of libpng */

static void read_png_on_error(png_structp png, png_const_charp text) {
  read_png_state *decoder = png_get_error_ptr(png);
  if (decoder->has_pixels) {
    image_note_damage(decoder->request, "libpng: %s", text);
  } else if (decoder->status == HS_OK) {
    decoder->status = decoder->out_of_memory ? HS_ERR_MEMORY : HS_ERR_FORMAT;
    hs_message_set(decoder->reason, sizeof decoder->reason, "%s", text);
  }
  png_longjmp(png, 1);
}

static void read_png_on_warning(png_structp png, png_const_charp text) {
  const read_png_state *decoder = png_get_error_ptr(png);
  image_note_damage(decoder->request, "libpng: %s", text);
}

/* Ends the decoding with a status whose message is already written. */
static void read_png_stop(read_png_state *decoder, hs_status status) {
  if (status != HS_OK) {
    decoder->status = status;
    png_longjmp(decoder->png, 1);
  }
}

static void read_png_end_early(read_png_state *decoder) {
  const image_request *request = decoder->request;
  image_ran_short(request);
  if (decoder->bytes.error == 0) png_error(decoder->png, "the file ends early");
  hs_message_set_errno(request->message, request->message_bytes, decoder->bytes.error, "%s: cannot be read",
                       request->name);
  read_png_stop(decoder, HS_ERR_IO);
}

static void read_png_on_read(png_structp png, png_bytep target, size_t bytes) {
  read_png_state *decoder = png_get_io_ptr(png);
  byte_source *s = &decoder->bytes;
  while (bytes > 0) {
    if (s->left == 0 && !byte_source_fill(s)) read_png_end_early(decoder);
    const size_t count = bytes < s->left ? bytes : s->left;
    memcpy(target, s->next, count);
    s->next += count;
    s->left -= count;
    target += count;
    bytes -= count;
  }
}

static png_voidp read_png_on_alloc(png_structp png, png_alloc_size_t bytes) {
  read_png_state *decoder = png_get_mem_ptr(png);
  void *pointer = hs_memory_alloc(decoder->request->allocator, bytes);
  if (!pointer) decoder->out_of_memory = true;
  return pointer;
}

static void read_png_on_free(png_structp png, png_voidp pointer) {
  const read_png_state *decoder = png_get_mem_ptr(png);
  hs_memory_release(decoder->request->allocator, pointer);
}

/* ---- steps, all inside the setjmp */

static void read_png_set_limits(png_structp png) {
  /* image_check_size checks sizes, with a better message and status */
  png_set_user_limits(png, INT32_MAX, INT32_MAX);
  png_set_chunk_cache_max(png, READ_PNG_CHUNKS_CACHED);
  png_set_chunk_malloc_max(png, READ_PNG_CHUNK_BYTES);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
#  ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
  /* pixels do not depend on texts, profiles and times, so these are not parsed */
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
#  endif
}

/* Refuses pictures that exceed the limits, or are too large for the file's length. */
static void read_png_check_header(read_png_state *decoder) {
  const uint64_t width = png_get_image_width(decoder->png, decoder->info);
  const uint64_t height = png_get_image_height(decoder->png, decoder->info);
  read_png_stop(decoder, image_check_size(decoder->request, width, height));
  const uint64_t bits =
      (uint64_t)png_get_channels(decoder->png, decoder->info) * png_get_bit_depth(decoder->png, decoder->info);
  const uint64_t row_bytes = (width * bits + 7) / 8;
  if (!decoder->request->is_probe && row_bytes / READ_PNG_DEFLATE_RATIO > decoder->request->size / height + 1)
    png_error(decoder->png, "the file is too short for the size it claims");
}

/* Asks libpng for samples of 8 or 16 bits. Alpha is dropped when rows are converted. */
static void read_png_set_transformations(read_png_state *decoder) {
  png_structp png = decoder->png;
  const int colour_type = png_get_color_type(png, decoder->info);
  const int depth = png_get_bit_depth(png, decoder->info);
  if (colour_type == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  else if (depth < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  const uint16_t probe = 1;
  if (depth == 16 && *(const uint8_t *)&probe == 1) png_set_swap(png);
  decoder->interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, decoder->info);
  decoder->channels = png_get_channels(png, decoder->info);
  decoder->type = depth == 16 ? HS_U16 : HS_U8;
}

/* Returns the EXIF orientation; 1: as stored. */
static int read_png_orientation(const read_png_state *decoder) {
  return decoder->has_tags && decoder->request->apply_exif ? decoder->tags.orientation : 1;
}

static void read_png_allocate(read_png_state *decoder) {
  const image_request *request = decoder->request;
  const int32_t width = (int32_t)png_get_image_width(decoder->png, decoder->info);
  const int32_t height = (int32_t)png_get_image_height(decoder->png, decoder->info);
  const hs_pixel_layout layout = request->keep_colour && decoder->channels >= 3 ? HS_RGB : HS_GRAY;
  const size_t row_bytes = png_get_rowbytes(decoder->png, decoder->info);
  const int orientation = read_png_orientation(decoder);
  size_t rows_bytes = row_bytes;
  if (decoder->interlaced && !hs_size_mul(row_bytes, (size_t)height, &rows_bytes))
    read_png_stop(decoder, image_fail(request, HS_ERR_LIMIT, "the picture is too large for the address space"));
  decoder->placement = exif_place(orientation, width, height);
  /* libpng holds three rows, and a rotated row is a fourth: their sum must not pass the limit */
  const uint64_t few_rows = (orientation > 1 ? 4u : 3u) * (uint64_t)row_bytes;
  const uint64_t working_bytes =
      rows_bytes > SIZE_MAX / 8 ? UINT64_MAX : (uint64_t)rows_bytes + few_rows + READ_PNG_DECODER_BYTES;
  read_png_stop(decoder, image_allocate(request, decoder->placement.width, decoder->placement.height, decoder->type,
                                        layout, working_bytes, &decoder->image));
  decoder->image.exif_orientation = orientation > 1 ? orientation : 0;
  decoder->rows = hs_memory_alloc(request->allocator, rows_bytes);
  if (orientation > 1) decoder->converted = hs_memory_alloc(request->allocator, row_bytes);
  if (!decoder->rows || (orientation > 1 && !decoder->converted))
    read_png_stop(decoder, image_fail(request, HS_ERR_MEMORY, "out of memory for %zu bytes of rows", rows_bytes));
}

static void read_png_convert_row(const read_png_state *decoder, const uint8_t *row, int32_t y) {
  const hs_image *image = &decoder->image;
  uint8_t *picture = (uint8_t *)(uintptr_t)image->data;
  const size_t width = png_get_image_width(decoder->png, decoder->info);
  uint8_t *target = decoder->converted ? decoder->converted : picture + (size_t)y * image->stride_bytes;
  gray_convert_row(row, decoder->channels, decoder->type, width, target, image->layout);
  if (decoder->converted)
    exif_put_row(&decoder->placement, y, target, width, image_channels(image->layout) * image_sample_bytes(image->type),
                 picture);
}

static void read_png_read_pixels(read_png_state *decoder) {
  const int32_t height = (int32_t)png_get_image_height(decoder->png, decoder->info);
  if (!decoder->interlaced) {
    for (int32_t y = 0; y < height; y++) {
      png_read_row(decoder->png, decoder->rows, NULL);
      read_png_convert_row(decoder, decoder->rows, y);
    }
    return;
  }
  const size_t row_bytes = png_get_rowbytes(decoder->png, decoder->info);
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
    for (int32_t y = 0; y < height; y++) png_read_row(decoder->png, decoder->rows + (size_t)y * row_bytes, NULL);
  for (int32_t y = 0; y < height; y++) read_png_convert_row(decoder, decoder->rows + (size_t)y * row_bytes, y);
}

/* Reads the header and chooses the form of rows. */
static void read_png_open(read_png_state *decoder) {
  read_png_set_limits(decoder->png);
  png_set_read_fn(decoder->png, decoder, read_png_on_read);
  png_read_info(decoder->png, decoder->info);
  read_png_check_header(decoder);
  read_png_set_transformations(decoder);
}

/* Each function with a setjmp has no variables that a longjmp could leave undefined. */
static void read_png_decode_guarded(read_png_state *decoder) {
  if (setjmp(png_jmpbuf(decoder->png)) != 0) return;
  read_png_open(decoder);
  read_png_allocate(decoder);
  read_png_read_pixels(decoder);
}

/* Reads the chunks after the pixels; the picture does not depend on them. */
static void read_png_finish(read_png_state *decoder) {
  decoder->has_pixels = true;
  if (setjmp(png_jmpbuf(decoder->png)) != 0) return;
  png_read_end(decoder->png, NULL);
}

static hs_status read_png_begin(read_png_state *decoder, const image_request *request, const byte_source *bytes) {
  *decoder = (read_png_state){.request = request, .bytes = *bytes};
  decoder->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoder, read_png_on_error, read_png_on_warning,
                                          decoder, read_png_on_alloc, read_png_on_free);
  if (decoder->png) decoder->info = png_create_info_struct(decoder->png);
  return decoder->info ? HS_OK : image_fail(request, HS_ERR_MEMORY, "out of memory for the PNG decoder");
}

static void read_png_end(read_png_state *decoder) {
  png_destroy_read_struct(&decoder->png, &decoder->info, NULL);
  hs_memory_release(decoder->request->allocator, decoder->rows);
  hs_memory_release(decoder->request->allocator, decoder->converted);
  decoder->rows = decoder->converted = NULL;
}

/* Reads the EXIF tags if they are wanted. stream: the file, if its bytes are not in the request. */
static hs_status read_png_read_tags(read_png_state *decoder, FILE *stream) {
  const image_request *request = decoder->request;
  if (!request->apply_exif && !request->exif) return HS_OK;
  return png_exif_read(request, stream, &decoder->has_tags, &decoder->tags);
}

static void read_png_give_tags(const read_png_state *decoder, int32_t width, int32_t height) {
  const hs_image image = {.width = width, .height = height};
  if (decoder->has_tags) exif_give(decoder->request, &decoder->tags, (double)(width > height ? width : height), &image);
}

/* Returns the final status, with a message for libpng's errors. */
static hs_status read_png_explain(const read_png_state *decoder) {
  if (decoder->status != HS_OK && decoder->reason[0] != '\0') {
    image_fail(decoder->request, decoder->status, "%s: %s",
               decoder->status == HS_ERR_MEMORY ? "out of memory for the PNG" : "damaged PNG", decoder->reason);
  }
  return decoder->status;
}

hs_status image_read_png(const image_request *request, hs_image *image) {
  read_png_state decoder;
  const byte_source bytes = byte_source_of(request);
  hs_status status = read_png_begin(&decoder, request, &bytes);
  if (status == HS_OK) status = read_png_read_tags(&decoder, NULL);
  if (status == HS_OK) read_png_decode_guarded(&decoder);
  if (status == HS_OK && decoder.status == HS_OK) read_png_finish(&decoder);
  read_png_end(&decoder);
  if (status != HS_OK) return status;
  if (decoder.status != HS_OK) {
    hs_image_free(&decoder.image);
    return read_png_explain(&decoder);
  }
  *image = decoder.image;
  read_png_give_tags(&decoder, image->width, image->height);
  return HS_OK;
}

/* ---- row by row */

static void rows_begin_guarded(image_rows *rows, read_png_state *decoder) {
  if (setjmp(png_jmpbuf(decoder->png)) != 0) return;
  read_png_open(decoder);
  rows->width = (int32_t)png_get_image_width(decoder->png, decoder->info);
  rows->height = (int32_t)png_get_image_height(decoder->png, decoder->info);
  rows->type = decoder->type;
  rows->whole = decoder->interlaced || read_png_orientation(decoder) > 1;
  const size_t row_bytes = png_get_rowbytes(decoder->png, decoder->info);
  rows->working_bytes = 4 * (uint64_t)row_bytes + READ_PNG_DECODER_BYTES;
  if (rows->whole) return;
  decoder->rows = hs_memory_alloc(rows->request.allocator, row_bytes);
  if (!decoder->rows)
    read_png_stop(decoder, image_fail(&rows->request, HS_ERR_MEMORY, "out of memory for %zu bytes of rows", row_bytes));
}

static hs_status png_rows_begin(image_rows *rows) {
  read_png_state *decoder = hs_memory_alloc(rows->request.allocator, sizeof *decoder);
  if (!decoder) return image_fail(&rows->request, HS_ERR_MEMORY, "out of memory for the PNG decoder");
  rows->decoder = decoder;
  hs_status status = read_png_begin(decoder, &rows->request, &rows->bytes);
  if (status == HS_OK) status = read_png_read_tags(decoder, rows->stream);
  if (status != HS_OK) return status;
  rows_begin_guarded(rows, decoder);
  if (decoder->status == HS_OK) read_png_give_tags(decoder, rows->width, rows->height);
  return read_png_explain(decoder);
}

static void rows_read_guarded(const image_rows *rows, read_png_state *decoder, uint8_t *row) {
  if (setjmp(png_jmpbuf(decoder->png)) != 0) return;
  png_read_row(decoder->png, decoder->rows, NULL);
  gray_convert_row(decoder->rows, decoder->channels, decoder->type, (size_t)rows->width, row, HS_GRAY);
}

static hs_status png_rows_read(image_rows *rows, uint8_t *row) {
  read_png_state *decoder = rows->decoder;
  rows_read_guarded(rows, decoder, row);
  if (decoder->status == HS_OK && rows->next + 1 == rows->height) read_png_finish(decoder);
  return read_png_explain(decoder);
}

static void png_rows_end(image_rows *rows) {
  if (rows->decoder) read_png_end(rows->decoder);
  hs_memory_release(rows->request.allocator, rows->decoder);
  rows->decoder = NULL;
}

const image_rows_kind *image_rows_of_png(void) {
  static const image_rows_kind kind = {png_rows_begin, png_rows_read, png_rows_end};
  return &kind;
}

#else

hs_status image_read_png(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without PNG support; install libpng-dev and build again");
}

const image_rows_kind *image_rows_of_png(void) { return NULL; }

#endif
