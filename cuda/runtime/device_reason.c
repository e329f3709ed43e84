/* Turns CUDA's answers into a sentence with the user's remedy. */
#include "cuda/runtime/device_reason.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"

enum { MEBIBYTE = 1 << 20 };

/* Destination of a sentence. */
typedef struct sentence {
  char *text;
  size_t bytes;
} sentence;

static void say(sentence s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(sentence s, const char *format, ...) {
  va_list list;
  if (!s.text || s.bytes == 0) return;
  va_start(list, format);
  (void)vsnprintf(s.text, s.bytes, format, list);
  va_end(list);
}

device_files device_files_of(const char *control) {
  const int file = os_open(control, OS_READ_WRITE);
  if (file >= 0) {
    os_close(file);
    return DEVICE_FILES_OPEN;
  }
  return errno == EACCES || errno == EPERM ? DEVICE_FILES_DENIED : DEVICE_FILES_ABSENT;
}

/* Machine code runs on devices of its major version, from its minor version on; PTX on all later ones. */
device_code device_code_of(const char *architectures, int32_t major, int32_t minor) {
  device_code code = DEVICE_CODE_NONE;
  for (const char *at = architectures; *at; at += strspn(at, ", ")) {
    char *end;
    const int32_t number = (int32_t)strtol(at, &end, 10);
    const size_t rest = strcspn(end, ",");
    const bool is_virtual = strncmp(end, "-virtual", rest) == 0 && rest > 0, is_real = strncmp(end, "-real", 5) == 0;
    if (!is_virtual && number / 10 == major && number % 10 <= minor) return DEVICE_CODE_MACHINE;
    if (!is_real && number > 0 && number <= 10 * major + minor) code = DEVICE_CODE_PTX;
    at = end + rest;
  }
  return code;
}

static void say_denied(sentence s) {
  say(s, "no permission to use the GPU: /dev/nvidiactl cannot be opened; add the user to the group that \"ls -l "
         "/dev/nvidia*\" shows, or let the container or group system hand the GPU over");
}

static void say_no_driver(const device_answer *a, sentence s) {
  if (a->files == DEVICE_FILES_DENIED)
    say_denied(s);
  else if (a->files == DEVICE_FILES_OPEN)
    say(s, "no CUDA driver library: the GPU's device files are there, but libcuda.so.1 is not found or does not start; "
           "install the driver's libraries, in a container ask for the capability \"compute\" "
           "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)");
  else
    say(s, "no CUDA driver: this machine has no NVIDIA GPU, or its driver is not installed; in a container start it "
           "with the GPU (docker: --gpus all)");
}

static void say_none_visible(const device_answer *a, sentence s) {
  if (a->files == DEVICE_FILES_DENIED)
    say_denied(s);
  else if (a->visible && strncmp(a->visible, "MIG-", 4) == 0)
    say(s,
        "CUDA_VISIBLE_DEVICES is \"%s\", a MIG slice that this machine does not have: name one that nvidia-smi -L "
        "lists",
        a->visible);
  else if (a->visible && strcmp(a->visible, "0") != 0) /* "0" leaves a GPU visible wherever there is one */
    say(s, "CUDA_VISIBLE_DEVICES is \"%s\" and leaves no GPU visible: unset it, or name GPUs that nvidia-smi -L lists",
        a->visible);
  else
    say(s, "the driver shows no GPU: nvidia-smi -L must list one; a GPU in MIG mode shows none before it has slices "
           "(nvidia-smi mig -lgi lists them)");
}

static void say_no_code(const device_answer *a, sentence s) {
  const bool newer = a->error == DEVICE_ERROR_UNKNOWN_PTX || a->error == DEVICE_ERROR_NO_JIT;
  say(s,
      "this build has no code for the device: it has compute capability %d.%d, the build is for %s%s; build with "
      "-DHARTSIFT_CUDA_ARCHITECTURES=%d%d-real",
      a->major, a->minor, a->architectures ? a->architectures : "others",
      newer ? ", and the driver cannot translate that for it" : "", a->major, a->minor);
}

static void say_unavailable(const device_answer *a, sentence s) {
  if (a->mode == DEVICE_MODE_EXCLUSIVE)
    say(s,
        "the device is in exclusive mode and another program has it: end that program, or share the device with "
        "nvidia-smi -i %d -c DEFAULT",
        a->index);
  else if (a->mode == DEVICE_MODE_PROHIBITED)
    say(s,
        "the device is in compute mode \"prohibited\", which lets no program work on it: allow it with nvidia-smi "
        "-i %d -c DEFAULT",
        a->index);
  else
    say(s, "the device is busy or not available: end the program that holds it; a GPU in MIG mode needs a slice "
           "(nvidia-smi mig -lgi) that CUDA_VISIBLE_DEVICES names");
}

void device_reason_memory(const device_answer *a, const char *what, size_t needed, char *reason, size_t bytes) {
  const sentence s = {reason, bytes};
  const bool slice = a->name && strstr(a->name, "MIG ") != NULL;
  char free_text[80] = "how much is free it does not say", needed_text[48] = "";
  if (a->memory_bytes > 0)
    (void)snprintf(free_text, sizeof free_text, "%zu of %zu MiB are free", a->free_bytes / MEBIBYTE,
                   a->memory_bytes / MEBIBYTE);
  if (needed > 0) (void)snprintf(needed_text, sizeof needed_text, "%zu MiB for ", (needed + MEBIBYTE - 1) / MEBIBYTE);
  say(s,
      "the memory of %s is full: %s, needed are %s%s; end other programs on it (nvidia-smi lists them), or choose "
      "%s",
      slice ? "the device, a MIG slice," : "the device", free_text, needed_text, what,
      slice ? "a larger slice or the CPU" : "another device or the CPU");
}

void device_reason(const device_answer *a, char *reason, size_t bytes) {
  const sentence s = {reason, bytes};
  say(s, "%s", "");
  if (a->driver == 0 || a->error == DEVICE_ERROR_STUB_LIBRARY) {
    say_no_driver(a, s);
    return;
  }
  switch (a->error) {
  case DEVICE_ERROR_NONE:
    if (a->count == 0 && a->index < 0) say_none_visible(a, s);
    return;
  case DEVICE_ERROR_MEMORY:
    device_reason_memory(a, "CUDA's own context and this build's kernels", 0, reason, bytes);
    return;
  case DEVICE_ERROR_OLD_DRIVER:
    say(s,
        "the CUDA driver is too old: it knows CUDA up to %d.%d, this build needs %d.%d; install a newer driver, or "
        "build with an older CUDA toolkit",
        a->driver / 1000, a->driver % 1000 / 10, a->runtime / 1000, a->runtime % 1000 / 10);
    return;
  case DEVICE_ERROR_NOT_FOUND:
    say(s, "the CUDA driver lacks the function %s: install the driver again, or a newer one",
        a->missing ? a->missing : "that was called");
    return;
  case DEVICE_ERROR_UNAVAILABLE:
    say_unavailable(a, s);
    return;
  case DEVICE_ERROR_NO_DEVICE:
    say_none_visible(a, s);
    return;
  case DEVICE_ERROR_NO_CODE:
  case DEVICE_ERROR_UNKNOWN_PTX:
  case DEVICE_ERROR_NO_JIT:
    say_no_code(a, s);
    return;
  case DEVICE_ERROR_FORKED:
    say(s, "this process was forked from one that had used a GPU, which CUDA does not support: start processes anew "
           "(Python: multiprocessing's \"spawn\"), or fork before the first use of a GPU");
    return;
  case DEVICE_ERROR_RESET:
    say(s, "the program has reset the device (cudaDeviceReset) after hartsift had used it: do not reset it, or use it "
           "in another process");
    return;
  case DEVICE_ERROR_NOT_READY:
    say(s, "the machine's GPUs are not ready: the service nvidia-fabricmanager must run, and be of the driver's "
           "version");
    return;
  case DEVICE_ERROR_DRIVER_PARTS:
    say(s, "the CUDA driver's library and its kernel module are of different versions: restart the machine after the "
           "driver's update");
    return;
  default:
    if (a->error == DEVICE_ERROR_SYSTEM_CALL && a->files == DEVICE_FILES_DENIED)
      say_denied(s);
    else
      say(s, "CUDA reports error %d (%s): see whether nvidia-smi works, and the kernel's log (dmesg)", a->error,
          a->error_text ? a->error_text : "without words");
    return;
  }
}
