/* Loading of nvJPEG; see nvjpeg_api.h. */
#include "cuda/jpeg/nvjpeg_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const library_names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12"};

/* A function's address by way of its bytes, as POSIX has it: ISO C converts no pointer to data into one. */
static bool find(void *library, const char *name, void *function, size_t bytes, char *reason, size_t reason_bytes) {
  void *const address = dlsym(library, name);
  if (address)
    memcpy(function, &address, bytes);
  else
    snprintf(reason, reason_bytes, "its library has no %s", name);
  return address != NULL;
}

bool nvjpeg_api_open(nvjpeg_api *api, char *reason, size_t reason_bytes) {
  void *library = NULL;
  for (size_t i = 0; i < sizeof library_names / sizeof *library_names && !library; i++)
    library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, reason_bytes, "libnvjpeg.so.13 is not there (CUDA's nvJPEG, PyPI's nvidia-nvjpeg)");
    return false;
  }
#define FIND(field, name) find(library, name, &api->field, sizeof api->field, reason, reason_bytes)
  return FIND(get_property, "nvjpegGetProperty") && FIND(create_ex, "nvjpegCreateEx") &&
         FIND(destroy, "nvjpegDestroy") && FIND(jpeg_state_create, "nvjpegJpegStateCreate") &&
         FIND(jpeg_state_destroy, "nvjpegJpegStateDestroy") &&
         FIND(decode_batched_initialize, "nvjpegDecodeBatchedInitialize") &&
         FIND(decode_batched, "nvjpegDecodeBatched");
}
