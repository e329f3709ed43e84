/*
 * Cyclic redundancy checks: CRC-32 (zip) and CRC-32C (Castagnoli), reflected, as the formats use them.
 */
#ifndef HARTSIFT_FORMATS_COMMON_CRC_H
#define HARTSIFT_FORMATS_COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues a check over `size` more bytes; start with 0. */
uint32_t crc_zip(uint32_t crc, const void *bytes, size_t size);
uint32_t crc_castagnoli(uint32_t crc, const void *bytes, size_t size);

#endif
