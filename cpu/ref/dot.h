/*
 * Dot products of vectors of signed bytes: one against DOT_ANSWERS others at once.
 */
#ifndef HARTSIFT_CPU_REF_DOT_H
#define HARTSIFT_CPU_REF_DOT_H

#include <stddef.h>
#include <stdint.h>

/* Of vectors no longer than this no product leaves 32 bits: 2^16 * 128^2. */
enum { DOT_ANSWERS = 4, DOT_LENGTH_MAX = 65536 };

/* products[i] = asking . (answering + i * stride), each of `length` numbers, at most DOT_LENGTH_MAX. */
typedef void (*dot_bytes_function)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                                   int32_t products[DOT_ANSWERS]);

/* The fastest variant of this machine, or of HARTSIFT_CPU; null: that names none which is usable here. */
dot_bytes_function cpu_choose_dot(void);

/* A variant by name, for tests; null: not in this build, not usable here, or without one of its own. */
dot_bytes_function cpu_dot_of(const char *name);

#endif
