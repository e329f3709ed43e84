/*
 * Both checks by tables of 16 entries, half a byte a step; for long runs of bytes by larger ones made from those.
 */
#include "pipeline/formats/common/crc.h"

/* Remainders of the 16 half bytes for the reflected polynomials 0xedb88320 and 0x82f63b78. */
static const uint32_t crc_zip_table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
                                           0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                           0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
static const uint32_t crc_castagnoli_table[16] = {
    0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
    0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u, 0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};

/* From this size on the tables of the long way pay for being made. */
enum { CRC_LONG_BYTES = 1 << 14, CRC_LANES = 8 };

static uint32_t crc_step(const uint32_t table[16], uint32_t crc, uint8_t byte) {
  crc ^= byte;
  crc = (crc >> 4) ^ table[crc & 15u];
  return (crc >> 4) ^ table[crc & 15u];
}

/* tables[k][b]: the remainder of byte b followed by k zero bytes. */
static void crc_make_tables(const uint32_t table[16], uint32_t tables[CRC_LANES][256]) {
  for (uint32_t b = 0; b < 256; b++) tables[0][b] = crc_step(table, 0, (uint8_t)b);
  for (int k = 1; k < CRC_LANES; k++)
    for (uint32_t b = 0; b < 256; b++) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255u];
}

/* Eight bytes a step, whose parts do not wait for each other (slicing, Kounavis and Berry 2005). Returns the bytes
   done. */
static size_t crc_long(const uint32_t table[16], uint32_t *crc, const uint8_t *bytes, size_t size) {
  uint32_t tables[CRC_LANES][256], c = *crc;
  size_t i = 0;
  crc_make_tables(table, tables);
  for (; size - i >= CRC_LANES; i += CRC_LANES) {
    const uint8_t *p = bytes + i;
    c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    c = tables[7][c & 255u] ^ tables[6][c >> 8 & 255u] ^ tables[5][c >> 16 & 255u] ^ tables[4][c >> 24] ^
        tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
  }
  *crc = c;
  return i;
}

static uint32_t crc_update(const uint32_t table[16], uint32_t crc, const uint8_t *bytes, size_t size) {
  crc = ~crc;
  size_t i = size >= CRC_LONG_BYTES ? crc_long(table, &crc, bytes, size) : 0;
  for (; i < size; i++) crc = crc_step(table, crc, bytes[i]);
  return ~crc;
}

uint32_t crc_zip(uint32_t crc, const void *bytes, size_t size) { return crc_update(crc_zip_table, crc, bytes, size); }

uint32_t crc_castagnoli(uint32_t crc, const void *bytes, size_t size) {
  return crc_update(crc_castagnoli_table, crc, bytes, size);
}
