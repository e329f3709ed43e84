/*
 * Why a device cannot be used, in a sentence with its remedy. Plain C without the toolkit: builds without CUDA compile
 * and test it too.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_DEVICE_REASON_H
#define HARTSIFT_CUDA_RUNTIME_DEVICE_REASON_H

#include "stages/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of CUresult with a specific sentence. DEVICE_ERROR_OLD_DRIVER and DEVICE_ERROR_FORKED are not the driver's. */
enum {
  DEVICE_ERROR_FORKED = -1,
  DEVICE_ERROR_NONE = 0,
  DEVICE_ERROR_MEMORY = 2,
  DEVICE_ERROR_STUB_LIBRARY = 34,
  DEVICE_ERROR_OLD_DRIVER = 35,
  DEVICE_ERROR_UNAVAILABLE = 46,
  DEVICE_ERROR_NO_DEVICE = 100,
  DEVICE_ERROR_NO_CODE = 209,
  DEVICE_ERROR_UNKNOWN_PTX = 222,
  DEVICE_ERROR_NO_JIT = 223,
  DEVICE_ERROR_SYSTEM_CALL = 304,
  DEVICE_ERROR_NOT_FOUND = 500,
  DEVICE_ERROR_RESET = 709,
  DEVICE_ERROR_NOT_READY = 802,
  DEVICE_ERROR_DRIVER_PARTS = 803
};

/* Values of CUcomputemode. */
enum { DEVICE_MODE_SHARED = 0, DEVICE_MODE_PROHIBITED = 2, DEVICE_MODE_EXCLUSIVE = 3 };

/* The driver's device files, as this process may use them. */
typedef enum device_files { DEVICE_FILES_ABSENT, DEVICE_FILES_DENIED, DEVICE_FILES_OPEN } device_files;

/* Answers of CUDA and the machine. Text is not owned; null: unknown. */
typedef struct device_answer {
  int32_t error;          /* CUresult of the first call that failed */
  const char *error_text; /* CUDA's own words for it */
  int32_t driver;         /* the newest CUDA version that the driver knows, 1000 * major + 10 * minor; 0: no driver */
  int32_t runtime;        /* the oldest CUDA version of a driver that this build's kernels take */
  const char *missing;    /* a function that the driver lacks */
  int32_t count;          /* devices that the driver lists */
  device_files files;
  const char *visible; /* CUDA_VISIBLE_DEVICES */
  /* of one device; index -1: no device was queried yet */
  int32_t index;
  const char *name;
  int32_t major, minor; /* compute capability */
  int32_t mode;
  size_t memory_bytes, free_bytes; /* memory_bytes 0: unknown */
  const char *architectures;       /* architectures that this build has code for */
} device_answer;

/* The kind of this build's code that a device runs: machine code, or PTX that its driver translates. */
typedef enum device_code { DEVICE_CODE_NONE, DEVICE_CODE_PTX, DEVICE_CODE_MACHINE } device_code;

/* architectures: as CMAKE_CUDA_ARCHITECTURES has them, separated by commas. */
device_code device_code_of(const char *architectures, int32_t major, int32_t minor);

/* Writes the sentence, zero-terminated; "" if nothing is wrong. reason null or bytes 0: nothing is written. */
void device_reason(const device_answer *answer, char *reason, size_t bytes);

/* Writes the sentence for a device whose memory cannot hold `needed_bytes` more (0: unknown) for `what`. */
void device_reason_memory(const device_answer *answer, const char *what, size_t needed_bytes, char *reason,
                          size_t bytes);

/* The state of `control` (the driver's /dev/nvidiactl), which every user of a GPU opens. */
device_files device_files_of(const char *control);

#ifdef __cplusplus
}
#endif
#endif
