/* Pairs of images that look alike: by vectors of the features or of a file; see pair_list.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/formats/common/npy_array.h"

/* ---- progress: a line at a terminal for each step */

enum { SHOW_EACH_MS = 100 };

typedef struct search_step {
  progress_line line;
  hs_context *context;
  size_t count; /* number of images or pairs */
  double shown_at;
} search_step;

static void step_show(search_step *step, size_t done) {
  const double now = cli_milliseconds();
  if (!step->line.on_terminal || now - step->shown_at < SHOW_EACH_MS) return;
  step->shown_at = now;
  progress_line_draw(&step->line, done, step->count, done, 0);
}

/* hs_progress_function */
static int32_t step_report(void *user, uint64_t done, uint64_t total) {
  search_step *step = user;
  step_show(step, total > 0 ? (size_t)((double)step->count * (double)done / (double)total) : 0);
  return 0;
}

static void step_begin(search_step *step, const pair_source *source, const char *what, size_t count) {
  *step = (search_step){.context = source->context, .count = count, .shown_at = -SHOW_EACH_MS};
  progress_line_begin(&step->line, source->set->values[OPTION_QUIET].is_set);
  step->line.what = what;
  step_show(step, 0);
}

/* As step_begin, for one call of the library, which reports its progress. */
static void step_begin_call(search_step *step, const pair_source *source, const char *what, size_t count) {
  step_begin(step, source, what, count);
  if (step->line.on_terminal) (void)hs_set_progress(source->context, step_report, step);
}

/* Removes the line; required before a message. */
static void step_end(search_step *step) {
  (void)hs_set_progress(step->context, NULL, NULL);
  progress_line_clear(&step->line);
}

/* ---- vectors of the features */

/* Number of descriptors and of images, spread over the collection, with which the vocabulary is trained; number of
 * neighbours for blending. */
enum { SAMPLE_DESCRIPTORS = 262144, SAMPLE_IMAGES = 2048, BLENDED_NEIGHBORS = 3 };

typedef struct looks {
  const pair_source *source;
  hs_retrieval *retrieval;
  hs_features features;
  int8_t *vectors;        /* [images][hs_retrieval_length] */
  bool lacks_descriptors; /* an image has features without descriptors */
  size_t unreadable;      /* first image that could not be read while images were described; SIZE_MAX: none */
  char reason[512];       /* its reason */
  search_step step;
} looks;

/* Prints the reason why the library failed in the current step. */
static cli_exit fail_step(looks *l, hs_status status) {
  step_end(&l->step);
  return database_images_fail_status(l->source->images, l->source->context, status);
}

static cli_exit fail_reading(looks *l, const char *reason) {
  step_end(&l->step);
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", reason);
}

static void leave_without_descriptors(looks *l, hs_features *features) {
  if (features->descriptor_type != HS_DESCRIPTOR_NONE || features->count == 0) return;
  l->lacks_descriptors = true;
  features->count = 0;
}

/* Reads an image's features; if they have no descriptors, none. */
static cli_exit read_features(looks *l, size_t image) {
  const pair_source *source = l->source;
  if (hs_colmap_read_features(source->database, source->images->each[image].image_id, &l->features) != HS_OK)
    return fail_reading(l, hs_colmap_last_error(source->database));
  leave_without_descriptors(l, &l->features);
  return CLI_DONE;
}

/* Trains on descriptors of images that are spread evenly over the collection; *has_any: there are descriptors. */
static cli_exit train(looks *l, bool *has_any) {
  const size_t count = l->source->images->count, taken = count < SAMPLE_IMAGES ? count : SAMPLE_IMAGES;
  size_t features = 0;
  hs_status status = HS_OK;
  step_begin(&l->step, l->source, "learning from images", taken);
  for (size_t i = 0; i < taken && status == HS_OK; i++) {
    const cli_exit result = read_features(l, (2 * i + 1) * count / (2 * taken));
    if (result != CLI_DONE) return result;
    features += l->features.count;
    status = hs_retrieval_sample(l->retrieval, &l->features, (SAMPLE_DESCRIPTORS + taken - 1) / taken);
    step_show(&l->step, i + 1);
  }
  *has_any = features > 0;
  if (status == HS_OK && features > 0) status = hs_retrieval_train(l->retrieval, l->source->context);
  if (status != HS_OK) return fail_step(l, status);
  step_end(&l->step);
  return CLI_DONE;
}

/* Returns the database's images for `read`; for free(). null: out of memory. */
static hs_collection_image *list_images(const pair_source *source) {
  hs_collection_image *images = calloc(source->images->count, sizeof *images);
  for (size_t i = 0; images && i < source->images->count; i++)
    images[i].feature_count = source->images->each[i].features;
  return images;
}

/* hs_collection.read: an image without descriptors has no features. */
static hs_status read_described(void *user, uint32_t image, hs_features *features, char *message,
                                size_t message_bytes) {
  looks *l = user;
  const pair_source *source = l->source;
  const hs_status status = hs_colmap_read_features(source->database, source->images->each[image].image_id, features);
  (void)message;
  (void)message_bytes;
  if (status == HS_OK) {
    leave_without_descriptors(l, features);
  } else if (image < l->unreadable) {
    l->unreadable = image;
    snprintf(l->reason, sizeof l->reason, "%s", hs_colmap_last_error(source->database));
  }
  return status;
}

static cli_exit describe_all(looks *l) {
  const pair_source *source = l->source;
  hs_collection_image *images = list_images(source);
  if (!images) return database_images_fail(source->images, "out of memory for its images");
  const hs_collection collection = {
      .images = images, .image_count = source->images->count, .read = read_described, .user = l};
  step_begin_call(&l->step, source, "describing images", source->images->count);
  const hs_status status = hs_retrieval_describe_all(l->retrieval, source->context, &collection, l->vectors);
  free(images);
  if (l->unreadable != SIZE_MAX) return fail_reading(l, l->reason);
  if (status != HS_OK) return fail_step(l, status);
  step_end(&l->step);
  return CLI_DONE;
}

/* Prints how many vectors are 0. path: their file; null: they are of the features. */
static void note_zeros(const pair_source *source, const int8_t *vectors, size_t length, const char *path) {
  const size_t count = source->images->count;
  size_t zeros = 0;
  for (size_t i = 0; i < count; i++) {
    size_t k = 0;
    while (k < length && vectors[i * length + k] == 0) k++;
    zeros += k == length;
  }
  if (zeros == 0 || source->set->values[OPTION_QUIET].is_set) return;
  if (path)
    cli_note("%s: %zu of %zu images have no vector in %s, or one of zeros, and are matched with none",
             source->images->path, zeros, count, path);
  else
    cli_note("%s: %zu of %zu images have no descriptors, or only those that all others have, and are matched with none",
             source->images->path, zeros, count);
}

/* Replaces each image's vector by its blend with the neighbours' vectors. */
static cli_exit blend(looks *l) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  int8_t *blended = malloc(count * length);
  if (!blended) return database_images_fail(l->source->images, "out of memory for the vectors of its images");
  step_begin_call(&l->step, l->source, "blending images", count);
  const hs_status status = hs_blend_similar(l->source->context, l->vectors, count, length, BLENDED_NEIGHBORS, blended);
  free(l->vectors);
  l->vectors = blended;
  if (status != HS_OK) return fail_step(l, status);
  step_end(&l->step);
  return CLI_DONE;
}

/* Finds the most similar images of each image by vectors. */
static cli_exit pair_similar(const pair_source *source, const int8_t *vectors, size_t length, uint32_t neighbors,
                             hs_image_pairs *pairs) {
  search_step step;
  step_begin_call(&step, source, "comparing images", source->images->count);
  const hs_status status = hs_pair_similar(source->context, vectors, source->images->count, length, neighbors, pairs);
  step_end(&step);
  return status == HS_OK ? CLI_DONE : database_images_fail_status(source->images, source->context, status);
}

/* Returns the maximum bytes of the sample. While it grows, the old and the doubled buffer both exist. */
static double sample_bytes(const pair_source *source) {
  double features = 0.0;
  for (size_t i = 0; i < source->images->count; i++) features += (double)source->images->each[i].features;
  return 3.0 * HS_DESCRIPTOR_LENGTH * fmin(features, SAMPLE_DESCRIPTORS + SAMPLE_IMAGES);
}

/* Fails if the vectors and each image's neighbours exceed --max-memory. */
static cli_exit check_memory(const pair_source *source, double vector_bytes, uint32_t neighbors, double more) {
  const size_t count = source->images->count;
  const uint64_t limit = source->max_memory_bytes;
  const double bytes = (double)count * (vector_bytes + 16.0 * (double)(neighbors < count ? neighbors : count)) + more;
  if (limit == 0 || bytes <= (double)limit) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_MATCH,
                  "%s: %.0f bytes are needed to compare its %zu images: expected a larger --max-memory",
                  source->images->path, bytes, count);
}

static cli_exit make_vectors(looks *l, uint32_t candidates) {
  const size_t count = l->source->images->count, length = hs_retrieval_length(l->retrieval);
  const cli_exit result = check_memory(l->source, 2.0 * (double)length, candidates, sample_bytes(l->source));
  if (result != CLI_DONE) return result;
  l->vectors = length <= SIZE_MAX / count ? malloc(count * length) : NULL;
  return l->vectors ? CLI_DONE : database_images_fail(l->source->images, "out of memory for the vectors of its images");
}

/* hs_collection.read, called while the thread of the command waits */
static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  const pair_source *source = user;
  return database_image_read(source->database, &source->images->each[image], features, message, message_bytes);
}

/* Chooses from the candidates the pairs that match best. */
static cli_exit choose_matching(const pair_source *source, const hs_image_pairs *candidates, uint32_t neighbors,
                                hs_image_pairs *pairs) {
  const size_t count = source->images->count;
  hs_collection_image *images = list_images(source);
  if (!images) return database_images_fail(source->images, "out of memory for its images");
  const hs_collection collection = {
      .images = images, .image_count = count, .read = read_image, .user = (void *)(uintptr_t)source};
  search_step step;
  step_begin_call(&step, source, "comparing pairs", candidates->count);
  const hs_status status =
      hs_pair_matching(source->context, &collection, candidates->pairs, candidates->count, neighbors, pairs);
  step_end(&step);
  free(images);
  return status == HS_OK ? CLI_DONE : database_images_fail_status(source->images, source->context, status);
}

/* Finds the most similar images of each image with vectors of the features. */
static cli_exit list_candidates(const pair_source *source, uint32_t count, hs_image_pairs *candidates) {
  looks l = {.source = source, .unreadable = SIZE_MAX};
  bool has_any = false;
  const hs_status status = hs_retrieval_create(&l.retrieval, NULL);
  cli_exit result =
      status == HS_OK ? make_vectors(&l, count) : database_images_fail(source->images, hs_status_string(status));
  if (result == CLI_DONE) result = train(&l, &has_any);
  if (result == CLI_DONE && !has_any && l.lacks_descriptors)
    result = database_images_fail(source->images, "none of its images has descriptors");
  if (result == CLI_DONE && has_any) result = describe_all(&l);
  if (result == CLI_DONE && has_any) note_zeros(source, l.vectors, hs_retrieval_length(l.retrieval), NULL);
  if (result == CLI_DONE && has_any) result = blend(&l);
  if (result == CLI_DONE && has_any)
    result = pair_similar(source, l.vectors, hs_retrieval_length(l.retrieval), count, candidates);
  free(l.vectors);
  hs_features_free(&l.features);
  hs_retrieval_destroy(l.retrieval);
  return result;
}

/* ---- vectors of a file: rows of a .npy file, with the name of each row's image in a line of a .txt file */

enum { VECTOR_HEADER_BYTES = 65536, VECTOR_LENGTH_MAX = 65536 };

typedef struct vector_name {
  char *name;
  size_t row;
} vector_name;

typedef struct vector_file {
  const char *path;
  FILE *file;
  uint64_t rows, length; /* shape */
  npy_array row;         /* type of the numbers; shape 1 x length, without data */
  vector_name *names;    /* sorted by name */
  size_t name_count;
} vector_file;

static cli_exit refuse_file(const char *path, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: %s", path, reason);
}

static const char *check_array(const npy_array *array) {
  if (array->rank != 2 || array->shape[1] < 1 || array->shape[1] > VECTOR_LENGTH_MAX || array->shape[0] > INT32_MAX)
    return "has another shape: expected (images, numbers of a vector), at most 65536 numbers";
  if (array->fortran) return "is in Fortran order: expected rows (numpy.ascontiguousarray)";
  if (!npy_is_numeric(array) || (array->kind != 'f' && (array->kind != 'i' || array->item_bytes != 1)))
    return "has numbers of another type: expected float16, float32, float64 or int8";
  return NULL;
}

/* Reads the header, and checks that the rows fill the rest of the file. */
static const char *read_header(vector_file *f) {
  os_info info;
  size_t data_at;
  uint8_t *start = malloc(VECTOR_HEADER_BYTES);
  if (!start) return "out of memory for its header";
  const size_t held = fread(start, 1, VECTOR_HEADER_BYTES, f->file);
  const char *fault =
      os_info_of(f->path, &info) ? npy_parse_header(start, held, info.size, &f->row, &data_at) : "cannot be read";
  free(start);
  if (!fault) fault = check_array(&f->row);
  if (fault) return fault;
  f->rows = f->row.shape[0];
  f->length = f->row.shape[1];
  f->row.shape[0] = 1;
  return fseek(f->file, (long)data_at, SEEK_SET) == 0 ? NULL : "cannot be read";
}

/* Reads the next row. bytes, numbers: working memory for a row. */
static const char *read_row(const vector_file *f, uint8_t *bytes, float *numbers, int8_t *vector) {
  const size_t length = (size_t)f->length;
  npy_array row = f->row;
  if (fread(bytes, row.item_bytes, length, f->file) != length) return "cannot be read";
  if (row.kind == 'i') {
    memcpy(vector, bytes, length);
    return NULL;
  }
  row.data = bytes;
  for (size_t i = 0; i < length; i++) {
    const double value = npy_value(&row, 0, i);
    if (isfinite(value) && !isfinite((float)value)) return "has a number beyond the range of float32";
    numbers[i] = (float)value;
  }
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
  if (name) os_normalise_path(name);
  if (!name) return refuse_file(path, "out of memory for its names");
  f->names[f->name_count] = (vector_name){name, f->name_count};
  f->name_count++;
  return CLI_DONE;
}

static cli_exit read_name_lines(vector_file *f, const char *path, FILE *file) {
  name_lines lines = {.command = COMMAND_MATCH, .option = "--pairs: ", .path = path, .file = file};
  char *line;
  for (;;) {
    cli_exit result = name_lines_next(&lines, &line);
    if (result == CLI_DONE && !line) break;
    if (result == CLI_DONE && line[0] == '\0')
      result =
          cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s:%zu: expected the name of an image", path, lines.number);
    if (result == CLI_DONE) result = add_name(f, path, line);
    if (result != CLI_DONE) return result;
  }
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
  uint8_t *bytes = malloc(length * f->row.item_bytes);
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
    note_zeros(source, *vectors, (size_t)f->length, f->path);
    return CLI_DONE;
  }
  free(*vectors);
  *vectors = NULL;
  return result;
}

/* Fills vectors[images][*length] from the rows of the file; for free(). On failure *vectors is null. */
static cli_exit read_vectors(const pair_choice *choice, const pair_source *source, int8_t **vectors, size_t *length) {
  const char *path = choice->vectors;
  vector_file f = {.path = path, .file = os_open_stream(path, "rb")};
  *vectors = NULL;
  if (!f.file) return cli_fail(CLI_FAILED, COMMAND_MATCH, "--pairs: %s: cannot be opened: %s", path, strerror(errno));
  const char *fault = read_header(&f);
  const double names = (double)f.rows * (double)(sizeof(uint32_t) + sizeof *f.names);
  cli_exit result = fault ? refuse_file(path, fault) : check_memory(source, (double)f.length, choice->neighbors, names);
  if (result == CLI_DONE) result = read_names(&f);
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
  cli_exit result = read_vectors(choice, source, &vectors, &length);
  if (result == CLI_DONE) result = pair_similar(source, vectors, length, choice->neighbors, pairs);
  free(vectors);
  return result;
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
