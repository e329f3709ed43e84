/*
 * Reads the PNM family: PBM, PGM, PPM as text (P1 P2 P3) and binary (P4 P5 P6), and PAM (P7), with 8-bit (maxval up to
 * 255) and 16-bit samples. Only the first picture of a file is read.
 */
#include <string.h>

#include "pipeline/image_io/image_io.h"
#include "pipeline/base/memory.h"

enum { PNM_TOKEN_BYTES = 32 };

/* Position in the file, and contents of its header. */
typedef struct pnm_file {
  const image_request *request;
  size_t at;
  char kind; /* '1'..'7' */
  uint64_t width, height;
  uint32_t max_value, channels;
  bool bits; /* P1, P4: samples are bits, and 1 is black */
} pnm_file;

static hs_status pnm_cut_off(const pnm_file *file) {
  image_ran_short(file->request);
  return image_fail(file->request, HS_ERR_FORMAT, "damaged PNM: the file ends early");
}

static bool pnm_is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Skips white space and comments, which run from '#' to the end of the line. */
static void pnm_skip_space(pnm_file *file) {
  const uint8_t *bytes = file->request->bytes;
  const size_t size = file->request->size;
  while (file->at < size && (pnm_is_space(bytes[file->at]) || bytes[file->at] == '#')) {
    if (bytes[file->at] == '#')
      while (file->at < size && bytes[file->at] != '\n' && bytes[file->at] != '\r') file->at++;
    else
      file->at++;
  }
}

/* Reads a decimal number. Larger numbers become 2^32, which every caller refuses. */
static hs_status pnm_number(pnm_file *file, uint64_t *value) {
  const uint64_t ceiling = (uint64_t)1 << 32;
  const image_request *request = file->request;
  pnm_skip_space(file);
  if (file->at == request->size) return pnm_cut_off(file);
  const size_t start = file->at;
  *value = 0;
  while (file->at < request->size && request->bytes[file->at] >= '0' && request->bytes[file->at] <= '9') {
    *value = *value * 10 + (uint64_t)(request->bytes[file->at] - '0');
    *value = *value > ceiling ? ceiling : *value;
    file->at++;
  }
  if (file->at == request->size && request->is_probe) return pnm_cut_off(file);
  if (file->at == start)
    return image_fail(request, HS_ERR_FORMAT, "damaged PNM: a number is expected at byte %zu", start);
  return HS_OK;
}

/* ---- headers */

/* Reads the header of P1 to P6: width, height, maxval, one white-space character, then the samples. */
static hs_status pnm_read_plain_header(pnm_file *file) {
  file->bits = file->kind == '1' || file->kind == '4';
  file->channels = file->kind == '3' || file->kind == '6' ? 3 : 1;
  uint64_t max_value = 1;
  hs_status status = pnm_number(file, &file->width);
  if (status == HS_OK) status = pnm_number(file, &file->height);
  if (status == HS_OK && !file->bits) status = pnm_number(file, &max_value);
  if (status != HS_OK) return status;
  file->max_value = (uint32_t)(max_value > UINT32_MAX ? UINT32_MAX : max_value);
  if (file->kind >= '4') {
    if (file->at == file->request->size) return pnm_cut_off(file);
    if (!pnm_is_space(file->request->bytes[file->at]))
      return image_fail(file->request, HS_ERR_FORMAT, "damaged PNM: white space must end the header");
    file->at++;
  }
  return HS_OK;
}

/* Reads a word, cut to the buffer, which is longer than all known words. */
static void pnm_word(pnm_file *file, char word[PNM_TOKEN_BYTES]) {
  size_t length = 0;
  while (file->at < file->request->size && !pnm_is_space(file->request->bytes[file->at])) {
    if (length + 1 < PNM_TOKEN_BYTES) word[length++] = (char)file->request->bytes[file->at];
    file->at++;
  }
  word[length] = '\0';
}

/* Skips spaces inside a line of a PAM header. */
static void pnm_skip_blanks(pnm_file *file) {
  while (file->at < file->request->size &&
         (file->request->bytes[file->at] == ' ' || file->request->bytes[file->at] == '\t'))
    file->at++;
}

/* Returns the number of channels of a PAM tuple type; 0: unknown type. */
static uint32_t pnm_tuple_channels(const char *tuple_type) {
  static const struct {
    const char *name;
    uint32_t channels;
  } known[] = {{"BLACKANDWHITE", 1}, {"BLACKANDWHITE_ALPHA", 2}, {"GRAYSCALE", 1}, {"GRAYSCALE_ALPHA", 2}, {"RGB", 3},
               {"RGB_ALPHA", 4}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(tuple_type, known[i].name) == 0) return known[i].channels;
  return 0;
}

static hs_status pnm_check_tuple(pnm_file *file, const char *tuple_type, uint64_t depth) {
  if (depth < 1 || depth > 4) {
    return image_fail(file->request, HS_ERR_UNSUPPORTED, "PAM of depth %llu; 1 to 4 are read",
                      (unsigned long long)depth);
  }
  file->channels = (uint32_t)depth;
  if (tuple_type[0] == '\0') return HS_OK; /* the type is optional; each depth has a default meaning */
  const uint32_t channels = pnm_tuple_channels(tuple_type);
  if (channels == 0) return image_fail(file->request, HS_ERR_UNSUPPORTED, "PAM of tuple type %s", tuple_type);
  if (channels != depth) {
    return image_fail(file->request, HS_ERR_FORMAT, "damaged PAM: tuple type %s with depth %llu", tuple_type,
                      (unsigned long long)depth);
  }
  return HS_OK;
}

/* Reads the header of P7: one "NAME value" per line, in any order, up to ENDHDR. */
static hs_status pnm_read_pam_header(pnm_file *file) {
  char word[PNM_TOKEN_BYTES], tuple_type[PNM_TOKEN_BYTES] = "";
  uint64_t depth = 0, max_value = 0;
  const struct {
    const char *name;
    uint64_t *value;
  } fields[] = {{"WIDTH", &file->width}, {"HEIGHT", &file->height}, {"DEPTH", &depth}, {"MAXVAL", &max_value}};
  for (;;) {
    pnm_skip_space(file);
    pnm_word(file, word);
    if (word[0] == '\0' || (file->at == file->request->size && file->request->is_probe)) return pnm_cut_off(file);
    if (strcmp(word, "ENDHDR") == 0) break;
    if (strcmp(word, "TUPLTYPE") == 0) {
      pnm_skip_blanks(file);
      pnm_word(file, tuple_type);
      if (file->at == file->request->size && file->request->is_probe) return pnm_cut_off(file);
      continue;
    }
    size_t i = 0;
    while (i < sizeof fields / sizeof fields[0] && strcmp(word, fields[i].name) != 0) i++;
    if (i == sizeof fields / sizeof fields[0])
      return image_fail(file->request, HS_ERR_FORMAT, "damaged PAM: unknown header line %s", word);
    const hs_status status = pnm_number(file, fields[i].value);
    if (status != HS_OK) return status;
  }
  if (file->at == file->request->size || file->request->bytes[file->at] != '\n')
    return image_fail(file->request, HS_ERR_FORMAT, "damaged PAM: no line end after ENDHDR");
  file->at++;
  file->max_value = (uint32_t)(max_value > UINT32_MAX ? UINT32_MAX : max_value);
  return pnm_check_tuple(file, tuple_type, depth);
}

/* ---- samples */

/* Returns the bytes of a row in the file; for a text, their minimum. */
static uint64_t pnm_row_bytes(const pnm_file *file) {
  const uint64_t samples = file->width * file->channels; /* below 2^33, because both factors are checked */
  if (file->kind == '1') return samples;
  if (file->kind == '4') return (samples + 7) / 8;
  if (file->kind == '2' || file->kind == '3') return 2 * samples; /* each sample has at least a digit and a separator */
  return file->max_value > 255 ? 2 * samples : samples;
}

/* Refuses a file that is too short for its header, before memory is allocated. */
static hs_status pnm_check_length(const pnm_file *file) {
  const uint64_t row = pnm_row_bytes(file);
  uint64_t there = file->request->size - file->at;
  if (file->kind == '2' || file->kind == '3')
    there += 2; /* no separator is needed before the first and after the last sample */
  return row > there / file->height ? pnm_cut_off(file) : HS_OK;
}

static hs_status pnm_text_sample(pnm_file *file, uint64_t *value) {
  if (!file->bits) return pnm_number(file, value);
  /* in P1 digits need no space between them */
  pnm_skip_space(file);
  if (file->at == file->request->size) return pnm_cut_off(file);
  const uint8_t digit = file->request->bytes[file->at];
  if (digit != '0' && digit != '1')
    return image_fail(file->request, HS_ERR_FORMAT, "damaged PBM: 0 or 1 is expected at byte %zu", file->at);
  *value = (uint64_t)(digit - '0');
  file->at++;
  return HS_OK;
}

/* Reads the next sample of a row, unscaled. index: of the sample in its row; used for packed bits. */
static hs_status pnm_sample(pnm_file *file, size_t index, size_t samples, uint64_t *value) {
  const uint8_t *bytes = file->request->bytes;
  if (file->kind <= '3') return pnm_text_sample(file, value);
  if (file->kind == '4') {
    *value = (uint64_t)(bytes[file->at] >> (7 - index % 8)) & 1u;
    file->at += index % 8 == 7 || index + 1 == samples ? 1 : 0;
  } else if (file->max_value > 255) {
    *value = (uint64_t)bytes[file->at] << 8 | bytes[file->at + 1];
    file->at += 2;
  } else {
    *value = bytes[file->at++];
  }
  return HS_OK;
}

/* Reads a row of samples, scaled to the full range of 8 or 16 bits and rounded to nearest. */
static hs_status pnm_read_row(pnm_file *file, hs_sample_type type, size_t samples, void *row) {
  const uint64_t full = type == HS_U16 ? 65535 : 255;
  uint8_t *row8 = row;
  uint16_t *row16 = row;
  if (file->kind >= '5' && file->max_value == 255) {
    memcpy(row8, file->request->bytes + file->at, samples);
    file->at += samples;
    return HS_OK;
  }
  for (size_t i = 0; i < samples; i++) {
    uint64_t value = 0;
    const hs_status status = pnm_sample(file, i, samples, &value);
    if (status != HS_OK) return status;
    if (value > file->max_value) {
      return image_fail(file->request, HS_ERR_FORMAT, "damaged PNM: a sample exceeds the maximum of %lu",
                        (unsigned long)file->max_value);
    }
    if (file->bits) value = 1 - value;
    value = (value * full + file->max_value / 2) / file->max_value;
    if (type == HS_U16)
      row16[i] = (uint16_t)value;
    else
      row8[i] = (uint8_t)value;
  }
  return HS_OK;
}

static hs_status pnm_read_pixels(pnm_file *file, void *row, hs_image *image) {
  uint8_t *target = (uint8_t *)(uintptr_t)image->data;
  for (int32_t y = 0; y < image->height; y++) {
    const hs_status status = pnm_read_row(file, image->type, (size_t)image->width * file->channels, row);
    if (status != HS_OK) return status;
    gray_convert_row(row, file->channels, image->type, (size_t)image->width, target, image->layout);
    target += image->stride_bytes;
  }
  return HS_OK;
}

hs_status image_read_pnm(const image_request *request, hs_image *image) {
  pnm_file file = {.request = request, .at = 2, .kind = (char)request->bytes[1]};
  hs_status status = file.kind == '7' ? pnm_read_pam_header(&file) : pnm_read_plain_header(&file);
  if (status == HS_OK) status = image_check_size(request, file.width, file.height);
  if (status == HS_OK && (file.max_value == 0 || file.max_value > 65535))
    status = image_fail(request, HS_ERR_FORMAT, "damaged PNM: the maximum must be 1 to 65535");
  if (status == HS_OK && !request->is_probe) status = pnm_check_length(&file);
  if (status != HS_OK) return status;
  const hs_sample_type type = file.max_value > 255 ? HS_U16 : HS_U8;
  const hs_pixel_layout layout = request->keep_colour && file.channels >= 3 ? HS_RGB : HS_GRAY;
  const uint64_t row_bytes = file.width * file.channels * image_sample_bytes(type);
  hs_image made;
  status = image_allocate(request, (int32_t)file.width, (int32_t)file.height, type, layout, row_bytes, &made);
  if (status != HS_OK) return status;
  /* image_allocate has checked that row_bytes fits size_t */
  void *row = hs_memory_alloc(request->allocator, (size_t)row_bytes);
  status = row != NULL ? pnm_read_pixels(&file, row, &made)
                       : image_fail(request, HS_ERR_MEMORY, "out of memory for a row of %llu bytes",
                                    (unsigned long long)row_bytes);
  hs_memory_release(request->allocator, row);
  if (status != HS_OK) {
    hs_image_free(&made);
    return status;
  }
  *image = made;
  return HS_OK;
}
