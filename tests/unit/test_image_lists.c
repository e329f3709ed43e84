/*
 * Shards of lists of images, and lists as text and by the endings of names.
 */
#include "tests/support/test.h"

#include "pipeline/include/hartsift_batch.h"

/* Defines the variables A=3 and B=x. */
static const char *variable(void *user, const char *name) {
  (void)user;
  return strcmp(name, "A") == 0 ? "3" : strcmp(name, "B") == 0 ? "x" : NULL;
}

TEST(test_shards) {
  static const struct {
    const char *text, *message; /* message: "" if there is none */
    int32_t shard, shards;
  } cases[] = {
      {"2/3", "", 2, 3},
      {"env:A,5", "", 3, 5},
      {"env:A+1,5", "", 4, 5},
      {"4/3", "--shard '4/3': expected I/N with 1 <= I <= N <= 1000000, slurm, or env:INDEX,COUNT", 0, 0},
      {"env:A,C", "--shard 'env:A,C': the variable C is not set", 0, 0},
      {"env:B,5", "--shard 'env:B,5': the variable B is 'x': expected a whole number up to 1000000", 0, 0},
      {"env:A,2", "--shard 'env:A,2': that is shard 3 of 2: expected 1 <= I <= N", 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char message[256] = "";
    int32_t shard = 0, shards = 0;
    const hs_status st = hs_find_shard(cases[i].text, variable, NULL, &shard, &shards, message, sizeof message);
    assert_string_equal(message, cases[i].message);
    assert_int_equal(st, message[0] == '\0' ? HS_OK : HS_ERR_ARGUMENT);
    if (st == HS_OK) assert_int_equal(shard, cases[i].shard);
    if (st == HS_OK) assert_int_equal(shards, cases[i].shards);
  }
}

/* Joins names by '|'; refuses the name "full". */
static int32_t join(void *user, const char *name) {
  char *joined = user;
  if (strcmp(name, "full") == 0) return 0;
  strcat(strcat(joined, name), "|");
  return 1;
}

TEST(test_lists_of_names) {
  static const struct {
    const char *text;
    size_t size;
    int32_t zero_ended;
    const char *joined, *message;
    hs_status status;
  } cases[] = {
      {"a.png\r\n\n b\n-\nlast", 17, 0, "a.png| b|./-|last|", "", HS_OK},
      {"\xef\xbb\xbf"
       "a",
       4, 0, "a|", "", HS_OK},
      {"a\nb\r\0c", 6, 1, "a\nb\r|c|", "", HS_OK},
      {"a\0b\n", 4, 0, "", "LIST: is no text: expected a folder, or a list with one image a line", HS_ERR_ARGUMENT},
      {"\xff\xfe"
       "a",
       3, 0, "", "LIST: is in UTF-16: expected a list in UTF-8, with one image a line", HS_ERR_ARGUMENT},
      {"a\nfull\nb", 8, 0, "a|", "", HS_ERR_MEMORY},
      {"", 0, 0, "", "", HS_OK},
  };
  static const char *const names[] = {"a.PNG", "b.HEIC", "c/d.heic", "notes", "e.jpeg"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char joined[64] = "", message[256] = "";
    const hs_image_search search = {.take = join, .user = joined};
    const hs_status st =
        hs_read_image_list(cases[i].text, cases[i].size, "LIST", cases[i].zero_ended, &search, message, sizeof message);
    assert_int_equal(st, cases[i].status);
    assert_string_equal(joined, cases[i].joined);
    assert_string_equal(message, cases[i].message);
  }
  char text[128];
  assert_int_equal(hs_explain_passed_over(names, 5, text, sizeof text), HS_OK);
  assert_string_equal(text, "3 files were passed over by their endings: 2 .heic, 1 without one");
  const char *const missing[] = {"a.txt", NULL};
  assert_int_equal(hs_explain_passed_over(missing, 2, text, sizeof text), HS_ERR_ARGUMENT);
  assert_string_equal(text, "");
  assert_true(hs_is_image_name("a.Tiff") == 1 && hs_is_image_name(".png") == 0 && hs_is_image_name("png") == 0);
}

/* Every call sets the message, so that the message of an earlier call is not mistaken for it. */
TEST(test_messages_of_wrong_calls) {
  char message[64] = "earlier";
  int32_t shard, shards;
  const hs_image_search later = {.take = join, .reserved = {1}};
  assert_int_equal(hs_read_image_list("a", 1, "LIST", 0, &later, message, sizeof message), HS_ERR_ARGUMENT);
  assert_string_equal(message, "");
  strcpy(message, "earlier");
  assert_int_equal(hs_find_shard(NULL, variable, NULL, &shard, &shards, message, sizeof message), HS_ERR_ARGUMENT);
  assert_string_equal(message, "");
}
