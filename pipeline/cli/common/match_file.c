/* Reads and writes files of matches; see match_file.h. */
#include "pipeline/cli/common/match_file.h"

#include <math.h>
#include <string.h>

#include "os/os_process.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/common/json_text.h"
#include "pipeline/formats/common/text_cursor.h"
#include "pipeline/include/hartsift_geometry.h"

/* ---- writing */

match_format match_format_by_ending(const char *path) {
  if (path_ends_with(path, ".json")) return MATCH_FORMAT_JSON;
  return path_ends_with(path, ".txt") ? MATCH_FORMAT_COLMAP : MATCH_FORMAT_CSV;
}

bool match_format_fits(const char *path) {
  return hs_format_of_name(path) == HS_FORMAT_AUTO || path_ends_with(path, ".csv") || path_ends_with(path, ".json") ||
         path_ends_with(path, ".txt");
}

static void write_csv(feature_sink *sink, const match_table *table) {
  sink_text(sink, table->inliers ? "index_a,index_b,distance,inlier\n" : "index_a,index_b,distance\n");
  for (size_t i = 0; i < table->matches.count; i++) {
    const hs_match_pair *pair = &table->matches.pairs[i];
    sink_int(sink, pair->first);
    sink_text(sink, ",");
    sink_int(sink, pair->second);
    sink_text(sink, ",");
    sink_float(sink, pair->distance);
    if (table->inliers) sink_text(sink, table->inliers[i] != 0 ? ",1" : ",0");
    sink_text(sink, "\n");
  }
}

static void write_json_geometry(feature_sink *sink, const hs_geometry *geometry) {
  static const char *const names[] = {"homography", "fundamental", "essential"};
  const int model = (int)geometry->model - (int)HS_HOMOGRAPHY;
  sink_text(sink, "{\"model\": \"");
  sink_text(sink, model >= 0 && model < 3 ? names[model] : "?");
  sink_text(sink, geometry->found ? "\", \"found\": true, \"matrix\": [" : "\", \"found\": false, \"matrix\": [");
  for (int k = 0; k < 9; k++) {
    if (k > 0) sink_text(sink, ", ");
    sink_double(sink, geometry->matrix[k]);
  }
  sink_text(sink, "], \"inliers\": ");
  sink_int(sink, (int64_t)geometry->inlier_count);
  sink_text(sink, ", \"rms_error\": ");
  sink_double(sink, geometry->rms_error);
  sink_text(sink, "}");
}

static void write_json_pair(feature_sink *sink, const match_table *table, size_t index) {
  const hs_match_pair *pair = &table->matches.pairs[index];
  sink_text(sink, index > 0 ? ",\n  {\"index_a\": " : "\n  {\"index_a\": ");
  sink_int(sink, pair->first);
  sink_text(sink, ", \"index_b\": ");
  sink_int(sink, pair->second);
  sink_text(sink, ", \"distance\": ");
  sink_float(sink, pair->distance);
  if (table->inliers) sink_text(sink, table->inliers[index] != 0 ? ", \"inlier\": true" : ", \"inlier\": false");
  sink_text(sink, "}");
}

static void write_json(feature_sink *sink, const match_table *table) {
  sink_text(sink, "{\"format\": \"hartsift-matches\", \"version\": 1, \"a\": ");
  json_put_string(sink, table->name_a);
  sink_text(sink, ", \"b\": ");
  json_put_string(sink, table->name_b);
  sink_text(sink, ", \"features_a\": ");
  sink_int(sink, (int64_t)table->count_a);
  sink_text(sink, ", \"features_b\": ");
  sink_int(sink, (int64_t)table->count_b);
  sink_text(sink, ",\n \"verified\": ");
  if (table->geometry)
    write_json_geometry(sink, table->geometry);
  else
    sink_text(sink, "null");
  sink_text(sink, ", \"count\": ");
  sink_int(sink, (int64_t)table->matches.count);
  sink_text(sink, ",\n \"matches\": [");
  for (size_t i = 0; i < table->matches.count; i++) write_json_pair(sink, table, i);
  sink_text(sink, "]}\n");
}

/* Finds the name of an image in COLMAP: the file's name without the ending .txt of text features. */
static size_t colmap_name(const match_table *table, int image, const char **start) {
  const char *name = image == 0 ? table->name_a : table->name_b;
  const char *slash = name ? strrchr(name, '/') : NULL;
  *start = table->colmap_names[image] ? table->colmap_names[image] : slash ? slash + 1 : name;
  const size_t length = *start ? strlen(*start) : 0;
  const bool text = length > 4 && os_compare_caseless(*start + length - 4, ".txt") == 0;
  return text ? length - 4 : length;
}

static void write_colmap(feature_sink *sink, const match_table *table) {
  const char *start;
  const size_t a = colmap_name(table, 0, &start);
  sink_bytes(sink, start, a);
  sink_text(sink, " ");
  const size_t b = colmap_name(table, 1, &start);
  sink_bytes(sink, start, b);
  sink_text(sink, "\n");
  for (size_t i = 0; i < table->matches.count; i++) {
    if (table->inliers && table->inliers[i] == 0) continue;
    sink_int(sink, table->matches.pairs[i].first);
    sink_text(sink, " ");
    sink_int(sink, table->matches.pairs[i].second);
    sink_text(sink, "\n");
  }
  sink_text(sink, "\n");
}

void match_table_write(FILE *stream, match_format format, const match_table *table) {
  feature_sink sink;
  sink_begin(&sink, stream, NULL);
  if (format == MATCH_FORMAT_JSON)
    write_json(&sink, table);
  else if (format == MATCH_FORMAT_COLMAP)
    write_colmap(&sink, table);
  else
    write_csv(&sink, table);
  sink_flush(&sink);
}

/* Returns the reason why COLMAP's text cannot hold a name (a blank would split it), or null. */
static const char *colmap_fault(const match_table *table, int image) {
  const char *start;
  const size_t length = colmap_name(table, image, &start);
  if (length == 0) return "an image without a name";
  return strcspn(start, " \t\r\n\v\f") < length ? "an image's name with a blank" : NULL;
}

hs_status match_table_save(const char *path, match_format format, const match_table *table, char *message,
                           size_t message_bytes) {
  if (format == MATCH_FORMAT_COLMAP) {
    const char *fault = colmap_fault(table, 0);
    if (!fault) fault = colmap_fault(table, 1);
    if (fault)
      return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes, "%s: COLMAP's text cannot hold %s", path, fault);
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  if (stream) {
    match_table_write(stream, format, table);
    (void)atomic_file_commit(&file);
  }
  hs_message_set(message, message_bytes, "%s", file.message);
  return file.status;
}

/* ---- Reading of untrusted files. */

/* Maximum number of matches; lists of features that can be read never have more. */
#define MATCHES_MAX (UINT64_C(1) << 27)
/* Minimum bytes of a line of CSV or of COLMAP's text ("0,0" or "0 0" and the line end), and of an element of JSON;
   number of columns. */
enum { LINE_MIN_BYTES = 4, JSON_MIN_BYTES = 25, COLUMNS = 4 };
enum { COLUMN_A, COLUMN_B, COLUMN_DISTANCE, COLUMN_INLIER };
static const char *const column_names[COLUMNS] = {"index_a", "index_b", "distance", "inlier"};

/* The file that is read, and the table that it fills. */
typedef struct match_input {
  text_cursor cursor;
  uint64_t count_a, count_b;
  match_table table;
} match_input;

void match_table_free(match_table *table) {
  if (!table) return;
  hs_matches_free(&table->matches);
  hs_memory_release(table->allocator, table->inliers);
  memset(table, 0, sizeof *table);
}

/* Allocates memory for the number of matches that the file claims, which must be possible for its size. */
static hs_status reserve(match_input *in, uint64_t count, uint64_t least_bytes, bool verified) {
  const feature_source *source = in->cursor.source;
  if (count > (source->size + 1) / least_bytes)
    return cursor_fail(&in->cursor, "the entries are too short for matches");
  if (count > MATCHES_MAX || count > SIZE_MAX / sizeof(hs_match_pair))
    return source_fail(source, HS_ERR_LIMIT, "the file holds more than 2^27 matches");
  const hs_status status = source_check_memory(source, count * (sizeof(hs_match_pair) + (verified ? 1 : 0)));
  if (status != HS_OK) return status;
  match_table *t = &in->table;
  t->allocator = t->matches.allocator = source->allocator;
  t->matches.pairs = hs_memory_alloc(source->allocator, (size_t)count * sizeof(hs_match_pair));
  if (verified) t->inliers = hs_memory_alloc(source->allocator, (size_t)count);
  if (!t->matches.pairs || (verified && !t->inliers))
    return source_fail(source, HS_ERR_MEMORY, "out of memory for %llu matches", (unsigned long long)count);
  t->matches.capacity = (size_t)count;
  return HS_OK;
}

/* Appends a match. values: in the order of column_names. */
static hs_status append(match_input *in, const double values[COLUMNS]) {
  const double most[2] = {(double)in->count_a, (double)in->count_b};
  for (int k = 0; k < 2; k++)
    if (!(values[k] >= 0.0 && values[k] < most[k] && values[k] < (double)HS_NO_FEATURE) ||
        values[k] != floor(values[k]))
      return cursor_fail(&in->cursor, "%s is not an index below %.0f", column_names[k], most[k]);
  const float distance = (float)values[COLUMN_DISTANCE];
  if (!(distance >= 0.0f) || isinf(distance)) return cursor_fail(&in->cursor, "distance is not in the range of floats");
  if (values[COLUMN_INLIER] != 0.0 && values[COLUMN_INLIER] != 1.0)
    return cursor_fail(&in->cursor, "inlier is neither 0 nor 1");
  match_table *t = &in->table;
  if (t->inliers) t->inliers[t->matches.count] = values[COLUMN_INLIER] != 0.0;
  t->matches.pairs[t->matches.count++] = (hs_match_pair){.first = (uint32_t)values[COLUMN_A],
                                                         .second = (uint32_t)values[COLUMN_B],
                                                         .distance = distance,
                                                         .next_distance = INFINITY};
  return HS_OK;
}

/* ------------------------------------------------------------------ CSV */

/* Columns of the header, in the order of the file. */
typedef struct match_columns {
  int column[COLUMNS], count;
  bool seen[COLUMNS];
} match_columns;

static hs_status read_header(text_cursor *cursor, match_columns *columns) {
  const char *field;
  size_t size;
  memset(columns, 0, sizeof *columns);
  while (cursor_field(cursor, &field, &size)) {
    int k = 0;
    while (k < COLUMNS && (strlen(column_names[k]) != size || memcmp(column_names[k], field, size) != 0)) k++;
    if (k == COLUMNS) return cursor_fail(cursor, "column %d of the header has no known name", columns->count + 1);
    if (columns->seen[k]) return cursor_fail(cursor, "the header names %s twice", column_names[k]);
    columns->seen[k] = true;
    columns->column[columns->count++] = k;
  }
  for (int k = COLUMN_A; k <= COLUMN_B; k++)
    if (!columns->seen[k]) return cursor_fail(cursor, "the header has no column %s", column_names[k]);
  return cursor_end_line(cursor);
}

static hs_status read_csv(match_input *in) {
  match_columns columns;
  hs_status status = read_header(&in->cursor, &columns);
  if (status != HS_OK) return status;
  const uint64_t count = cursor_count_lines(in->cursor);
  status = reserve(in, count, LINE_MIN_BYTES, columns.seen[COLUMN_INLIER]);
  for (uint64_t i = 0; status == HS_OK && i < count; i++) {
    double values[COLUMNS] = {0};
    cursor_skip_blanks(&in->cursor, true);
    for (int k = 0; status == HS_OK && k < columns.count; k++)
      status = cursor_number_field(&in->cursor, (size_t)k, &values[columns.column[k]]);
    if (status == HS_OK) status = append(in, values);
    if (status == HS_OK) status = cursor_end_line(&in->cursor);
  }
  return status;
}

/* ------------------------------------------------------------------ COLMAP's text */

/* Reads two names, then one pair of indices per line; only a single block. */
static hs_status read_colmap(match_input *in) {
  const char *word;
  size_t size;
  for (int k = 0; k < 2; k++)
    if (!cursor_word(&in->cursor, false, &word, &size))
      return cursor_fail(&in->cursor, "expected the names of two images");
  hs_status status = cursor_end_line(&in->cursor);
  if (status != HS_OK) return status;
  const uint64_t count = cursor_count_lines(in->cursor);
  status = reserve(in, count, LINE_MIN_BYTES, false);
  for (uint64_t i = 0; status == HS_OK && i < count; i++) {
    double values[COLUMNS] = {0};
    status =
        cursor_double(&in->cursor, true, "the index in the first image (of one pair of images)", &values[COLUMN_A]);
    if (status == HS_OK) status = cursor_double(&in->cursor, false, "the index in the second image", &values[COLUMN_B]);
    if (status == HS_OK) status = append(in, values);
    if (status == HS_OK) status = cursor_end_line(&in->cursor);
  }
  return status;
}

/* ------------------------------------------------------------------ JSON */

/* Reads true or false, as 1 or 0. */
static hs_status read_bool(text_cursor *cursor, double *value) {
  cursor_skip_blanks(cursor, true);
  const size_t left = (size_t)(cursor->end - cursor->at);
  const bool yes = left >= 4 && memcmp(cursor->at, "true", 4) == 0;
  if (!yes && !(left >= 5 && memcmp(cursor->at, "false", 5) == 0))
    return cursor_fail(cursor, "inlier: expected true or false");
  cursor->at += yes ? 4 : 5;
  *value = yes;
  return HS_OK;
}

static hs_status read_json_member(text_cursor *cursor, json_text name, double values[COLUMNS], unsigned *seen) {
  for (int k = 0; k < COLUMNS; k++) {
    if (!json_text_is(name, column_names[k])) continue;
    if ((*seen & (1u << k)) != 0) return cursor_fail(cursor, "%s is given twice", column_names[k]);
    *seen |= 1u << k;
    return k == COLUMN_INLIER ? read_bool(cursor, &values[k]) : json_number(cursor, &values[k]);
  }
  return json_skip(cursor);
}

/* Reads one match. seen: bit k is set for column k. */
static hs_status read_json_pair(text_cursor *cursor, double values[COLUMNS], unsigned *seen) {
  bool first = true, more = true;
  *seen = 0;
  while (more) {
    json_text name;
    hs_status status = json_next_member(cursor, &first, &more, &name);
    if (status == HS_OK && more) status = read_json_member(cursor, name, values, seen);
    if (status != HS_OK) return status;
  }
  for (int k = COLUMN_A; k <= COLUMN_B; k++)
    if ((*seen & (1u << k)) == 0) return cursor_fail(cursor, "a match has no %s", column_names[k]);
  return HS_OK;
}

/* Counts the elements of the array at the cursor, and skips them. verified: at least one has the member inlier. */
static hs_status count_elements(text_cursor *cursor, uint64_t *count, bool *verified) {
  bool first = true, more = true;
  *count = 0;
  *verified = false;
  for (;;) {
    double values[COLUMNS] = {0};
    unsigned seen;
    hs_status status = json_next_element(cursor, &first, &more);
    if (status != HS_OK || !more) return status;
    status = read_json_pair(cursor, values, &seen);
    if (status != HS_OK) return status;
    *verified = *verified || (seen & (1u << COLUMN_INLIER)) != 0;
    (*count)++;
  }
}

/* Compares the number of features in the file with that of the list. */
static hs_status check_count(text_cursor *cursor, const char *name, uint64_t count) {
  double claimed;
  const hs_status status = json_number(cursor, &claimed);
  if (status != HS_OK || claimed == (double)count) return status;
  return cursor_fail(cursor, "%s is %.0f, but there are %llu features: these are not those that were matched", name,
                     claimed, (unsigned long long)count);
}

/* Steps through the object and finds the list of matches. */
static hs_status find_matches(match_input *in, text_cursor *matches, uint64_t *count, bool *verified) {
  text_cursor *cursor = &in->cursor;
  bool first = true, more = true, found = false, counted = false;
  double claimed = 0.0;
  while (more) {
    json_text name;
    hs_status status = json_next_member(cursor, &first, &more, &name);
    if (status != HS_OK) return status;
    if (!more) break;
    if (json_text_is(name, "matches")) {
      if (found) return cursor_fail(cursor, "matches is given twice");
      found = true;
      *matches = *cursor;
      status = count_elements(cursor, count, verified);
    } else if (json_text_is(name, "count")) {
      counted = true;
      status = json_number(cursor, &claimed);
    } else if (json_text_is(name, "features_a")) {
      status = check_count(cursor, "features_a", in->count_a);
    } else if (json_text_is(name, "features_b")) {
      status = check_count(cursor, "features_b", in->count_b);
    } else {
      status = json_skip(cursor);
    }
    if (status != HS_OK) return status;
  }
  if (!found) return cursor_fail(cursor, "the object has no matches");
  if (counted && claimed != (double)*count) return cursor_fail(cursor, "count differs from the number of matches");
  return cursor_at_end(cursor) ? HS_OK : cursor_fail(cursor, "something follows the object");
}

static hs_status read_json(match_input *in) {
  text_cursor matches = in->cursor;
  uint64_t count = 0;
  bool verified = false, first = true, more = true;
  hs_status status = find_matches(in, &matches, &count, &verified);
  if (status != HS_OK) return status;
  status = reserve(in, count, JSON_MIN_BYTES, verified);
  in->cursor = matches;
  for (uint64_t i = 0; status == HS_OK && i < count; i++) {
    double values[COLUMNS] = {0};
    unsigned seen;
    status = json_next_element(&in->cursor, &first, &more);
    if (status == HS_OK) status = read_json_pair(&in->cursor, values, &seen);
    if (status == HS_OK) status = append(in, values);
  }
  return status;
}

/* ---- any format */

/* True if the line is a header of CSV. A column must have the complete name, which could also be a part of an image's
   name. */
static bool names_columns(text_cursor line) {
  const size_t length = strlen(column_names[COLUMN_A]);
  const char *field;
  size_t size;
  while (cursor_field(&line, &field, &size))
    if (size == length && memcmp(field, column_names[COLUMN_A], length) == 0) return true;
  return false;
}

/* Detects the format; the text begins after leading blanks. */
static match_format format_of_text(text_cursor text) {
  if (text.at < text.end && *text.at == '{') return MATCH_FORMAT_JSON;
  return text.at == text.end || names_columns(text) ? MATCH_FORMAT_CSV : MATCH_FORMAT_COLMAP;
}

match_format match_format_of_file(const char *path) {
  uint8_t bytes[SOURCE_BEGINNING_BYTES];
  const feature_source source = {.path = path, .bytes = bytes, .size = source_read_beginning(path, bytes)};
  text_cursor text = cursor_make(&source);
  cursor_skip_blanks(&text, true);
  return format_of_text(text);
}

hs_status match_table_read(const feature_source *source, uint64_t count_a, uint64_t count_b, match_table *table) {
  match_input in = {.cursor = cursor_make(source), .count_a = count_a, .count_b = count_b};
  text_cursor line = in.cursor;
  cursor_skip_blanks(&line, true);
  const match_format format = format_of_text(line);
  hs_status status;
  if (line.at == line.end)
    status = cursor_fail(&in.cursor, "the file is empty");
  else
    status = format == MATCH_FORMAT_JSON  ? read_json(&in)
             : format == MATCH_FORMAT_CSV ? read_csv(&in)
                                          : read_colmap(&in);
  if (status != HS_OK) {
    match_table_free(&in.table);
    return status;
  }
  in.table.count_a = count_a;
  in.table.count_b = count_b;
  *table = in.table;
  return HS_OK;
}

hs_status match_table_load(const char *path, uint64_t count_a, uint64_t count_b, uint64_t max_memory_bytes,
                           const hs_allocator *allocator, match_table *table, char *message, size_t message_bytes) {
  feature_source source = {.path = path,
                           .max_features = MATCHES_MAX,
                           .max_memory_bytes = max_memory_bytes,
                           .allocator = allocator,
                           .message = message,
                           .message_bytes = message_bytes};
  uint8_t *bytes = NULL;
  hs_status status = source_load_file(&source, path, &bytes, &source.size);
  if (status == HS_OK) {
    source.bytes = bytes;
    status = match_table_read(&source, count_a, count_b, table);
  }
  hs_memory_release(allocator, bytes);
  return status;
}
