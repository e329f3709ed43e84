/* The nearest descriptors in plain C: every pair, one after another. */
#include "cpu/ref/stages_ref.h"

static float square_of(const match_args *a, uint32_t i, uint32_t j) {
  const size_t p = (size_t)i * MATCH_LENGTH, q = (size_t)j * MATCH_LENGTH;
  if (a->type == MATCH_U8)
    return (float)match_square_u8((const uint8_t *)a->first.descriptors + p,
                                  (const uint8_t *)a->second.descriptors + q);
  return match_square_f32((const float *)a->first.descriptors + p, (const float *)a->second.descriptors + q);
}

static bool candidates(const match_args *a, uint32_t i, uint32_t j) {
  return a->guide == MATCH_UNGUIDED ||
         match_agrees(a->guide, a->tolerance_squared, &a->first.positions[i], &a->second.positions[j]);
}

stage_status match_ref(stage_queue *queue, const match_args *a) {
  (void)queue;
  for (uint32_t i = 0; i < a->first.count; i++) a->forward[i] = match_nearest_none();
  for (uint32_t j = 0; a->backward && j < a->second.count; j++) a->backward[j] = match_nearest_none();
  for (uint32_t i = 0; i < a->first.count; i++)
    for (uint32_t j = 0; j < a->second.count; j++) {
      if (!candidates(a, i, j)) continue;
      const float squared = square_of(a, i, j);
      match_take(&a->forward[i], j, squared);
      if (a->backward) match_take(&a->backward[j], i, squared);
    }
  return STAGE_OK;
}

bool match_work_bytes_ref(const match_args *a, int32_t threads, size_t *bytes) {
  (void)a;
  (void)threads;
  *bytes = 0;
  return true;
}

/* All squared distances in plain C: every pair, one after another. */

stage_status squares_ref(const squares_args *a) {
  for (uint32_t r = 0; r < a->rows; r++)
    for (uint32_t j = 0; j < a->second.count; j++) {
      const uint32_t i = a->first_row + r;
      const bool candidate =
          a->guide == MATCH_UNGUIDED ||
          match_agrees(a->guide, a->tolerance_squared, &a->first.positions[i], &a->second.positions[j]);
      a->squares[r * a->pitch + j] =
          candidate ? match_square(a->type, &a->first, i, &a->second, j) : hs_bits_float(0x7f800000u);
    }
  return STAGE_OK;
}

stage_status pack_second_ref(stage_queue *queue, const squares_args *a) {
  (void)queue;
  (void)a;
  return STAGE_OK;
}

size_t squares_work_bytes_ref(const squares_args *a) {
  (void)a;
  return 0;
}
