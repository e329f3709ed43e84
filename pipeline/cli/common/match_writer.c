/*
 * Writing of matches; see match_file.h.
 */
#include <string.h>
#include <strings.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/formats/common/json_writer.h"
#include "pipeline/cli/common/match_file.h"
#include "pipeline/include/hartsift_geometry.h"
#include "pipeline/base/message.h"
#include "pipeline/base/path_text.h"

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

/* The name of an image as COLMAP knows it: without the .txt of its text features. */
static size_t colmap_name(const match_table *table, int image, const char **start) {
  const char *name = image == 0 ? table->name_a : table->name_b;
  const char *slash = name ? strrchr(name, '/') : NULL;
  *start = table->colmap_names[image] ? table->colmap_names[image] : slash ? slash + 1 : name;
  const size_t length = *start ? strlen(*start) : 0;
  const bool text = length > 4 && strcasecmp(*start + length - 4, ".txt") == 0;
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

/* Why COLMAP's text cannot hold a name, null when it can: it is a word in a line, so that one with a blank would read
   as two. */
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
    if (fault) {
      hs_message_set(message, message_bytes, "%s: COLMAP's text cannot hold %s", path, fault);
      return HS_ERR_ARGUMENT;
    }
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
