/* The coded data of a baseline JPEG, followed code by code; see jpeg_stream.h. */
#include "pipeline/image_io/jpeg_stream.h"

enum {
  FOLLOW_BITS_LEAST =
      32, /* that are there before a step: a step of two takes 22 at most, a long code and its value 27 */
  FOLLOW_EXCESS_MOST = 16,            /* zero bytes behind the data before it counts as damaged */
  FOLLOW_TWO_UNTIL = JPEG_BLOCK - 17, /* up to this index the first of two steps stays in the block */
};

/* The stream's bits, the next one topmost. */
typedef struct bit_reader {
  const uint8_t *at, *end;
  uint64_t bits;
  int32_t count;  /* valid ones */
  int32_t excess; /* zero bytes that were taken for those behind a marker */
} bit_reader;

/* What is followed of a component. */
typedef struct follower {
  const jpeg_codes *dc, *ac;
  const uint8_t *quantisation;
  int32_t predicted; /* DC */
  int32_t blocks;    /* in an MCU */
} follower;

static uint64_t load_64(const uint8_t *b) {
  return (uint64_t)b[0] << 56 | (uint64_t)b[1] << 48 | (uint64_t)b[2] << 40 | (uint64_t)b[3] << 32 |
         (uint64_t)b[4] << 24 | (uint64_t)b[5] << 16 | (uint64_t)b[6] << 8 | (uint64_t)b[7];
}

/* Whether any byte is 0xFF: where its complement has a zero. */
static bool has_ff(uint64_t word) {
  const uint64_t zero = ~word;
  return ((zero - UINT64_C(0x0101010101010101)) & word & UINT64_C(0x8080808080808080)) != 0;
}

/* Byte by byte, over stuffed zeros; a marker is not passed. */
static void refill_slowly(bit_reader *r) {
  while (r->count <= 56) {
    uint64_t byte = 0;
    if (r->at < r->end && (*r->at != 0xFF || (r->end - r->at > 1 && r->at[1] == 0))) {
      byte = *r->at;
      r->at += byte == 0xFF ? 2 : 1;
    } else {
      r->excess++;
    }
    const uint64_t below = UINT64_MAX >> r->count;
    r->bits = (r->bits & ~below) | byte << (56 - r->count);
    r->count += 8;
  }
}

static inline void refill(bit_reader *r) {
  if (r->count >= FOLLOW_BITS_LEAST) return;
  if (r->end - r->at >= 8) {
    const uint64_t word = load_64(r->at);
    if (!has_ff(word)) {
      const int32_t bytes = (64 - r->count) >> 3;
      r->bits |= word >> r->count; /* bits beyond the count are those that the next refill puts there again */
      r->at += bytes;
      r->count += 8 * bytes;
      return;
    }
  }
  refill_slowly(r);
}

static inline void take(bit_reader *r, int32_t bits) {
  r->bits <<= bits;
  r->count -= bits;
}

/* The value of `size` bits, 1..11, that ends `from_top` bits behind the top (T.81, F.2.2.1). */
static int32_t value_of(const bit_reader *r, int32_t from_top, int32_t size) {
  const int32_t bits = (int32_t)(r->bits >> (64 - from_top)) & ((1 << size) - 1);
  return bits >> (size - 1) ? bits : bits - (1 << size) + 1;
}

/* The most that a coefficient whose value has `size` bits comes to; index: behind it. */
static inline uint32_t most_of(const follower *f, int32_t index, uint32_t size) {
  return ((uint32_t)f->quantisation[(index - 1) & (JPEG_BLOCK - 1)] << size) -
         f->quantisation[(index - 1) & (JPEG_BLOCK - 1)];
}

/* Returns what the DC coefficient comes to, negative: no code. */
static int32_t follow_dc(bit_reader *r, follower *f) {
  jpeg_step step = f->dc->one[r->bits >> (64 - JPEG_LOOK_BITS)];
  if (step.bits == 0) step = jpeg_codes_long(f->dc, false, (uint32_t)(r->bits >> 32));
  if (step.bits == 0) return -1;
  if (step.sizes > 0) f->predicted += value_of(r, step.bits, step.sizes);
  take(r, step.bits);
  if (f->predicted > JPEG_SUM_MOST || f->predicted < -JPEG_SUM_MOST) return -1;
  return (f->predicted < 0 ? -f->predicted : f->predicted) * f->quantisation[0];
}

/* Follows a block; *sum: at least what its coefficients' magnitudes add up to. */
static bool follow_block(bit_reader *r, follower *f, uint32_t *sum) {
  int32_t index = 1;
  refill(r);
  const int32_t dc = follow_dc(r, f);
  if (dc < 0) return false;
  *sum = (uint32_t)dc;
  while (index < JPEG_BLOCK) {
    refill(r);
    const uint32_t look = (uint32_t)(r->bits >> (64 - JPEG_LOOK_BITS));
    jpeg_step step = index <= FOLLOW_TWO_UNTIL ? f->ac->more[look] : f->ac->one[look];
    if (step.bits == 0) step = jpeg_codes_long(f->ac, true, (uint32_t)(r->bits >> 32));
    if (step.bits == 0) return false;
    *sum += most_of(f, index + step.first, step.sizes & 15u);
    index += step.skip;
    *sum += most_of(f, index, step.sizes >> 4);
    take(r, step.bits);
    /* Only a coefficient is a block's last, or its end's own code. */
    if (index < JPEG_STEP_END && index > JPEG_BLOCK - (step.sizes == 0)) return false;
  }
  return true;
}

/* All bits of an interval are taken but the last byte's padding, and a marker follows; passes it. */
static bool follow_marker(bit_reader *r, uint8_t marker) {
  const int32_t left = r->count - 8 * r->excess;
  if (left < 0 || left > 7 || r->end - r->at < 2 || r->at[0] != 0xFF || r->at[1] != marker) return false;
  r->at += 2;
  r->bits = 0;
  r->count = r->excess = 0;
  return true;
}

/* Only luma becomes pixels, so only its sums matter. */
static bool follow_mcu(bit_reader *r, follower *followers, int32_t count) {
  uint32_t sum;
  for (int32_t c = 0; c < count; c++)
    for (int32_t i = 0; i < followers[c].blocks; i++)
      if (!follow_block(r, &followers[c], &sum) || (c == 0 && sum > JPEG_SUM_MOST)) return false;
  return r->excess <= FOLLOW_EXCESS_MOST;
}

static void start_followers(const jpeg_stream *stream, follower *followers) {
  for (int32_t c = 0; c < stream->component_count; c++) {
    const jpeg_component *component = &stream->components[c];
    followers[c] = (follower){.dc = &stream->dc[component->dc],
                              .ac = &stream->ac[component->ac],
                              .quantisation = stream->quantisation[component->quantisation],
                              .blocks = component->across * component->down};
  }
}

bool jpeg_stream_follow(const uint8_t *bytes, size_t size, jpeg_stream *stream) {
  follower followers[3];
  bit_reader r = {.at = bytes + stream->scan, .end = bytes + size};
  const int32_t across = 8 * stream->components[0].across, down = 8 * stream->components[0].down;
  const uint32_t mcus =
      (uint32_t)((stream->width + across - 1) / across) * (uint32_t)((stream->height + down - 1) / down);
  uint32_t interval = stream->restart_interval > 0 ? (uint32_t)stream->restart_interval : mcus, restarts = 0;
  start_followers(stream, followers);
  for (uint32_t done = 0; done < mcus; done++) {
    if (done > 0 && done % interval == 0) {
      if (!follow_marker(&r, (uint8_t)(0xD0 + restarts++ % 8))) return false;
      for (int32_t c = 0; c < stream->component_count; c++) followers[c].predicted = 0;
    }
    if (!follow_mcu(&r, followers, stream->component_count)) return false;
  }
  if (!follow_marker(&r, 0xD9)) return false;
  stream->end = (size_t)(r.at - bytes);
  return true;
}
