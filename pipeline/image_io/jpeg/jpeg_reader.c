/*
 * Reads JPEG with libjpeg: complete pictures (luma as stored or RGB; full size, 1/2, 1/4 or 1/8; with the EXIF
 * orientation applied to each row), or row by row (image_rows.c). libjpeg fills missing data with gray; here missing
 * data is an error.
 */
#include "pipeline/image_io/image_io.h"

#if HARTSIFT_HAVE_JPEG

#  include <setjmp.h>
#  include <string.h>
/* jpeglib.h needs stdio.h and stddef.h before it, jerror.h needs jpeglib.h. */
#  include <jpeglib.h>
#  include <jerror.h>

#  include "pipeline/base/memory.h"

/* State that survives a longjmp. It is owned by the caller of the function with the setjmp. */
typedef struct jpeg_reader {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  jmp_buf jump;
  const image_request *request;
  byte_source bytes;
  bool ran_out;    /* libjpeg requested bytes after the end of the file */
  bool has_pixels; /* whether all rows are decoded, so that later damage is only noted */
  exif_tags tags;
  int orientation; /* orientation that is applied */
  bool inverted;   /* CMYK is stored as Adobe does: 255 means no ink */
  uint8_t *row, *converted;
  hs_status status;
} jpeg_reader;

enum {
  /* maximum; progressive files have about 10 scans, and each one costs a pass over the picture */
  READ_JPEG_MAX_SCANS = 500,
  READ_JPEG_DECODER_BYTES = 256 << 10, /* size of libjpeg's tables and state, rounded up */
  READ_JPEG_STRIP_ROWS = 64,           /* number of rows that libjpeg buffers between its stages, rounded up */
  READ_JPEG_MARKER_EXIF = JPEG_APP0 + 1
};

static const JOCTET read_jpeg_end_marker[2] = {0xFF, JPEG_EOI};

/* ---- callbacks of libjpeg: on an error they set status and message, and return to the setjmp */

/* Ends the decoding with a status whose message is already written. */
static void jpeg_reader_stop(jpeg_reader *decoder, hs_status status) {
  if (status != HS_OK) {
    decoder->status = status;
    longjmp(decoder->jump, 1);
  }
}

static hs_status read_jpeg_status_of(int code) {
  switch (code) {
  case JERR_OUT_OF_MEMORY:
    return HS_ERR_MEMORY;
  case JERR_NO_BACKING_STORE:
  case JERR_IMAGE_TOO_BIG:
  case JERR_WIDTH_OVERFLOW:
    return HS_ERR_LIMIT;
#  if JPEG_LIB_VERSION < 70 /* later interfaces, such as Ubuntu's, lack this code */
  case JERR_ARITH_NOTIMPL:
#  endif
  case JERR_NOT_COMPILED:
  case JERR_BAD_PRECISION:
  case JERR_SOF_UNSUPPORTED:
  case JERR_CONVERSION_NOTIMPL:
  case JERR_FRACT_SAMPLE_NOTIMPL:
  case JERR_CCIR601_NOTIMPL:
    return HS_ERR_UNSUPPORTED;
  default:
    return HS_ERR_FORMAT;
  }
}

static void read_jpeg_note(j_common_ptr jpeg) {
  const jpeg_reader *decoder = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  image_note_damage(decoder->request, "libjpeg: %s", text);
}

/* Ends the decoding with libjpeg's current message. */
static void read_jpeg_fail(j_common_ptr jpeg) {
  jpeg_reader *decoder = jpeg->client_data;
  const hs_status status = read_jpeg_status_of(jpeg->err->msg_code);
  char text[JMSG_LENGTH_MAX];
  if (decoder->has_pixels) {
    read_jpeg_note(jpeg);
    longjmp(decoder->jump, 1);
  }
  jpeg->err->format_message(jpeg, text);
  jpeg_reader_stop(decoder, image_fail(decoder->request, status, "%s: %s",
                                       status == HS_ERR_FORMAT ? "damaged JPEG" : "JPEG cannot be decoded", text));
}

/* Handles libjpeg's warnings. Those that mean missing or wrong pixels are errors here; surplus data and odd headers are
 * only noted. */
static void read_jpeg_on_message(j_common_ptr jpeg, int level) {
  const jpeg_reader *decoder = jpeg->client_data;
  if (level >= 0) return;
  switch (decoder->has_pixels ? 0 : jpeg->err->msg_code) {
  case JWRN_HIT_MARKER:
  case JWRN_HUFF_BAD_CODE:
  case JWRN_ARITH_BAD_CODE:
  case JWRN_MUST_RESYNC:
    read_jpeg_fail(jpeg);
    break;
  default:
    read_jpeg_note(jpeg);
    break;
  }
}

/* Discards libjpeg's output: the library prints nothing. */
static void read_jpeg_on_output(j_common_ptr jpeg) { (void)jpeg; }

static void read_jpeg_on_source(j_decompress_ptr jpeg) { (void)jpeg; }

static void read_jpeg_hand_over(jpeg_reader *decoder) {
  decoder->source.next_input_byte = decoder->bytes.next;
  decoder->source.bytes_in_buffer = decoder->bytes.left;
}

/* Called by libjpeg when all bytes are consumed. */
static boolean read_jpeg_on_fill(j_decompress_ptr jpeg) {
  jpeg_reader *decoder = jpeg->client_data;
  const image_request *request = decoder->request;
  if (!decoder->ran_out && byte_source_fill(&decoder->bytes)) {
    read_jpeg_hand_over(decoder);
    return TRUE;
  }
  image_ran_short(request);
  if (decoder->bytes.error != 0) {
    hs_message_set_errno(request->message, request->message_bytes, decoder->bytes.error, "%s: cannot be read",
                         request->name);
    jpeg_reader_stop(decoder, HS_ERR_IO);
  }
  if (jpeg->arith_code && !decoder->has_pixels) {
    /* arithmetic codes may end in zeros that are not stored, so the end of the data cannot be verified */
    jpeg_reader_stop(decoder, image_fail(request, HS_ERR_FORMAT, "damaged JPEG: the file ends early"));
  }
  decoder->ran_out = true;
  decoder->source.next_input_byte = read_jpeg_end_marker;
  decoder->source.bytes_in_buffer = sizeof read_jpeg_end_marker;
  return TRUE;
}

static void read_jpeg_on_skip(j_decompress_ptr jpeg, long bytes) {
  jpeg_reader *decoder = jpeg->client_data;
  if (bytes <= 0) return;
  size_t left = (size_t)bytes;
  while (left > decoder->source.bytes_in_buffer) {
    left -= decoder->source.bytes_in_buffer;
    read_jpeg_on_fill(jpeg);
    if (decoder->ran_out) return;
  }
  decoder->source.next_input_byte += left;
  decoder->source.bytes_in_buffer -= left;
}

static void read_jpeg_on_progress(j_common_ptr jpeg) {
  jpeg_reader *decoder = jpeg->client_data;
  if (decoder->jpeg.input_scan_number > READ_JPEG_MAX_SCANS) {
    jpeg_reader_stop(decoder,
                     image_fail(decoder->request, HS_ERR_LIMIT, "JPEG with more than %d scans", READ_JPEG_MAX_SCANS));
  }
}

/* ---- steps, all inside the setjmp */

static void read_jpeg_open(jpeg_reader *decoder) {
  jpeg_create_decompress(&decoder->jpeg);
  read_jpeg_hand_over(decoder);
  decoder->source.init_source = read_jpeg_on_source;
  decoder->source.fill_input_buffer = read_jpeg_on_fill;
  decoder->source.skip_input_data = read_jpeg_on_skip;
  decoder->source.resync_to_restart = jpeg_resync_to_restart;
  decoder->source.term_source = read_jpeg_on_source;
  decoder->jpeg.src = &decoder->source;
  decoder->progress.progress_monitor = read_jpeg_on_progress;
  decoder->jpeg.progress = &decoder->progress;
  jpeg_save_markers(&decoder->jpeg, READ_JPEG_MARKER_EXIF, 0xFFFF);
  jpeg_read_header(&decoder->jpeg, TRUE);
}

static uint64_t read_jpeg_blocks(const jpeg_reader *decoder) {
  uint64_t blocks = 0;
  for (int i = 0; i < decoder->jpeg.num_components; i++) {
    const jpeg_component_info *component = &decoder->jpeg.comp_info[i];
    blocks += (uint64_t)component->width_in_blocks * component->height_in_blocks;
  }
  return blocks;
}

/* Returns the bytes of the coefficients that libjpeg keeps for a complete progressive picture. They are kept at full
   size for every scale, and in whole MCUs, which sampling factors may make far larger than the picture. */
static uint64_t read_jpeg_kept_bytes(struct jpeg_decompress_struct *jpeg) {
  uint64_t blocks = 0;
  if (!jpeg_has_multiple_scans(jpeg)) return 0;
  for (int i = 0; i < jpeg->num_components; i++) {
    const jpeg_component_info *component = &jpeg->comp_info[i];
    const uint64_t across = (uint64_t)component->h_samp_factor, down = (uint64_t)component->v_samp_factor;
    blocks += (component->width_in_blocks + across - 1) / across * across *
              ((component->height_in_blocks + down - 1) / down * down);
  }
  return blocks * DCTSIZE2 * sizeof(JCOEF);
}

/* Returns a side of the decoded picture from the stored side. */
static uint32_t read_jpeg_scaled(const jpeg_reader *decoder, JDIMENSION side) {
  const uint32_t scale = decoder->request->jpeg_scale;
  return (uint32_t)side / scale + (side % scale != 0 ? 1 : 0);
}

/* Refuses pictures that exceed the limits, are too large for the file's length, or are of an unknown kind. */
static void read_jpeg_check_header(jpeg_reader *decoder) {
  const struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const image_request *request = decoder->request;
  jpeg_reader_stop(decoder, image_check_size(request, read_jpeg_scaled(decoder, jpeg->image_width),
                                             read_jpeg_scaled(decoder, jpeg->image_height)));
  if (jpeg->data_precision != 8) {
    jpeg_reader_stop(decoder,
                     image_fail(request, HS_ERR_UNSUPPORTED, "JPEG with %d bits a sample", jpeg->data_precision));
  }
  /* with Huffman codes each block has at least one bit */
  if (!jpeg->arith_code && !request->is_probe && read_jpeg_blocks(decoder) / 8 > request->size)
    jpeg_reader_stop(decoder, image_fail(request, HS_ERR_FORMAT, "damaged JPEG: too short for the size it claims"));
}

/* Chooses the colour space for libjpeg. Luma needs no conversion. */
static void read_jpeg_choose_space(jpeg_reader *decoder) {
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  switch (jpeg->jpeg_color_space) {
  case JCS_GRAYSCALE:
    jpeg->out_color_space = JCS_GRAYSCALE;
    break;
  case JCS_YCbCr:
    jpeg->out_color_space = decoder->request->keep_colour ? JCS_RGB : JCS_GRAYSCALE;
    break;
  case JCS_RGB:
    jpeg->out_color_space = JCS_RGB;
    break;
  case JCS_CMYK:
  case JCS_YCCK:
    jpeg->out_color_space = JCS_CMYK;
    decoder->inverted = jpeg->saw_Adobe_marker != 0;
    break;
  default:
    jpeg_reader_stop(decoder, image_fail(decoder->request, HS_ERR_UNSUPPORTED,
                                         "JPEG with %d components of unknown meaning", jpeg->num_components));
  }
  /* this method gives the same pixels with every build of libjpeg */
  jpeg->dct_method = JDCT_ISLOW;
  jpeg->do_fancy_upsampling = TRUE;
  jpeg->do_block_smoothing = FALSE;
}

/* Sets the scale. libjpeg may ignore it: some codings (lossless) have a fixed size. */
static void read_jpeg_choose_size(jpeg_reader *decoder) {
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  jpeg->scale_num = 1;
  jpeg->scale_denom = decoder->request->jpeg_scale;
  jpeg_calc_output_dimensions(jpeg);
  if (jpeg->output_width != read_jpeg_scaled(decoder, jpeg->image_width) ||
      jpeg->output_height != read_jpeg_scaled(decoder, jpeg->image_height)) {
    jpeg_reader_stop(decoder, image_fail(decoder->request, HS_ERR_UNSUPPORTED,
                                         "this kind of JPEG cannot be decoded at 1/%u of its size",
                                         (unsigned)decoder->request->jpeg_scale));
  }
}

/* Reads the first EXIF segment; other APP1 segments contain XMP. */
static void read_jpeg_read_tags(jpeg_reader *decoder) {
  jpeg_saved_marker_ptr marker = decoder->jpeg.marker_list;
  while (marker && !exif_parse(marker->data, marker->data_length, &decoder->tags)) marker = marker->next;
  decoder->orientation = decoder->request->apply_exif && marker ? decoder->tags.orientation : 1;
}

/* Reads and checks the header, and chooses colour space and size. */
static void jpeg_reader_read_header(jpeg_reader *decoder) {
  read_jpeg_open(decoder);
  read_jpeg_check_header(decoder);
  read_jpeg_choose_space(decoder);
  read_jpeg_choose_size(decoder);
  read_jpeg_read_tags(decoder);
}

/* ---- rows */

/* Cannot overflow 64 bits: libjpeg allows at most 65500 columns and 4 output components. */
static size_t read_jpeg_row_bytes(const jpeg_reader *decoder) {
  return (size_t)decoder->jpeg.output_width * (size_t)decoder->jpeg.output_components;
}

/* Returns the memory of the decoder without the picture; call after the header is read. */
static uint64_t jpeg_reader_working_bytes(jpeg_reader *decoder) {
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const uint64_t strip_bytes = (uint64_t)jpeg->output_width * (uint64_t)jpeg->num_components * READ_JPEG_STRIP_ROWS;
  return read_jpeg_kept_bytes(jpeg) + strip_bytes + 4 * (uint64_t)read_jpeg_row_bytes(decoder) +
         READ_JPEG_DECODER_BYTES;
}

/* Allocates a row of libjpeg and its converted form. */
static void jpeg_reader_make_rows(jpeg_reader *decoder) {
  const image_request *request = decoder->request;
  const size_t bytes = read_jpeg_row_bytes(decoder);
  decoder->row = hs_memory_alloc(request->allocator, bytes);
  decoder->converted = hs_memory_alloc(request->allocator, bytes);
  if (!decoder->row || !decoder->converted)
    jpeg_reader_stop(decoder, image_fail(request, HS_ERR_MEMORY, "out of memory for a row of %zu bytes", bytes));
}

/* Converts CMYK to RGB in place: the product of the light that passes a colour's ink and the light that passes
 * black. */
static void read_jpeg_cmyk_to_rgb(uint8_t *row, size_t count, bool inverted) {
  const uint32_t flip = inverted ? 0 : 255;
  for (size_t x = 0; x < count; x++) {
    const uint32_t black = row[4 * x + 3] ^ flip;
    for (size_t i = 0; i < 3; i++) row[3 * x + i] = (uint8_t)(((row[4 * x + i] ^ flip) * black + 127) / 255);
  }
}

/* True if libjpeg's row needs no conversion: one gray channel, or RGB. */
static bool jpeg_reader_row_is_plain(const jpeg_reader *decoder, hs_pixel_layout layout) {
  return (size_t)decoder->jpeg.output_components == image_channels(layout);
}

/* Reads the next row into `converted`. */
static void jpeg_reader_read_row(jpeg_reader *decoder, hs_pixel_layout layout) {
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const size_t width = jpeg->output_width;
  JSAMPROW rows[1] = {decoder->row};
  jpeg_read_scanlines(jpeg, rows, 1);
  size_t channels = (size_t)jpeg->output_components;
  if (jpeg->out_color_space == JCS_CMYK) {
    read_jpeg_cmyk_to_rgb(decoder->row, width, decoder->inverted);
    channels = 3;
  }
  gray_convert_row(decoder->row, channels, HS_U8, width, decoder->converted, layout);
}

/* Checks for missing coefficients, because a file cut between two scans gives no warning. */
static void jpeg_reader_check_complete(jpeg_reader *decoder) {
  const struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  bool complete = true;
  for (int i = 0; i < jpeg->num_components; i++) {
    complete = complete && jpeg->comp_info[i].quant_table != NULL; /* set by the first scan of the component */
    for (int k = 0; decoder->ran_out && jpeg->coef_bits && k < DCTSIZE2; k++)
      complete = complete && jpeg->coef_bits[i][k] == 0; /* 0: the coefficient was sent to its last bit */
  }
  if (!complete)
    jpeg_reader_stop(decoder, image_fail(decoder->request, HS_ERR_FORMAT, "damaged JPEG: the file ends early"));
}

/* ---- outside the setjmp */

/* Reads up to the end marker and notes damage: surplus data shows that codes were wrong. */
static void jpeg_reader_finish(jpeg_reader *decoder) {
  decoder->has_pixels = true;
  if (setjmp(decoder->jump) == 0) jpeg_finish_decompress(&decoder->jpeg);
  if (decoder->ran_out) image_note_damage(decoder->request, "the end marker of the JPEG is missing");
}

/* Creates a decoder for these bytes. */
static void jpeg_reader_begin(jpeg_reader *decoder, const image_request *request, const byte_source *bytes) {
  memset(decoder, 0, sizeof *decoder);
  decoder->request = request;
  decoder->bytes = *bytes;
  decoder->jpeg.client_data = decoder;
  decoder->jpeg.err = jpeg_std_error(&decoder->errors);
  decoder->errors.error_exit = read_jpeg_fail;
  decoder->errors.emit_message = read_jpeg_on_message;
  decoder->errors.output_message = read_jpeg_on_output;
}

static void jpeg_reader_end(jpeg_reader *decoder) {
  jpeg_destroy_decompress(&decoder->jpeg);
  hs_memory_release(decoder->request->allocator, decoder->row);
  hs_memory_release(decoder->request->allocator, decoder->converted);
  decoder->row = decoder->converted = NULL;
}

/* If the file has EXIF, passes its tags to the caller, for a picture of this size. */
static void jpeg_reader_give_tags(const jpeg_reader *decoder, int32_t width, int32_t height) {
  const struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const hs_image image = {.width = width, .height = height};
  if (decoder->tags.orientation == 0) return; /* the file has no EXIF segment */
  exif_give(decoder->request, &decoder->tags,
            (double)(jpeg->image_width > jpeg->image_height ? jpeg->image_width : jpeg->image_height), &image);
}

/* ---- whole pictures */

enum { READ_JPEG_ROWS_AT_ONCE = 8 };

/* State of a decoding. The function with the setjmp changes it, and its caller reads it. */
typedef struct read_jpeg_state {
  jpeg_reader decoder;
  exif_placement placement;
  hs_image image;
} read_jpeg_state;

static void read_jpeg_allocate(read_jpeg_state *state) {
  jpeg_reader *decoder = &state->decoder;
  const struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const bool colour = decoder->request->keep_colour && jpeg->out_color_space != JCS_GRAYSCALE;
  state->placement = exif_place(decoder->orientation, (int32_t)jpeg->output_width, (int32_t)jpeg->output_height);
  jpeg_reader_stop(decoder,
                   image_allocate(decoder->request, state->placement.width, state->placement.height, HS_U8,
                                  colour ? HS_RGB : HS_GRAY, jpeg_reader_working_bytes(decoder), &state->image));
  jpeg_reader_make_rows(decoder);
}

/* Reads rows that need neither conversion nor rotation; libjpeg writes them directly to the picture. */
static void read_jpeg_read_rows(read_jpeg_state *state) {
  struct jpeg_decompress_struct *jpeg = &state->decoder.jpeg;
  uint8_t *picture = (uint8_t *)(uintptr_t)state->image.data;
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW rows[READ_JPEG_ROWS_AT_ONCE];
    const JDIMENSION left = jpeg->output_height - jpeg->output_scanline;
    const JDIMENSION count = left < READ_JPEG_ROWS_AT_ONCE ? left : READ_JPEG_ROWS_AT_ONCE;
    for (JDIMENSION i = 0; i < count; i++)
      rows[i] = picture + (size_t)(jpeg->output_scanline + i) * state->image.stride_bytes;
    jpeg_read_scanlines(jpeg, rows, count);
  }
}

static void read_jpeg_read_pixels(read_jpeg_state *state) {
  jpeg_reader *decoder = &state->decoder;
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const hs_pixel_layout layout = state->image.layout;
  uint8_t *picture = (uint8_t *)(uintptr_t)state->image.data;
  jpeg_start_decompress(jpeg);
  if (decoder->orientation <= 1 && jpeg_reader_row_is_plain(decoder, layout)) {
    read_jpeg_read_rows(state);
    return;
  }
  for (int32_t y = 0; y < (int32_t)jpeg->output_height; y++) {
    jpeg_reader_read_row(decoder, layout);
    exif_put_row(&state->placement, y, decoder->converted, jpeg->output_width, image_channels(layout), picture);
  }
}

/* The only function with a setjmp: it has no variables that a longjmp could leave undefined. */
static void read_jpeg_decode_guarded(read_jpeg_state *state) {
  if (setjmp(state->decoder.jump) != 0) return;
  jpeg_reader_read_header(&state->decoder);
  read_jpeg_allocate(state);
  read_jpeg_read_pixels(state);
  jpeg_reader_check_complete(&state->decoder);
}

hs_status image_read_jpeg(const image_request *request, hs_image *image) {
  read_jpeg_state state = {.image = {.data = NULL}};
  const byte_source bytes = byte_source_of(request);
  jpeg_reader *decoder = &state.decoder;
  jpeg_reader_begin(decoder, request, &bytes);
  read_jpeg_decode_guarded(&state);
  if (decoder->status == HS_OK) jpeg_reader_finish(decoder);
  jpeg_reader_end(decoder);
  if (decoder->status != HS_OK) {
    hs_image_free(&state.image);
    return decoder->status;
  }
  jpeg_reader_give_tags(decoder, state.image.width, state.image.height);
  *image = state.image;
  image->exif_orientation = decoder->orientation > 1 ? decoder->orientation : 0;
  return HS_OK;
}

/* ---- rows, see image_io.h */

/* The second function with a setjmp; like the first it has no variables that a longjmp could leave undefined. */

static void rows_begin_guarded(image_rows *rows, jpeg_reader *decoder) {
  if (setjmp(decoder->jump) != 0) return;
  jpeg_reader_read_header(decoder);
  rows->width = (int32_t)decoder->jpeg.output_width;
  rows->height = (int32_t)decoder->jpeg.output_height;
  rows->type = HS_U8;
  rows->working_bytes = jpeg_reader_working_bytes(decoder);
  rows->whole = decoder->orientation > 1 || jpeg_has_multiple_scans(&decoder->jpeg);
  if (rows->whole) return;
  jpeg_reader_make_rows(decoder);
  jpeg_start_decompress(&decoder->jpeg);
}

static hs_status jpeg_rows_begin(image_rows *rows) {
  jpeg_reader *decoder = hs_memory_alloc(rows->request.allocator, sizeof *decoder);
  if (!decoder) return image_fail(&rows->request, HS_ERR_MEMORY, "out of memory for the JPEG decoder");
  rows->decoder = decoder;
  jpeg_reader_begin(decoder, &rows->request, &rows->bytes);
  rows_begin_guarded(rows, decoder);
  if (decoder->status == HS_OK) jpeg_reader_give_tags(decoder, rows->width, rows->height);
  return decoder->status;
}

static void rows_read_guarded(const image_rows *rows, jpeg_reader *decoder, uint8_t *row) {
  if (setjmp(decoder->jump) != 0) return;
  if (jpeg_reader_row_is_plain(decoder, HS_GRAY)) {
    jpeg_read_scanlines(&decoder->jpeg, &row, 1);
  } else {
    jpeg_reader_read_row(decoder, HS_GRAY);
    memcpy(row, decoder->converted, (size_t)rows->width);
  }
  if (decoder->jpeg.output_scanline == decoder->jpeg.output_height) jpeg_reader_check_complete(decoder);
}

static hs_status jpeg_rows_read(image_rows *rows, uint8_t *row) {
  jpeg_reader *decoder = rows->decoder;
  rows_read_guarded(rows, decoder, row);
  if (decoder->status == HS_OK && decoder->jpeg.output_scanline == decoder->jpeg.output_height)
    jpeg_reader_finish(decoder);
  return decoder->status;
}

static void jpeg_rows_end(image_rows *rows) {
  if (rows->decoder) jpeg_reader_end(rows->decoder);
  hs_memory_release(rows->request.allocator, rows->decoder);
  rows->decoder = NULL;
}

const image_rows_kind *image_rows_of_jpeg(void) {
  static const image_rows_kind kind = {jpeg_rows_begin, jpeg_rows_read, jpeg_rows_end};
  return &kind;
}

#else

hs_status image_read_jpeg(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without JPEG support; install libjpeg-dev and build again");
}

const image_rows_kind *image_rows_of_jpeg(void) { return NULL; }

#endif
