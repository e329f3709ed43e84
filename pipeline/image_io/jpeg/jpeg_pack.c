/* Packs a JPEG for the GPU's decoder; see jpeg_stream.h. */
#include "pipeline/image_io/jpeg/jpeg_stream.h"

#include <string.h>

enum { PACK_ALIGNMENT = 16, MARKER_RESTART = 0xD0, MARKER_END = 0xD9 };

/* The GPU decodes coded data from many positions at once; decodings from different positions must synchronise. In
   periodic data they do not: each position then waits for the previous one, and the device refuses more than three
   thread blocks (48 KB) of such data. From half of that on, libjpeg is faster. The search for periodic data looks every
   PERIOD_LOOKED_AT bytes for a period of up to PERIOD_MAX that continues for PERIOD_SHOWN bytes. An MCU without content
   has about six bits for each of up to ten blocks. */
enum { UNSETTLED_MAX = 24 << 10, PERIOD_LOOKED_AT = 1 << 10, PERIOD_MAX = 128, PERIOD_SHOWN = 512, PERIOD_KEY = 16 };

/* For coefficients in zigzag order: their natural position by column and row, 8 x + y (T.81, figure 5, transposed). */
static const uint8_t column_positions[JPEG_COEFFICIENTS] = {
    0,  8,  1,  2,  9,  16, 24, 17, 10, 3,  4,  11, 18, 25, 32, 40, 33, 26, 19, 12, 5,  6,
    13, 20, 27, 34, 41, 48, 56, 49, 42, 35, 28, 21, 14, 7,  15, 22, 29, 36, 43, 50, 57, 58,
    51, 44, 37, 30, 23, 31, 38, 45, 52, 59, 60, 53, 46, 39, 47, 54, 61, 62, 55, 63};

static uint32_t step_of(bool of_ac, uint32_t symbol, uint32_t bits) {
  const uint32_t run = symbol >> 4, size = symbol & 15;
  if (!of_ac) return jpeg_step_make(bits, symbol, 1);
  if (symbol == 0) return jpeg_step_make(bits, 0, JPEG_STEP_TO_END);
  if (size == 0) return symbol == 0xF0 ? jpeg_step_make(bits, 0, 16) : JPEG_STEP_WRONG;
  return jpeg_step_make(bits, size, run + 1);
}

static void make_order(const jpeg_codes *codes, bool of_ac, jpeg_code_order *order) {
  memset(order, 0, sizeof *order);
  for (int32_t n = 1; codes->defined && n <= JPEG_HUFFMAN_BITS_MAX; n++) {
    order->beyond[n] = (uint32_t)codes->beyond[n] << (JPEG_HUFFMAN_BITS_MAX - n);
    order->position[n] = codes->at[n] - codes->first[n];
    for (int32_t position = codes->at[n]; position < codes->at[n] + codes->beyond[n] - codes->first[n]; position++)
      order->steps[position] = (uint16_t)step_of(of_ac, codes->values[position], (uint32_t)n);
  }
}

/* Fills all table entries whose index begins with a given code of n bits. */
static void fill(uint16_t *steps, int32_t bits, int32_t n, int32_t code, uint16_t step) {
  if (n > bits) return;
  for (int32_t i = code << (bits - n); i < (code + 1) << (bits - n); i++) steps[i] = step;
}

static void make_huffman(const jpeg_codes *codes, const jpeg_code_order *order, jpeg_huffman *huffman) {
  enum { FIRST_LONG = 0x10000 - JPEG_LONG_LOOKUPS };
  uint16_t *const longs = huffman->steps + (1 << JPEG_LOOKUP_BITS);
  memset(huffman, 0, sizeof *huffman);
  for (int32_t n = 1; codes->defined && n <= JPEG_HUFFMAN_BITS_MAX; n++) {
    for (int32_t code = codes->first[n]; code < codes->beyond[n]; code++) {
      const int32_t first = code << (JPEG_HUFFMAN_BITS_MAX - n), beyond = (code + 1) << (JPEG_HUFFMAN_BITS_MAX - n);
      const uint16_t step = order->steps[order->position[n] + code];
      fill(huffman->steps, JPEG_LOOKUP_BITS, n, code, step);
      for (int32_t i = first > FIRST_LONG ? first : FIRST_LONG; i < beyond; i++) longs[i - FIRST_LONG] = step;
    }
  }
}

static void make_tables(const jpeg_stream *stream, jpeg_tables *tables) {
  const uint8_t *quantisation = stream->quantisation[stream->components[0].quantisation];
  for (int i = 0; i < 2; i++) {
    make_order(&stream->dc[i], false, &tables->orders[i]);
    make_order(&stream->ac[i], true, &tables->orders[2 + i]);
    make_huffman(&stream->dc[i], &tables->orders[i], &tables->huffman[i]);
    make_huffman(&stream->ac[i], &tables->orders[2 + i], &tables->huffman[2 + i]);
  }
  for (int i = 0; i < JPEG_COEFFICIENTS; i++) tables->quantisation[column_positions[i]] = quantisation[i];
  for (int i = 0; i < JPEG_COEFFICIENTS; i++) tables->positions[i] = column_positions[i];
}

/* Returns the picture's shape from its headers. */
static jpeg_shape shape_of(const jpeg_stream *stream) {
  const jpeg_component *luma = &stream->components[0];
  const int32_t across = JPEG_BLOCK_SIDE * luma->across, down = JPEG_BLOCK_SIDE * luma->down;
  jpeg_shape shape = {.width = stream->width,
                      .height = stream->height,
                      .mcus_across = (stream->width + across - 1) / across,
                      .mcus_down = (stream->height + down - 1) / down,
                      .luma_across = luma->across,
                      .luma_down = luma->down};
  for (int32_t c = 0; c < stream->component_count; c++) {
    const jpeg_component *component = &stream->components[c];
    for (int32_t i = 0; i < component->across * component->down; i++, shape.mcu_blocks++) {
      shape.dc_tables |= (uint32_t)component->dc << shape.mcu_blocks;
      shape.ac_tables |= (uint32_t)component->ac << shape.mcu_blocks;
    }
  }
  const uint32_t mcus = (uint32_t)shape.mcus_across * (uint32_t)shape.mcus_down;
  shape.interval_mcus = stream->restart_interval > 0 ? (uint32_t)stream->restart_interval : mcus;
  shape.intervals = mcus / shape.interval_mcus + (mcus % shape.interval_mcus != 0);
  return shape;
}

static size_t align(size_t bytes) { return (bytes + PACK_ALIGNMENT - 1) / PACK_ALIGNMENT * PACK_ALIGNMENT; }

size_t jpeg_pack_bytes(const jpeg_stream *stream, size_t file_bytes) {
  const jpeg_shape shape = shape_of(stream);
  const size_t coded = file_bytes - stream->scan;
  const uint64_t blocks = (uint64_t)shape.mcus_across * (uint64_t)shape.mcus_down * (uint64_t)shape.mcu_blocks;
  if (coded > JPEG_DATA_BYTES_MAX || blocks / 4 > coded || shape.intervals > coded) return 0;
  return jpeg_data_at(&shape) + align(coded + (JPEG_WORDS_AHEAD + 1) * sizeof(uint32_t));
}

/* Copies coded bytes up to a marker, without stuffed zeros. Returns the number of bytes; *from: the marker, or the
   end. */
static size_t take_coded(const uint8_t **from, const uint8_t *end, uint8_t *to) {
  uint8_t *at = to;
  const uint8_t *p = *from;
  while (p < end) {
    const uint8_t *stop = memchr(p, 0xFF, (size_t)(end - p));
    const size_t plain = (size_t)((stop ? stop : end) - p);
    const bool stuffed = stop && end - stop > 1 && stop[1] == 0;
    memcpy(at, p, plain + stuffed);
    at += plain + stuffed;
    p += plain + 2 * (size_t)stuffed;
    if (!stuffed) break;
  }
  *from = p;
  return (size_t)(at - to);
}

/* True if the bytes repeat with a period. */
static bool is_periodic(const uint8_t *bytes) {
  for (const uint8_t *p = bytes + 1; p <= bytes + PERIOD_MAX; p++) {
    p = memchr(p, bytes[0], (size_t)(bytes + PERIOD_MAX + 1 - p));
    if (!p) return false;
    if (memcmp(p, bytes, PERIOD_KEY) == 0) return memcmp(p, bytes, PERIOD_SHOWN) == 0;
  }
  return false;
}

/* True if luma and chroma use the same codes. A code then does not show to which block of an MCU it belongs. */
static bool shares_codes(const jpeg_stream *stream) {
  const jpeg_component *luma = &stream->components[0];
  bool same = stream->component_count > 1;
  for (int32_t c = 1; c < stream->component_count; c++) {
    const jpeg_component *chroma = &stream->components[c];
    same = same && jpeg_codes_same(&stream->dc[luma->dc], &stream->dc[chroma->dc]) &&
           jpeg_codes_same(&stream->ac[luma->ac], &stream->ac[chroma->ac]);
  }
  return same;
}

/* Returns the 32 bits that begin at a bit. */
static uint32_t bits_at(const uint8_t *data, uint32_t bit) {
  const uint8_t *b = data + bit / 8;
  const uint64_t bits = (uint64_t)b[0] << 32 | (uint64_t)b[1] << 24 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 8 | b[4];
  return (uint32_t)(bits >> (8 - bit % 8));
}

/* Decodes from a state up to a bit position, and returns the state there. */
static jpeg_scan_state follow(const jpeg_tables *tables, const jpeg_shape *shape, const uint8_t *data,
                              jpeg_scan_state state, uint32_t end) {
  while (state.bit < end) {
    const uint32_t step = jpeg_scan_step(tables->huffman, tables->orders, shape, state, bits_at(data, state.bit));
    (void)jpeg_scan_advance(shape, &state, step);
  }
  return state;
}

/* True if decodings from different bits reach the same state within a subsequence, as the device's decoder assumes. */
static bool starts_agree(const jpeg_tables *tables, const jpeg_shape *shape, const uint8_t *data) {
  enum { STARTS = 8, END = JPEG_SUBSEQUENCE_BITS + STARTS };
  _Static_assert(END / 8 + 2 * JPEG_WORDS_AHEAD <= PERIOD_SHOWN, "decoding stays within the period that was shown");
  uint32_t first = 0;
  for (uint32_t start = 0; start < STARTS; start++) {
    const jpeg_scan_state from = {.bit = start}, to = follow(tables, shape, data, from, END);
    if (start == 0) first = jpeg_state_pack(to, END);
    if (jpeg_state_pack(to, END) != first) return false;
  }
  return true;
}

/* True if an interval's data would need too much resynchronisation on the device. */
static bool is_unsettled(const jpeg_tables *tables, const jpeg_shape *shape, const uint8_t *data, size_t bytes,
                         bool shares) {
  size_t run = 0;
  if (bytes <= UNSETTLED_MAX || shares) return bytes > UNSETTLED_MAX;
  for (size_t at = 0; at + PERIOD_MAX + PERIOD_SHOWN <= bytes; at += PERIOD_LOOKED_AT) {
    run = is_periodic(data + at) ? run + PERIOD_LOOKED_AT : 0;
    if (run <= UNSETTLED_MAX) continue;
    if (!starts_agree(tables, shape, data + at)) return true;
    run = 0;
  }
  return false;
}

/* Packs an interval. False: it has less than two bits per block, or the wrong marker follows. */
static bool pack_data(const uint8_t *bytes, size_t file_bytes, jpeg_stream *stream, jpeg_shape *shape,
                      uint8_t *packed) {
  const jpeg_tables *tables = (const jpeg_tables *)(const void *)packed;
  jpeg_interval *intervals = (jpeg_interval *)(void *)(packed + sizeof *tables);
  uint8_t *data = packed + jpeg_data_at(shape);
  const uint8_t *from = bytes + stream->scan, *const end = bytes + file_bytes;
  const bool shares = shares_codes(stream);
  size_t filled = 0;
  for (uint32_t i = 0; i < shape->intervals; i++) {
    const size_t taken = take_coded(&from, end, data + filled);
    const uint8_t marker = i + 1 < shape->intervals ? (uint8_t)(MARKER_RESTART + i % 8) : MARKER_END;
    if (taken == 0 || end - from < 2 || from[0] != 0xFF || from[1] != marker) return false;
    if (is_unsettled(tables, shape, data + filled, taken, shares)) return false;
    intervals[i] = (jpeg_interval){(uint32_t)(8 * filled), shape->subsequences};
    shape->subsequences += (uint32_t)((8 * taken + JPEG_SUBSEQUENCE_BITS - 1) / JPEG_SUBSEQUENCE_BITS);
    filled += taken;
    from += 2;
  }
  intervals[shape->intervals] = (jpeg_interval){(uint32_t)(8 * filled), shape->subsequences};
  stream->end = (size_t)(from - bytes);
  shape->data_words = (uint32_t)((filled + sizeof(uint32_t) - 1) / sizeof(uint32_t)) + JPEG_WORDS_AHEAD;
  memset(data + filled, 0, shape->data_words * sizeof(uint32_t) - filled);
  shape->packed_bytes = jpeg_data_at(shape) + shape->data_words * sizeof(uint32_t);
  return true;
}

bool jpeg_pack(const uint8_t *bytes, size_t file_bytes, jpeg_stream *stream, void *memory, size_t memory_bytes,
               jpeg_shape *shape) {
  const size_t need = jpeg_pack_bytes(stream, file_bytes);
  *shape = shape_of(stream);
  if (need == 0 || need > memory_bytes) return false;
  make_tables(stream, memory);
  return pack_data(bytes, file_bytes, stream, shape, memory);
}
