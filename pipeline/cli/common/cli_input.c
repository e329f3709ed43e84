/* Reads images, masks and feature files for subcommands; see cli_common.h and cli_input.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/image_io/image_io.h"

/* ---- images and features */

int32_t cli_decode_scale(const option_set *set) {
  return 1 << set->values[OPTION_DECODE_SCALE].integer; /* the choices are 1, 2, 4, 8; the default is the first */
}

void cli_input_init(cli_input *input, const option_set *set, const hs_options *options) {
  memset(input, 0, sizeof *input);
  input->load.struct_size = sizeof input->load;
  input->load.max_pixels = options->max_pixels;
  input->load.max_memory_bytes = options->max_memory_bytes;
  if (set->values[OPTION_MAX_MEMORY].is_set && options->max_memory_bytes == 0)
    input->load.max_memory_bytes =
        UINT64_MAX; /* 0 means no limit in the command, but a share of the machine's memory in the library */
  input->load.jpeg_scale = cli_decode_scale(set);
  input->load.max_image_size = set->values[OPTION_MAX_IMAGE_SIZE].integer;
  input->load.strict = set->values[OPTION_STRICT].is_set;
  input->load.range_low = (float)set->values[OPTION_VALUE_RANGE].number;
  input->load.range_high = (float)set->values[OPTION_VALUE_RANGE].high;
  input->command = set->command;
  input->masks = set->values[OPTION_MASKS].is_set ? set->values[OPTION_MASKS].text : NULL;
  input->load.keep_encoded =
      /* for one picture the comparison of decoders takes too long, so the GPU decodes only if requested */
      options->decoder == HS_DECODER_GPU;
  cli_input_for(input, set, false);
}

void cli_input_for(cli_input *input, const option_set *set, bool as_stored) {
  input->load.ignore_exif = set->values[OPTION_NO_EXIF].is_set || (as_stored && !set->values[OPTION_EXIF].is_set);
}

void cli_explain_size(const cli_input *input, const char *what, int32_t width, int32_t height, const hs_image *image,
                      char message[CLI_MESSAGE_BYTES]) {
  const bool lies_across = width == image->height && height == image->width;
  const char *hint = "";
  if (lies_across) {
    hint = input->load.ignore_exif ? " as stored; --exif turns images by their EXIF orientation"
                                   : "; --no-exif leaves images as stored";
  }
  snprintf(message, CLI_MESSAGE_BYTES, "%s %" PRId32 "x%" PRId32 ": expected the image's %" PRId32 "x%" PRId32 "%s",
           what, width, height, image->width, image->height, hint);
}

/* ---- streams that are read once */

/* Bytes of a stream that may be decoded more than once. */
typedef struct kept_stream {
  struct kept_stream *next;
  const char *path;
  unsigned char *bytes;
  size_t size;
  hs_status status; /* of reading */
} kept_stream;

void cli_input_free(cli_input *input) {
  while (input->kept) {
    kept_stream *kept = input->kept;
    input->kept = kept->next;
    hs_memory_release(NULL, kept->bytes);
    free(kept);
  }
}

static bool is_kept(const cli_input *input, const char *path) {
  os_info info;
  if (strcmp(path, "-") == 0) return input->keeps_stdin;
  return !image_is_no_file(path) && os_info_of(path, &info) && info.kind == OS_PIPE;
}

static const char *name_of_stream(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }

/* Reads a stream to its end if it may be an image. A pipe blocks until its writer has opened it. */
static hs_status read_kept(const hs_load_options *load, kept_stream *kept) {
  image_request request;
  image_findings found;
  hs_status status = image_request_make(load, name_of_stream(kept->path), &found, &request);
  if (status != HS_OK) return status;
  FILE *stream = strcmp(kept->path, "-") == 0 ? stdin : os_open_stream(kept->path, "rb");
  if (!stream) {
    hs_message_set_errno(load->message, load->message_bytes, errno, "%s: cannot be opened", kept->path);
    return HS_ERR_IO;
  }
  status = image_read_stream(&request, stream, &kept->bytes, &kept->size);
  if (stream != stdin) (void)fclose(stream);
  return status;
}

/* Makes a source of a stream's bytes, which are read if they are not kept yet. On failure *source stays. */
static hs_status keep_stream(cli_input *input, const hs_load_options *load, const char *path, hs_source *source) {
  kept_stream *kept = input->kept;
  while (kept && strcmp(kept->path, path) != 0) kept = kept->next;
  if (!kept) {
    kept = calloc(1, sizeof *kept);
    if (!kept) return HS_ERR_MEMORY;
    *kept = (kept_stream){.next = input->kept, .path = path};
    input->kept = kept;
    kept->status = read_kept(load, kept);
  }
  if (kept->status == HS_OK) *source = hs_source_encoded(kept->bytes, kept->size);
  return kept->status;
}

/* Puts the stream's name into a message about its bytes. */
static void name_stream(const char *path, char *text, size_t bytes) {
  static const char in_memory[] = "the image in memory";
  const size_t length = sizeof in_memory - 1;
  char rest[CLI_MESSAGE_BYTES];
  if (strncmp(text, in_memory, length) != 0) return;
  snprintf(rest, sizeof rest, "%s", text + length);
  hs_message_set(text, bytes, "%s%s", name_of_stream(path), rest);
}

void cli_print_notes(cli_input *input, const char *path, const hs_load_notes *notes) {
  if (input->warned == path) return;
  if (notes->damages > 0 || notes->is_low_range) input->warned = path;
  if (notes->damages > 1)
    cli_error(input->command, "warning: %s; %" PRId32 " such reports: pixels may be wrong, --strict refuses them",
              notes->damage, notes->damages);
  else if (notes->damages > 0)
    cli_error(input->command, "warning: %s: pixels may be wrong, --strict refuses them", notes->damage);
  /* stats and hist use samples unchanged, so a low range does not matter */
  if (notes->is_low_range && option_belongs_to(OPTION_VALUE_RANGE, input->command))
    cli_error(input->command, "warning: %s (--value-range LOW:HIGH)", notes->low_range);
}

hs_load_options cli_mask_options(const hs_load_options *of_images) {
  hs_load_options load = *of_images;
  load.jpeg_scale = 1;
  load.max_image_size = 0;
  load.keep_colour = 0;
  load.range_low = load.range_high = 0.0f;
  load.exif = NULL;
  load.notes = NULL;
  return load;
}

/* Loads an image. *loaded: pixels, or with options->keep_encoded an encoded JPEG. */
static hs_status load_source(cli_input *input, const hs_load_options *options, const char *path, hs_source *loaded,
                             char *message, size_t message_bytes) {
  hs_status status = HS_OK;
  hs_load_options load = *options;
  hs_source source = hs_source_file(path);
  message[0] = '\0';
  load.message = message;
  load.message_bytes = message_bytes;
  if (is_kept(input, path)) status = keep_stream(input, &load, path, &source);
  source.load = &load;
  if (status == HS_OK) status = hs_load_source(&source, loaded);
  if (source.kind == HS_SOURCE_ENCODED) {
    name_stream(path, message, message_bytes);
    if (load.notes) name_stream(path, load.notes->damage, sizeof load.notes->damage);
    if (load.notes) name_stream(path, load.notes->low_range, sizeof load.notes->low_range);
  }
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}

hs_status cli_load_source(cli_input *input, const char *path, hs_source *loaded, char *message, size_t message_bytes) {
  hs_load_notes notes;
  hs_load_options load = input->load;
  load.notes = &notes;
  const hs_status status = load_source(input, &load, path, loaded, message, message_bytes);
  if (status == HS_OK) cli_print_notes(input, path, &notes);
  return status;
}

hs_status cli_load_image(cli_input *input, const char *path, bool keep_colour, hs_image *image, char *message,
                         size_t message_bytes) {
  hs_load_notes notes;
  hs_load_options load = input->load;
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  load.keep_colour = keep_colour;
  load.keep_encoded = 0;
  load.notes = &notes;
  const hs_status status = load_source(input, &load, path, &loaded, message, message_bytes);
  if (status == HS_OK) cli_print_notes(input, path, &notes);
  *image = loaded.image;
  return status;
}

void cli_narrow_mask(hs_image *mask) {
  const size_t bytes_of_sample = image_sample_bytes(mask->type);
  if (mask->type == HS_U8) return;
  /* the mask's memory is owned here, but hs_image has no pointer for writing */
  unsigned char *bytes = (unsigned char *)mask->data;
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : bytes_of_sample * (size_t)mask->width;
  for (int32_t row = 0; row < mask->height; row++) {
    unsigned char *target = bytes + (size_t)row * stride;
    for (int32_t column = 0; column < mask->width; column++) {
      uint16_t word;
      float number = 0.0f;
      memcpy(&word, target + bytes_of_sample * (size_t)column, sizeof word);
      if (mask->type == HS_F32) memcpy(&number, target + bytes_of_sample * (size_t)column, sizeof number);
      target[column] = mask->type == HS_F32 ? number != 0.0f : word != 0;
    }
  }
  mask->type = HS_U8;
  mask->stride_bytes = stride;
}

hs_status cli_load_mask(cli_input *input, const char *path, hs_image *mask, char *message, size_t message_bytes) {
  hs_load_options load = cli_mask_options(&input->load);
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  load.keep_encoded = 0;
  const hs_status status = load_source(input, &load, path, &loaded, message, message_bytes);
  *mask = loaded.image;
  if (status == HS_OK) cli_narrow_mask(mask);
  return status;
}

hs_status cli_load_features_of(const cli_input *input, const char *path, const char *image, hs_features *features,
                               char *message, size_t message_bytes) {
  message[0] = '\0';
  const hs_file_options options = {.struct_size = sizeof options,
                                   .image_name = image,
                                   .max_memory_bytes = input->load.max_memory_bytes,
                                   .message = message,
                                   .message_bytes = message_bytes};
  const hs_status status = hs_load_features(path, features, &options);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s: %s", path, hs_status_string(status));
  return status;
}

hs_status cli_load_features(const cli_input *input, const char *path, hs_features *features, char *message,
                            size_t message_bytes) {
  return cli_load_features_of(input, path, NULL, features, message, message_bytes);
}

/* ---- how much memory a refused picture needs */

enum { OWN_BYTES_MAX = 1 << 20 }; /* memory of a context that its limit does not include */

/* Returns the memory for decoding in addition to the limit; for a source that is read row by row, as far as it is
   known. */
static image_need decoding_need(hs_load_options load, const char *path) {
  image_need need = {0};
  image_rows rows;
  hs_image image;
  load.exif = NULL;
  load.message = NULL;
  if (image_load(path, &load, &need, &image) == HS_OK) hs_image_free(&image);
  load.max_memory_bytes = UINT64_MAX;
  if (need.bytes > 0 || image_rows_open(&rows, path, NULL, 0, &load) != HS_OK || !rows.kind) return need;
  const uint64_t pixels = (uint64_t)rows.width * (uint64_t)rows.height;
  need = (image_need){rows.width, rows.height,
                      pixels * image_sample_bytes(rows.type) + rows.request.size + rows.working_bytes};
  image_rows_close(&rows);
  return need;
}

uint64_t enough_memory(const hs_options *options, const hs_load_options *load, const char *path) {
  uint64_t host = 0, device = 0;
  if (load->max_image_size > 0 || image_is_no_file(path) || !image_is_regular_file(path)) return 0;
  const image_need need = decoding_need(*load, path);
  if (need.bytes == 0 || hs_workspace_query(options, need.width, need.height, &host, &device) != HS_OK) return 0;
  if (host < device) host = device;
  return host > need.bytes ? host : need.bytes;
}

bool scene_wants_more(const hs_options *options, const hs_load_options *load, const char *path, char *message,
                      size_t message_bytes) {
  int32_t width = 0, height = 0;
  uint32_t seed = 0;
  uint64_t host = 0, device = 0;
  const uint64_t most = options->max_memory_bytes;
  const bool is_as_named = load->max_image_size == 0 && load->jpeg_scale <= 1;
  if (most == 0 || !is_as_named || scene_parse_name(path, &width, &height, &seed) != 1) return false;
  if (hs_workspace_query(options, width, height, &host, &device) != HS_OK) return false;
  const uint64_t least = host > device ? host : device;
  if (least <= most || least - most <= OWN_BYTES_MAX) return false;
  snprintf(message, message_bytes,
           "a %" PRId32 " x %" PRId32 " image needs at least %" PRIu64
           " bytes of workspace even in the smallest tiles, max_memory_bytes is %" PRIu64,
           width, height, least, most);
  return true;
}

/* ---- lists of names */

/* Reads up to the end of the line. False: the line is invalid, and lines->line has its beginning. */
static bool read_to_end(name_lines *lines, int c, size_t *length) {
  bool is_valid = true;
  *length = 0;
  for (; is_valid && c != EOF && c != '\n' && c != '\r'; c = getc(lines->file)) {
    is_valid = c != '\0' && *length < NAME_LINE_BYTES - 1;
    if (is_valid) lines->line[(*length)++] = (char)c;
  }
  lines->line[*length] = '\0';
  if (c == '\r') c = getc(lines->file);
  if (c != EOF && c != '\n') (void)ungetc(c, lines->file);
  return is_valid;
}

cli_exit name_lines_next(name_lines *lines, char **line) {
  size_t length = 0;
  const int first = getc(lines->file);
  *line = NULL;
  lines->number++;
  const bool is_valid = first == EOF || read_to_end(lines, first, &length);
  if (ferror(lines->file))
    return cli_fail(CLI_FAILED, lines->command, "%s%s: cannot be read: %s", lines->option, lines->path,
                    strerror(errno));
  if (first == EOF) return CLI_DONE;
  if (lines->number == 1 && utf16_is_marked(lines->line, length))
    return cli_fail(CLI_FAILED, lines->command, "%s%s: is in UTF-16: expected UTF-8", lines->option, lines->path);
  if (!is_valid)
    return cli_fail(CLI_FAILED, lines->command, "%s%s:%zu: is longer than %d bytes or has a zero byte", lines->option,
                    lines->path, lines->number, NAME_LINE_BYTES - 1);
  *line = lines->line + (lines->number == 1 ? utf8_mark_length(lines->line, length) : 0);
  return CLI_DONE;
}

/* ---- the mask of each image */

bool image_masks_make(image_masks *masks, const cli_input *input, const hs_image *shared, char *message,
                      size_t message_bytes) {
  *masks = (image_masks){
      .shared = shared && shared->data ? shared : NULL, .folder = input->masks, .load = cli_mask_options(&input->load)};
  if (!masks->folder) return true;
  if (os_is_folder(masks->folder)) return true;
  snprintf(message, message_bytes, "--masks '%s': expected a folder with NAME.png for the image NAME", masks->folder);
  return false;
}

/* True if a mask exists, even if it is unreadable (dangling link, protected folder): only an image that has no mask is
   used without one. */
static bool is_there(const char *path) {
  os_info info;
  return os_info_of_link(path, &info) || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

/* Returns the length of a name without its ending. */
static size_t stem_length(const char *name) {
  const char *slash = strrchr(name, '/');
  const char *base = slash ? slash + 1 : name;
  const char *dot = strrchr(base, '.');
  return dot && dot != base ? (size_t)(dot - name) : strlen(name);
}

/* Returns an image's name without parts that leave the folder; otherwise DIR/../photos/a.png would be the photograph
   itself. */
static const char *below_folder(const char *name) {
  for (;;) {
    const size_t dots = strspn(name, ".");
    if (dots > 2 || name[dots] != '/') return name;
    name += dots + 1;
  }
}

/* Returns the path of an image's mask. The caller frees it; null: out of memory. *found: the mask exists, readable or
   not. */
static char *find_mask(const image_masks *masks, const char *image, bool *found) {
  const char *name = below_folder(image);
  const size_t lengths[] = {strlen(name), stem_length(name)};
  const size_t bytes = strlen(masks->folder) + lengths[0] + sizeof "/.png";
  char *path = malloc(bytes);
  *found = false;
  for (size_t i = 0; path && i < 2 && !*found; i++) {
    snprintf(path, bytes, "%s/%.*s.png", masks->folder, (int)lengths[i], name);
    *found = is_there(path);
  }
  return path;
}

bool image_masks_count(const image_masks *masks, size_t count, const char *(*name_of)(const void *user, size_t index),
                       const void *user, char *message, size_t message_bytes) {
  size_t with = 0;
  message[0] = '\0';
  if (!masks->folder || count == 0) return true;
  for (size_t i = 0; i < count; i++) {
    bool found;
    free(find_mask(masks, name_of(user, i), &found));
    with += found;
  }
  if (with > 0) {
    hs_message_set(message, message_bytes, "%zu of %zu image%s %s a mask in %s", with, count, count == 1 ? "" : "s",
                   with == 1 ? "has" : "have", masks->folder);
    return true;
  }
  const char *image = name_of(user, 0), *name = below_folder(image);
  const int stem = (int)stem_length(name);
  hs_message_set(message, message_bytes,
                 "--masks '%s': 0 of %zu image%s have a mask there: for %s expected %s.png, or else %.*s.png",
                 masks->folder, count, count == 1 ? "" : "s", image, name, stem, name);
  return false;
}

uint64_t image_masks_digest(const image_masks *masks, const char *name) {
  bool found = false;
  char *path = masks->folder ? find_mask(masks, name, &found) : NULL;
  os_info info;
  digest_state state;
  if (!path) return 0;
  digest_start(&state);
  const bool is_read = os_info_of(path, &info) && info.kind == OS_REGULAR && digest_add_file(&state, path) == HS_OK;
  const uint64_t digest = is_read ? digest_end(&state) : (found ? IMAGE_MASKS_UNREADABLE : 0);
  free(path);
  return digest;
}

/* Loads an image's own mask, if it has one. */
static hs_status load_own(const image_masks *masks, const char *name, hs_image *mask, char *message,
                          size_t message_bytes) {
  bool found = false;
  char *path = find_mask(masks, name, &found);
  if (!path) return HS_ERR_MEMORY;
  hs_load_options load = masks->load;
  load.message = message;
  load.message_bytes = message_bytes;
  const hs_status status = found ? hs_load_image(path, &load, mask) : HS_OK;
  free(path);
  if (status == HS_OK && mask->data) cli_narrow_mask(mask);
  return status;
}

/* Fits *mask to the image's size: a larger mask is replaced by a reduced one. owned: the pixels of *mask are then
   freed. */
static hs_status fit(const hs_image *image, bool owned, hs_image *mask, char *message, size_t message_bytes) {
  if (mask->width == image->width && mask->height == image->height && image->original_width == 0) return HS_OK;
  const int32_t width = image->original_width ? image->original_width : image->width;
  const int32_t height = image->original_height ? image->original_height : image->height;
  if (mask->width != width || mask->height != height) {
    snprintf(message, message_bytes, "the mask is %" PRId32 "x%" PRId32 ": expected the image's %" PRId32 "x%" PRId32,
             mask->width, mask->height, width, height);
    return HS_ERR_ARGUMENT;
  }
  uint8_t *pixels = hs_memory_alloc(NULL, (size_t)image->width * (size_t)image->height);
  if (!pixels) return HS_ERR_MEMORY;
  mask_shrink(mask, image, pixels);
  if (owned) hs_image_free(mask);
  *mask = (hs_image){.data = pixels, .width = image->width, .height = image->height, .memory = pixels};
  return HS_OK;
}

hs_status image_masks_of(const image_masks *masks, const char *name, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes) {
  hs_status status = HS_OK;
  message[0] = '\0';
  *mask = (hs_image){0};
  if (masks->folder) status = load_own(masks, name, mask, message, message_bytes);
  if (masks->shared) *mask = *masks->shared;
  if (masks->shared) mask->memory = NULL; /* the image refers to the shared mask */
  if (status == HS_OK && mask->data) status = fit(image, masks->folder != NULL, mask, message, message_bytes);
  if (status != HS_OK) hs_image_free(mask);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s", hs_status_string(status));
  return status;
}
