/*
 * The part of YAML that OpenCV's FileStorage uses for features: keys in column 0, flow lists of numbers,
 * block sequences of flow lists, and the opencv-matrix block. Everything under other keys is passed over.
 */
#include "pipeline/formats/yaml_features.h"

#include <string.h>

#include "pipeline/base/origin.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/number_text.h"
#include "pipeline/formats/common/text_cursor.h"

enum { YAML_TUPLE = 7 };

static const double radians_per_degree = 0.01745329251994329576924;
/* What OpenCV writes for "no angle". */
static const double yaml_no_angle = -1.0;

/* Where the values of the keys begin; at null: the key is absent. */
typedef struct yaml_document {
  text_cursor keypoints, descriptors, width, height, origin;
} yaml_document;

typedef struct yaml_matrix {
  int64_t rows, cols;
  char type;
  text_cursor data; /* at null: none */
} yaml_matrix;

/* Receives the numbers of a list, one by one; returns a status. */
typedef hs_status (*yaml_number)(const text_cursor *cursor, double value, void *user);

static void yaml_skip_line(text_cursor *cursor) {
  while (cursor->at < cursor->end && *cursor->at != '\n') cursor->at++;
  if (cursor->at < cursor->end) {
    cursor->at++;
    cursor->line++;
  }
}

/* Whether a key of this name comes next; moves behind its colon. */
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
    text_cursor *place;
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
      if (keys[i].place->at) return cursor_fail(&cursor, "%s is given twice", keys[i].name);
      *keys[i].place = cursor;
      break;
    }
    yaml_skip_line(&cursor);
  }
  return HS_OK;
}

/* A word that ends at a blank, a comma, a bracket or the line's end. */
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

/* "[ 1, 2, ... ]" over any number of lines; ends behind the bracket. */
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

/* Numbers of the keypoints: counted first, stored in a second pass. */
typedef struct yaml_keypoints {
  hs_features *features; /* null: count only */
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

/* A value ends where a line begins in column 0, or with the file. */
static hs_status yaml_end_value(text_cursor *cursor) {
  cursor_skip_blanks(cursor, true);
  if (cursor->at == cursor->end || cursor->at[-1] == '\n') return HS_OK;
  return cursor_fail(cursor, "more than the keypoints where they should end");
}

/* One flat list, as older versions write, or a block sequence of lists with seven numbers each. */
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

/* The short form of the tag, and the whole one. */
static bool yaml_is_matrix_tag(const char *word, size_t size) {
  static const char *const tags[] = {"!!opencv-matrix", "!<tag:yaml.org,2002:opencv-matrix>"};
  for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
    if (strlen(tags[i]) == size && memcmp(word, tags[i], size) == 0) return true;
  return false;
}

/* The lines below "descriptors: !!opencv-matrix", up to the next key in column 0. */
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

/* The four numbers of an origin. */
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

hs_status yaml_read_features(const feature_source *source, hs_features *features) {
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

bool yaml_probe(const uint8_t *bytes, size_t size) {
  static const char mark[] = "%YAML", order_mark[] = "\xef\xbb\xbf";
  const size_t skipped = size >= 3 && memcmp(bytes, order_mark, 3) == 0 ? 3 : 0;
  return size >= skipped + sizeof mark - 1 && memcmp(bytes + skipped, mark, sizeof mark - 1) == 0;
}
