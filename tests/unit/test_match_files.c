/*
 * Files of matches: every format reads back its output; files of other programs are read, or refused with the line
 * number; no content is trusted.
 */
#include "tests/support/test.h"

#include "os/os_files.h"
#include "pipeline/cli/common/match_file.h"

enum { PAIRS = 5 };

/* A table of a few pairs. The first distance has many digits, and indices reach the maximum. */
typedef struct sample {
  hs_match_pair pairs[PAIRS];
  uint8_t inliers[PAIRS];
  hs_geometry geometry;
  match_table table;
} sample;

static void make_sample(sample *s) {
  *s = (sample){.pairs = {{0, 7, 0.123456791f, 2.0f},
                          {3, 0, 0.0f, 0.0f},
                          {4, 5, 2884.99658f, 2885.0f},
                          {9, 1, 1e-20f, 3.0f},
                          {UINT32_MAX - 1, 2, 250.0f, 300.0f}},
                .inliers = {1, 0, 1, 1, 0},
                .geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0.5, -1e-9, 3}, .inlier_count = 3}};
  s->table = (match_table){.matches = {.count = PAIRS, .pairs = s->pairs},
                           .inliers = s->inliers,
                           .geometry = &s->geometry,
                           .name_a = "folder/a.jpg",
                           .name_b = "b.png.txt",
                           .count_a = UINT32_MAX,
                           .count_b = 8};
}

static hs_status read_text(const char *text, match_table *table, char *message, size_t bytes) {
  const feature_source source = {.path = "file",
                                 .bytes = (const uint8_t *)text,
                                 .size = strlen(text),
                                 .max_features = 1000,
                                 .message = message,
                                 .message_bytes = bytes};
  return match_table_read(&source, 100, 50, table);
}

static void check_pairs(const match_table *found, const hs_match_pair *pairs, size_t count, bool distances) {
  assert_int_equal(found->matches.count, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(found->matches.pairs[i].first, pairs[i].first);
    assert_int_equal(found->matches.pairs[i].second, pairs[i].second);
    assert_true(found->matches.pairs[i].distance == (distances ? pairs[i].distance : 0.0f));
  }
}

TEST(files_come_back) {
  static const char *const names[] = {"m.csv", "m.json", "m.TXT"};
  scoped_folder folder = scratch_folder_new();
  for (int f = 0; f < 3; f++)
    for (int verified = 0; verified < 2; verified++) {
      sample s;
      char path[SCRATCH_PATH_BYTES], message[256] = "";
      make_sample(&s);
      if (!verified) s.table.inliers = NULL, s.table.geometry = NULL;
      scratch_folder_path(&folder, names[f], path);
      const match_format format = match_format_by_ending(path);
      assert_int_equal(format, f);
      assert_int_equal(match_table_save(path, format, &s.table, message, sizeof message), HS_OK);
      SCOPED_BY(match_table_free) match_table found = {0};
      assert_int_equal(match_table_load(path, UINT32_MAX, 8, 0, NULL, &found, message, sizeof message), HS_OK);
      if (format == MATCH_FORMAT_COLMAP && verified) {
        const hs_match_pair kept[] = {s.pairs[0], s.pairs[2], s.pairs[3]};
        check_pairs(&found, kept, 3, false);
      } else {
        check_pairs(&found, s.pairs, PAIRS, format != MATCH_FORMAT_COLMAP);
      }
      const bool kept = verified && format != MATCH_FORMAT_COLMAP;
      assert_int_equal(found.inliers != NULL, kept);
      if (kept) assert_memory_equal(found.inliers, s.inliers, PAIRS);
    }
}

TEST(empty_tables_come_back) {
  for (int f = MATCH_FORMAT_CSV; f <= MATCH_FORMAT_COLMAP; f++) {
    match_table empty = {.name_a = "a", .name_b = "b", .count_a = 100, .count_b = 50}, found = {0};
    char message[256];
    os_text text;
    assert_true(os_text_open(&text));
    match_table_write(text.stream, (match_format)f, &empty);
    assert_true(os_text_close(&text));
    assert_int_equal(read_text(text.text, &found, message, sizeof message), HS_OK);
    assert_int_equal(found.matches.count, 0);
    match_table_free(&found);
    free(text.text);
  }
}

TEST(other_hands_are_read) {
  static const char *const texts[] = {
      "index_b,inlier,index_a\r\n 5 , 1 ,99\r\n\r\n49,0,0",
      "\xef\xbb\xbf{\"x\": [1, {\"y\": null}], \"matches\": [{\"index_b\": 5e0, \"inlier\": true, \"index_a\": 99},\n"
      "{\"index_a\": 0, \"extra\": \"}\", \"index_b\": 49}]}",
      "one.jpg two.jpg\n99 5\n0 49\n\n",
      "index_a.jpg b,index_a.jpg\n99 5\n0 49\n\n"}; /* names that only contain the name of a column */
  const hs_match_pair pairs[] = {{99, 5, 0, 0}, {0, 49, 0, 0}};
  for (int t = 0; t < 4; t++) {
    SCOPED_BY(match_table_free) match_table found = {0};
    char message[256] = "";
    if (read_text(texts[t], &found, message, sizeof message) != HS_OK) fail_msg("%d: %s", t, message);
    check_pairs(&found, pairs, 2, false);
    assert_int_equal(found.inliers != NULL, t < 2);
    if (found.inliers) assert_true(found.inliers[0] == 1 && found.inliers[1] == 0);
  }
}

static const struct {
  const char *text, *words;
} faulty_texts[] = {
    {"", "empty"},
    {" \n\n", "empty"},
    {"index_a,index_b\n1\n", "fewer fields"},
    {"index_a,index_b\n1,2,3\n", "more values"},
    {"index_a,index_b\n100,2\n", "file:2: index_a is not an index below 100"},
    {"index_a,index_b\n1,50\n", "index_b is not an index below 50"},
    {"index_a,index_b\n-1,2\n", "index_a"},
    {"index_a,index_b\n1.5,2\n", "index_a"},
    {"index_a,index_b\nnan,2\n", "finite"},
    {"index_a,distance\n1,2\n", "no column index_b"},
    {"index_a,index_b,index_a\n1,2,3\n", "twice"},
    {"index_a,index_b,colour\n1,2,3\n", "column 3"},
    {"index_a,index_b,distance\n1,2,-3\n", "distance"},
    {"index_a,index_b,distance\n1,2,1e39\n", "distance"},
    {"index_a,index_b,inlier\n1,2,2\n", "inlier"},
    {"index_a,index_b\n\n1\n2\n3\n", "fewer fields"},
    {"index_a,index_b,distance,inlier\n1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n", "too short"},
    {"one\n1 2\n", "names of two images"},
    {"one two three\n1 2\n", "more values"},
    {"one two\n1 2\n\nthree four\n", "finite number"},
    {"one two\n1 2 3\n", "more values"},
    {"one two\n1\n", "missing"},
    {"{}", "no matches"},
    {"{\"matches\": [{\"index_a\": 1}]}", "no index_b"},
    {"{\"matches\": [{\"index_a\": 1, \"index_a\": 1}]}", "twice"},
    {"{\"matches\": [], \"matches\": []}", "twice"},
    {"{\"matches\": [], \"count\": 1}", "count"},
    {"{\"matches\": [], \"count\": -1}", "count"},
    {"{\"matches\": [], \"features_a\": 99}", "features_a is 99, but there are 100 features"},
    {"{\"features_b\": 51, \"matches\": []}", "not those that were matched"},
    {"{\"matches\": []} x", "follows"},
    {"{\"matches\": [{\"index_a\": 1, \"index_b\": 2, \"inlier\": 1}]}", "true or false"},
    {"{\"matches\": [{\"index_a\": 1, \"index_b\": 99}]}", "index_b"},
    {"{\"matches\": [{\"index_a\": 1, \"index_b\": 2}", "ends"},
};

TEST(faults_are_named) {
  for (size_t k = 0; k < sizeof faulty_texts / sizeof faulty_texts[0]; k++) {
    match_table found = {.count_a = 77};
    char message[256] = "";
    const hs_status status = read_text(faulty_texts[k].text, &found, message, sizeof message);
    if (status != HS_ERR_FORMAT || !strstr(message, faulty_texts[k].words))
      fail_msg("'%s' gives %s, '%s'", faulty_texts[k].text, hs_status_name(status), message);
    assert_true(found.count_a == 77 && !found.matches.pairs);
  }
}

TEST(failures_of_files) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES], message[256] = "";
  sample s;
  match_table found = {0};
  make_sample(&s);
  scratch_folder_path(&folder, "absent/m.csv", path);
  assert_int_equal(match_table_save(path, MATCH_FORMAT_CSV, &s.table, message, sizeof message), HS_ERR_IO);
  assert_non_null(strstr(message, path));
  assert_int_equal(match_table_load(path, 1, 1, 0, NULL, &found, message, sizeof message), HS_ERR_IO);
  scratch_folder_path(&folder, "m.txt", path);
  s.table.name_b = "two words.jpg";
  assert_int_equal(match_table_save(path, MATCH_FORMAT_COLMAP, &s.table, message, sizeof message), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "blank"));
  s.table.name_b = "";
  assert_int_equal(match_table_save(path, MATCH_FORMAT_COLMAP, &s.table, message, sizeof message), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "without a name"));
  assert_int_equal(scratch_folder_count(&folder), 0);
}

TEST(every_allocation_may_fail) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES], message[256];
  sample s;
  make_sample(&s);
  scratch_folder_path(&folder, "m.csv", path);
  assert_int_equal(match_table_save(path, MATCH_FORMAT_CSV, &s.table, NULL, 0), HS_OK);
  for (size_t n = 1; n <= 4; n++) {
    scoped_counter counter = {.fail_at = n, .fill = 0xa5};
    const hs_allocator allocator = counted_allocator_make(&counter);
    SCOPED_BY(match_table_free) match_table found = {0};
    const hs_status status = match_table_load(path, UINT32_MAX, 8, 0, &allocator, &found, message, sizeof message);
    assert_int_equal(status, n <= 3 ? HS_ERR_MEMORY : HS_OK);
  }
}

/* Reading needs the file's bytes, and 16 bytes and a flag for each match. */
TEST(memory_is_limited) {
  static const char text[] = "index_a,index_b,inlier\n0,0,1\n1,1,0\n";
  char message[256] = "";
  match_table found = {0};
  feature_source source = {.path = "file",
                           .bytes = (const uint8_t *)text,
                           .size = sizeof text - 1,
                           .max_memory_bytes = sizeof text - 1 + 2 * (sizeof(hs_match_pair) + 1),
                           .message = message,
                           .message_bytes = sizeof message};
  assert_int_equal(match_table_read(&source, 9, 9, &found), HS_OK);
  match_table_free(&found);
  source.max_memory_bytes--;
  assert_int_equal(match_table_read(&source, 9, 9, &found), HS_ERR_LIMIT);
  assert_non_null(strstr(message, "max_memory_bytes"));
}
