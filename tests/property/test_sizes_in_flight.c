/*
 * Pictures of many sizes in flight, most of them new to each worker: the bytes equal the CPU's for each alone.
 */
#include "tests/support/test.h"

#include "tests/support/extent.h"

enum { SIZES = 24, ROUNDS = 2, WIDTH = 330, HEIGHT = 250 };

typedef struct pictures {
  hs_image scene, window[SIZES];
  hs_features alone[SIZES];
} pictures;

/* Makes windows of one scene with 3 to 5 octaves. A launch makes one level of them or several. Every fourth window has
 * the same size. */
static void pictures_make(pictures *p, const hs_options *options) {
  hs_options plain = *options;
  plain.device = HS_DEVICE_CPU;
  scoped_context *c = extraction_context(&plain);
  p->scene = extraction_scene(WIDTH, HEIGHT, 5, NULL);
  for (int32_t i = 0; i < SIZES; i++) {
    p->window[i] = p->scene;
    p->window[i].stride_bytes = WIDTH;
    p->window[i].width = i % 4 == 3 ? 96 : WIDTH - 37 * (i % 8) - i;
    p->window[i].height = i % 4 == 3 ? 80 : HEIGHT - 41 * (i % 5) - i;
    p->alone[i] = (hs_features){0};
    assert_int_equal(hs_extract(c, &p->window[i], NULL, &p->alone[i]), HS_OK);
  }
  assert_true(p->alone[0].count > 50);
}

static void pictures_free(pictures *p) {
  for (int32_t i = 0; i < SIZES; i++) hs_features_free(&p->alone[i]);
  hs_image_free(&p->scene);
}

/* In the short form pictures that follow each other are taken in one round. */
static void check_stream(const hs_options *o, const pictures *p) {
  const int32_t total = (extent_is_short() && o->in_flight == 1 ? 1 : ROUNDS) * SIZES;
  scoped_context *c = extraction_context(o);
  int32_t submitted = 0;
  for (int32_t waited = 0; waited < total; waited++) {
    const hs_features *view = NULL;
    char what[64];
    for (; submitted < total && submitted - waited < o->in_flight; submitted++)
      assert_int_equal(hs_submit(c, &p->window[submitted % SIZES], NULL), HS_OK);
    snprintf(what, sizeof what, "size %d of round %d", waited % SIZES, waited / SIZES);
    assert_int_equal(hs_wait_view(c, &view), HS_OK);
    extraction_check_equal(&p->alone[waited % SIZES], view, what);
  }
}

/* Skips the test without a GPU. */
static void check_sizes(hs_options o, hs_device device) {
  pictures p;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  o.device = device;
  pictures_make(&p, &o);
  for (o.in_flight = 1; o.in_flight <= 9; o.in_flight += 8) check_stream(&o, &p);
  pictures_free(&p);
}

TEST(test_doubled) { check_sizes(extraction_options(HS_PROFILE_LOWE), HS_DEVICE_CUDA); }

TEST(test_floats_not_doubled) {
  hs_options o = extraction_options(HS_PROFILE_VLFEAT);
  o.first_octave = 0;
  check_sizes(o, HS_DEVICE_CUDA);
}

/* Frames have additional launches: histograms at the beginning, selection of the strongest, affine shapes. */
TEST(test_equalized_and_chosen) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  o.max_features = 60;
  o.affine = 1;
  check_sizes(o, HS_DEVICE_CUDA);
}

/* Each frame copies a level to the host. */
TEST(test_split_and_pooled) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.split = 2;
  o.dsp = 1;
  check_sizes(o, HS_DEVICE_HYBRID);
}
