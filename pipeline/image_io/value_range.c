/*
 * Which samples of a picture are black and white: the range that the caller gives, that the file declares, or the type's;
 * and the note that a picture uses too little of it.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

/* Filters and resampling overshoot; samples further outside, in widths of the range, are meant in another one. */
static const double range_overshoot = 0.5;
/* A picture darker than the first share of the range, or of less contrast than the second, may be meant in another. */
static const double range_dark = 0.25, range_flat = 0.125;

typedef struct value_range {
  double low, high;
} value_range;

bool image_has_range(const image_request *request) { return request->range_low < request->range_high; }

static bool has_declared(const image_request *request) {
  return request->found && request->found->declared_low < request->found->declared_high;
}

static value_range range_of_type(hs_sample_type type) {
  return (value_range){0.0, type == HS_U8 ? 255.0 : type == HS_U16 ? 65535.0 : 1.0};
}

/* ---- samples */

static void widen(sample_extremes *e, double low, double high) {
  const bool is_first = e->low > e->high;
  if (is_first || low < e->low) e->low = low;
  if (is_first || high > e->high) e->high = high;
}

static void add_u8(sample_extremes *e, const uint8_t *samples, size_t count) {
  uint8_t low = samples[0], high = samples[0];
  for (size_t i = 0; i < count; i++) {
    low = samples[i] < low ? samples[i] : low;
    high = samples[i] > high ? samples[i] : high;
  }
  widen(e, low, high);
}

static void add_u16(sample_extremes *e, const uint16_t *samples, size_t count) {
  uint16_t low = samples[0], high = samples[0];
  for (size_t i = 0; i < count; i++) {
    low = samples[i] < low ? samples[i] : low;
    high = samples[i] > high ? samples[i] : high;
  }
  widen(e, low, high);
}

static void add_f32(sample_extremes *e, const float *samples, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const double sample = (double)samples[i];
    const bool is_first = e->low > e->high;
    if (isnan(sample)) e->low = e->high = (double)NAN;
    if (is_first || sample < e->low) e->low = sample;
    if (is_first || sample > e->high) e->high = sample;
  }
}

void extremes_add(sample_extremes *extremes, const void *samples, size_t count, hs_sample_type type) {
  if (count == 0 || isnan(extremes->low)) return;
  if (type == HS_U8)
    add_u8(extremes, samples, count);
  else if (type == HS_U16)
    add_u16(extremes, samples, count);
  else
    add_f32(extremes, samples, count);
}

void range_widen(const void *samples, size_t count, hs_sample_type type, float *floats) {
  const uint8_t *bytes = samples;
  const uint16_t *words = samples;
  for (size_t i = 0; i < count; i++) floats[i] = type == HS_U8 ? (float)bytes[i] : (float)words[i];
}

/* ---- checks */

/* The smallest usual range around the samples; where they use little of it, or there is none, their own. */
static value_range likely_range(const sample_extremes *e) {
  static const value_range usual[] = {{0.0, 1.0},    {-1.0, 1.0},    {0.0, 255.0},  {0.0, 1023.0},
                                      {0.0, 4095.0}, {0.0, 16383.0}, {0.0, 65535.0}};
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
    if (usual[i].low <= e->low && e->high <= usual[i].high)
      return e->high - e->low < range_flat * (usual[i].high - usual[i].low) ? (value_range){e->low, e->high} : usual[i];
  return (value_range){e->low, e->high};
}

static hs_status refuse_samples(const image_request *request, const sample_extremes *e, value_range range) {
  const value_range likely = likely_range(e);
  const hs_status status = image_has_range(request) ? HS_ERR_ARGUMENT : HS_ERR_UNSUPPORTED;
  if (!isfinite(e->low) || !isfinite(e->high))
    return image_fail(request, status,
                      "samples are NaN or infinite: replace them, and give a mask that is black around them");
  return image_fail(request, status,
                    "samples are %.9g to %.9g, where black is %.9g and white is %.9g: give a value range that holds "
                    "them, such as %.9g to %.9g",
                    e->low, e->high, range.low, range.high, likely.low, likely.high);
}

static void note_low_range(const image_request *request, const sample_extremes *e, value_range range) {
  const value_range likely = likely_range(e);
  hs_load_notes *notes = &request->found->notes;
  notes->is_low_range = 1;
  notes->lowest = e->low;
  notes->highest = e->high;
  notes->range_low = (float)likely.low;
  notes->range_high = (float)likely.high;
  hs_message_set(
      notes->low_range, sizeof notes->low_range,
      "%s: samples are %.9g to %.9g only, where black is %.9g and white is %.9g: few features or none will be "
      "found; give a value range, such as %.9g to %.9g, or %.9g to %.9g if this is meant",
      request->name, e->low, e->high, range.low, range.high, likely.low, likely.high, range.low, range.high);
}

/* Bytes are what they are: their range is not doubted. */
static void look_at_range(const image_request *request, const sample_extremes *e, hs_sample_type type) {
  const value_range range = range_of_type(type);
  const double width = range.high - range.low;
  const bool is_dark = e->high < range.low + range_dark * width, is_flat = e->high - e->low < range_flat * width;
  if (request->found && type != HS_U8 && e->low < e->high && (is_dark || is_flat)) note_low_range(request, e, range);
}

hs_status range_check(const image_request *request, const sample_extremes *extremes, hs_sample_type type) {
  value_range range = range_of_type(type);
  const bool is_said = image_has_range(request) || (type == HS_F32 && has_declared(request));
  if (image_has_range(request))
    range = (value_range){(double)request->range_low, (double)request->range_high};
  else if (is_said)
    range = (value_range){request->found->declared_low, request->found->declared_high};
  const double room = range_overshoot * (range.high - range.low);
  const bool fits = extremes->low >= range.low - room && extremes->high <= range.high + room;
  if (!fits) return refuse_samples(request, extremes, range); /* NaN too */
  if (!is_said) look_at_range(request, extremes, type);
  return HS_OK;
}

/* ---- pictures */

static size_t samples_of_row(const hs_image *image) { return (size_t)image->width * image_channels(image->layout); }

static uint8_t *row_of(const hs_image *image, int32_t y) {
  return (uint8_t *)(uintptr_t)image->data + (size_t)y * image->stride_bytes;
}

static hs_status make_floats(const image_request *request, hs_image *image) {
  const size_t count = samples_of_row(image);
  hs_image wide = *image;
  size_t bytes = 0, all = 0;
  if (image->type == HS_F32) return HS_OK;
  const bool fits = hs_size_mul(count, sizeof(float), &wide.stride_bytes) &&
                    hs_size_mul(wide.stride_bytes, (size_t)image->height, &bytes) &&
                    hs_size_add(bytes, request->size, &all) &&
                    hs_size_add(all, image->stride_bytes * (size_t)image->height, &all);
  if (!fits) return image_fail(request, HS_ERR_LIMIT, "the picture as floats is too large for the address space");
  const hs_status status = image_check_memory(request, all, "the picture as floats");
  if (status != HS_OK && request->need) *request->need = (image_need){image->width, image->height, all};
  if (status != HS_OK) return status;
  wide.data = wide.memory = hs_memory_alloc(request->allocator, bytes);
  wide.type = HS_F32;
  if (!wide.memory) return image_fail(request, HS_ERR_MEMORY, "no memory for %zu bytes of floats", bytes);
  for (int32_t y = 0; y < image->height; y++)
    range_widen(row_of(image, y), count, image->type, (float *)(void *)row_of(&wide, y));
  hs_memory_release(image->allocator, image->memory);
  *image = wide;
  return HS_OK;
}

/* 16 bits that the file says more of: low to 0 and high to 65535, to the nearest integer. Samples that are outside show
   that the file is wrong; then they stay. */
static void stretch(const hs_image *image, uint32_t low, uint32_t high) {
  const uint32_t width = high - low;
  for (int32_t y = 0; y < image->height; y++) {
    uint16_t *row = (uint16_t *)(void *)row_of(image, y);
    for (size_t i = 0; i < samples_of_row(image); i++)
      row[i] = (uint16_t)((((uint32_t)row[i] - low) * (uint64_t)65535 + width / 2) / width);
  }
}

static hs_status apply_float_range(const image_request *request, hs_image *image) {
  const bool given = image_has_range(request), declared = has_declared(request);
  if (!given && !declared) return HS_OK;
  const hs_status status = make_floats(request, image);
  if (status != HS_OK) return status;
  image->range_low = given ? request->range_low : (float)request->found->declared_low;
  image->range_high = given ? request->range_high : (float)request->found->declared_high;
  return HS_OK;
}

hs_status image_apply_range(const image_request *request, hs_image *image) {
  sample_extremes extremes = {1.0, 0.0};
  const bool given = image_has_range(request);
  if (image->layout == HS_JPEG || (image->type == HS_U8 && !given)) return HS_OK;
  for (int32_t y = 0; y < image->height; y++)
    extremes_add(&extremes, row_of(image, y), samples_of_row(image), image->type);
  const bool stretches = image->type == HS_U16 && !given && has_declared(request) &&
                         extremes.low >= request->found->declared_low && extremes.high <= request->found->declared_high;
  if (stretches) {
    stretch(image, (uint32_t)request->found->declared_low, (uint32_t)request->found->declared_high);
    return HS_OK;
  }
  const hs_status status = range_check(request, &extremes, image->type);
  return status == HS_OK && (given || image->type == HS_F32) ? apply_float_range(request, image) : status;
}
