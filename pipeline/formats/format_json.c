/*
 * JSON: one object with the image size, the descriptor type and "features", an array of objects with x, y, sigma,
 * orientation, response, octave, level and, if the list has them, frame and descriptor. Nothing is rounded.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/json_text.h"

enum { JSON_FIELDS = 7, JSON_FIELDS_NEEDED = 4, JSON_VERSION = 1 };
/* Minimum bytes of a feature, {"x":0,"y":0,"sigma":1,"orientation":0}, and of a descriptor (two characters per
   entry). */
enum { JSON_FEATURE_MIN_BYTES = 39, JSON_DESCRIPTOR_MIN_BYTES = 2 * HS_DESCRIPTOR_LENGTH };
/* Minimum bytes of a frame: ,"frame":[1,0,0,1] */
enum { JSON_FRAME_MIN_BYTES = 18, JSON_FRAME_ENTRIES = 4 };

static const char json_format_name[] = "hartsift-features";
static const char *const json_fields[JSON_FIELDS] = {"x", "y", "sigma", "orientation", "response", "octave", "level"};
static const char *const json_types[] = {"u8", "f32", "none"};

static void json_write_frame(feature_sink *sink, const hs_frame *frame) {
  const float entries[JSON_FRAME_ENTRIES] = {frame->a11, frame->a12, frame->a21, frame->a22};
  sink_text(sink, ", \"frame\": [");
  for (size_t k = 0; k < JSON_FRAME_ENTRIES; k++) {
    if (k > 0) sink_text(sink, ", ");
    sink_float(sink, entries[k]);
  }
  sink_text(sink, "]");
}

static void json_write_feature(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  const hs_keypoint *keypoint = &codec->features->keypoints[index];
  const float numbers[5] = {keypoint->x, keypoint->y, keypoint->sigma, angle_wrap((double)keypoint->orientation),
                            keypoint->response};
  for (size_t k = 0; k < 5; k++) {
    sink_text(sink, k == 0 ? "{\"" : ", \"");
    sink_text(sink, json_fields[k]);
    sink_text(sink, "\": ");
    sink_float(sink, numbers[k]);
  }
  sink_text(sink, ", \"octave\": ");
  sink_int(sink, keypoint->octave);
  sink_text(sink, ", \"level\": ");
  sink_int(sink, keypoint->level);
  if (codec->features->frames) json_write_frame(sink, &codec->features->frames[index]);
  if (codec->features->descriptor_type != HS_DESCRIPTOR_NONE) {
    sink_text(sink, ", \"descriptor\": [");
    descriptor_put_text(codec, index, ", ", sink);
    sink_text(sink, "]");
  }
  sink_text(sink, "}");
}

static void json_write_head(feature_sink *sink, const feature_target *target) {
  const hs_features *features = target->features;
  const hs_origin *origin = &features->origin;
  sink_text(sink, "{\n\"format\": \"");
  sink_text(sink, json_format_name);
  sink_text(sink, "\",\n\"version\": ");
  sink_int(sink, JSON_VERSION);
  sink_text(sink, ",\n\"method_version\": ");
  sink_int(sink, origin->method_version);
  sink_text(sink, ",\n\"profile\": ");
  json_put_string(sink, origin->method_version > 0 ? origin_profile_name(origin->profile) : NULL);
  sink_text(sink, ",\n\"norm\": ");
  json_put_string(sink, origin->method_version > 0 ? origin_norm_name(origin) : NULL);
  sink_text(sink, ",\n\"exif_orientation\": ");
  sink_int(sink, origin->exif_orientation);
  sink_text(sink, ",\n\"image_name\": ");
  json_put_string(sink, target->image_name);
  sink_text(sink, ",\n\"image_width\": ");
  sink_int(sink, features->image_width);
  sink_text(sink, ",\n\"image_height\": ");
  sink_int(sink, features->image_height);
  sink_text(sink, ",\n\"descriptor_type\": \"");
  sink_text(sink, json_types[features->descriptor_type]);
  sink_text(sink, features->frames ? "\",\n\"frames\": true" : "\"");
  sink_text(sink, ",\n\"count\": ");
  sink_int(sink, (int64_t)features->count);
  sink_text(sink, ",\n\"features\": [");
}

static hs_status json_write(const feature_target *target) {
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  json_write_head(&sink, target);
  descriptor_codec codec = descriptor_codec_make(target->features, target->layout, HS_LAYOUT_UBC);
  for (size_t i = 0; i < target->features->count; i++) {
    sink_text(&sink, i == 0 ? "\n" : ",\n");
    json_write_feature(&sink, &codec, i);
  }
  sink_text(&sink, "\n]\n}\n");
  sink_flush(&sink);
  return HS_OK;
}

/* Members of the outer object. The features are only counted; their position is stored for a second pass. */
typedef struct json_head {
  double version, count, width, height, method_version, exif_orientation;
  int32_t profile, norm; /* profile and norm of the header; -1: unknown */
  hs_descriptor_type type;
  bool typed, framed, is_storage; /* is_storage: the file is a FileStorage of OpenCV */
  text_cursor features;           /* features.at null: the member does not exist */
  uint64_t elements;
} json_head;

static hs_status json_count_features(text_cursor *cursor, json_head *head) {
  if (head->features.at) return cursor_fail(cursor, "features is given twice");
  head->features = *cursor;
  bool first = true;
  bool more = true;
  while (more) {
    hs_status status = json_next_element(cursor, &first, &more);
    if (status == HS_OK && more) status = json_skip(cursor);
    if (status != HS_OK) return status;
    if (more) head->elements++;
  }
  return HS_OK;
}

static hs_status json_read_type(text_cursor *cursor, json_head *head) {
  json_text text;
  hs_status status = json_string(cursor, &text);
  if (status != HS_OK) return status;
  for (size_t i = 0; i < sizeof json_types / sizeof json_types[0]; i++) {
    if (!json_text_is(text, json_types[i])) continue;
    head->type = (hs_descriptor_type)i;
    head->typed = true;
    return HS_OK;
  }
  return cursor_fail(cursor, "descriptor_type is none of u8, f32 and none");
}

/* Reads whether features have frames: true means yes, every other value no. */
static hs_status json_read_framed(text_cursor *cursor, json_head *head) {
  static const char yes[] = "true";
  const size_t length = sizeof yes - 1;
  cursor_skip_blanks(cursor, true);
  head->framed = (size_t)(cursor->end - cursor->at) >= length && memcmp(cursor->at, yes, length) == 0;
  return json_skip(cursor);
}

/* Reads a name; value -1 for null, and for names of later versions. */
static hs_status json_read_name(text_cursor *cursor, int32_t (*value_of)(const char *, size_t), int32_t *value) {
  json_text text;
  cursor_skip_blanks(cursor, true);
  if (cursor->at == cursor->end || *cursor->at != '"') return json_skip(cursor);
  hs_status status = json_string(cursor, &text);
  if (status == HS_OK) *value = value_of(text.start, text.size);
  return status;
}

static hs_status json_read_format(text_cursor *cursor) {
  json_text text;
  hs_status status = json_string(cursor, &text);
  if (status == HS_OK && !json_text_is(text, json_format_name))
    return cursor_fail(cursor, "the format is not %s", json_format_name);
  return status;
}

static hs_status json_read_member(text_cursor *cursor, json_text name, json_head *head) {
  if (json_text_is(name, "features")) return json_count_features(cursor, head);
  if (json_text_is(name, "descriptor_type")) return json_read_type(cursor, head);
  if (json_text_is(name, "frames")) return json_read_framed(cursor, head);
  if (json_text_is(name, "format")) return json_read_format(cursor);
  if (json_text_is(name, "version")) return json_number(cursor, &head->version);
  if (json_text_is(name, "count")) return json_number(cursor, &head->count);
  if (json_text_is(name, "method_version")) return json_number(cursor, &head->method_version);
  if (json_text_is(name, "profile")) return json_read_name(cursor, origin_profile_of_name, &head->profile);
  if (json_text_is(name, "norm")) return json_read_name(cursor, origin_norm_of_name, &head->norm);
  if (json_text_is(name, "exif_orientation")) return json_number(cursor, &head->exif_orientation);
  if (json_text_is(name, "image_width")) return json_number(cursor, &head->width);
  if (json_text_is(name, "image_height")) return json_number(cursor, &head->height);
  if (json_text_is(name, "keypoints")) head->is_storage = true;
  return json_skip(cursor);
}

static bool json_is_size(double value) { return value >= 0.0 && value <= (double)INT32_MAX && value == floor(value); }

static hs_status json_read_head(text_cursor *cursor, json_head *head) {
  *head = (json_head){.version = JSON_VERSION, .count = -1.0, .profile = -1, .norm = -1, .type = HS_DESCRIPTOR_NONE};
  bool first = true;
  bool more = true;
  while (more) {
    json_text name;
    hs_status status = json_next_member(cursor, &first, &more, &name);
    if (status == HS_OK && more) status = json_read_member(cursor, name, head);
    if (status != HS_OK) return status;
  }
  if (!cursor_at_end(cursor)) return cursor_fail(cursor, "something follows the closing bracket");
  if (!head->features.at && head->is_storage)
    return cursor_fail(cursor, "OpenCV's storages in JSON are not read, only YAML is");
  if (!head->features.at) return cursor_fail(cursor, "there is no \"features\"");
  if (!head->typed) return cursor_fail(cursor, "there is no \"descriptor_type\"");
  if (head->version != JSON_VERSION) {
    (void)cursor_fail(cursor, "this version of the format is unknown");
    return HS_ERR_UNSUPPORTED;
  }
  if (head->count >= 0.0 && head->count != (double)head->elements)
    return cursor_fail(cursor, "count does not agree with the number of features");
  if (!json_is_size(head->width) || !json_is_size(head->height))
    return cursor_fail(cursor, "the image size is out of range");
  if (!json_is_size(head->method_version) || !json_is_size(head->exif_orientation))
    return cursor_fail(cursor, "method_version or exif_orientation is out of range");
  return HS_OK;
}

static hs_status json_read_descriptor(text_cursor *cursor, hs_features *features, size_t index) {
  bool first = true;
  bool more = true;
  size_t entry = 0;
  if (features->descriptor_type == HS_DESCRIPTOR_NONE)
    return cursor_fail(cursor, "a descriptor where the type is none");
  for (;;) {
    double value;
    hs_status status = json_next_element(cursor, &first, &more);
    if (status != HS_OK) return status;
    if (!more) break;
    if (entry == HS_DESCRIPTOR_LENGTH) return cursor_fail(cursor, "a descriptor has more than 128 entries");
    status = json_number(cursor, &value);
    if (status != HS_OK) return status;
    const char *fault = descriptor_store(features, index * HS_DESCRIPTOR_LENGTH + entry++, value);
    if (fault) return cursor_fail(cursor, "%s", fault);
  }
  return entry == HS_DESCRIPTOR_LENGTH ? HS_OK : cursor_fail(cursor, "a descriptor has fewer than 128 entries");
}

static hs_status json_read_frame(text_cursor *cursor, hs_features *features, size_t index) {
  double values[JSON_FRAME_ENTRIES];
  bool first = true;
  bool more = true;
  for (size_t entry = 0;; entry++) {
    hs_status status = json_next_element(cursor, &first, &more);
    if (status == HS_OK && more != (entry < JSON_FRAME_ENTRIES))
      return cursor_fail(cursor, "a frame does not have four entries");
    if (status == HS_OK && more) status = json_number(cursor, &values[entry]);
    if (status != HS_OK) return status;
    if (!more) break;
  }
  const char *fault = frame_fill(&features->frames[index], values);
  return fault ? cursor_fail(cursor, "%s", fault) : HS_OK;
}

/* Reads one member of a feature. seen: a bit for each number, one for the descriptor and one for the frame. */
static hs_status json_read_value(text_cursor *cursor, json_text name, double numbers[JSON_FIELDS], unsigned *seen,
                                 hs_features *features, size_t index) {
  for (unsigned k = 0; k < JSON_FIELDS; k++) {
    if (!json_text_is(name, json_fields[k])) continue;
    if ((*seen & (1u << k)) != 0) return cursor_fail(cursor, "%s is given twice", json_fields[k]);
    *seen |= 1u << k;
    return json_number(cursor, &numbers[k]);
  }
  if (features->frames && json_text_is(name, "frame")) {
    if ((*seen & (2u << JSON_FIELDS)) != 0) return cursor_fail(cursor, "frame is given twice");
    *seen |= 2u << JSON_FIELDS;
    return json_read_frame(cursor, features, index);
  }
  if (!json_text_is(name, "descriptor")) return json_skip(cursor);
  if ((*seen & (1u << JSON_FIELDS)) != 0) return cursor_fail(cursor, "descriptor is given twice");
  *seen |= 1u << JSON_FIELDS;
  return json_read_descriptor(cursor, features, index);
}

static hs_status json_read_feature(text_cursor *cursor, hs_features *features, size_t index) {
  double numbers[JSON_FIELDS] = {0};
  unsigned seen = 0;
  bool first = true;
  bool more = true;
  while (more) {
    json_text name;
    hs_status status = json_next_member(cursor, &first, &more, &name);
    if (status == HS_OK && more) status = json_read_value(cursor, name, numbers, &seen, features, index);
    if (status != HS_OK) return status;
  }
  for (unsigned k = 0; k < JSON_FIELDS_NEEDED; k++)
    if ((seen & (1u << k)) == 0) return cursor_fail(cursor, "a feature has no %s", json_fields[k]);
  if (features->descriptor_type != HS_DESCRIPTOR_NONE && (seen & (1u << JSON_FIELDS)) == 0)
    return cursor_fail(cursor, "a feature has no descriptor");
  if (features->frames && (seen & (2u << JSON_FIELDS)) == 0) return cursor_fail(cursor, "a feature has no frame");
  hs_keypoint *keypoint = &features->keypoints[index];
  const char *fault = keypoint_fill(keypoint, numbers[0], numbers[1], numbers[2], numbers[3]);
  if (!fault) fault = keypoint_fill_origin(keypoint, numbers[4], numbers[5], numbers[6]);
  return fault ? cursor_fail(cursor, "%s", fault) : HS_OK;
}

static hs_status json_read(const feature_source *source, hs_features *features) {
  text_cursor cursor = cursor_make(source);
  json_head head = {0};
  hs_status status = json_read_head(&cursor, &head);
  if (status != HS_OK) return status;
  uint64_t least = JSON_FEATURE_MIN_BYTES;
  if (head.type != HS_DESCRIPTOR_NONE) least += JSON_DESCRIPTOR_MIN_BYTES;
  if (head.framed) least += JSON_FRAME_MIN_BYTES;
  cursor = head.features;
  if (head.elements > source->size / least) return cursor_fail(&cursor, "the entries are too short for features");
  status = (head.framed ? source_reserve_framed : source_reserve)(source, features, head.elements, head.type);
  bool first = true;
  bool more = true;
  for (size_t i = 0; status == HS_OK && i < (size_t)head.elements; i++) {
    status = json_next_element(&cursor, &first, &more);
    if (status == HS_OK) status = json_read_feature(&cursor, features, i);
  }
  if (status != HS_OK) return status;
  features->count = (size_t)head.elements;
  features->image_width = (int32_t)head.width;
  features->image_height = (int32_t)head.height;
  features->origin =
      origin_of_file((int64_t)head.method_version, head.profile, head.norm, (int64_t)head.exif_orientation);
  return HS_OK;
}

static bool json_probe(const uint8_t *bytes, size_t size) {
  size_t at = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (at < size && (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n')) at++;
  return at < size && bytes[at] == '{';
}

const feature_format format_json = {.id = HS_FORMAT_JSON,
                                    .name = "json",
                                    .summary = "JSON, one object a feature",
                                    .endings = {".json"},
                                    .without_descriptors = true,
                                    .write = json_write,
                                    .read = json_read,
                                    .probe = json_probe};
