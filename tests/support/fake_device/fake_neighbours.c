/* Fake launchers of k nearest neighbours, which call the reference and the host's row search. */
#include <string.h>

#include "cpu/ref/stages_ref.h"
#include "cuda/match/match_cuda.h"
#include "pipeline/matching/match_call.h"
#include "tests/support/fake_device/fake_device.h"

stage_status cuda_match_norms_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream) {
  (void)args;
  (void)work;
  (void)stream;
  return STAGE_OK;
}

static stage_status squares_run(const void *args) { return squares_ref(args); }

stage_status cuda_squares_launch(const squares_args *args, const cuda_match_work *work, cuda_stream stream) {
  (void)work;
  return fake_submit(stream, squares_run, args, sizeof *args);
}

typedef struct rows_step {
  squares_args squares;
  float bound;
  uint32_t k;
  uint32_t *counts;
  const uint32_t *starts;
  match_neighbour *found;
} rows_step;

static stage_status rows_run(const void *args) {
  const rows_step *s = args;
  for (uint32_t row = 0; row < s->squares.rows; row++) {
    const float *squares = s->squares.squares + row * s->squares.pitch;
    const uint32_t count = s->squares.second.count;
    if (s->k > 0)
      neighbours_nearest(squares, count, s->bound, s->k, s->found + (size_t)row * s->k);
    else if (s->counts)
      s->counts[row] = neighbours_count(squares, count, s->bound);
    else
      neighbours_list(squares, count, s->bound, s->found + s->starts[row]);
  }
  return STAGE_OK;
}

stage_status cuda_neighbours_nearest_launch(const squares_args *args, float bound, uint32_t k, match_neighbour *nearest,
                                            cuda_stream stream) {
  const rows_step step = {.squares = *args, .bound = bound, .k = k, .found = nearest};
  return fake_submit(stream, rows_run, &step, sizeof step);
}

stage_status cuda_neighbours_count_launch(const squares_args *args, float bound, uint32_t *counts, cuda_stream stream) {
  const rows_step step = {.squares = *args, .bound = bound, .counts = counts};
  return fake_submit(stream, rows_run, &step, sizeof step);
}

stage_status cuda_neighbours_list_launch(const squares_args *args, float bound, const uint32_t *starts,
                                         match_neighbour *found, cuda_stream stream) {
  const rows_step step = {.squares = *args, .bound = bound, .starts = starts, .found = found};
  return fake_submit(stream, rows_run, &step, sizeof step);
}
