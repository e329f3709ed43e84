/* Pairs of images that look alike: by vectors of the features or of a file; see pair_list.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/common/text_cursor.h"

/* ---- vectors of the features */

/* Number of descriptors and of images, spread over the collection, with which the vocabulary is trained; number of
 * neighbours for blending. */
enum { SAMPLE_DESCRIPTORS = 262144, SAMPLE_IMAGES = 2048, BLENDED_NEIGHBORS = 3 };

typedef struct looks {
  const pair_source *source;
  hs_retrieval *retrieval;
  hs_features features;
  int8_t *vectors; /* [images][hs_retrieval_length] */
} looks;

/* Reads an image's features; if they have no descriptors, none. */
static cli_exit read_features(looks *l, size_t image) {
  const pair_source *source = l->source;
  if (hs_colmap_read_features(source->database, source->images->each[image].image_id, &l->features) != HS_OK)
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(source->database));
  if (l->features.descriptor_type == HS_DESCRIPTOR_NONE) l->features.count = 0;
  return CLI_DONE;
}

/* Trains on descriptors of images that are spread evenly over the collection; *has_any: there are descriptors. */
static cli_exit train(looks *l, bool *has_any) {
  const size_t count = l->source->images->count, taken = count < SAMPLE_IMAGES ? count : SAMPLE_IMAGES;
  size_t features = 0;
  for (size_t i = 0; i < taken; i++) {
    const cli_exit result = read_features(l, (2 * i + 1) * count / (2 * taken));
    if (result != CLI_DONE) return result;
    features += l->features.count;
    const hs_status status = hs_retrieval_sample(l->retrieval, &l->features, (SAMPLE_DESCRIPTORS + taken - 1) / taken);
    if (status != HS_OK) return database_images_fail(l->source->images, hs_status_string(status));
  }
  *has_any = features > 0;
  const hs_status status = features > 0 ? hs_retrieval_train(l->retrieval, l->source->context) : HS_OK;
  return status == HS_OK ? CLI_DONE : database_images_fail_status(l->source->images, l->source->context, status);
}

static cli_exit describe_all(looks *l) {
  const size_t length = hs_retrieval_length(l->retrieval);
  for (size_t i = 0; i < l->source->images->count; i++) {
    const cli_exit result = read_features(l, i);
    if (result != CLI_DONE) return result;
    const hs_status status =
        hs_retrieval_describe(l->retrieval, l->source->context, &l->features, l->vectors + i * length);
    if (status != HS_OK) return database_images_fail_status(l->source->images, l->source->context, status);
  }
  return CLI_DONE;
}

/* Replaces each image's vector by its blend with the neighbours' vectors. */
static cli_exit blend(looks *l) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  int8_t *blended = malloc(count * length);
  if (!blended) return database_images_fail(l->source->images, "out of memory for the vectors of its images");
  const hs_status status = hs_blend_similar(l->source->context, l->vectors, count, length, BLENDED_NEIGHBORS, blended);
  free(l->vectors);
  l->vectors = blended;
  return status == HS_OK ? CLI_DONE : database_images_fail_status(l->source->images, l->source->context, status);
}

/* Returns the maximum bytes of the sample. While it grows, the old and the doubled buffer both exist. */
static double sample_bytes(const pair_source *source) {
  double features = 0.0;
  for (size_t i = 0; i < source->images->count; i++) features += (double)source->images->each[i].features;
  return 3.0 * HS_DESCRIPTOR_LENGTH * fmin(features, SAMPLE_DESCRIPTORS + SAMPLE_IMAGES);
}

static cli_exit make_vectors(looks *l, uint32_t candidates) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  const uint64_t limit = l->source->max_memory_bytes;
  const double each = 2.0 * (double)length + 16.0 * (double)(candidates < count ? candidates : count);
  const double bytes = (double)count * each + sample_bytes(l->source);
  if (limit > 0 && bytes > (double)limit)
    return cli_fail(CLI_FAILED, COMMAND_MATCH,
                    "%s: %.0f bytes are needed to compare its %zu images: expected a larger --max-memory",
                    l->source->images->path, bytes, count);
  l->vectors = bytes < (double)SIZE_MAX / 2 ? malloc(count * length) : NULL;
  return l->vectors ? CLI_DONE : database_images_fail(l->source->images, "out of memory for the vectors of its images");
}

/* hs_collection.read, called while the thread of the command waits */
static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  const pair_source *source = user;
  const hs_status status = hs_colmap_read_features(source->database, source->images->each[image].image_id, features);
  if (status != HS_OK) snprintf(message, message_bytes, "%s", hs_colmap_last_error(source->database));
  return status;
}

/* Chooses from the candidates the pairs that match best. */
static cli_exit choose_matching(const pair_source *source, const hs_image_pairs *candidates, uint32_t neighbors,
                                hs_image_pairs *pairs) {
  const size_t count = source->images->count;
  hs_collection_image *images = calloc(count, sizeof *images);
  if (!images) return database_images_fail(source->images, "out of memory for its images");
  for (size_t i = 0; i < count; i++) images[i].feature_count = source->images->each[i].features;
  const hs_collection collection = {
      .images = images, .image_count = count, .read = read_image, .user = (void *)(uintptr_t)source};
  const hs_status status =
      hs_pair_matching(source->context, &collection, candidates->pairs, candidates->count, neighbors, pairs);
  free(images);
  return status == HS_OK ? CLI_DONE : database_images_fail_status(source->images, source->context, status);
}

/* Finds the most similar images of each image with vectors of the features. */
static cli_exit list_candidates(const pair_source *source, uint32_t count, hs_image_pairs *candidates) {
  looks l = {.source = source};
  bool has_any = false;
  hs_status status = hs_retrieval_create(&l.retrieval, NULL);
  cli_exit result =
      status == HS_OK ? make_vectors(&l, count) : database_images_fail(source->images, hs_status_string(status));
  if (result == CLI_DONE) result = train(&l, &has_any);
  if (result == CLI_DONE && has_any) result = describe_all(&l);
  if (result == CLI_DONE && has_any) result = blend(&l);
  if (result == CLI_DONE && has_any) {
    status = hs_pair_similar(source->context, l.vectors, source->images->count, hs_retrieval_length(l.retrieval), count,
                             candidates);
    if (status != HS_OK) result = database_images_fail_status(source->images, source->context, status);
  }
  free(l.vectors);
  hs_features_free(&l.features);
  hs_retrieval_destroy(l.retrieval);
  return result;
}

/* ---- vectors of a file: rows of a NumPy array in a .npy file, and a line with an image's name for each in a .txt file

   The format of .npy files is in NumPy's documentation, numpy.lib.format: a mark, a version, the length of a header,
   and the header, a Python dictionary with the keys descr, fortran_order and shape. */

enum { VECTOR_NAME_BYTES = 8192, NPY_HEADER_MAX = 65536, NPY_LENGTH_MAX = 65536 };

typedef struct vector_name {
  char *name;
  size_t row;
} vector_name;

typedef struct vector_file {
  const char *path;
  FILE *file;
  uint64_t rows, length; /* shape */
  char kind;             /* 'f' or 'i' */
  size_t bytes;          /* bytes of a number */
  vector_name *names;    /* sorted by name */
  size_t name_count;
} vector_file;

static cli_exit refuse_file(const char *path, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: %s", path, reason);
}

/* Returns the text after `key` and a colon in the header; null: the key is missing. */
static const char *value_of(const char *header, const char *key) {
  const char *at = strstr(header, key);
  if (!at) return NULL;
  at += strlen(key);
  at += strspn(at, " ");
  if (*at != ':') return NULL;
  at++;
  return at + strspn(at, " ");
}

/* Parses a number and the blanks and comma after it. */
static bool parse_extent(const char **at, uint64_t *value) {
  const size_t digits = strspn(*at, "0123456789");
  int64_t parsed;
  if (digits == 0 || !number_to_int(*at, digits, &parsed) || parsed < 0) return false;
  *at += digits;
  *at += strspn(*at, " ,");
  *value = (uint64_t)parsed;
  return true;
}

static const char *parse_header(vector_file *f, const char *header) {
  static const struct {
    const char *descr;
    char kind;
    size_t bytes;
  } types[] = {{"'<f4'", 'f', 4}, {"'<f8'", 'f', 8}, {"'<f2'", 'f', 2}, {"'|i1'", 'i', 1}};
  const char *descr = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'"),
             *shape = value_of(header, "'shape'");
  if (!descr || !order || !shape) return "has no header of a NumPy array";
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (strncmp(descr, types[i].descr, strlen(types[i].descr)) == 0) {
      f->kind = types[i].kind;
      f->bytes = types[i].bytes;
    }
  if (f->bytes == 0) return "has numbers of another type: expected float16, float32, float64 or int8, little-endian";
  if (strncmp(order, "False", strlen("False")) != 0)
    return "is in Fortran order: expected rows (numpy.ascontiguousarray)";
  if (*shape++ != '(' || !parse_extent(&shape, &f->rows) || !parse_extent(&shape, &f->length) || *shape != ')' ||
      f->length < 1 || f->length > NPY_LENGTH_MAX || f->rows > INT32_MAX)
    return "has another shape: expected (images, numbers of a vector), at most 65536 numbers";
  return NULL;
}

/* Reads the header, and checks that the rows fill the rest of the file. */
static const char *read_header(vector_file *f) {
  static const unsigned char mark[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  unsigned char start[12];
  const size_t fixed = 10;
  if (fread(start, 1, fixed, f->file) != fixed || memcmp(start, mark, sizeof mark) != 0) return "is no .npy file";
  const bool is_wide = start[6] >= 2;
  size_t size = start[8] | (size_t)start[9] << 8, before = fixed;
  if (start[6] < 1 || start[6] > 3) return "has an unknown version: expected 1 to 3";
  if (is_wide) {
    if (fread(start + fixed, 1, 2, f->file) != 2) return "ends within its header";
    size |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    before += 2;
  }
  if (size > NPY_HEADER_MAX) return "has a header of more than 64 KiB";
  char *header = malloc(size + 1);
  if (!header) return "out of memory for its header";
  const char *fault = fread(header, 1, size, f->file) == size ? NULL : "ends within its header";
  header[fault ? 0 : size] = '\0';
  if (!fault) fault = parse_header(f, header);
  free(header);
  os_info info;
  if (fault) return fault;
  if (!os_info_of(f->path, &info) || info.size != before + size + f->rows * f->length * f->bytes)
    return "has another size than its shape says: it was cut off, or is not finished";
  return NULL;
}

static float half_value(const unsigned char *b) {
  const unsigned bits = b[0] | (unsigned)b[1] << 8, exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023;
  double value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, (int)exponent - 25);
  if (exponent == 31) value = INFINITY;
  return (float)(bits >> 15 ? -value : value);
}

static float number_of(const vector_file *f, const unsigned char *b) {
  uint64_t bits = 0;
  if (f->bytes == 2) return half_value(b);
  for (size_t i = 0; i < f->bytes; i++) bits |= (uint64_t)b[i] << 8 * i;
  if (f->bytes == 4) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
  }
  double value;
  memcpy(&value, &bits, sizeof value);
  return (float)value;
}

/* Reads the next row. bytes, numbers: working memory for a row. */
static const char *read_row(const vector_file *f, unsigned char *bytes, float *numbers, int8_t *vector) {
  const size_t length = (size_t)f->length;
  if (fread(bytes, f->bytes, length, f->file) != length) return "cannot be read";
  if (f->kind == 'i') {
    memcpy(vector, bytes, length);
    return NULL;
  }
  for (size_t i = 0; i < length; i++) numbers[i] = number_of(f, bytes + i * f->bytes);
  return hs_round_vectors(numbers, 1, length, vector) == HS_OK ? NULL : "has a number that is not finite";
}

static int compare_vector_names(const void *one, const void *other) {
  return strcmp(((const vector_name *)one)->name, ((const vector_name *)other)->name);
}

static cli_exit add_name(vector_file *f, const char *path, const char *line) {
  if (f->name_count == f->rows)
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: has more lines than the %zu rows of %s", path,
                    (size_t)f->rows, f->path);
  char *name = strdup(line);
  if (!name) return refuse_file(path, "out of memory for its names");
  f->names[f->name_count] = (vector_name){name, f->name_count};
  f->name_count++;
  return CLI_DONE;
}

static cli_exit read_name_lines(vector_file *f, const char *path, FILE *file) {
  char line[VECTOR_NAME_BYTES];
  for (size_t number = 1; fgets(line, sizeof line, file) != NULL; number++) {
    const size_t length = strcspn(line, "\r\n"), mark = number == 1 ? utf8_mark_length(line, length) : 0;
    if ((line[length] == '\0' && !feof(file)) || length == mark)
      return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s:%zu: expected the name of an image", path, number);
    line[length] = '\0';
    const cli_exit result = add_name(f, path, line + mark);
    if (result != CLI_DONE) return result;
  }
  if (ferror(file)) return refuse_file(path, "cannot be read");
  if (f->name_count < f->rows)
    return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: has %zu lines, and %s %zu rows: expected a name for each",
                    path, f->name_count, f->path, (size_t)f->rows);
  if (f->name_count > 1) qsort(f->names, f->name_count, sizeof *f->names, compare_vector_names);
  for (size_t i = 1; i < f->name_count; i++)
    if (strcmp(f->names[i - 1].name, f->names[i].name) == 0)
      return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: has '%s' twice", path, f->names[i].name);
  return CLI_DONE;
}

static cli_exit read_names(vector_file *f) {
  char *path = strdup(f->path);
  f->names = malloc(((size_t)f->rows + 1) * sizeof *f->names);
  if (!path || !f->names) {
    free(path);
    return refuse_file(f->path, "out of memory for its names");
  }
  memcpy(path + strlen(path) - 4, ".txt", 4);
  FILE *file = os_open_stream(path, "r");
  cli_exit result = CLI_FAILED;
  if (file) {
    result = read_name_lines(f, path, file);
    (void)fclose(file);
  } else {
    (void)cli_fail(CLI_FAILED, COMMAND_MATCH,
                   "--pairs: %s: cannot be opened: %s; expected the name of each row's image", path, strerror(errno));
  }
  free(path);
  return result;
}

/* Returns, for each row of the file, the image that it belongs to; UINT32_MAX: none. *found: number of images. */
static uint32_t *images_of_rows(const vector_file *f, const database_images *images, size_t *found) {
  uint32_t *image = malloc(((size_t)f->rows + 1) * sizeof *image);
  if (!image) return NULL;
  for (size_t i = 0; i < f->rows; i++) image[i] = UINT32_MAX;
  *found = 0;
  for (size_t i = 0; i < images->count; i++) {
    const vector_name key = {.name = images->each[i].name};
    const vector_name *name = bsearch(&key, f->names, f->name_count, sizeof key, compare_vector_names);
    if (!name) continue;
    image[name->row] = (uint32_t)i;
    (*found)++;
  }
  return image;
}

static cli_exit read_rows(vector_file *f, const uint32_t *image, int8_t *vectors) {
  const size_t length = (size_t)f->length;
  unsigned char *bytes = malloc(length * f->bytes);
  float *numbers = malloc(length * sizeof *numbers);
  int8_t *unused = malloc(length); /* row of an image that is not in the database */
  const char *fault = bytes && numbers && unused ? NULL : "out of memory for a row";
  for (size_t row = 0; row < f->rows && !fault; row++)
    fault = read_row(f, bytes, numbers, image[row] == UINT32_MAX ? unused : vectors + image[row] * length);
  free(bytes);
  free(numbers);
  free(unused);
  return fault ? refuse_file(f->path, fault) : CLI_DONE;
}

static size_t count_zeros(const int8_t *vectors, size_t count, size_t length) {
  size_t zeros = 0;
  for (size_t i = 0; i < count; i++) {
    size_t k = 0;
    while (k < length && vectors[i * length + k] == 0) k++;
    zeros += k == length;
  }
  return zeros;
}

static cli_exit place_rows(vector_file *f, const pair_source *source, int8_t **vectors) {
  const size_t count = source->images->count;
  size_t found;
  uint32_t *image = images_of_rows(f, source->images, &found);
  *vectors = image && f->length <= SIZE_MAX / count ? calloc(count, (size_t)f->length) : NULL;
  cli_exit result = *vectors ? CLI_DONE : refuse_file(f->path, "out of memory for its vectors");
  if (result == CLI_DONE && found == 0) result = refuse_file(f->path, "none of its names is an image of the database");
  if (result == CLI_DONE) result = read_rows(f, image, *vectors);
  free(image);
  if (result == CLI_DONE) {
    const size_t without = count_zeros(*vectors, count, (size_t)f->length);
    if (without > 0 && !source->set->values[OPTION_QUIET].is_set)
      cli_note("%s: %zu of %zu images have no vector in %s, or one of zeros, and are matched with none",
               source->images->path, without, count, f->path);
    return CLI_DONE;
  }
  free(*vectors);
  *vectors = NULL;
  return result;
}

/* Compares the memory for the vectors, the names and the search of neighbours with the limit. */
static const char *check_memory(const vector_file *f, const pair_source *source, uint32_t neighbors) {
  const size_t count = source->images->count;
  const double each = (double)f->length + 16.0 * (double)(neighbors < count ? neighbors : count) + 12.0;
  const double names = (double)f->rows * (double)(sizeof(uint32_t) + sizeof *f->names);
  const bool fits = source->max_memory_bytes == 0 || (double)count * each + names <= (double)source->max_memory_bytes;
  return fits ? NULL : "its vectors, and the neighbours of each image, do not fit --max-memory";
}

/* Fills vectors[images][*length] from the rows of the file; for free(). On failure *vectors is null. */
static cli_exit read_vectors(const pair_choice *choice, const pair_source *source, int8_t **vectors, size_t *length) {
  const char *path = choice->vectors;
  vector_file f = {.path = path, .file = os_open_stream(path, "rb")};
  *vectors = NULL;
  if (!f.file) return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: cannot be opened: %s", path, strerror(errno));
  const char *fault = read_header(&f);
  if (!fault) fault = check_memory(&f, source, choice->neighbors);
  cli_exit result = fault ? refuse_file(path, fault) : read_names(&f);
  if (result == CLI_DONE) result = place_rows(&f, source, vectors);
  for (size_t i = 0; i < f.name_count; i++) free(f.names[i].name);
  free(f.names);
  (void)fclose(f.file);
  *length = (size_t)f.length;
  return result;
}

/* ---- pairs */

/* Finds the most similar images by the vectors of a file. */
static cli_exit pair_by_vectors(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  int8_t *vectors;
  size_t length;
  const cli_exit result = read_vectors(choice, source, &vectors, &length);
  if (result != CLI_DONE) return result;
  const hs_status status =
      hs_pair_similar(source->context, vectors, source->images->count, length, choice->neighbors, pairs);
  free(vectors);
  return status == HS_OK ? CLI_DONE : database_images_fail_status(source->images, source->context, status);
}

cli_exit pair_by_looks(const pair_choice *choice, const pair_source *source, hs_image_pairs *pairs) {
  hs_image_pairs candidates = {0};
  if (source->images->count < 2) return CLI_DONE;
  if (choice->vectors) return pair_by_vectors(choice, source, pairs);
  cli_exit result = list_candidates(source, hs_shortlist_length(choice->neighbors), &candidates);
  if (result == CLI_DONE) result = choose_matching(source, &candidates, choice->neighbors, pairs);
  hs_image_pairs_free(&candidates);
  return result;
}
