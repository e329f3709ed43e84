/*
 * Smoothness of matches relative to their neighbours; see search.h.
 */
#include "pipeline/matching/geometry/search.h"

#include <math.h>

#define ENOUGH 0.3 /* minimum share of neighbours with a similar displacement */
enum { CELLS = 32, NEIGHBOURS = 12, LOOKED_AT = 24 };

/* A square grid over points. The matches of cell c are order[start[c]..start[c + 1]). */
typedef struct cell_grid {
  const double *x, *y;
  const uint32_t *order;
  const uint32_t *cell;
  uint32_t start[CELLS * CELLS + 1];
} cell_grid;

/* Returns the cell index of a value, clamped to the range; NaN gives the first cell. */
static uint32_t index_in(double value, double least, double scale) {
  const double at = (value - least) * scale;
  if (!(at > 0.0)) return 0;
  return at < (double)CELLS ? (uint32_t)at : CELLS - 1;
}

static void range_of(const double *values, size_t count, double *least, double *scale) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    low = values[i] < low ? values[i] : low;
    high = values[i] > high ? values[i] : high;
  }
  *least = low;
  *scale = high > low ? (double)CELLS / (high - low) : 0.0;
}

/* Builds a grid over points in image b by a counting sort, so a cell keeps the order of the matches. The grid's range
   is that of the matches, because a homography maps points near its horizon to anywhere. */
static void build_grid(cell_grid *grid, const geometry_matches *matches, const double *x, const double *y,
                       const smoothness_scratch *scratch) {
  const size_t count = matches->count;
  double least[2], scale[2];
  range_of(matches->bx, count, &least[0], &scale[0]);
  range_of(matches->by, count, &least[1], &scale[1]);
  for (int c = 0; c <= CELLS * CELLS; c++) grid->start[c] = 0;
  for (size_t i = 0; i < count; i++) {
    scratch->cell[i] = CELLS * index_in(y[i], least[1], scale[1]) + index_in(x[i], least[0], scale[0]);
    grid->start[scratch->cell[i]]++;
  }
  uint32_t before = 0;
  for (int c = 0; c <= CELLS * CELLS; c++) {
    const uint32_t in_cell = grid->start[c];
    grid->start[c] = before;
    before += in_cell;
  }
  for (size_t i = 0; i < count; i++) scratch->order[grid->start[scratch->cell[i]]++] = (uint32_t)i;
  for (int c = CELLS * CELLS; c > 0; c--) grid->start[c] = grid->start[c - 1];
  grid->start[0] = 0;
  grid->x = x;
  grid->y = y;
  grid->order = scratch->order;
  grid->cell = scratch->cell;
}

/* A window of cells: rows [top, bottom] and columns [left, right]. */
typedef struct cell_window {
  uint32_t left, right, top, bottom, count;
} cell_window;

/* Returns the smallest square of cells around a match with enough other matches, or the complete grid. */
static cell_window window_around(const cell_grid *grid, size_t match) {
  const uint32_t column = grid->cell[match] % CELLS, row = grid->cell[match] / CELLS;
  cell_window w = {0};
  for (uint32_t radius = 1;; radius *= 2) {
    w.left = column > radius ? column - radius : 0;
    w.top = row > radius ? row - radius : 0;
    w.right = column + radius < CELLS ? column + radius : CELLS - 1;
    w.bottom = row + radius < CELLS ? row + radius : CELLS - 1;
    w.count = 0;
    for (uint32_t r = w.top; r <= w.bottom; r++)
      w.count += grid->start[CELLS * r + w.right + 1] - grid->start[CELLS * r + w.left];
    if (w.count > NEIGHBOURS || radius >= CELLS) return w;
  }
}

/* True if enough neighbours move like this match. If a window has many matches, only every n-th neighbour is
 * examined. */
static bool moves_alike(const cell_grid *grid, const geometry_matches *matches, const smoothness_scratch *scratch,
                        size_t match, double floor) {
  const cell_window w = window_around(grid, match);
  const uint32_t step = (w.count + LOOKED_AT - 1) / LOOKED_AT;
  const double dx = matches->bx[match] - scratch->mapped_x[match], dy = matches->by[match] - scratch->mapped_y[match];
  /* minimum number of similar neighbours, out of the number that is examined */
  const double certain = ENOUGH * (double)((w.count + step - 1) / step);
  uint32_t looked_at = 0, alike = 0, skip = 0;
  for (uint32_t r = w.top; r <= w.bottom; r++) {
    const uint32_t end = grid->start[CELLS * r + w.right + 1];
    uint32_t k = grid->start[CELLS * r + w.left] + skip;
    for (; k < end; k += step) {
      const uint32_t other = grid->order[k];
      if (other == match || !isfinite(scratch->mapped_x[other])) continue;
      const double ex = matches->bx[other] - scratch->mapped_x[other] - dx;
      const double ey = matches->by[other] - scratch->mapped_y[other] - dy;
      const double sx = grid->x[other] - grid->x[match], sy = grid->y[other] - grid->y[match];
      const double change = ex * ex + ey * ey, distance = sx * sx + sy * sy;
      looked_at++;
      alike += change <= floor * floor || change <= distance;
      if ((double)alike >= certain) return true;
    }
    skip = k - end;
  }
  return (double)alike >= ENOUGH * (double)looked_at && looked_at > 0;
}

static void map_points(const geometry_matches *matches, const double h[9], const smoothness_scratch *scratch) {
  for (size_t i = 0; i < matches->count; i++) {
    const double x = matches->ax[i], y = matches->ay[i];
    const double w = h[6] * x + h[7] * y + h[8];
    const double mapped_x = (h[0] * x + h[1] * y + h[2]) / w, mapped_y = (h[3] * x + h[4] * y + h[5]) / w;
    const bool usable = w > 0.0 && isfinite(mapped_x) && isfinite(mapped_y);
    scratch->mapped_x[i] = usable ? mapped_x : HUGE_VAL;
    scratch->mapped_y[i] = usable ? mapped_y : HUGE_VAL;
  }
}

size_t smoothness_mark(const geometry_matches *matches, const double homography[9], double floor,
                       const smoothness_scratch *scratch, size_t tested, uint8_t *smooth) {
  cell_grid grid;
  size_t count = 0;
  map_points(matches, homography, scratch);
  build_grid(&grid, matches, scratch->mapped_x, scratch->mapped_y, scratch);
  for (size_t i = 0; i < tested; i++)
    smooth[i] = isfinite(scratch->mapped_x[i]) && moves_alike(&grid, matches, scratch, i, floor);
  build_grid(&grid, matches, matches->bx, matches->by, scratch);
  for (size_t i = 0; i < tested; i++) {
    if (smooth[i] != 0) smooth[i] = moves_alike(&grid, matches, scratch, i, floor);
    count += smooth[i];
  }
  return count;
}
