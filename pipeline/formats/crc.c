/*
 * Both checks by tables of 16 entries, half a byte a step: small, and fast enough beside a disk.
 */
#include "pipeline/formats/crc.h"

/* Remainders of the 16 half bytes for the reflected polynomials 0xedb88320 and 0x82f63b78. */
static const uint32_t crc_zip_table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
                                           0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                           0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
static const uint32_t crc_castagnoli_table[16] = {
    0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
    0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u, 0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};

static uint32_t crc_update(const uint32_t table[16], uint32_t crc, const uint8_t *bytes, size_t size) {
  crc = ~crc;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    crc = (crc >> 4) ^ table[crc & 15u];
    crc = (crc >> 4) ^ table[crc & 15u];
  }
  return ~crc;
}

uint32_t crc_zip(uint32_t crc, const void *bytes, size_t size) { return crc_update(crc_zip_table, crc, bytes, size); }

uint32_t crc_castagnoli(uint32_t crc, const void *bytes, size_t size) {
  return crc_update(crc_castagnoli_table, crc, bytes, size);
}
