/*
 * OpenCV FileStorage YAML: "keypoints" as a sequence of 7-tuples x, y, size, angle, response, octave, class_id, and
 * "descriptors" as an opencv-matrix; size is 2 sigma, angle in degrees, octave packed.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/text_cursor.h"
#include "pipeline/formats/formats.h"
#include "stages/table_math.h"

/* ---- Parser for the part of YAML that FileStorage uses for features: keys in column 0, flow lists of numbers,
   block sequences of flow lists, and the opencv-matrix block. Other keys are skipped. */

enum { YAML_TUPLE = 7 };

static const double radians_per_degree = 0.01745329251994329576924;
/* OpenCV's value for a keypoint without angle. */
static const double yaml_no_angle = -1.0;

/* Positions of the values of the three keys; at null: the key does not exist. */
typedef struct yaml_document {
  text_cursor keypoints, descriptors, width, height, origin;
} yaml_document;

typedef struct yaml_matrix {
  int64_t rows, cols;
  char type;
  text_cursor data; /* start of the numbers; its position is null if there are none */
} yaml_matrix;

/* Function that is called for each number of a list; returns a status. */
typedef hs_status (*yaml_number)(const text_cursor *cursor, double value, void *user);

static void yaml_skip_line(text_cursor *cursor) {
  while (cursor->at < cursor->end && *cursor->at != '\n') cursor->at++;
  if (cursor->at < cursor->end) {
    cursor->at++;
    cursor->line++;
  }
}

/* True if the next key has this name; moves past its colon. */
static bool yaml_key(text_cursor *cursor, const char *name) {
  size_t size = strlen(name);
  size_t left = (size_t)(cursor->end - cursor->at);
  if (left <= size || memcmp(cursor->at, name, size) != 0 || cursor->at[size] != ':') return false;
  cursor->at += size + 1;
  return true;
}

static hs_status yaml_find_keys(const feature_source *source, yaml_document *document) {
  struct {
    const char *name;
    text_cursor *start;
  } keys[] = {{"keypoints", &document->keypoints},
              {"descriptors", &document->descriptors},
              {"image_width", &document->width},
              {"image_height", &document->height},
              {"hartsift_origin", &document->origin}};
  text_cursor cursor = cursor_make(source);
  memset(document, 0, sizeof *document);
  while (cursor.at < cursor.end) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
      if (!yaml_key(&cursor, keys[i].name)) continue;
      if (keys[i].start->at) return cursor_fail(&cursor, "%s is given twice", keys[i].name);
      *keys[i].start = cursor;
      break;
    }
    yaml_skip_line(&cursor);
  }
  return HS_OK;
}

/* Returns the length of a word, which ends at a blank, comma, bracket or line end. */
static size_t yaml_word(const text_cursor *cursor) {
  size_t left = (size_t)(cursor->end - cursor->at);
  size_t size = 0;
  while (size < left && !strchr(" \t\r\n,[]", cursor->at[size])) size++;
  return size;
}

static hs_status yaml_read_int(text_cursor *cursor, const char *what, int64_t *value) {
  cursor_skip_blanks(cursor, false);
  size_t size = yaml_word(cursor);
  if (!number_to_int(cursor->at, size, value)) return cursor_fail(cursor, "%s is not an integer", what);
  cursor->at += size;
  return HS_OK;
}

/* Reads "[ 1, 2, ... ]" over any number of lines, including the bracket. */
static hs_status yaml_flow_list(text_cursor *cursor, yaml_number take, void *user) {
  cursor_skip_blanks(cursor, true);
  if (cursor->at == cursor->end || *cursor->at != '[') return cursor_fail(cursor, "a list does not begin with [");
  cursor->at++;
  cursor_skip_blanks(cursor, true);
  bool first = true;
  while (cursor->at < cursor->end && *cursor->at != ']') {
    if (!first) {
      if (*cursor->at != ',') return cursor_fail(cursor, "expected a comma or ] in a list");
      cursor->at++;
      cursor_skip_blanks(cursor, true);
    }
    first = false;
    size_t size = yaml_word(cursor);
    double value;
    if (!number_to_double(cursor->at, size, &value)) return cursor_fail(cursor, "a list entry is not a finite number");
    cursor->at += size;
    hs_status status = take(cursor, value, user);
    if (status != HS_OK) return status;
    cursor_skip_blanks(cursor, true);
  }
  if (cursor->at == cursor->end) return cursor_fail(cursor, "the file ends inside a list");
  cursor->at++;
  return HS_OK;
}

/* The keypoints' numbers. A first pass counts them, a second pass stores them. */
typedef struct yaml_keypoints {
  hs_features *features; /* list to fill; null: the numbers are only counted */
  uint64_t numbers;
  double tuple[YAML_TUPLE];
} yaml_keypoints;

static const char *yaml_fill_keypoint(hs_keypoint *keypoint, const double tuple[YAML_TUPLE]) {
  double degrees = tuple[3] == yaml_no_angle ? 0.0 : tuple[3];
  const char *fault = keypoint_fill(keypoint, tuple[0], tuple[1], tuple[2] / 2.0, degrees * radians_per_degree);
  if (fault) return fault;
  if (!(tuple[5] >= -2147483648.0 && tuple[5] <= 2147483647.0)) return "the packed octave is not an integer of 32 bits";
  uint32_t packed = (uint32_t)(int32_t)tuple[5];
  int octave = (int)(packed & 255u);
  if (octave >= 128) octave -= 256;
  return keypoint_fill_origin(keypoint, tuple[4], (double)octave, (double)((packed >> 8) & 255u));
}

static hs_status yaml_take_keypoint(const text_cursor *cursor, double value, void *user) {
  yaml_keypoints *keypoints = user;
  keypoints->tuple[keypoints->numbers % YAML_TUPLE] = value;
  keypoints->numbers++;
  if (!keypoints->features || keypoints->numbers % YAML_TUPLE != 0) return HS_OK;
  size_t index = (size_t)(keypoints->numbers / YAML_TUPLE - 1);
  const char *fault = yaml_fill_keypoint(&keypoints->features->keypoints[index], keypoints->tuple);
  return fault ? cursor_fail(cursor, "%s", fault) : HS_OK;
}

static bool yaml_at_item(const text_cursor *cursor) {
  return cursor->end - cursor->at >= 2 && cursor->at[0] == '-' && strchr(" \t[", cursor->at[1]) &&
         cursor->at[1] != '\0';
}

/* Checks the end of a value: a line that begins in column 0, or the end of the file. */
static hs_status yaml_end_value(text_cursor *cursor) {
  cursor_skip_blanks(cursor, true);
  if (cursor->at == cursor->end || cursor->at[-1] == '\n') return HS_OK;
  return cursor_fail(cursor, "unexpected content after the keypoints");
}

/* Reads a flat list (older versions), or a block sequence of lists of seven numbers. */
static hs_status yaml_walk_keypoints(text_cursor cursor, yaml_keypoints *keypoints) {
  cursor_skip_blanks(&cursor, true);
  if (cursor.at < cursor.end && *cursor.at == '[') {
    hs_status status = yaml_flow_list(&cursor, yaml_take_keypoint, keypoints);
    if (status == HS_OK && keypoints->numbers % YAML_TUPLE != 0)
      return cursor_fail(&cursor, "the number of keypoint values is no multiple of seven");
    if (status == HS_OK) status = cursor_end_line(&cursor);
    return status != HS_OK ? status : yaml_end_value(&cursor);
  }
  while (yaml_at_item(&cursor)) {
    uint64_t before = keypoints->numbers;
    cursor.at++;
    hs_status status = yaml_flow_list(&cursor, yaml_take_keypoint, keypoints);
    if (status == HS_OK && keypoints->numbers != before + YAML_TUPLE)
      return cursor_fail(&cursor, "a keypoint does not have seven values");
    if (status == HS_OK) status = cursor_end_line(&cursor);
    if (status != HS_OK) return status;
    cursor_skip_blanks(&cursor, true);
  }
  if (keypoints->numbers == 0) return cursor_fail(&cursor, "keypoints is neither a list nor a sequence of lists");
  return yaml_end_value(&cursor);
}

/* True for the short and the long form of the tag. */
static bool yaml_is_matrix_tag(const char *word, size_t size) {
  static const char *const tags[] = {"!!opencv-matrix", "!<tag:yaml.org,2002:opencv-matrix>"};
  for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
    if (strlen(tags[i]) == size && memcmp(word, tags[i], size) == 0) return true;
  return false;
}

/* Reads the lines below "descriptors: !!opencv-matrix", up to the next key in column 0. */
static hs_status yaml_read_matrix(text_cursor cursor, yaml_matrix *matrix) {
  *matrix = (yaml_matrix){.rows = -1, .cols = -1};
  const char *word;
  size_t size;
  if (!cursor_word(&cursor, false, &word, &size) || !yaml_is_matrix_tag(word, size))
    return cursor_fail(&cursor, "descriptors is not an opencv-matrix");
  yaml_skip_line(&cursor);
  while (cursor.at < cursor.end && (*cursor.at == ' ' || *cursor.at == '\t')) {
    hs_status status = HS_OK;
    cursor_skip_blanks(&cursor, false);
    if (yaml_key(&cursor, "rows")) {
      status = yaml_read_int(&cursor, "rows", &matrix->rows);
    } else if (yaml_key(&cursor, "cols")) {
      status = yaml_read_int(&cursor, "cols", &matrix->cols);
    } else if (yaml_key(&cursor, "dt")) {
      if (cursor_word(&cursor, false, &word, &size)) matrix->type = size == 1 ? word[0] : size == 3 ? word[1] : '?';
    } else if (yaml_key(&cursor, "data")) {
      matrix->data = cursor;
    }
    if (status != HS_OK) return status;
    yaml_skip_line(&cursor);
  }
  if (matrix->rows < 0 || matrix->cols < 0 || !matrix->data.at)
    return cursor_fail(&cursor, "the descriptor matrix lacks rows, cols or data");
  if (matrix->rows > 0 && matrix->cols != HS_DESCRIPTOR_LENGTH)
    return cursor_fail(&cursor, "a descriptor does not have 128 columns");
  if (matrix->type == '\0' || !strchr("ucwsihfd", matrix->type))
    return cursor_fail(&cursor, "descriptors are of none of the types u, c, w, s, i, h, f and d");
  return HS_OK;
}

typedef struct yaml_descriptors {
  hs_features *features;
  uint64_t numbers, most;
} yaml_descriptors;

static hs_status yaml_take_descriptor(const text_cursor *cursor, double value, void *user) {
  yaml_descriptors *descriptors = user;
  if (descriptors->numbers == descriptors->most)
    return cursor_fail(cursor, "the matrix has more values than rows x 128");
  const char *fault = descriptor_store(descriptors->features, (size_t)descriptors->numbers++, value);
  return fault ? cursor_fail(cursor, "%s", fault) : HS_OK;
}

static hs_status yaml_read_descriptors(const yaml_matrix *matrix, hs_features *features, size_t count) {
  yaml_descriptors descriptors = {.features = features, .most = (uint64_t)count * HS_DESCRIPTOR_LENGTH};
  text_cursor cursor = matrix->data;
  hs_status status = yaml_flow_list(&cursor, yaml_take_descriptor, &descriptors);
  if (status == HS_OK && descriptors.numbers != descriptors.most)
    return cursor_fail(&cursor, "the matrix has fewer values than rows x 128");
  return status;
}

static hs_status yaml_read_size(text_cursor cursor, int32_t *out) {
  int64_t value;
  if (!cursor.at) return HS_OK;
  hs_status status = yaml_read_int(&cursor, "the image size", &value);
  if (status != HS_OK) return status;
  if (value < 0 || value > INT32_MAX) return cursor_fail(&cursor, "the image size is out of range");
  *out = (int32_t)value;
  return HS_OK;
}

/* The four numbers of an origin in the file. */
typedef struct yaml_origin {
  size_t count;
  double numbers[4];
} yaml_origin;

static hs_status yaml_take_origin(const text_cursor *cursor, double value, void *user) {
  yaml_origin *origin = user;
  if (origin->count == 4 || !(value >= 0.0 && value <= (double)INT32_MAX))
    return cursor_fail(cursor, "hartsift_origin is not four numbers");
  origin->numbers[origin->count++] = value;
  return HS_OK;
}

static hs_status yaml_read_origin(text_cursor cursor, hs_origin *out) {
  yaml_origin origin = {0};
  if (!cursor.at) return HS_OK;
  const hs_status status = yaml_flow_list(&cursor, yaml_take_origin, &origin);
  if (status == HS_OK && origin.count != 4) return cursor_fail(&cursor, "hartsift_origin is not four numbers");
  const double *n = origin.numbers;
  *out = origin_of_file((int64_t)n[0], (int64_t)n[1], (int64_t)n[2], (int64_t)n[3]);
  return status;
}

static bool yaml_probe(const uint8_t *bytes, size_t size) {
  static const char mark[] = "%YAML", order_mark[] = "\xef\xbb\xbf";
  const size_t skipped = size >= 3 && memcmp(bytes, order_mark, 3) == 0 ? 3 : 0;
  return size >= skipped + sizeof mark - 1 && memcmp(bytes + skipped, mark, sizeof mark - 1) == 0;
}

static hs_status yaml_read_features(const feature_source *source, hs_features *features) {
  if (!yaml_probe(source->bytes, source->size))
    return source_fail(source, HS_ERR_FORMAT, "no %%YAML line at the beginning");
  yaml_document document = {0};
  yaml_keypoints keypoints = {0};
  yaml_matrix matrix = {0};
  hs_status status = yaml_find_keys(source, &document);
  if (status == HS_OK && !document.keypoints.at)
    return source_fail(source, HS_ERR_FORMAT, "there is no \"keypoints\" in the file");
  if (status == HS_OK) status = yaml_walk_keypoints(document.keypoints, &keypoints);
  if (status == HS_OK && document.descriptors.at) status = yaml_read_matrix(document.descriptors, &matrix);
  if (status != HS_OK) return status;
  uint64_t count = keypoints.numbers / YAML_TUPLE;
  bool described = document.descriptors.at != NULL && (matrix.rows > 0 || count == 0);
  if (described && (uint64_t)matrix.rows != count) {
    return source_fail(source, HS_ERR_FORMAT, "%lld descriptors for %llu keypoints", (long long)matrix.rows,
                       (unsigned long long)count);
  }
  hs_descriptor_type type = HS_DESCRIPTOR_NONE;
  if (described) type = strchr("hfd", matrix.type) ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8;
  status = yaml_read_size(document.width, &features->image_width);
  if (status == HS_OK) status = yaml_read_size(document.height, &features->image_height);
  if (status == HS_OK) status = source_reserve(source, features, count, type);
  if (status != HS_OK) return status;
  keypoints = (yaml_keypoints){.features = features};
  status = yaml_walk_keypoints(document.keypoints, &keypoints);
  if (status == HS_OK && described) status = yaml_read_descriptors(&matrix, features, (size_t)count);
  if (status == HS_OK) status = yaml_read_origin(document.origin, &features->origin);
  if (status == HS_OK) features->count = (size_t)count;
  return status;
}

/* ---- writing */

enum { OPENCV_VALUES_A_LINE = 16, OPENCV_CENTRED_PART = 128, OPENCV_PART_MAX = 255 };

static const double degrees_per_radian = 57.29577951308232087680;

/* Sampling of OpenCV, needed to find where a sigma is between two levels. */
static const double opencv_sigma0 = 1.6;
static const double opencv_scales = 3.0;

/* Returns round((xi + 0.5) 255) for the offset xi of the extremum from its level. The list has no xi; it is computed
   from sigma if sigma0 and S can be OpenCV's. Otherwise the middle is written. */
static int32_t opencv_level_part(const hs_keypoint *keypoint) {
  double level = opencv_scales * (table_log2((double)keypoint->sigma / opencv_sigma0) - (double)keypoint->octave);
  double offset = level - (double)keypoint->level;
  if (!(offset > -1.0 && offset < 1.0)) return OPENCV_CENTRED_PART;
  double part = floor((offset + 0.5) * OPENCV_PART_MAX + 0.5);
  if (part < 0.0) return 0;
  return part > OPENCV_PART_MAX ? OPENCV_PART_MAX : (int32_t)part;
}

static int32_t opencv_pack_octave(const hs_keypoint *keypoint) {
  int32_t packed = keypoint->octave & 255;
  if (keypoint->level > 0) packed |= (keypoint->level << 8) | (opencv_level_part(keypoint) << 16);
  return packed;
}

static hs_status opencv_check_octaves(const feature_target *target) {
  for (size_t i = 0; i < target->features->count; i++) {
    const hs_keypoint *keypoint = &target->features->keypoints[i];
    if (keypoint->octave < -128 || keypoint->octave > 127 || keypoint->level > 255) {
      return target_fail(target, HS_ERR_UNSUPPORTED, "keypoint %zu: octave or level do not fit OpenCV's packed octave",
                         i);
    }
  }
  return HS_OK;
}

static void opencv_write_keypoints(feature_sink *sink, const hs_features *features) {
  sink_text(sink, features->count == 0 ? "keypoints: [ ]\n" : "keypoints:\n");
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *keypoint = &features->keypoints[i];
    sink_text(sink, "   - [ ");
    sink_float(sink, keypoint->x);
    sink_text(sink, ", ");
    sink_float(sink, keypoint->y);
    sink_text(sink, ", ");
    sink_double(sink, 2.0 * (double)keypoint->sigma);
    sink_text(sink, ", ");
    sink_double(sink, (double)angle_wrap((double)keypoint->orientation) * degrees_per_radian);
    sink_text(sink, ", ");
    sink_float(sink, keypoint->response);
    sink_text(sink, ", ");
    sink_int(sink, opencv_pack_octave(keypoint));
    sink_text(sink, ", -1 ]\n");
  }
}

static void opencv_write_descriptor(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  bool is_float = codec->features->descriptor_type == HS_DESCRIPTOR_F32;
  float values[HS_DESCRIPTOR_LENGTH] = {0};
  uint8_t bytes[HS_DESCRIPTOR_LENGTH] = {0};
  if (is_float)
    descriptor_to_f32(codec, index, values);
  else
    descriptor_to_u8(codec, index, bytes);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    if (index > 0 || k > 0) sink_text(sink, k % OPENCV_VALUES_A_LINE == 0 ? ",\n       " : ", ");
    if (is_float)
      sink_float(sink, values[k]);
    else
      sink_int(sink, bytes[k]);
  }
}

static void opencv_write_descriptors(feature_sink *sink, const feature_target *target) {
  const hs_features *features = target->features;
  descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  sink_text(sink, "descriptors: !!opencv-matrix\n   rows: ");
  sink_int(sink, (int64_t)features->count);
  sink_text(sink, "\n   cols: 128\n   dt: ");
  sink_text(sink, features->descriptor_type == HS_DESCRIPTOR_F32 ? "f" : "u");
  sink_text(sink, "\n   data: [ ");
  for (size_t i = 0; i < features->count; i++) opencv_write_descriptor(sink, &codec, i);
  sink_text(sink, " ]\n");
}

static void opencv_write_origin(feature_sink *sink, const hs_origin *origin) {
  const int64_t numbers[] = {origin->method_version, origin->profile, origin_norm_number(origin),
                             origin->exif_orientation};
  sink_text(sink, "hartsift_origin: [ ");
  for (size_t i = 0; i < 4; i++) {
    if (i > 0) sink_text(sink, ", ");
    sink_int(sink, numbers[i]);
  }
  sink_text(sink, " ]\n");
}

static hs_status opencv_write(const feature_target *target) {
  hs_status status = opencv_check_octaves(target);
  if (status != HS_OK) return status;
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  sink_text(&sink, "%YAML:1.0\n---\nimage_width: ");
  sink_int(&sink, target->features->image_width);
  sink_text(&sink, "\nimage_height: ");
  sink_int(&sink, target->features->image_height);
  sink_text(&sink, "\n");
  opencv_write_origin(&sink, &target->features->origin);
  opencv_write_keypoints(&sink, target->features);
  if (target->features->descriptor_type != HS_DESCRIPTOR_NONE) opencv_write_descriptors(&sink, target);
  sink_flush(&sink);
  return HS_OK;
}

const feature_format format_opencv = {.id = HS_FORMAT_OPENCV,
                                      .name = "opencv",
                                      .summary = "OpenCV FileStorage YAML",
                                      .endings = {".yml", ".yaml"},
                                      .without_descriptors = true,
                                      .write = opencv_write,
                                      .read = yaml_read_features,
                                      .probe = yaml_probe};
