/*
 * What an older driver gets of a fat binary that is compressed by zstd (cuda/runtime/fat_binary.c): the machine code of
 * the machine's devices, decompressed. Later drivers, and those that get an unknown layout, get the bytes unchanged.
 */
#include <zstd.h>

#include "tests/support/test.h"

#include "cuda/runtime/device_reason.h"
#include "cuda/runtime/driver.h"

enum { CODE_BYTES = 1003, FAT_BYTES = 16, ENTRY_BYTES = 64, IMAGE_BYTES = 1 << 14 };
enum { PTX = 1, MACHINE_CODE = 2 };

static unsigned char image[IMAGE_BYTES], loaded[IMAGE_BYTES];
static size_t image_bytes;
static int device_majors[2];

static void put(size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) image[at + i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)loaded[at + i] << 8 * i;
  return value;
}

static void begin(void) {
  memset(image, 0, sizeof image);
  image_bytes = FAT_BYTES;
  put(0, 0xba55ed50, 4);
  put(4, 1, 2);
  put(6, FAT_BYTES, 2);
}

/* Code whose bytes name its architecture. */
static void fill(unsigned char *code, uint32_t architecture) {
  for (size_t i = 0; i < CODE_BYTES; i++) code[i] = (unsigned char)(architecture + i / 100);
}

static void add(uint32_t kind, uint32_t architecture, bool is_compressed) {
  unsigned char code[CODE_BYTES];
  const size_t at = image_bytes, to = at + ENTRY_BYTES;
  fill(code, architecture);
  size_t bytes = CODE_BYTES;
  if (is_compressed)
    bytes = ZSTD_compress(image + to, sizeof image - to, code, CODE_BYTES, 19);
  else
    memcpy(image + to, code, CODE_BYTES);
  const size_t padded = (bytes + 7) / 8 * 8;
  put(at, kind, 2);
  put(at + 2, 0x101, 2);
  put(at + 4, ENTRY_BYTES, 4);
  put(at + 8, padded, 8);
  put(at + 16, is_compressed ? bytes : 0, 4);
  put(at + 28, architecture, 4);
  put(at + 40, is_compressed ? 0x8011 : 0x11, 8);
  put(at + 56, is_compressed ? CODE_BYTES : 0, 8);
  image_bytes = to + padded;
  put(8, image_bytes - FAT_BYTES, 8);
}

/* ------------------------------------------------------------------ a driver */

static driver_status fake_library_load(driver_library *library, const void *code, int *jit_options, void **jit_values,
                                       uint32_t jit_count, int *options, void **values, uint32_t count) {
  (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  memcpy(loaded, code, FAT_BYTES);
  memcpy(loaded + FAT_BYTES, (const unsigned char *)code + FAT_BYTES, (size_t)get(8, 8));
  *library = NULL;
  return DRIVER_SUCCESS;
}

static driver_status fake_device_count(int *count) {
  *count = device_majors[1] ? 2 : 1;
  return DRIVER_SUCCESS;
}

static driver_status fake_device_of(driver_device *device, int index) {
  *device = index;
  return DRIVER_SUCCESS;
}

static driver_status fake_device_attribute(int *value, int attribute, driver_device device) {
  assert_int_equal(attribute, DRIVER_COMPUTE_MAJOR);
  *value = device_majors[device];
  return DRIVER_SUCCESS;
}

/* Loads the image on a machine with these devices; 0: none. */
static driver_status load(int32_t version, int first_major, int second_major) {
  const driver_table table = {.library_load = fake_library_load,
                              .device_count = fake_device_count,
                              .device_of = fake_device_of,
                              .device_attribute = fake_device_attribute};
  driver_library library;
  device_majors[0] = first_major;
  device_majors[1] = second_major;
  memset(loaded, 0, sizeof loaded);
  return fat_binary_load(&table, version, image, &library);
}

/* The entry at `at` is plain code of the architecture. Returns where the next one begins. */
static size_t assert_plain(size_t at, uint32_t architecture) {
  unsigned char code[CODE_BYTES];
  fill(code, architecture);
  assert_int_equal(get(at, 2), MACHINE_CODE);
  assert_int_equal(get(at + 28, 4), architecture);
  assert_int_equal(get(at + 16, 4), 0);
  assert_int_equal(get(at + 40, 8), 0x11);
  assert_int_equal(get(at + 56, 8), 0);
  assert_int_equal(get(at + 8, 8), (CODE_BYTES + 7) / 8 * 8);
  assert_memory_equal(loaded + at + ENTRY_BYTES, code, CODE_BYTES);
  return at + ENTRY_BYTES + (size_t)get(at + 8, 8);
}

static void assert_unchanged(void) { assert_memory_equal(loaded, image, image_bytes); }

TEST(test_old_drivers) {
  begin();
  add(MACHINE_CODE, 75, true);
  add(MACHINE_CODE, 80, true);
  add(MACHINE_CODE, 86, false);
  add(MACHINE_CODE, 120, true);
  add(PTX, 90, true);
  assert_int_equal(load(12020, 8, 0), DRIVER_SUCCESS);
  size_t at = assert_plain(FAT_BYTES, 80);
  at = assert_plain(at, 86);
  assert_int_equal(get(8, 8), at - FAT_BYTES);
  assert_int_equal(load(12030, 12, 7), DRIVER_SUCCESS);
  at = assert_plain(FAT_BYTES, 75);
  at = assert_plain(at, 120);
  assert_int_equal(get(8, 8), at - FAT_BYTES);
  assert_int_equal(load(12000, 9, 0), DEVICE_ERROR_NO_CODE);
}

TEST(test_later_drivers) {
  begin();
  add(MACHINE_CODE, 90, true);
  add(PTX, 90, true);
  assert_int_equal(load(12040, 9, 0), DRIVER_SUCCESS);
  assert_unchanged();
}

/* Bytes that are not understood are left to the driver. */
TEST(test_unknown_bytes) {
  static const struct {
    size_t at, bytes;
    uint64_t value;
  } changes[] = {{4, 2, 2},                        /* the fat binary's version */
                 {FAT_BYTES + 2, 2, 0x102},        /* the entry's version */
                 {FAT_BYTES + 4, 4, 48},           /* a shorter header */
                 {FAT_BYTES + 16, 4, 1 << 20},     /* more compressed bytes than there are */
                 {FAT_BYTES + 56, 8, 1 << 28},     /* a gigantic size */
                 {FAT_BYTES + 56, 8, 17},          /* a wrong size */
                 {FAT_BYTES + ENTRY_BYTES, 4, 0}}; /* no zstd */
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    begin();
    add(MACHINE_CODE, 90, true);
    put(changes[i].at, changes[i].value, changes[i].bytes);
    assert_int_equal(load(12000, 9, 0), DRIVER_SUCCESS);
    assert_unchanged();
  }
}
