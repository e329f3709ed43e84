/*
 * Comma-separated values with a header line: x,y,sigma,orientation,response,octave,level and 128 columns d0..d127 for
 * byte descriptors or f0..f127 for float ones. Everything except the image size is stored exactly.
 */
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

enum { CSV_FIELDS = 7, CSV_COLUMNS_MAX = CSV_FIELDS + HS_DESCRIPTOR_LENGTH, CSV_UNSEEN = -1 };

static const char *const csv_names[CSV_FIELDS] = {"x", "y", "sigma", "orientation", "response", "octave", "level"};

/* The header: for each column of the file, its field (first those of the keypoint, then descriptor entries). */
typedef struct csv_header {
  size_t fields;
  int16_t column[CSV_COLUMNS_MAX];
  bool seen[CSV_COLUMNS_MAX];
  hs_descriptor_type type;
} csv_header;

static void csv_write_feature(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  const hs_keypoint *keypoint = &codec->features->keypoints[index];
  const float numbers[4] = {keypoint->x, keypoint->y, keypoint->sigma, angle_wrap((double)keypoint->orientation)};
  for (size_t k = 0; k < 4; k++) {
    sink_float(sink, numbers[k]);
    sink_text(sink, ",");
  }
  sink_float(sink, keypoint->response);
  sink_text(sink, ",");
  sink_int(sink, keypoint->octave);
  sink_text(sink, ",");
  sink_int(sink, keypoint->level);
  if (codec->features->descriptor_type != HS_DESCRIPTOR_NONE) {
    sink_text(sink, ",");
    descriptor_put_text(codec, index, ",", sink);
  }
  sink_text(sink, "\n");
}

static hs_status csv_write(const feature_target *target) {
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  hs_descriptor_type type = target->features->descriptor_type;
  for (size_t k = 0; k < CSV_FIELDS; k++) {
    if (k > 0) sink_text(&sink, ",");
    sink_text(&sink, csv_names[k]);
  }
  for (size_t k = 0; type != HS_DESCRIPTOR_NONE && k < HS_DESCRIPTOR_LENGTH; k++) {
    sink_text(&sink, type == HS_DESCRIPTOR_F32 ? ",f" : ",d");
    sink_int(&sink, (int64_t)k);
  }
  sink_text(&sink, "\n");
  descriptor_codec codec = descriptor_codec_make(target->features, target->layout, HS_LAYOUT_UBC);
  for (size_t i = 0; i < target->features->count; i++) csv_write_feature(&sink, &codec, i);
  sink_flush(&sink);
  return HS_OK;
}

/* Returns the index of a named column; CSV_UNSEEN: unknown. */
static int csv_column_of(const char *name, size_t size, hs_descriptor_type *type) {
  for (int k = 0; k < CSV_FIELDS; k++)
    if (strlen(csv_names[k]) == size && memcmp(csv_names[k], name, size) == 0) return k;
  int64_t entry;
  if (size < 2 || (name[0] != 'd' && name[0] != 'f') || !number_to_int(name + 1, size - 1, &entry)) return CSV_UNSEEN;
  if (entry < 0 || entry >= HS_DESCRIPTOR_LENGTH) return CSV_UNSEEN;
  *type = name[0] == 'f' ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8;
  return CSV_FIELDS + (int)entry;
}

static hs_status csv_add_column(const text_cursor *cursor, csv_header *header, const char *name, size_t size) {
  hs_descriptor_type type = header->type;
  int column = csv_column_of(name, size, &type);
  if (column == CSV_UNSEEN) {
    char shown[TEXT_SHOWN_BYTES];
    text_shown(name, size, shown);
    return cursor_fail(cursor, "column %zu of the header has no known name: \"%s\"", header->fields + 1, shown);
  }
  if (header->seen[column]) return cursor_fail(cursor, "column %zu of the header repeats another", header->fields + 1);
  if (column >= CSV_FIELDS && header->type != HS_DESCRIPTOR_NONE && type != header->type)
    return cursor_fail(cursor, "the header mixes d and f columns");
  header->type = type;
  header->seen[column] = true;
  header->column[header->fields++] = (int16_t)column;
  return HS_OK;
}

static hs_status csv_read_header(text_cursor *cursor, csv_header *header) {
  *header = (csv_header){.type = HS_DESCRIPTOR_NONE};
  const char *field;
  size_t size;
  while (cursor_field(cursor, &field, &size)) {
    hs_status status = csv_add_column(cursor, header, field, size);
    if (status != HS_OK) return status;
  }
  for (int k = 0; k < 4; k++)
    if (!header->seen[k]) return cursor_fail(cursor, "the header has no column %s", csv_names[k]);
  for (int k = CSV_FIELDS; header->type != HS_DESCRIPTOR_NONE && k < CSV_COLUMNS_MAX; k++)
    if (!header->seen[k])
      return cursor_fail(cursor, "the header has no column for descriptor entry %d", k - CSV_FIELDS);
  return cursor_end_line(cursor);
}

static hs_status csv_read_line(text_cursor *cursor, const csv_header *header, hs_features *features, size_t index) {
  double numbers[CSV_FIELDS] = {0};
  cursor_skip_blanks(cursor, true);
  for (size_t i = 0; i < header->fields; i++) {
    double value;
    int column = header->column[i];
    hs_status status = cursor_number_field(cursor, i, &value);
    if (status != HS_OK) return status;
    if (column < CSV_FIELDS) {
      numbers[column] = value;
      continue;
    }
    const char *fault = descriptor_store(features, index * HS_DESCRIPTOR_LENGTH + (size_t)(column - CSV_FIELDS), value);
    if (fault) return cursor_fail(cursor, "%s", fault);
  }
  hs_keypoint *keypoint = &features->keypoints[index];
  const char *fault = keypoint_fill(keypoint, numbers[0], numbers[1], numbers[2], numbers[3]);
  if (!fault) fault = keypoint_fill_origin(keypoint, numbers[4], numbers[5], numbers[6]);
  return fault ? cursor_fail(cursor, "%s", fault) : cursor_end_line(cursor);
}

static hs_status csv_read(const feature_source *source, hs_features *features) {
  text_cursor cursor = cursor_make(source);
  csv_header header = {0};
  hs_status status = csv_read_header(&cursor, &header);
  if (status != HS_OK) return status;
  uint64_t count = cursor_count_lines(cursor);
  if (count > source->size / (2 * header.fields - 1))
    return cursor_fail(&cursor, "the lines are shorter than the header asks for");
  status = source_reserve(source, features, count, header.type);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++) status = csv_read_line(&cursor, &header, features, i);
  if (status == HS_OK) features->count = (size_t)count;
  return status;
}

static bool csv_probe(const uint8_t *bytes, size_t size) {
  size_t length = 0;
  bool comma = false;
  for (; length < size && length < 64 && bytes[length] != '\n'; length++) comma = comma || bytes[length] == ',';
  bool letter = size > 0 && ((bytes[0] >= 'a' && bytes[0] <= 'z') || bytes[0] == 0xef || bytes[0] == '"');
  return comma && letter;
}

const feature_format format_csv = {.id = HS_FORMAT_CSV,
                                   .name = "csv",
                                   .summary = "comma-separated values with a header line",
                                   .endings = {".csv"},
                                   .without_descriptors = true,
                                   .write = csv_write,
                                   .read = csv_read,
                                   .probe = csv_probe};
