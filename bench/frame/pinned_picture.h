/*
 * Pictures for measuring, as a device reads them fastest.
 */
#ifndef HARTSIFT_BENCH_FRAME_PINNED_PICTURE_H
#define HARTSIFT_BENCH_FRAME_PINNED_PICTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#endif

/* Pinned memory where a device reads it. Null: there is none left. */
static inline void *pinned_room(hs_device device, size_t bytes) {
#if HARTSIFT_HAVE_CUDA
  void *host = NULL, *mapped = NULL;
  if (device != HS_DEVICE_CPU) return device_alloc_pinned(&host, &mapped, bytes) == STAGE_OK ? host : NULL;
#endif
  (void)device;
  return malloc(bytes);
}

static inline void pinned_free(hs_device device, void *pixels) {
#if HARTSIFT_HAVE_CUDA
  if (device != HS_DEVICE_CPU) {
    device_free_pinned(pixels);
    return;
  }
#endif
  (void)device;
  free(pixels);
}

/* An 8-bit gray picture without gaps between its rows; false: the reason stands on standard error. Freed by pinned_free. */
static inline bool pinned_load(hs_device device, const char *name, hs_image *image) {
  hs_image loaded = {0};
  if (hs_load_image(name, NULL, &loaded) != HS_OK || loaded.type != HS_U8 || loaded.layout != HS_GRAY) {
    fprintf(stderr, "%s: not an 8-bit gray picture that this build can read\n", name);
    hs_image_free(&loaded);
    return false;
  }
  const size_t row = (size_t)loaded.width, stride = loaded.stride_bytes ? loaded.stride_bytes : row;
  char *pixels = pinned_room(device, row * (size_t)loaded.height);
  for (int32_t y = 0; pixels && y < loaded.height; y++)
    memcpy(pixels + (size_t)y * row, (const char *)loaded.data + (size_t)y * stride, row);
  *image = (hs_image){.data = pixels, .width = loaded.width, .height = loaded.height, .type = HS_U8};
  hs_image_free(&loaded);
  return pixels != NULL;
}

#endif
