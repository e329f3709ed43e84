/*
 * Options specific to `batch`: devices, and the line of settings that the results depend on.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_SETTINGS_H
#define HARTSIFT_CLI_BATCH_BATCH_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"

enum { BATCH_DEVICES_MOST = 64 };

/* One device to use. */
typedef struct batch_device {
  hs_device kind;
  int32_t index; /* index of the GPU */
} batch_device;

typedef struct batch_devices {
  batch_device each[BATCH_DEVICES_MOST];
  int32_t count;
} batch_devices;

/* Reads --devices, or --device if given, or auto. CLI_USAGE and CLI_NO_DEVICE with a message. */
cli_exit batch_parse_devices(const option_set *set, batch_devices *devices, char *message, size_t message_bytes);

/* "auto", "cpu", "cuda:0", "hybrid:0". */
void batch_device_name(const batch_device *device, char *name, size_t bytes);

/* Replaces "auto" by the device of the context, as hs_backend_report names it. */
void batch_device_resolve(batch_device *device, const char *backend_report);

/* Inputs besides the options' values. */
typedef struct batch_inputs {
  bool as_stored;       /* JPEGs are not rotated by their EXIF orientation */
  uint64_t mask_digest; /* 0 without a mask */
} batch_inputs;

/* The settings that features and files depend on, as one line: the method version, the format, all options that
   change results with their values (given or default); not devices, threads and limits. To be freed; null: out of
   memory. format: its name. */
char *batch_settings_text(const option_set *set, const hs_options *options, const char *format,
                          const batch_inputs *inputs);

#endif
