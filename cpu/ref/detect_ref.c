/* Reference of detection and selection.
 *
 * The extremum search compares a sample with its 26 neighbours one after another, until a neighbour rules it out. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

bool is_extremum_ref(const octave_view *o, const sift_params *p, int32_t level, int32_t x, int32_t y) {
  const float centre = dog_at(o, level, x, y);
  if (!(hs_fabsf(centre) > p->candidate_above)) return false;
  bool largest = centre > 0.0f, smallest = centre < 0.0f;
  for (int32_t s = -1; s <= 1; s++)
    for (int32_t j = -1; j <= 1; j++)
      for (int32_t i = -1; i <= 1; i++) {
        if (s == 0 && j == 0 && i == 0) continue;
        const float neighbour = dog_at(o, level + s, x + i, y + j);
        largest = largest && (centre > neighbour || (p->extremum_ties && centre == neighbour));
        smallest = smallest && (centre < neighbour || (p->extremum_ties && centre == neighbour));
        if (!largest && !smallest) return false;
      }
  return true;
}

stage_status extrema_ref(stage_queue *queue, const extrema_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t border = args->params.border, words = args->candidates.words_per_row;
  uint64_t count = 0;
  assert(border >= 1 && words == mask_words_per_row(o->width));
  memset(args->candidates.words, 0, sizeof(uint32_t) * (size_t)args->params.scales * (size_t)o->height * (size_t)words);
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = border; y < o->height - border; y++) {
      uint32_t *row = args->candidates.words + ((size_t)(level - 1) * (size_t)o->height + (size_t)y) * (size_t)words;
      for (int32_t x = border; x < o->width - border; x++) {
        if (!is_extremum_ref(o, &args->params, level, x, y)) continue;
        row[x >> 5] |= 1u << (x & 31);
        count++;
      }
    }
  if (args->count) *args->count = count;
  return STAGE_OK;
}

/* Reference of refinement: follows each candidate to the sample where it settles, then reads the settled samples in
 * order. */

static size_t mask_row(const octave_view *o, int32_t words_per_row, int32_t level, int32_t y) {
  return ((size_t)(level - 1) * (size_t)o->height + (size_t)y) * (size_t)words_per_row;
}

stage_status refine_ref(stage_queue *queue, const refine_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t words = args->candidates.words_per_row;
  memset(args->settled.words, 0, sizeof(uint32_t) * (size_t)args->params.scales * (size_t)o->height * (size_t)words);
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = 0; y < o->height; y++)
      for (int32_t x = 0; x < o->width; x++) {
        if (!(args->candidates.words[mask_row(o, words, level, y) + (size_t)(x >> 5)] >> (x & 31) & 1u)) continue;
        int32_t l = level, i = x, j = y;
        if (!refine_follow(o, &args->params, &l, &i, &j)) continue;
        args->settled.words[mask_row(o, words, l, j) + (size_t)(i >> 5)] |= 1u << (i & 31);
      }
  return STAGE_OK;
}

/* Appends one keypoint. Past the capacity the keypoint is only counted. */
static void append_keypoint(const locate_args *args, const located *k, int32_t level, int32_t x, int32_t y) {
  const keypoint_list *list = &args->keypoints;
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = k->x;
  list->y[n] = k->y;
  list->sigma[n] = k->sigma;
  list->response[n] = k->response;
  list->column[n] = x;
  list->row[n] = y;
  list->octave[n] = (int16_t)args->octave.octave;
  list->level[n] = (int16_t)level;
}

void locate_one_ref(const locate_args *args, int32_t level, int32_t x, int32_t y) {
  const located k = locate_sample(&args->octave, &args->params, level, x, y);
  if (position_kept(&args->filter, k.x, k.y)) append_keypoint(args, &k, level, x, y);
}

stage_status locate_ref(stage_queue *queue, const locate_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t words = args->settled.words_per_row;
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = 0; y < o->height; y++)
      for (int32_t x = 0; x < o->width; x++) {
        if (!(args->settled.words[mask_row(o, words, level, y) + (size_t)(x >> 5)] >> (x & 31) & 1u)) continue;
        locate_one_ref(args, level, x, y);
      }
  return STAGE_OK;
}

/* Reference of detection. In each octave, search, refinement and location run one after another, with masks as
 * intermediate results. */

static size_t mask_words(int32_t width, int32_t height, int32_t scales) {
  return (size_t)mask_words_per_row(width) * (size_t)height * (size_t)scales;
}

/* Returns the bytes of the masks of the first octave, which is the largest. */
size_t detect_work_bytes_ref(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity) {
  (void)keypoint_capacity;
  return 2 * sizeof(uint32_t) * mask_words(geometry->width[0], geometry->height[0], scales);
}

static stage_status detect_octave(stage_queue *queue, const detect_args *args, const octave_view *o, uint64_t *count) {
  const mask_view candidates = {args->work, mask_words_per_row(o->width)};
  const mask_view settled = {candidates.words + mask_words(o->width, o->height, args->params.scales),
                             candidates.words_per_row};
  const extrema_args extrema = {*o, candidates, args->params, count};
  const refine_args refine = {*o, candidates, settled, args->params};
  const locate_args locate = {*o, settled, args->params, args->filter, args->keypoints};
  stage_status st = extrema_ref(queue, &extrema);
  if (st == STAGE_OK) st = refine_ref(queue, &refine);
  if (st == STAGE_OK) st = locate_ref(queue, &locate);
  return st;
}

/* Follows a candidate from step at->step to the sample where it settles. True: it has settled. A candidate that
 * leaves the part is stored as escaped, and the result is false. */
static bool follow_in_part(const detect_args *args, escaped_candidate *at) {
  const detect_part *part = args->part;
  const refine_step outcome =
      refine_follow_in(args->octaves, &args->params, &part->follow, &at->step, &at->level, &at->x, &at->y);
  if (outcome != REFINE_MOVED) return outcome == REFINE_SETTLED;
  const uint32_t n = (*part->escaped_count)++;
  if (n < part->escaped_capacity) part->escaped[n] = *at;
  return false;
}

/* Bit map of the samples in a part on which candidates settle. */
typedef struct settled_map {
  mask_view bits;
  plane_region part;
} settled_map;

static uint32_t *settled_word(const settled_map *m, int32_t level, int32_t x, int32_t y) {
  const size_t height = (size_t)(m->part.y1 - m->part.y0),
               row = (size_t)(level - 1) * height + (size_t)(y - m->part.y0);
  return m->bits.words + row * (size_t)m->bits.words_per_row + (size_t)((x - m->part.x0) >> 5);
}

static void mark(const detect_args *args, const settled_map *m, escaped_candidate at) {
  if (follow_in_part(args, &at)) *settled_word(m, at.level, at.x, at.y) |= 1u << ((at.x - m->part.x0) & 31);
}

/* Appends the settled samples as keypoints. */
static void list_settled(const detect_args *args, const settled_map *m) {
  const locate_args locate = {args->octaves[0], m->bits, args->params, args->filter, args->keypoints};
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = m->part.y0; y < m->part.y1; y++)
      for (int32_t x = m->part.x0; x < m->part.x1; x++)
        if (*settled_word(m, level, x, y) >> ((x - m->part.x0) & 31) & 1u) locate_one_ref(&locate, level, x, y);
}

static stage_status detect_part_ref(const detect_args *args) {
  const detect_part *part = args->part;
  const plane_region *r = &part->follow;
  const plane_view plane = octave_level(args->octaves, 0);
  const int32_t border = args->params.border;
  const settled_map m = {{args->work, mask_words_per_row(r->x1 - r->x0)}, *r};
  uint64_t count = 0;
  memset(args->work, 0, sizeof(uint32_t) * mask_words(r->x1 - r->x0, r->y1 - r->y0, args->params.scales));
  *part->escaped_count = 0;
  if (part->seed) mark(args, &m, *part->seed);
  for (int32_t level = 1; level <= args->params.scales && !part->seed; level++)
    for (int32_t y = part->search.y0; y < part->search.y1; y++)
      for (int32_t x = part->search.x0; x < part->search.x1; x++) {
        if (x < border || x >= plane.width - border || y < border || y >= plane.height - border) continue;
        if (!is_extremum_ref(args->octaves, &args->params, level, x, y)) continue;
        mark(args, &m, (escaped_candidate){level, x, y, 0});
        count++;
      }
  list_settled(args, &m);
  if (args->candidates) *args->candidates = count;
  return STAGE_OK;
}

stage_status detect_ref(stage_queue *queue, const detect_args *args) {
  stage_status st = STAGE_OK;
  uint64_t all = 0, count = 0;
  if (args->part) return detect_part_ref(args);
  for (int32_t i = 0; i < args->octave_count && st == STAGE_OK; i++) {
    st = detect_octave(queue, args, &args->octaves[i], &count);
    all += count;
  }
  if (args->candidates) *args->candidates = all;
  return st;
}

/* Reference of selection: finds the smallest kept key or the finest kept level, then keeps in order. */

/* Responses and sigmas are not negative, so their bits as integers have the order of the values. */
static uint32_t key_of(const void *list, uint32_t feature) {
  const select_args *args = list;
  const uint32_t k = args->features.keypoint[feature];
  return hs_float_bits(args->rule == SELECT_LARGEST ? args->keypoints.sigma[k] : args->keypoints.response[k]);
}

static uint32_t level_of(const void *list, uint32_t feature) {
  const select_args *args = list;
  const uint32_t k = args->features.keypoint[feature];
  return select_level_key(args->keypoints.octave[k], args->keypoints.level[k]);
}

static bool joins(const void *list, uint32_t feature) {
  const select_args *args = list;
  return select_is_same(&args->keypoints, args->features.keypoint[feature - 1], args->features.keypoint[feature]);
}

/* Keeps the features from `first` on, which are the last in the list. Returns their number. */
static uint32_t keep_from(const select_args *args, uint32_t first, uint32_t n) {
  if (first == 0) return n;
  *args->kept_described = 0;
  for (uint32_t i = first; i < n; i++) select_move(args, i, i - first);
  return n - first;
}

stage_status select_ref(stage_queue *queue, const select_args *args) {
  (void)queue;
  const feature_list *f = &args->features;
  const uint32_t n = *f->count;
  *args->kept_described = args->described_count;
  /* if the list overflowed, the frame is repeated, and nothing is selected now */
  if (n > f->capacity || n <= args->max_features) return STAGE_OK;
  if (args->rule == SELECT_LEVELS) {
    *f->count = keep_from(args, select_first_level(args, n, args->max_features, level_of, joins), n);
    return STAGE_OK;
  }
  select_cut cut = select_find_cut(args, n, args->max_features, key_of);
  uint32_t kept = 0;
  *args->kept_described = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!select_keeps(&cut, key_of(args, i))) continue;
    select_move(args, i, kept++);
  }
  *f->count = kept;
  return STAGE_OK;
}
