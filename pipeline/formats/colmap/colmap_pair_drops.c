/*
 * Removes entries of pairs whose indices are of features that are gone, together with an image's features.
 */
#include "pipeline/formats/colmap/colmap_internal.h"

/* Where an image has the lower number, its pairs are a range of numbers; where it has the higher one, there is one number
   for each image below it. A scan of the table would read all matches. */
#define DROP_PAIRS(table)                                                                                              \
  {                                                                                                                    \
    "DELETE FROM " table " WHERE pair_id > ?1 * 2147483647 AND pair_id < (?1 + 1) * 2147483647",                       \
        "DELETE FROM " table " WHERE pair_id IN (SELECT image_id * 2147483647 + ?1 FROM images WHERE image_id < ?1)"   \
  }

enum { PAIR_TABLES = 4, DROPS_OF_TABLE = 2 };

static const char *const drop_pairs[PAIR_TABLES][DROPS_OF_TABLE] = {
    DROP_PAIRS("matches"),
    DROP_PAIRS("two_view_geometries"),
    DROP_PAIRS("hartsift_doubtful_pairs"),
    DROP_PAIRS("hartsift_guided"),
};

hs_status colmap_drop_pairs_of(hs_colmap_database *database, int64_t image_id) {
  static const char has_entries[] =
      "SELECT EXISTS (SELECT 1 FROM matches) OR EXISTS (SELECT 1 FROM two_view_geometries)";
  const bool is_there[PAIR_TABLES] = {true, true, database->schema.has_doubtful, database->schema.has_guided};
  int64_t has_any = 0;
  hs_status status = colmap_query(database, has_entries, 0, &has_any, NULL);
  if (has_any == 0) return status;
  for (int table = 0; table < PAIR_TABLES; table++)
    for (int i = 0; status == HS_OK && is_there[table] && i < DROPS_OF_TABLE; i++)
      status = colmap_query(database, drop_pairs[table][i], image_id, NULL, NULL);
  return status;
}

hs_status colmap_forget_pair(hs_colmap_database *database, int64_t pair_id) {
  static const char forget_doubtful[] = "DELETE FROM hartsift_doubtful_pairs WHERE pair_id = ?";
  static const char forget_guided[] = "DELETE FROM hartsift_guided WHERE pair_id = ?";
  hs_status status = HS_OK;
  if (database->schema.has_doubtful) status = colmap_query(database, forget_doubtful, pair_id, NULL, NULL);
  if (status == HS_OK && database->schema.has_guided)
    status = colmap_query(database, forget_guided, pair_id, NULL, NULL);
  return status;
}

/* Whether a pair has an entry of an image whose number is image_id or higher. */
static const char find_strays[] =
    "SELECT EXISTS (SELECT 1 WHERE (EXISTS (SELECT 1 FROM matches) OR EXISTS (SELECT 1 FROM two_view_geometries))"
    " AND (EXISTS (SELECT 1 FROM images WHERE"
    " EXISTS (SELECT 1 FROM matches WHERE pair_id >= images.image_id * 2147483647 + ?1"
    " AND pair_id < (images.image_id + 1) * 2147483647)"
    " OR EXISTS (SELECT 1 FROM two_view_geometries WHERE pair_id >= images.image_id * 2147483647 + ?1"
    " AND pair_id < (images.image_id + 1) * 2147483647))"
    " OR EXISTS (SELECT 1 FROM matches WHERE pair_id > ?1 * 2147483647)"
    " OR EXISTS (SELECT 1 FROM two_view_geometries WHERE pair_id > ?1 * 2147483647)))";

/* Numbers of images that were removed come back where the table's sequence was reset. New numbers only grow, so one look
   in a transaction is enough. */
hs_status colmap_drop_strays_of(hs_colmap_database *database, int64_t image_id) {
  hs_status status = HS_OK;
  if (database->strays == COLMAP_STRAYS_UNKNOWN) {
    int64_t found = 0;
    status = colmap_query(database, find_strays, image_id, &found, NULL);
    if (status == HS_OK) database->strays = found != 0 ? COLMAP_STRAYS_SOME : COLMAP_STRAYS_NONE;
  }
  return status == HS_OK && database->strays == COLMAP_STRAYS_SOME ? colmap_drop_pairs_of(database, image_id) : status;
}
