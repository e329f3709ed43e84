/*
 * Little-endian numbers in byte buffers, whatever the order of the host.
 */
#ifndef HARTSIFT_FORMATS_COMMON_BYTE_ORDER_H
#define HARTSIFT_FORMATS_COMMON_BYTE_ORDER_H

#include <stdint.h>
#include <string.h>

static inline void bytes_put_u16(uint8_t *to, uint16_t value) {
  to[0] = (uint8_t)(value & 0xffu);
  to[1] = (uint8_t)(value >> 8);
}

static inline void bytes_put_u32(uint8_t *to, uint32_t value) {
  bytes_put_u16(to, (uint16_t)(value & 0xffffu));
  bytes_put_u16(to + 2, (uint16_t)(value >> 16));
}

static inline void bytes_put_u64(uint8_t *to, uint64_t value) {
  bytes_put_u32(to, (uint32_t)(value & 0xffffffffu));
  bytes_put_u32(to + 4, (uint32_t)(value >> 32));
}

static inline void bytes_put_f32(uint8_t *to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bytes_put_u32(to, bits);
}

static inline uint16_t bytes_get_u16(const uint8_t *from) {
  return (uint16_t)((uint32_t)from[0] | ((uint32_t)from[1] << 8));
}

static inline uint32_t bytes_get_u32(const uint8_t *from) {
  return (uint32_t)bytes_get_u16(from) | ((uint32_t)bytes_get_u16(from + 2) << 16);
}

static inline uint64_t bytes_get_u64(const uint8_t *from) {
  return (uint64_t)bytes_get_u32(from) | ((uint64_t)bytes_get_u32(from + 4) << 32);
}

static inline float bytes_get_f32(const uint8_t *from) {
  uint32_t bits = bytes_get_u32(from);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
