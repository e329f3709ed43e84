/*
 * The coded data of a baseline JPEG, followed code by code; see jpeg_stream.h.
 *
 * Where a symbol begins is a chain: look up, shift, look up. All else is kept out of it. The data are first freed of stuffed
 * zeros, piece by piece, so that bits are refilled without a question. What a block adds up to is bounded from above by a
 * sum that needs no look at each coefficient; only a block that may be too large by that bound is followed again, exactly.
 */
#include <string.h>

#include "pipeline/image_io/jpeg_stream.h"

enum {
  FOLLOW_TWO_UNTIL = JPEG_BLOCK - 17, /* up to this index the first of two steps stays in the block */
  FOLLOW_PLACES = JPEG_STEP_END + JPEG_BLOCK + 1
};

/* The coded bits without stuffed zeros, up to the next marker. */
typedef struct coded_data {
  const uint8_t *from, *end; /* of the file: not looked at yet */
  uint8_t *bytes;            /* JPEG_CODED_BYTES, and JPEG_MCU_BYTES_MOST zeros where the data have ended */
  size_t filled;
  bool ended; /* before a marker, or with the file */
} coded_data;

/* The stream's bits, the next one topmost; those beyond `count` are what the next refill puts there again. */
typedef struct bit_reader {
  const uint8_t *at;
  uint64_t bits;
  uint32_t count;
} bit_reader;

/* What is followed of a component. */
typedef struct follower {
  const jpeg_codes *dc, *ac;
  const uint8_t *quantisation;
  int32_t predicted;               /* DC */
  int32_t blocks;                  /* in an MCU */
  uint16_t largest[FOLLOW_PLACES]; /* of the steps of quantisation in front of a place; behind JPEG_STEP_END again */
} follower;

/* Takes over bytes up to a marker or the end of room. */
static void take_coded(coded_data *d) {
  while (!d->ended && d->filled < JPEG_CODED_BYTES) {
    const size_t left = (size_t)(d->end - d->from), room = JPEG_CODED_BYTES - d->filled;
    const size_t most = left < room ? left : room;
    const uint8_t *stop = most > 0 ? memchr(d->from, 0xFF, most) : NULL;
    const size_t plain = stop ? (size_t)(stop - d->from) : most;
    memcpy(d->bytes + d->filled, d->from, plain);
    d->filled += plain;
    d->from += plain;
    if (stop && d->end - stop > 1 && stop[1] == 0) {
      d->bytes[d->filled++] = 0xFF;
      d->from += 2;
    } else {
      d->ended = stop || d->from == d->end;
    }
  }
  if (d->ended) memset(d->bytes + d->filled, 0, JPEG_MCU_BYTES_MOST);
}

/* Makes sure of the bytes that an MCU can take. */
static inline void provide(coded_data *d, bit_reader *r) {
  const size_t passed = (size_t)(r->at - d->bytes);
  if (d->ended || passed + JPEG_MCU_BYTES_MOST <= d->filled) return;
  d->filled -= passed;
  memmove(d->bytes, r->at, d->filled);
  r->at = d->bytes;
  take_coded(d);
}

static uint64_t load_64(const uint8_t *b) {
  return (uint64_t)b[0] << 56 | (uint64_t)b[1] << 48 | (uint64_t)b[2] << 40 | (uint64_t)b[3] << 32 |
         (uint64_t)b[4] << 24 | (uint64_t)b[5] << 16 | (uint64_t)b[6] << 8 | (uint64_t)b[7];
}

/* 56 bits at least: two steps, of which a long code and its value take 27. */
static inline void refill(bit_reader *r) {
  r->bits |= load_64(r->at) >> r->count;
  r->at += (63 - r->count) >> 3;
  r->count |= 56;
}

static inline void take(bit_reader *r, uint32_t bits) {
  r->bits <<= bits;
  r->count -= bits;
}

static inline int32_t value_of(const bit_reader *r, int32_t from_top, int32_t size) {
  const int32_t beyond = 1 << size, bits = (int32_t)(r->bits >> (64 - from_top)) & (beyond - 1);
  return bits - ((bits < beyond >> 1) * (beyond - 1));
}

static inline jpeg_step step_of(const jpeg_codes *codes, const jpeg_step *steps, bool of_ac, uint64_t bits) {
  const jpeg_step step = steps[bits >> (64 - JPEG_LOOK_BITS)];
  return step.bits > 0 ? step : jpeg_codes_long(codes, of_ac, (uint32_t)(bits >> 32));
}

/* Returns what the DC coefficient comes to, negative: no code. */
static inline int32_t follow_dc(bit_reader *r, follower *f) {
  const jpeg_step step = step_of(f->dc, f->dc->one, false, r->bits);
  if (step.bits == 0) return -1;
  f->predicted += value_of(r, step.bits, step.skip);
  take(r, step.bits);
  if (f->predicted > JPEG_SUM_MOST || f->predicted < -JPEG_SUM_MOST) return -1;
  return (f->predicted < 0 ? -f->predicted : f->predicted) * f->quantisation[0];
}

/* What the magnitudes of the coefficients behind the DC one add up to at most, symbol by symbol. The block was found whole;
   `r`: behind its DC code. */
static int32_t sum_exactly(bit_reader r, const follower *f) {
  int32_t sum = 0;
  for (int32_t index = 1; index < JPEG_BLOCK;) {
    refill(&r);
    const jpeg_step step = step_of(f->ac, f->ac->one, true, r.bits);
    index += step.skip;
    if (step.most > 0) sum += step.most * f->quantisation[index - 1];
    take(&r, step.bits);
  }
  return sum;
}

/* A step from `*index`, which it moves; false: no code. */
static inline bool follow_step(bit_reader *r, const follower *f, const jpeg_step *steps, int32_t *index,
                               uint32_t *bound, jpeg_step *taken) {
  const jpeg_step step = *taken = step_of(f->ac, steps, true, r->bits);
  *index += step.skip;
  *bound += (uint32_t)step.most * f->largest[*index];
  take(r, step.bits);
  return step.bits > 0;
}

/* Only luma becomes pixels, so only its sums matter. Inlined, because the reader then stays in registers: a fifth of the
   time. */
__attribute__((always_inline)) static inline bool follow_block(bit_reader *r, follower *f, bool of_luma) {
  uint32_t bound = 0;
  int32_t index = 1;
  jpeg_step step;
  refill(r);
  const int32_t dc = follow_dc(r, f);
  if (dc < 0) return false;
  const bit_reader behind_dc = *r;
  while (index <= FOLLOW_TWO_UNTIL) { /* a refill for two steps: what the DC code has left suffices for the first */
    if (!follow_step(r, f, f->ac->more, &index, &bound, &step)) return false;
    if (index > FOLLOW_TWO_UNTIL) break;
    refill(r);
    if (!follow_step(r, f, f->ac->more, &index, &bound, &step)) return false;
  }
  if (index > JPEG_BLOCK && index < JPEG_STEP_END) return false;
  while (index < JPEG_BLOCK) {
    refill(r);
    if (!follow_step(r, f, f->ac->one, &index, &bound, &step)) return false;
    /* Only a coefficient is a block's last, or its end's own code. */
    if (index < JPEG_STEP_END && index > JPEG_BLOCK - (step.most == 0)) return false;
  }
  if (!of_luma || bound + (uint32_t)dc <= JPEG_SUM_MOST) return true;
  return sum_exactly(behind_dc, f) + dc <= JPEG_SUM_MOST;
}

/* Bits of the data that are not taken; negative: zeros behind them were. */
static inline int64_t bits_left(const coded_data *d, const bit_reader *r) {
  return 8 * (d->bytes + d->filled - r->at) + (int64_t)r->count;
}

static bool follow_mcu(coded_data *d, bit_reader *reader, follower *followers, int32_t count) {
  bit_reader r = *reader;
  provide(d, &r);
  for (int32_t i = 0; i < followers[0].blocks; i++)
    if (!follow_block(&r, &followers[0], true)) return false;
  for (int32_t c = 1; c < count; c++)
    if (!follow_block(&r, &followers[c], false)) return false;
  *reader = r;
  return bits_left(d, &r) >= 0;
}

static void start_interval(coded_data *d, bit_reader *r) {
  d->filled = 0;
  d->ended = false;
  take_coded(d);
  *r = (bit_reader){.at = d->bytes};
}

/* All bits of an interval are taken but the last byte's padding, and a marker follows; passes it. */
static bool follow_marker(coded_data *d, const bit_reader *r, uint8_t marker) {
  if (bits_left(d, r) > 7 || d->end - d->from < 2 || d->from[0] != 0xFF || d->from[1] != marker) return false;
  d->from += 2;
  return true;
}

static void start_follower(const jpeg_stream *stream, const jpeg_component *component, follower *f) {
  *f = (follower){.dc = &stream->dc[component->dc],
                  .ac = &stream->ac[component->ac],
                  .quantisation = stream->quantisation[component->quantisation],
                  .blocks = component->across * component->down};
  for (int32_t i = 1; i <= JPEG_BLOCK; i++)
    f->largest[i] = f->quantisation[i - 1] > f->largest[i - 1] ? f->quantisation[i - 1] : f->largest[i - 1];
  memcpy(f->largest + JPEG_STEP_END, f->largest, sizeof f->largest[0] * (JPEG_BLOCK + 1));
}

bool jpeg_stream_follow(const uint8_t *bytes, size_t size, jpeg_stream *stream) {
  follower followers[3];
  coded_data d = {.from = bytes + stream->scan, .end = bytes + size, .bytes = stream->coded};
  bit_reader r;
  const int32_t across = 8 * stream->components[0].across, down = 8 * stream->components[0].down;
  const uint32_t mcus =
      (uint32_t)((stream->width + across - 1) / across) * (uint32_t)((stream->height + down - 1) / down);
  const uint32_t interval = stream->restart_interval > 0 ? (uint32_t)stream->restart_interval : mcus;
  uint32_t restarts = 0;
  if (!stream->engine_takes) return false;
  for (int32_t c = 0; c < stream->component_count; c++) start_follower(stream, &stream->components[c], &followers[c]);
  start_interval(&d, &r);
  for (uint32_t done = 0; done < mcus; done++) {
    if (done > 0 && done % interval == 0) {
      if (!follow_marker(&d, &r, (uint8_t)(0xD0 + restarts++ % 8))) return false;
      for (int32_t c = 0; c < stream->component_count; c++) followers[c].predicted = 0;
      start_interval(&d, &r);
    }
    if (!follow_mcu(&d, &r, followers, stream->component_count)) return false;
  }
  if (!follow_marker(&d, &r, 0xD9)) return false;
  stream->end = (size_t)(d.from - bytes);
  return true;
}
