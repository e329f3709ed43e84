/*
 * Arrays of NumPy's .npy, of up to two dimensions: headers are written (version 1.0) and read (1.0 to 3.0), and items
 * of any real dtype can be accessed.
 */
#ifndef HARTSIFT_FORMATS_COMMON_NPY_ARRAY_H
#define HARTSIFT_FORMATS_COMMON_NPY_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/formats/common/feature_sink.h"

typedef struct npy_array {
  char kind; /* 'f', 'u', 'i', 'b' as in NumPy; other kinds are not numeric */
  bool big_endian;
  bool fortran; /* true: the first index varies fastest in memory */
  size_t item_bytes;
  size_t rank;         /* number of dimensions: 0, 1 or 2 */
  uint64_t shape[2];   /* 1 for dimensions that do not exist */
  const uint8_t *data; /* shape[0] x shape[1] items */
} npy_array;

/* Writes a header. descr: dtype such as "<f4"; rank: 0..2. */
void npy_put_header(feature_sink *sink, const char *descr, size_t rank, uint64_t rows, uint64_t columns);
/* Reads the header of an array from the first `held` bytes of a file of `size` bytes. Shape and type must give exactly
   that size. *data_at: offset of the items. array->data stays null. Returns null, or the reason of a failure. */
const char *npy_parse_header(const uint8_t *bytes, size_t held, uint64_t size, npy_array *array, size_t *data_at);
/* Makes a view of an array that fills `size` bytes exactly. Returns null, or the reason of a failure. */
const char *npy_parse(const uint8_t *bytes, size_t size, npy_array *array);
/* True if npy_value can read the dtype: f2, f4, f8, and integers of 1 to 8 bytes. */
bool npy_is_numeric(const npy_array *array);
double npy_value(const npy_array *array, size_t row, size_t column);

#endif
