/*
 * Loads fat binaries, and first decompresses machine code for drivers before CUDA 12.4, which do not read zstd.
 *
 * A fat binary is a header and entries, each with a header: machine code or PTX, for one architecture. The layout is
 * what the toolkit's program fatbinary writes. Bytes of another layout are passed to the driver unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/device_reason.h"
#include "cuda/runtime/driver.h"

#if HARTSIFT_HAVE_ZSTD
#  include <zstd.h>

enum { DRIVER_READS_ZSTD = 12040 };
enum { FAT_VERSION = 1, ENTRY_VERSION = 0x0101, ENTRY_MACHINE_CODE = 2 };
enum { ENTRY_BYTES_MAX = 64 << 20, IMAGE_ALIGNMENT = 8 };
#  define FAT_MAGIC  UINT32_C(0xba55ed50)
#  define ENTRY_ZSTD UINT64_C(0x8000)

typedef struct fat_header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes; /* of the entries */
} fat_header;

typedef struct entry_header {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;            /* in the fat binary, with padding */
  uint32_t compressed_bytes; /* without padding; 0: not compressed */
  uint32_t unused[2];
  uint32_t architecture; /* 10 * major + minor */
  uint32_t unused_too[2];
  uint64_t flags, zero;
  uint64_t plain_bytes; /* 0: not compressed */
} entry_header;

_Static_assert(sizeof(fat_header) == 16 && sizeof(entry_header) == 64, "the file's layout");

/* The major compute capabilities of this machine's devices, as bits. */
static uint64_t majors_of(const driver_table *driver) {
  int count = 0, major = 0;
  driver_device device = 0;
  uint64_t majors = 0;
  if (driver->device_count(&count) != DRIVER_SUCCESS) return 0;
  for (int i = 0; i < count; i++)
    if (driver->device_of(&device, i) == DRIVER_SUCCESS &&
        driver->device_attribute(&major, DRIVER_COMPUTE_MAJOR, device) == DRIVER_SUCCESS && major < 64)
      majors |= UINT64_C(1) << major;
  return majors;
}

static bool is_known(const entry_header *e) {
  return e->version == ENTRY_VERSION && e->header_bytes >= sizeof *e && e->compressed_bytes <= e->bytes &&
         e->plain_bytes <= ENTRY_BYTES_MAX;
}

/* PTX is left out: the drivers concerned read no PTX of the toolkits that compress by zstd. */
static bool is_wanted(const entry_header *e, uint64_t majors) {
  return e->kind == ENTRY_MACHINE_CODE && e->architecture / 10 < 64 && (majors >> e->architecture / 10 & 1);
}

static size_t plain_size(const entry_header *e) {
  const size_t bytes = e->flags & ENTRY_ZSTD ? (size_t)e->plain_bytes : (size_t)e->bytes;
  return (bytes + IMAGE_ALIGNMENT - 1) / IMAGE_ALIGNMENT * IMAGE_ALIGNMENT;
}

/* Writes the entry with its code decompressed. */
static bool write_entry(const unsigned char *from, const entry_header *e, unsigned char *to) {
  entry_header plain = *e;
  plain.bytes = plain_size(e);
  memcpy(to, from, e->header_bytes);
  if (!(e->flags & ENTRY_ZSTD)) {
    memcpy(to + e->header_bytes, from + e->header_bytes, (size_t)e->bytes);
    return true;
  }
  plain.compressed_bytes = 0;
  plain.plain_bytes = 0;
  plain.flags &= ~ENTRY_ZSTD;
  memcpy(to, &plain, sizeof plain);
  return ZSTD_decompress(to + e->header_bytes, (size_t)e->plain_bytes, from + e->header_bytes, e->compressed_bytes) ==
         (size_t)e->plain_bytes;
}

/* Walks the entries, and writes those that are wanted where `to` is not null. Returns their bytes; 0: an entry that is
 * not known, or does not decompress. */
static size_t copy_entries(const unsigned char *image, uint64_t majors, unsigned char *to) {
  fat_header head;
  entry_header e;
  memcpy(&head, image, sizeof head);
  size_t written = sizeof head;
  const unsigned char *const end = image + head.header_bytes + head.bytes;
  for (const unsigned char *at = image + head.header_bytes; at < end; at += e.header_bytes + e.bytes) {
    const size_t left = (size_t)(end - at);
    if (left < sizeof e) return 0;
    memcpy(&e, at, sizeof e);
    if (!is_known(&e) || e.header_bytes > left || e.bytes > left - e.header_bytes) return 0;
    if (!is_wanted(&e, majors)) continue;
    if (to && !write_entry(at, &e, to + written)) return 0;
    written += e.header_bytes + plain_size(&e);
  }
  head.header_bytes = sizeof head;
  head.bytes = written - sizeof head;
  if (to) memcpy(to, &head, sizeof head);
  return written;
}

/* Null: the image is not of the known layout, or memory is short. */
static unsigned char *unpacked(const driver_table *driver, const unsigned char *image) {
  fat_header head;
  memcpy(&head, image, sizeof head);
  if (head.magic != FAT_MAGIC || head.version != FAT_VERSION || head.header_bytes < sizeof head) return NULL;
  const uint64_t majors = majors_of(driver);
  const size_t bytes = copy_entries(image, majors, NULL);
  unsigned char *plain = bytes > 0 ? calloc(1, bytes) : NULL;
  if (!plain || copy_entries(image, majors, plain) == bytes) return plain;
  free(plain);
  return NULL;
}

static bool is_empty(const unsigned char *image) {
  fat_header head;
  memcpy(&head, image, sizeof head);
  return head.bytes == 0;
}

driver_status fat_binary_load(const driver_table *driver, int32_t version, const unsigned char *image,
                              driver_library *library) {
  unsigned char *plain = version < DRIVER_READS_ZSTD ? unpacked(driver, image) : NULL;
  if (plain && is_empty(plain)) {
    free(plain);
    return DEVICE_ERROR_NO_CODE;
  }
  /* The driver keeps a copy. */
  const driver_status status = driver->library_load(library, plain ? plain : image, NULL, NULL, 0, NULL, NULL, 0);
  free(plain);
  return status;
}

#else

driver_status fat_binary_load(const driver_table *driver, int32_t version, const unsigned char *image,
                              driver_library *library) {
  (void)version;
  return driver->library_load(library, image, NULL, NULL, 0, NULL, NULL, 0);
}

#endif
