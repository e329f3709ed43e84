/*
 * One image of COLMAP's database as a feature file: its features are added to an existing database, or read by the
 * image's name.
 */
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/formats.h"

static hs_status colmap_db_write(const feature_target *target) {
  if (strcmp(target->path, "-") == 0)
    return target_fail(target, HS_ERR_ARGUMENT, "a database cannot go to standard output");
  if (!target->image_name || target->image_name[0] == '\0')
    return target_fail(target, HS_ERR_ARGUMENT, "a database needs the name of the image");
  const hs_colmap_options options = {.struct_size = sizeof options,
                                     .layout = target->layout,
                                     .allocator = target->allocator,
                                     .message = target->message,
                                     .message_bytes = target->message_bytes};
  hs_colmap_database *database;
  hs_status status = hs_colmap_open(&database, target->path, &options);
  if (status != HS_OK) return status;
  status = hs_colmap_add_image(database, target->image_name, NULL, target->features, NULL);
  if (status == HS_OK) status = hs_colmap_commit(database);
  if (status != HS_OK) hs_message_set(target->message, target->message_bytes, "%s", hs_colmap_last_error(database));
  hs_colmap_close(database);
  return status;
}

/* Finds an image by its complete name, or else by the name without leading folders, because names in a database are
   relative to some folder. */
static hs_status find_named(hs_colmap_database *database, const char *name, hs_colmap_image *image) {
  hs_status status = HS_OK;
  while (name) {
    status = hs_colmap_find_image(database, name, image);
    if (status != HS_OK || image->found != 0) return status;
    const char *slash = strchr(name, '/');
    name = slash ? slash + 1 : NULL;
  }
  return status;
}

static hs_status find_only(hs_colmap_database *database, hs_colmap_image *image, bool *several) {
  hs_colmap_image second;
  hs_status status = hs_colmap_next_image(database, -1, image);
  if (status != HS_OK || image->found == 0) return status;
  status = hs_colmap_next_image(database, image->image_id, &second);
  *several = second.found != 0;
  return status;
}

static hs_status read_image(const feature_source *source, hs_colmap_database *database, hs_features *features) {
  const char *name = source->image_name;
  hs_colmap_image image = {0};
  bool several = false;
  hs_status status = name ? find_named(database, name, &image) : find_only(database, &image, &several);
  if (status == HS_OK && several) return source_fail(source, HS_ERR_ARGUMENT, "has several images: name one of them");
  if (status == HS_OK && image.found == 0)
    return source_fail(source, HS_ERR_ARGUMENT, "has no image %s", name ? name : "at all");
  if (status == HS_OK) status = hs_colmap_read_features(database, image.image_id, features);
  if (status != HS_OK) hs_message_set(source->message, source->message_bytes, "%s", hs_colmap_last_error(database));
  return status;
}

/* Returns the number of features that max_features and max_memory_bytes allow, including the data of their rows. */
static uint64_t features_most(const feature_source *source) {
  const uint64_t each = sizeof(hs_keypoint) + 2 * HS_DESCRIPTOR_LENGTH + 6 * sizeof(float);
  const uint64_t fitting = machine_memory_limit(source->max_memory_bytes) / each;
  return source->max_features < fitting ? source->max_features : fitting > 0 ? fitting : 1;
}

static hs_status colmap_db_read_from(const feature_source *source, hs_features *features) {
  const hs_colmap_options options = {.struct_size = sizeof options,
                                     .read_only = 1,
                                     .max_features = features_most(source),
                                     .allocator = source->allocator,
                                     .message = source->message,
                                     .message_bytes = source->message_bytes};
  hs_colmap_database *database;
  hs_status status = hs_colmap_open(&database, source->path, &options);
  if (status != HS_OK) return status;
  status = read_image(source, database, features);
  hs_colmap_close(database);
  return status;
}

static hs_status colmap_db_read(const feature_source *source, hs_features *features) {
  (void)features;
  return source_fail(source, HS_ERR_UNSUPPORTED, "a database is read from its file only");
}

static bool colmap_db_probe(const uint8_t *bytes, size_t size) {
  static const char signature[16] = "SQLite format 3";
  return size >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

const feature_format format_colmap_db = {.id = HS_FORMAT_COLMAP_DB,
                                         .name = "colmap-db",
                                         .summary = "COLMAP's database, SQLite",
                                         .endings = {".db"},
                                         .without_descriptors = true,
                                         .as_stored = true,
                                         .read = colmap_db_read,
                                         .probe = colmap_db_probe,
                                         .write_into = colmap_db_write,
                                         .read_from = colmap_db_read_from};
