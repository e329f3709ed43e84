/* The sigma schedule and filter taps, in double on the host with the project's own functions; octave geometry. */
#include "stages/pyramid.h"

#include <math.h>

#include "stages/table_math.h"

double scalespace_level_sigma(double sigma0, int32_t scales, int32_t level) {
  return sigma0 * table_exp2((double)level / (double)scales);
}

double scalespace_step_sigma(double sigma0, int32_t scales, int32_t level) {
  const double k = table_exp2(1.0 / (double)scales);
  return scalespace_level_sigma(sigma0, scales, level - 1) * sqrt(k * k - 1.0);
}

double scalespace_base_sigma(double sigma0, double input_blur, int32_t first_octave) {
  const double blur = first_octave < 0 ? 2.0 * input_blur : input_blur / (double)(1 << first_octave);
  const double variance = sigma0 * sigma0 - blur * blur;
  return sqrt(variance > 0.01 ? variance : 0.01);
}

/* Return ceil and floor of small non-negative doubles, without the C library. */
static int32_t ceil_int(double v) {
  const int32_t i = (int32_t)v;
  return (double)i < v ? i + 1 : i;
}

static int32_t filter_radius(double sigma, author_rule rule) {
  int32_t radius;
  if (rule == RULE_OPENCV) {
    /* OpenCV has cvRound(8 sigma + 1) | 1 taps; cvRound rounds halves to even */
    const double taps = 8.0 * sigma + 1.0;
    int32_t n = (int32_t)(taps + 0.5);
    if ((double)n - taps == 0.5 && (n & 1)) n--;
    radius = (n | 1) / 2;
  } else {
    radius = ceil_int(4.0 * sigma);
    if (rule == RULE_VLFEAT && radius < 1) radius = 1;
  }
  return radius < FILTER_RADIUS_MAX ? radius : FILTER_RADIUS_MAX;
}

void scalespace_filter(double sigma, author_rule radius_rule, gaussian_filter *filter) {
  double taps[FILTER_RADIUS_MAX + 1];
  filter->radius = filter_radius(sigma, radius_rule);
  double sum = 0.0;
  /* adds the smallest taps first, which minimises the rounding error */
  for (int32_t j = filter->radius; j >= 0; j--) {
    taps[j] = table_exp(-((double)j * (double)j) / (2.0 * sigma * sigma));
    sum += j == 0 ? taps[j] : 2.0 * taps[j];
  }
  for (int32_t j = 0; j <= FILTER_RADIUS_MAX; j++)
    filter->taps[j] = j <= filter->radius ? (float)(taps[j] / sum) : 0.0f;
}

/* Octave geometry: number and sizes of a picture's octaves. */

static int32_t floor_log2(int32_t v) {
  int32_t n = 0;
  while (v > 1) {
    v >>= 1;
    n++;
  }
  return n;
}

/* OpenCV's number of octaves: round(log2(smaller side of the first octave's image) - 2) - first octave. */
static int32_t octaves_opencv(int32_t side, int32_t first_octave) {
  const double l = table_log2((double)side) - 2.0 - (double)first_octave;
  return l < 0.0 ? 0 : (int32_t)(l + 0.5);
}

/* VLFeat's number of octaves: max(floor(log2(min(w, h))) - first octave - 3, 1), where w, h are the size of the
 * picture. */
static int32_t octaves_vlfeat(int32_t side, int32_t first_octave) {
  const int32_t n = floor_log2(side) - first_octave - 3;
  return n > 1 ? n : 1;
}

stage_status pyramid_geometry_of(int32_t width, int32_t height, const pyramid_rules *rules,
                                 pyramid_geometry *geometry) {
  /* decimation keeps samples 0, 2^N, 2 * 2^N, ... whose cells of 2^N pixels are complete, as halving with floor does */
  const int64_t first_width = pyramid_first_side(width, rules->first_octave),
                first_height = pyramid_first_side(height, rules->first_octave);
  geometry->first_octave = rules->first_octave;
  geometry->octave_count = 0;
  if (first_width > PYRAMID_SIDE_MAX || first_height > PYRAMID_SIDE_MAX) return STAGE_OVERFLOW;
  int32_t w = (int32_t)first_width, h = (int32_t)first_height;
  const int32_t side = w < h ? w : h;
  const int32_t source_side = width < height ? width : height;
  /* smallest side that leaves a sample between the two borders */
  const int32_t least = 2 * rules->border + 1;
  int32_t most = OCTAVES_MAX;
  if (rules->octave_rule == RULE_OPENCV && side > 0) most = octaves_opencv(side, rules->first_octave);
  if (rules->octave_rule == RULE_VLFEAT) most = octaves_vlfeat(source_side, rules->first_octave);
  if (rules->octaves > 0) most = rules->octaves;
  if (most > OCTAVES_MAX) most = OCTAVES_MAX;
  for (int32_t o = 0; o < most && w >= least && h >= least; o++) {
    geometry->width[o] = w;
    geometry->height[o] = h;
    geometry->octave_count++;
    w /= 2;
    h /= 2;
  }
  return STAGE_OK;
}

void pyramid_geometry_skip(pyramid_geometry *geometry, int32_t count) {
  assert(count >= 0 && count <= geometry->octave_count);
  geometry->first_octave += count;
  geometry->octave_count -= count;
  for (int32_t o = 0; o < geometry->octave_count; o++) {
    geometry->width[o] = geometry->width[o + count];
    geometry->height[o] = geometry->height[o + count];
  }
}
