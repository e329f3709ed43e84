/* Runs the GPU's JPEG decoder on the host; see jpeg_on_host.h. */
#include "tests/support/jpeg_on_host.h"

#include <stdlib.h>

#include "stages/jpeg_transform.h"

enum { GROUP = 4, TILE = 64 * GROUP, ROUNDS = 3, NOT_FOUND = 1, DAMAGED = 2, TOO_LARGE = 4 };

/* A subsequence: its bits, its position, and the state of the decoder at its end. */
typedef struct subsequence {
  uint32_t first, end, interval;
  bool starts, ends, changed;
  uint32_t entry, exit, blocks, luma;
} subsequence;

typedef struct picture {
  const jpeg_shape *shape;
  const jpeg_tables *tables;
  const uint8_t *data;
  subsequence *list;
  int16_t *coefficients;
} picture;

static uint32_t load_word(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

static uint32_t window_at(const picture *p, uint32_t bit) {
  const uint8_t *const word = p->data + bit / 32 * 4;
  const uint32_t shift = bit % 32;
  return shift ? load_word(word) << shift | load_word(word + 4) >> (32 - shift) : load_word(word);
}

static uint32_t luma_blocks(const picture *p) { return (uint32_t)(p->shape->luma_across * p->shape->luma_down); }

static void cut(picture *p, const jpeg_interval *intervals) {
  for (uint32_t i = 0; i < p->shape->intervals; i++) {
    const jpeg_interval *at = &intervals[i];
    for (uint32_t k = at->first_subsequence; k < at[1].first_subsequence; k++) {
      subsequence *s = &p->list[k];
      s->interval = i;
      s->first = at->first_bit + (k - at->first_subsequence) * JPEG_SUBSEQUENCE_BITS;
      s->end = s->first + JPEG_SUBSEQUENCE_BITS < at[1].first_bit ? s->first + JPEG_SUBSEQUENCE_BITS : at[1].first_bit;
      s->starts = k == at->first_subsequence;
      s->ends = k + 1 == at[1].first_subsequence;
    }
  }
}

static void decode(const picture *p, subsequence *s) {
  jpeg_scan_state state = jpeg_state_unpack(s->entry, s->first);
  s->blocks = s->luma = 0;
  while (state.bit < s->end) {
    const uint32_t look = window_at(p, state.bit),
                   step = jpeg_scan_step(p->tables->huffman, p->tables->orders, p->shape, state, look);
    if (state.index == 0 && state.block < luma_blocks(p)) s->luma += (uint32_t)jpeg_step_value(step, look);
    s->blocks += jpeg_scan_advance(p->shape, &state, step);
  }
  s->exit = jpeg_state_pack(state, s->end);
}

/* Decodes a group from its first subsequence on. again: stops at a subsequence whose end state is unchanged. */
static void decode_group(const picture *p, uint32_t first, uint32_t beyond, bool again, jpeg_host_effort *effort) {
  for (uint32_t i = first; i < beyond && i < first + GROUP; i++) {
    subsequence *s = &p->list[i];
    const uint32_t before = s->exit;
    if (i > first) s->entry = s->starts ? 0 : s[-1].exit;
    decode(p, s);
    effort->decoded++;
    if (again && s->exit == before) return;
  }
}

/* Repeats the groups of a tile until no state changes. Begins with the groups whose first subsequence is marked. */
static uint32_t settle(const picture *p, uint32_t first, uint32_t beyond, bool all, jpeg_host_effort *effort) {
  uint32_t repetitions = 0, changed = 0;
  do {
    for (uint32_t i = first; i < beyond; i += GROUP)
      if (p->list[i].changed) decode_group(p, i, beyond, !all || repetitions > 0, effort);
    changed = 0;
    for (uint32_t i = first; i < beyond; i += GROUP) {
      subsequence *s = &p->list[i];
      s->changed = i > first && !s->starts && s->entry != s[-1].exit;
      if (s->changed) s->entry = s[-1].exit;
      changed += s->changed;
    }
  } while (++repetitions <= TILE / GROUP && changed > 0);
  return repetitions;
}

static void find_states(const picture *p, jpeg_host_effort *effort) {
  const uint32_t n = p->shape->subsequences;
  for (int round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < n; i++) p->list[i].changed = round == 0;
    for (uint32_t i = TILE; round > 0 && i < n; i += TILE) {
      subsequence *s = &p->list[i];
      s->changed = !s->starts && s->entry != p->list[i - 1].exit;
      if (s->changed) s->entry = p->list[i - 1].exit;
    }
    for (uint32_t first = 0; first < n; first += TILE) {
      const uint32_t beyond = n - first < TILE ? n : first + TILE;
      if (!p->list[first].changed) continue;
      const uint32_t repetitions = settle(p, first, beyond, round == 0, effort);
      if (round == 0 && repetitions > effort->repetitions) effort->repetitions = repetitions;
    }
  }
}

/* Decodes a subsequence that begins after `blocks` blocks of its restart interval, with the DC value `luma`. */
static uint32_t write(const picture *p, const subsequence *s, uint32_t blocks, uint32_t luma) {
  const jpeg_shape *shape = p->shape;
  const uint32_t mcu_blocks = (uint32_t)shape->mcu_blocks, first = s->interval * shape->interval_mcus;
  const uint32_t all = (uint32_t)shape->mcus_across * (uint32_t)shape->mcus_down - first;
  const uint32_t mcus = all < shape->interval_mcus ? all : shape->interval_mcus;
  jpeg_scan_state state = jpeg_state_unpack(s->entry, s->first);
  if (blocks % mcu_blocks != state.block || blocks / mcu_blocks > mcus) return NOT_FOUND;
  uint32_t mcu = blocks / mcu_blocks;
  int32_t predicted = (int32_t)luma;
  bool wrong = false;
  while (state.bit < s->end && mcu < mcus) {
    const uint32_t look = window_at(p, state.bit),
                   step = jpeg_scan_step(p->tables->huffman, p->tables->orders, shape, state, look);
    const uint32_t position = state.index + jpeg_step_skip(step) - 1;
    const int32_t value = jpeg_step_value(step, look);
    wrong = wrong || jpeg_step_is_wrong(state.index, step);
    if (state.block < luma_blocks(p) && (state.index == 0 || jpeg_step_size(step) > 0)) {
      if (state.index == 0) predicted += value;
      wrong = wrong || predicted > JPEG_SUM_MAX || predicted < -JPEG_SUM_MAX;
      int16_t *block = p->coefficients + ((first + mcu) * luma_blocks(p) + state.block) * (size_t)JPEG_COEFFICIENTS;
      if (position < JPEG_COEFFICIENTS)
        block[p->tables->positions[position]] = (int16_t)(state.index == 0 ? predicted : value);
    }
    mcu += jpeg_scan_advance(shape, &state, step) && state.block == 0;
  }
  if (s->ends)
    wrong |= mcu < mcus || state.index != 0 || state.block != 0 || state.bit > s->end || s->end - state.bit > 7;
  else if (state.bit >= s->end && jpeg_state_pack(state, s->end) != s[1].entry)
    return NOT_FOUND;
  else
    wrong |= state.bit < s->end;
  return wrong ? DAMAGED : 0;
}

static uint32_t write_all(const picture *p) {
  uint32_t refused = 0, blocks = 0, luma = 0;
  for (uint32_t i = 0; i < p->shape->subsequences; i++) {
    const subsequence *s = &p->list[i];
    if (s->starts) blocks = luma = 0;
    refused |= write(p, s, blocks, luma);
    blocks += s->blocks;
    luma += s->luma;
  }
  return refused;
}

static uint32_t transform(const picture *p, const int16_t *coefficients, uint8_t pixels[JPEG_COEFFICIENTS]) {
  int32_t columns[8][8], sum = 0;
  for (int i = 0; i < JPEG_COEFFICIENTS; i++) {
    columns[i / 8][i % 8] = coefficients[i] * p->tables->quantisation[i];
    sum += abs(columns[i / 8][i % 8]);
  }
  if (sum > JPEG_SUM_MAX) return TOO_LARGE;
  for (int x = 0; x < 8; x++) jpeg_transform_8(columns[x], JPEG_COLUMN_SHIFT);
  for (int y = 0; y < 8; y++) {
    int32_t row[8];
    for (int x = 0; x < 8; x++) row[x] = columns[x][y];
    jpeg_transform_8(row, JPEG_ROW_SHIFT);
    for (int x = 0; x < 8; x++) pixels[8 * y + x] = jpeg_pixel(row[x]);
  }
  return 0;
}

static uint32_t make_pixels(const picture *p, const jpeg_decode_args *args) {
  const jpeg_shape *s = p->shape;
  uint32_t refused = 0;
  uint8_t pixels[JPEG_COEFFICIENTS] = {0};
  for (int32_t row = 0; row * 8 < s->height; row++) {
    for (int32_t column = 0; column * 8 < s->width; column++) {
      const int32_t mcu = row / s->luma_down * s->mcus_across + column / s->luma_across;
      const int32_t part = row % s->luma_down * s->luma_across + column % s->luma_across;
      const size_t block = (size_t)mcu * luma_blocks(p) + (size_t)part;
      refused |= transform(p, p->coefficients + block * JPEG_COEFFICIENTS, pixels);
      for (int32_t i = 0; i < JPEG_COEFFICIENTS; i++) {
        const int32_t x = column * 8 + i % 8, y = row * 8 + i / 8;
        if (x < s->width && y < s->height) args->gray[args->start + x * args->step_x + y * args->step_y] = pixels[i];
      }
    }
  }
  return refused;
}

uint32_t jpeg_on_host(const jpeg_decode_args *args, jpeg_host_effort *effort) {
  const jpeg_shape *shape = &args->shape;
  const uint8_t *packed = args->packed;
  picture p = {.shape = shape, .tables = args->packed, .data = packed + jpeg_data_at(shape)};
  const size_t mcus = (size_t)shape->mcus_across * (size_t)shape->mcus_down;
  p.list = calloc(shape->subsequences, sizeof *p.list);
  p.coefficients = calloc(mcus * luma_blocks(&p), JPEG_COEFFICIENTS * sizeof *p.coefficients);
  if (!p.list || !p.coefficients) abort();
  *effort = (jpeg_host_effort){0};
  cut(&p, (const jpeg_interval *)(const void *)(packed + sizeof(jpeg_tables)));
  find_states(&p, effort);
  uint32_t refused = write_all(&p);
  refused |= make_pixels(&p, args);
  free(p.coefficients);
  free(p.list);
  return refused;
}
