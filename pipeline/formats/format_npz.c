/*
 * NumPy's .npz: keypoints float32 [N,4], descriptors uint8 or float32 [N,128], responses float32 [N],
 * octaves and levels int8 [N], image_size int32 [2] (width, height), method_version int32, origin int32 [4],
 * convention.
 */
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/npy_array.h"
#include "pipeline/formats/common/zip_archive.h"

/* Text about coordinates and angles, for readers of the arrays. */
static const char npz_convention[] =
    "keypoints: x, y (top-left pixel centre at 0,0), sigma, orientation (radians, clockwise on the screen, 0 to 2 pi); "
    "descriptors: UBC bin order";

/* Buffer for headers, bytes. */
enum { NPZ_HEADER_MAX = 1 << 14 };

/* ------------------------------------------------------------------ writing */

static void npz_put_keypoints(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  npy_put_header(sink, "<f4", 2, features->count, 4);
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *keypoint = &features->keypoints[i];
    uint8_t *row = sink_reserve(sink, 16);
    bytes_put_f32(row, keypoint->x);
    bytes_put_f32(row + 4, keypoint->y);
    bytes_put_f32(row + 8, keypoint->sigma);
    bytes_put_f32(row + 12, angle_wrap((double)keypoint->orientation));
  }
}

static void npz_put_descriptors(feature_sink *sink, const void *user) {
  const feature_target *target = user;
  const hs_features *features = target->features;
  const char *descr = features->descriptor_type == HS_DESCRIPTOR_F32 ? "<f4" : "|u1";
  const descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  npy_put_header(sink, descr, 2, features->count, HS_DESCRIPTOR_LENGTH);
  descriptors_put_bytes(&codec, sink);
}

static void npz_put_frames(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  npy_put_header(sink, "<f4", 2, features->count, 4);
  for (size_t i = 0; i < features->count; i++) {
    const hs_frame *frame = &features->frames[i];
    uint8_t *row = sink_reserve(sink, 16);
    bytes_put_f32(row, frame->a11);
    bytes_put_f32(row + 4, frame->a12);
    bytes_put_f32(row + 8, frame->a21);
    bytes_put_f32(row + 12, frame->a22);
  }
}

static void npz_put_responses(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  npy_put_header(sink, "<f4", 1, features->count, 0);
  for (size_t i = 0; i < features->count; i++) bytes_put_f32(sink_reserve(sink, 4), features->keypoints[i].response);
}

static void npz_put_octaves(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  npy_put_header(sink, "|i1", 1, features->count, 0);
  for (size_t i = 0; i < features->count; i++) *sink_reserve(sink, 1) = (uint8_t)features->keypoints[i].octave;
}

static void npz_put_levels(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  npy_put_header(sink, "|i1", 1, features->count, 0);
  for (size_t i = 0; i < features->count; i++) *sink_reserve(sink, 1) = (uint8_t)features->keypoints[i].level;
}

static void npz_put_image_size(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  uint8_t items[8];
  bytes_put_u32(items, (uint32_t)features->image_width);
  bytes_put_u32(items + 4, (uint32_t)features->image_height);
  npy_put_header(sink, "<i4", 1, 2, 0);
  sink_bytes(sink, items, sizeof items);
}

static void npz_put_method_version(feature_sink *sink, const void *user) {
  const hs_features *features = ((const feature_target *)user)->features;
  uint8_t item[4];
  bytes_put_u32(item, (uint32_t)features->origin.method_version);
  npy_put_header(sink, "<i4", 0, 0, 0);
  sink_bytes(sink, item, sizeof item);
}

static void npz_put_origin(feature_sink *sink, const void *user) {
  const hs_origin *origin = &((const feature_target *)user)->features->origin;
  uint8_t items[16];
  bytes_put_u32(items, (uint32_t)origin->method_version);
  bytes_put_u32(items + 4, (uint32_t)origin->profile);
  bytes_put_u32(items + 8, (uint32_t)origin_norm_number(origin));
  bytes_put_u32(items + 12, (uint32_t)origin->exif_orientation);
  npy_put_header(sink, "<i4", 1, 4, 0);
  sink_bytes(sink, items, sizeof items);
}

/* Writes the text. NumPy stores it as an array without dimensions, in UTF-32. */
static void npz_put_convention(feature_sink *sink, const void *user) {
  (void)user;
  size_t length = sizeof npz_convention - 1;
  char descr[16];
  (void)snprintf(descr, sizeof descr, "<U%zu", length);
  npy_put_header(sink, descr, 0, 0, 0);
  for (size_t i = 0; i < length; i++) {
    uint8_t item[4];
    bytes_put_u32(item, (uint32_t)npz_convention[i]);
    sink_bytes(sink, item, sizeof item);
  }
}

static hs_status npz_check_ranges(const feature_target *target) {
  for (size_t i = 0; i < target->features->count; i++) {
    const hs_keypoint *keypoint = &target->features->keypoints[i];
    if (keypoint->octave < INT8_MIN || keypoint->octave > INT8_MAX || keypoint->level > INT8_MAX)
      return target_fail(target, HS_ERR_UNSUPPORTED, "keypoint %zu: octave or level do not fit 8 bits", i);
  }
  return HS_OK;
}

static hs_status npz_write(const feature_target *target) {
  static const struct {
    const char *name;
    zip_produce produce;
  } entries[] = {{"keypoints.npy", npz_put_keypoints},
                 {"descriptors.npy", npz_put_descriptors},
                 {"responses.npy", npz_put_responses},
                 {"octaves.npy", npz_put_octaves},
                 {"levels.npy", npz_put_levels},
                 {"image_size.npy", npz_put_image_size},
                 {"method_version.npy", npz_put_method_version},
                 {"origin.npy", npz_put_origin},
                 {"frames.npy", npz_put_frames},
                 {"convention.npy", npz_put_convention}};
  hs_status status = npz_check_ranges(target);
  if (status != HS_OK) return status;
  zip_writer writer;
  zip_write_begin(&writer, target->stream, target->written);
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    if (entries[i].produce == npz_put_descriptors && target->features->descriptor_type == HS_DESCRIPTOR_NONE) continue;
    if (entries[i].produce == npz_put_frames && !target->features->frames) continue;
    if (!zip_write_entry(&writer, entries[i].name, entries[i].produce, target))
      return target_fail(target, HS_ERR_UNSUPPORTED, "an .npz file of more than 4 GiB is not written");
  }
  zip_write_end(&writer);
  return HS_OK;
}

/* ------------------------------------------------------------------ reading */

enum {
  NPZ_KEYPOINTS,
  NPZ_DESCRIPTORS,
  NPZ_RESPONSES,
  NPZ_OCTAVES,
  NPZ_LEVELS,
  NPZ_IMAGE_SIZE,
  NPZ_ORIGIN,
  NPZ_FRAMES,
  NPZ_ARRAYS
};

/* The arrays of the archive; an array that does not exist has size 0. */
typedef struct npz_arrays {
  uint64_t sizes[NPZ_ARRAYS];
  zip_entry entries[NPZ_ARRAYS];
  npy_array arrays[NPZ_ARRAYS];
} npz_arrays;

static const char *const npz_names[NPZ_ARRAYS] = {"keypoints.npy", "descriptors.npy", "responses.npy", "octaves.npy",
                                                  "levels.npy",    "image_size.npy",  "origin.npy",    "frames.npy"};

static bool npz_has(const npz_arrays *all, int which) { return all->sizes[which] > 0; }

/* Reads the headers: which arrays exist, with shape and type. */
static hs_status npz_open(const feature_source *source, npz_arrays *all) {
  uint8_t beginning[NPZ_HEADER_MAX];
  for (int i = 0; i < NPZ_ARRAYS; i++) {
    size_t held = 0, data_at = 0;
    hs_status status = zip_read_beginning(source, npz_names[i], beginning, sizeof beginning, &held, &all->sizes[i]);
    if (status != HS_OK) return status;
    if (!npz_has(all, i)) continue;
    const char *fault = npy_parse_header(beginning, held, all->sizes[i], &all->arrays[i], &data_at);
    if (fault) return source_fail(source, HS_ERR_FORMAT, "%s: %s", npz_names[i], fault);
    if (!npy_is_numeric(&all->arrays[i]))
      return source_fail(source, HS_ERR_FORMAT, "%s holds no numbers", npz_names[i]);
  }
  return HS_OK;
}

/* Checks the memory that reading needs in addition to the list: compressed arrays are inflated, others are used in
 * place. */
static hs_status npz_check_memory(const feature_source *source, const npz_arrays *all, hs_descriptor_type type) {
  const uint64_t entry_bytes = type == HS_DESCRIPTOR_F32 ? sizeof(float) : type == HS_DESCRIPTOR_U8 ? 1 : 0;
  uint64_t bytes = all->arrays[NPZ_KEYPOINTS].shape[0] * (sizeof(hs_keypoint) + HS_DESCRIPTOR_LENGTH * entry_bytes);
  if (npz_has(all, NPZ_FRAMES)) bytes += all->arrays[NPZ_FRAMES].shape[0] * sizeof(hs_frame);
  for (int i = 0; i < NPZ_ARRAYS; i++) bytes += all->sizes[i];
  return source_check_memory(source, bytes);
}

/* Reads the items after all headers were checked. */
static hs_status npz_read_items(const feature_source *source, npz_arrays *all) {
  for (int i = 0; i < NPZ_ARRAYS; i++) {
    if (!npz_has(all, i)) continue;
    hs_status status = zip_read_entry(source, npz_names[i], all->sizes[i], &all->entries[i]);
    if (status != HS_OK) return status;
    const char *fault = npy_parse(all->entries[i].bytes, all->entries[i].size, &all->arrays[i]);
    if (fault) return source_fail(source, HS_ERR_FORMAT, "%s: %s", npz_names[i], fault);
  }
  return HS_OK;
}

/* Checks that the arrays' lengths agree, and finds the type of the descriptors. */
static hs_status npz_check(const feature_source *source, const npz_arrays *all, hs_descriptor_type *type) {
  const npy_array *keypoints = &all->arrays[NPZ_KEYPOINTS];
  const npy_array *descriptors = &all->arrays[NPZ_DESCRIPTORS];
  if (!npz_has(all, NPZ_KEYPOINTS)) return source_fail(source, HS_ERR_FORMAT, "there is no array keypoints");
  if (keypoints->rank != 2 || keypoints->shape[1] != 4)
    return source_fail(source, HS_ERR_FORMAT, "keypoints is not of shape [N,4]");
  *type = HS_DESCRIPTOR_NONE;
  if (npz_has(all, NPZ_DESCRIPTORS)) {
    if (descriptors->rank != 2 || descriptors->shape[0] != keypoints->shape[0] ||
        descriptors->shape[1] != HS_DESCRIPTOR_LENGTH)
      return source_fail(source, HS_ERR_FORMAT, "descriptors is not of shape [N,128] with the N of keypoints");
    bool bytes = descriptors->kind == 'u' && descriptors->item_bytes == 1;
    if (!bytes && descriptors->kind != 'f')
      return source_fail(source, HS_ERR_FORMAT, "descriptors is neither of type uint8 nor float");
    *type = bytes ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_F32;
  }
  for (int i = NPZ_RESPONSES; i <= NPZ_LEVELS; i++) {
    const npy_array *array = &all->arrays[i];
    if (npz_has(all, i) && (array->shape[0] != keypoints->shape[0] || array->shape[1] != 1 || array->rank == 0))
      return source_fail(source, HS_ERR_FORMAT, "%s has another length than keypoints", npz_names[i]);
  }
  const npy_array *frames = &all->arrays[NPZ_FRAMES];
  if (npz_has(all, NPZ_FRAMES) &&
      (frames->rank != 2 || frames->shape[0] != keypoints->shape[0] || frames->shape[1] != 4 || frames->kind != 'f'))
    return source_fail(source, HS_ERR_FORMAT, "frames is not of type float and shape [N,4] with the N of keypoints");
  const npy_array *size = &all->arrays[NPZ_IMAGE_SIZE];
  if (npz_has(all, NPZ_IMAGE_SIZE) && (size->rank != 1 || size->shape[0] != 2 || size->kind == 'f'))
    return source_fail(source, HS_ERR_FORMAT, "image_size is not two integers");
  const npy_array *origin = &all->arrays[NPZ_ORIGIN];
  if (npz_has(all, NPZ_ORIGIN) &&
      (origin->rank != 1 || origin->shape[0] != 4 || origin->kind != 'i' || origin->item_bytes > 4))
    return source_fail(source, HS_ERR_FORMAT, "origin is not four integers");
  return HS_OK;
}

static double npz_column(const npz_arrays *all, int which, size_t row) {
  return npz_has(all, which) ? npy_value(&all->arrays[which], row, 0) : 0.0;
}

/* Fills a frame. Returns null, or the reason why it is invalid. */
static const char *npz_fill_frame(const npy_array *frames, size_t row, hs_frame *frame) {
  double values[4];
  for (size_t k = 0; k < 4; k++) values[k] = npy_value(frames, row, k);
  return frame_fill(frame, values);
}

static hs_status npz_fill(const feature_source *source, const npz_arrays *all, hs_features *features) {
  const npy_array *keypoints = &all->arrays[NPZ_KEYPOINTS];
  size_t count = (size_t)keypoints->shape[0];
  for (size_t i = 0; i < count; i++) {
    hs_keypoint *keypoint = &features->keypoints[i];
    const char *fault = keypoint_fill(keypoint, npy_value(keypoints, i, 0), npy_value(keypoints, i, 1),
                                      npy_value(keypoints, i, 2), npy_value(keypoints, i, 3));
    if (!fault) {
      fault = keypoint_fill_origin(keypoint, npz_column(all, NPZ_RESPONSES, i), npz_column(all, NPZ_OCTAVES, i),
                                   npz_column(all, NPZ_LEVELS, i));
    }
    if (!fault && features->frames) fault = npz_fill_frame(&all->arrays[NPZ_FRAMES], i, &features->frames[i]);
    for (size_t k = 0; !fault && npz_has(all, NPZ_DESCRIPTORS) && k < HS_DESCRIPTOR_LENGTH; k++) {
      double value = npy_value(&all->arrays[NPZ_DESCRIPTORS], i, k);
      fault = descriptor_store(features, i * HS_DESCRIPTOR_LENGTH + k, value);
    }
    if (fault) return source_fail(source, HS_ERR_FORMAT, "feature %zu: %s", i, fault);
  }
  if (npz_has(all, NPZ_IMAGE_SIZE)) {
    double width = npy_value(&all->arrays[NPZ_IMAGE_SIZE], 0, 0);
    double height = npy_value(&all->arrays[NPZ_IMAGE_SIZE], 1, 0);
    if (!(width >= 0.0 && width <= (double)INT32_MAX && height >= 0.0 && height <= (double)INT32_MAX))
      return source_fail(source, HS_ERR_FORMAT, "image_size is out of range");
    features->image_width = (int32_t)width;
    features->image_height = (int32_t)height;
  }
  if (npz_has(all, NPZ_ORIGIN)) {
    const npy_array *origin = &all->arrays[NPZ_ORIGIN];
    features->origin = origin_of_file((int64_t)npy_value(origin, 0, 0), (int64_t)npy_value(origin, 1, 0),
                                      (int64_t)npy_value(origin, 2, 0), (int64_t)npy_value(origin, 3, 0));
  }
  features->count = count;
  return HS_OK;
}

static hs_status npz_read(const feature_source *source, hs_features *features) {
  npz_arrays all = {0};
  hs_descriptor_type type = HS_DESCRIPTOR_NONE;
  hs_status status = npz_open(source, &all);
  if (status == HS_OK) status = npz_check(source, &all, &type);
  if (status == HS_OK)
    status = (npz_has(&all, NPZ_FRAMES) ? source_reserve_framed
                                        : source_reserve)(source, features, all.arrays[NPZ_KEYPOINTS].shape[0], type);
  if (status == HS_OK) status = npz_check_memory(source, &all, type);
  if (status == HS_OK) status = npz_read_items(source, &all);
  if (status == HS_OK) status = npz_fill(source, &all, features);
  for (int i = 0; i < NPZ_ARRAYS; i++) zip_release_entry(source, &all.entries[i]);
  return status;
}

/* True if bytes begin with the first record of an archive, or with the end record of an empty one. */
static bool npz_probe(const uint8_t *bytes, size_t size) {
  return size >= 4 && (memcmp(bytes, "PK\x03\x04", 4) == 0 || memcmp(bytes, "PK\x05\x06", 4) == 0);
}

const feature_format format_npz = {.id = HS_FORMAT_NPZ,
                                   .name = "npz",
                                   .summary = "NumPy arrays",
                                   .endings = {".npz"},
                                   .without_descriptors = true,
                                   .write = npz_write,
                                   .read = npz_read,
                                   .probe = npz_probe};
