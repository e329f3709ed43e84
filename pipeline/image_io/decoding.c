/* Functions shared by all image readers: limits, memory, error messages, conversion to gray, value ranges, and
   downscaling. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

/* ---- limits, memory, messages */

hs_status image_fail(const image_request *request, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(request->message, request->message_bytes, request->name, format, arguments);
  va_end(arguments);
  return status;
}

void image_ran_short(const image_request *request) {
  if (request->found) request->found->ran_short = true;
}

void image_note_damage(const image_request *request, const char *format, ...) {
  if (!request->found) return;
  hs_load_notes *notes = &request->found->notes;
  va_list arguments;
  if (notes->damages < INT32_MAX && notes->damages++ > 0) return;
  va_start(arguments, format);
  hs_message_set_about(notes->damage, sizeof notes->damage, request->name, format, arguments);
  va_end(arguments);
}

hs_status image_check_damage(const image_request *request) {
  const hs_load_notes *notes = request->found ? &request->found->notes : NULL;
  if (!request->strict || !notes || notes->damages == 0) return HS_OK;
  return hs_message_fail(HS_ERR_FORMAT, request->message, request->message_bytes,
                         "%s; %ld such report%s, refused because strict is set", notes->damage, (long)notes->damages,
                         notes->damages == 1 ? "" : "s");
}

hs_status image_give_notes(const image_request *request, hs_status status) {
  if (request->notes && request->found) *request->notes = request->found->notes;
  if (request->notes && status != HS_OK) memset(request->notes, 0, sizeof *request->notes);
  return status;
}

size_t image_channels(hs_pixel_layout layout) {
  switch (layout) {
  case HS_GRAY:
    return 1;
  case HS_GRAY_ALPHA:
    return 2;
  case HS_RGB:
  case HS_BGR:
    return 3;
  case HS_RGBA:
  case HS_BGRA:
    return 4;
  }
  return 0;
}

size_t image_sample_bytes(hs_sample_type type) { return type == HS_U8 ? 1 : type == HS_U16 ? 2 : 4; }

hs_status image_check_size(const image_request *request, uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return image_fail(request, HS_ERR_FORMAT, "the picture has no pixels");
  if (width > INT32_MAX || height > INT32_MAX || width > request->max_pixels / height) {
    return image_fail(request, HS_ERR_LIMIT, "%llu x %llu pixels are more than the limit, max_pixels is %llu",
                      (unsigned long long)width, (unsigned long long)height, (unsigned long long)request->max_pixels);
  }
  return HS_OK;
}

hs_status image_check_memory(const image_request *request, uint64_t bytes, const char *what) {
  char limit[MACHINE_MEMORY_LIMIT_TEXT_BYTES];
  if (machine_memory_allows(request->max_memory_bytes, bytes)) return HS_OK;
  machine_memory_describe_limit(request->max_memory_bytes, limit);
  return image_fail(request, HS_ERR_LIMIT, "%s needs %llu bytes, more than %s", what, (unsigned long long)bytes, limit);
}

hs_status image_allocate(const image_request *request, int32_t width, int32_t height, hs_sample_type type,
                         hs_pixel_layout layout, uint64_t working_bytes, hs_image *image) {
  size_t stride = 0, bytes = 0, need = 0;
  const bool fits = hs_size_mul((size_t)width, image_channels(layout) * image_sample_bytes(type), &stride) &&
                    hs_size_mul(stride, (size_t)height, &bytes) && hs_size_add(bytes, request->size, &need) &&
                    working_bytes <= SIZE_MAX - need;
  char what[64];
  snprintf(what, sizeof what, "decoding %ld x %ld pixels", (long)width, (long)height);
  if (!fits) return image_fail(request, HS_ERR_LIMIT, "%s needs more memory than can be addressed", what);
  if (request->is_probe) {
    const hs_status fits_limit = request->is_stream ? image_check_memory(request, bytes, what) : HS_OK;
    return fits_limit == HS_OK ? HS_ERR_CANCELLED : fits_limit;
  }
  const hs_status status = image_check_memory(request, need + working_bytes, what);
  if (status != HS_OK && request->need) *request->need = (image_need){width, height, need + working_bytes};
  if (status != HS_OK) return status;
  void *pixels = hs_memory_alloc(request->allocator, bytes);
  if (!pixels)
    return image_fail(request, HS_ERR_MEMORY, "out of memory for %ld x %ld pixels", (long)width, (long)height);
  *image = (hs_image){.data = pixels,
                      .width = width,
                      .height = height,
                      .stride_bytes = stride,
                      .type = type,
                      .layout = layout,
                      .memory = pixels,
                      .allocator = request->allocator};
  return HS_OK;
}

void hs_image_free(hs_image *image) {
  if (image) {
    hs_memory_release(image->allocator, image->memory);
    memset(image, 0, sizeof *image);
  }
}

/* ---- the bytes of a file */

byte_source byte_source_of(const image_request *request) {
  return (byte_source){.next = request->bytes, .left = request->size};
}

bool byte_source_fill(byte_source *s) {
  if (!s->stream || s->error != 0) return false;
  errno = 0;
  s->left = fread(s->buffer, 1, BYTE_SOURCE_READ, s->stream);
  s->next = s->buffer;
  if (s->left == 0 && ferror(s->stream)) s->error = errno != 0 ? errno : EIO;
  return s->left > 0;
}

/* ---- rows to gray or RGB by the integer formula of the public header, alpha dropped */

/* 2^15 times the Rec. 601 luma weights; they add up to 32768, so white stays white. */
enum { GRAY_RED = 9798, GRAY_GREEN = 19235, GRAY_BLUE = 3735, GRAY_HALF = 16384, GRAY_SHIFT = 15 };

/* 65535 * 32768 + 16384 is below 2^32: 32 bits hold the sum for 16-bit samples too. */
static uint32_t gray_of(uint32_t red, uint32_t green, uint32_t blue) {
  return (GRAY_RED * red + GRAY_GREEN * green + GRAY_BLUE * blue + GRAY_HALF) >> GRAY_SHIFT;
}

static void gray_convert_u8(const uint8_t *source, size_t channels, size_t count, uint8_t *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3);
    else if (channels >= 3)
      target[i] = (uint8_t)gray_of(source[0], source[1], source[2]);
    else
      target[i] = source[0];
}

static void gray_convert_u16(const uint16_t *source, size_t channels, size_t count, uint16_t *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3 * sizeof *source);
    else if (channels >= 3)
      target[i] = (uint16_t)gray_of(source[0], source[1], source[2]);
    else
      target[i] = source[0];
}

static void gray_convert_f32(const float *source, size_t channels, size_t count, float *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3 * sizeof *source);
    else if (channels >= 3)
      target[i] = (GRAY_RED * source[0] + GRAY_GREEN * source[1] + GRAY_BLUE * source[2]) / (1 << GRAY_SHIFT);
    else
      target[i] = source[0];
}

void gray_convert_row(const void *source, size_t source_channels, hs_sample_type type, size_t count, void *target,
                      hs_pixel_layout target_layout) {
  if (image_channels(target_layout) == source_channels)
    memcpy(target, source, count * source_channels * image_sample_bytes(type));
  else if (type == HS_U16)
    gray_convert_u16(source, source_channels, count, target, target_layout == HS_RGB);
  else if (type == HS_F32)
    gray_convert_f32(source, source_channels, count, target, target_layout == HS_RGB);
  else
    gray_convert_u8(source, source_channels, count, target, target_layout == HS_RGB);
}

/* ---- Value ranges: the sample values of black and white, which are given by the caller, declared by the file, or
   those of the type. Also the note that a picture uses too little of its range. */

/* Filters and resampling overshoot by up to this share of the range; if samples are farther outside, the range must be
   wrong. */
static const double range_overshoot = 0.5;
/* If a picture uses less than the first share of the range, or has less contrast than the second, the range may be
   wrong. */
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

/* Returns the smallest common range that holds the samples. If no common range fits, or the samples use little of it,
   returns the range of the samples itself. */
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

/* Checks how much of the range the samples use; not for 8-bit samples. */
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
  const double overshoot = range_overshoot * (range.high - range.low);
  const bool fits = extremes->low >= range.low - overshoot && extremes->high <= range.high + overshoot;
  if (!fits) return refuse_samples(request, extremes, range); /* true also for NaN */
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
  if (!wide.memory) return image_fail(request, HS_ERR_MEMORY, "out of memory for %zu bytes of floats", bytes);
  for (int32_t y = 0; y < image->height; y++)
    range_widen(row_of(image, y), count, image->type, (float *)(void *)row_of(&wide, y));
  hs_memory_release(image->allocator, image->memory);
  *image = wide;
  return HS_OK;
}

/* Stretches 16-bit samples: low to 0 and high to 65535, rounded to nearest. If samples are outside, the file is wrong,
   and the samples stay unchanged. */
static void stretch(const hs_image *image, uint32_t low, uint32_t high) {
  const uint32_t width = high - low;
  for (int32_t y = 0; y < image->height; y++) {
    uint16_t *row = (uint16_t *)(void *)row_of(image, y);
    for (size_t i = 0; i < samples_of_row(image); i++)
      row[i] = (uint16_t)((((uint32_t)row[i] - low) * (uint64_t)65535 + width / 2) / width);
  }
}

static hs_status apply_float_range(const image_request *request, hs_image *image) {
  const bool requested = image_has_range(request), declared = has_declared(request);
  if (!requested && !declared) return HS_OK;
  const hs_status status = make_floats(request, image);
  if (status != HS_OK) return status;
  image->range_low = requested ? request->range_low : (float)request->found->declared_low;
  image->range_high = requested ? request->range_high : (float)request->found->declared_high;
  return HS_OK;
}

hs_status image_apply_range(const image_request *request, hs_image *image) {
  sample_extremes extremes = {1.0, 0.0};
  const bool requested = image_has_range(request);
  if (image->type == HS_U8 && !requested) return HS_OK;
  for (int32_t y = 0; y < image->height; y++)
    extremes_add(&extremes, row_of(image, y), samples_of_row(image), image->type);
  const bool stretches = image->type == HS_U16 && !requested && has_declared(request) &&
                         extremes.low >= request->found->declared_low && extremes.high <= request->found->declared_high;
  if (stretches) {
    stretch(image, (uint32_t)request->found->declared_low, (uint32_t)request->found->declared_high);
    return HS_OK;
  }
  const hs_status status = range_check(request, &extremes, image->type);
  return status == HS_OK && (requested || image->type == HS_F32) ? apply_float_range(request, image) : status;
}

/* ---- Downscaling by exact area averaging, and conversion of features to pixels of the original. Let W be the width
   before and w the width after, and let lengths be measured in units of 1 / (W w) of the side. Then an original pixel
   has width w, and a pixel of the smaller picture has width W, so that all overlaps and weighted sums are integers. */

/* Sums of one row of the smaller picture, for each channel of each column. */
typedef struct shrink_sums {
  uint64_t *line, *total; /* sums of one original row, and of all original rows so far */
  size_t count;
} shrink_sums;

static uint32_t sample_of(const hs_image *image, const uint8_t *row, size_t i) {
  uint16_t wide;
  if (image->type == HS_U8) return row[i];
  memcpy(&wide, row + 2 * i, sizeof wide);
  return wide;
}

/* Sums one original row. Each sum is below 2^16 W, where W is the original width. */
static void sum_line(const hs_image *from, int32_t y, int32_t width, const shrink_sums *sums) {
  const uint8_t *row = (const uint8_t *)from->data + (size_t)y * from->stride_bytes;
  const size_t channels = image_channels(from->layout);
  const uint64_t before = (uint64_t)from->width, after = (uint64_t)width;
  memset(sums->line, 0, sums->count * sizeof *sums->line);
  uint64_t left = before; /* remaining weight of the current column, in units of 1 / w */
  size_t column = 0;
  for (size_t x = 0; x < before; x++) {
    /* a pixel overlaps at most two columns, because columns are at least as wide as pixels */
    const uint64_t inside = left < after ? left : after;
    for (size_t k = 0; k < channels; k++) {
      const uint64_t value = sample_of(from, row, x * channels + k);
      sums->line[column * channels + k] += inside * value;
      if (inside < after) sums->line[(column + 1) * channels + k] += (after - inside) * value;
    }
    left -= inside;
    if (left > 0) continue;
    column++;
    left = before - (after - inside);
  }
}

/* Writes the means, rounded to nearest, halves up. */
static void put_row(const shrink_sums *sums, uint64_t weight, const hs_image *to, int32_t y) {
  uint8_t *row = (uint8_t *)(uintptr_t)to->data + (size_t)y * to->stride_bytes;
  for (size_t i = 0; i < sums->count; i++) {
    const uint64_t mean = (sums->total[i] + weight / 2) / weight;
    const uint16_t wide = (uint16_t)mean;
    if (to->type == HS_U8)
      row[i] = (uint8_t)mean;
    else
      memcpy(row + 2 * i, &wide, sizeof wide);
  }
}

static void add_line(const shrink_sums *sums, uint64_t times) {
  for (size_t i = 0; i < sums->count; i++) sums->total[i] += times * sums->line[i];
}

/* Averages the picture. Totals are below 2^16 W H, which image_shrink has checked for overflow. */
static void average(const hs_image *from, const hs_image *to, const shrink_sums *sums) {
  const uint64_t before = (uint64_t)from->height, after = (uint64_t)to->height;
  const uint64_t weight = (uint64_t)from->width * before;
  uint64_t left = before;
  int32_t row = 0;
  memset(sums->total, 0, sums->count * sizeof *sums->total);
  for (int32_t y = 0; y < from->height; y++) {
    const uint64_t inside = left < after ? left : after;
    sum_line(from, y, to->width, sums);
    add_line(sums, inside);
    left -= inside;
    if (left > 0) continue;
    put_row(sums, weight, to, row++);
    memset(sums->total, 0, sums->count * sizeof *sums->total);
    add_line(sums, after - inside);
    left = before - (after - inside);
  }
}

/* Returns the smaller side after downscaling: rounded down as in COLMAP, at least 1. */
static int32_t shrunk_side(int32_t side, int32_t largest, int32_t wanted) {
  const int32_t shrunk = (int32_t)((int64_t)side * wanted / largest);
  return shrunk < 1 ? 1 : shrunk;
}

hs_status image_shrink(const image_request *request, int32_t largest_wanted, hs_image *image) {
  const int32_t largest = image->width > image->height ? image->width : image->height;
  if (largest_wanted == 0 || largest <= largest_wanted) return HS_OK;
  if (image->type == HS_F32)
    return image_fail(request, HS_ERR_UNSUPPORTED, "pictures of floats or signed samples cannot be reduced exactly");
  const int32_t width = shrunk_side(image->width, largest, largest_wanted);
  const int32_t height = shrunk_side(image->height, largest, largest_wanted);
  if ((uint64_t)image->width * (uint64_t)image->height >= (uint64_t)1 << 47)
    return image_fail(request, HS_ERR_LIMIT, "the picture is too large to be reduced");
  hs_image small;
  shrink_sums sums = {.count = (size_t)width * image_channels(image->layout)};
  const uint64_t working = (uint64_t)image->stride_bytes * (uint64_t)image->height + 2 * sizeof(uint64_t) * sums.count;
  hs_status status = image_allocate(request, width, height, image->type, image->layout, working, &small);
  if (status != HS_OK) return status;
  uint64_t *memory = hs_memory_alloc(request->allocator, 2 * sizeof *memory * sums.count);
  if (!memory) {
    hs_image_free(&small);
    return image_fail(request, HS_ERR_MEMORY, "out of memory for rows of sums");
  }
  sums.line = memory;
  sums.total = memory + sums.count;
  average(image, &small, &sums);
  hs_memory_release(request->allocator, memory);
  small.exif_orientation = image->exif_orientation;
  small.original_width = image->width;
  small.original_height = image->height;
  hs_image_free(image);
  *image = small;
  return HS_OK;
}

void mask_shrink(const hs_image *mask, const hs_image *picture, uint8_t *pixels) {
  const size_t width = (size_t)picture->width, height = (size_t)picture->height;
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : (size_t)mask->width;
  for (size_t y = 0; y < height; y++) {
    const uint8_t *row = (const uint8_t *)mask->data + (2 * y + 1) * (size_t)mask->height / (2 * height) * stride;
    for (size_t x = 0; x < width; x++) pixels[y * width + x] = row[(2 * x + 1) * (size_t)mask->width / (2 * width)];
  }
}

/* Converts a coordinate to the original, where pixels are `scale` original pixels wide; pixel centres are integers. */
static float original_position(float position, double scale) { return (float)(((double)position + 0.5) * scale - 0.5); }

static void stretch_frame(hs_frame *f, double x_scale, double y_scale) {
  f->a11 = (float)((double)f->a11 * x_scale);
  f->a12 = (float)((double)f->a12 * x_scale);
  f->a21 = (float)((double)f->a21 * y_scale);
  f->a22 = (float)((double)f->a22 * y_scale);
}

hs_status hs_features_to_original(hs_features *features, const hs_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!features || !image || (features->count > 0 && !features->keypoints)) return HS_ERR_ARGUMENT;
  if (image->original_width == 0 && image->original_height == 0) return HS_OK;
  if (image->original_width < 1 || image->original_height < 1 || features->image_width != image->width ||
      features->image_height != image->height)
    return HS_ERR_ARGUMENT;
  const double x_scale = (double)image->original_width / (double)image->width;
  const double y_scale = (double)image->original_height / (double)image->height;
  const double scale = sqrt(x_scale * y_scale);
  for (size_t i = 0; i < features->count; i++) {
    hs_keypoint *k = &features->keypoints[i];
    k->x = original_position(k->x, x_scale);
    k->y = original_position(k->y, y_scale);
    k->sigma = (float)((double)k->sigma * scale);
    if (features->frames) stretch_frame(&features->frames[i], x_scale, y_scale);
  }
  features->image_width = image->original_width;
  features->image_height = image->original_height;
  return HS_OK;
}
