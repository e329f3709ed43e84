/* Queries devices, and gives the reason as a sentence if none is usable. */
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/device.h"

/* Facts of the machine that CUDA does not give. */
static device_answer answer_of(int32_t index) {
  return (device_answer){
      .index = index, .files = device_files_of("/dev/nvidiactl"), .visible = getenv("CUDA_VISIBLE_DEVICES")};
}

int32_t device_count(char *reason, size_t reason_bytes) {
  device_answer a = answer_of(-1);
  device_ask_count(&a);
  device_reason(&a, reason, reason_bytes);
  return a.count;
}

stage_status device_query(int32_t index, device_info *info, char *reason, size_t reason_bytes) {
  device_answer a = answer_of(index);
  memset(info, 0, sizeof *info);
  device_ask_count(&a);
  const stage_status st = device_ask(index, info, &a);
  a.name = info->name;
  a.major = info->major;
  a.minor = info->minor;
  a.memory_bytes = info->memory_bytes;
  a.free_bytes = info->free_bytes;
  device_reason(&a, reason, reason_bytes);
  return st;
}
