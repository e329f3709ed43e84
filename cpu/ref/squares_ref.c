/* All squared distances in plain C: every pair, one after another. */
#include "cpu/ref/stages_ref.h"

stage_status squares_ref(const squares_args *a) {
  for (uint32_t r = 0; r < a->rows; r++)
    for (uint32_t j = 0; j < a->second.count; j++) {
      const uint32_t i = a->first_row + r;
      const bool candidate = a->guide == MATCH_UNGUIDED ||
                             match_agrees(a->guide, a->tolerance_squared, &a->first.places[i], &a->second.places[j]);
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
