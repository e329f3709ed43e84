/*
 * Messages for a device that cannot be used: each reason that CUDA and the machine can give, with its remedy.
 */
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "cuda/runtime/device_reason.h"

#define GIB ((size_t)1 << 30)

/* Returns the answers of a machine whose driver lists a working device. */
static device_answer sound(void) {
  return (device_answer){.driver = 12080,
                         .runtime = 12080,
                         .count = 1,
                         .files = DEVICE_FILES_OPEN,
                         .name = "NVIDIA H200",
                         .major = 9,
                         .memory_bytes = 140 * GIB,
                         .free_bytes = 139 * GIB,
                         .architectures = "80, 90"};
}

typedef struct reason_case {
  const char *name;
  device_answer answer;
  const char *says, *remedy;
} reason_case;

enum { CASES = 23 };

static int fill_cases(reason_case cases[CASES]) {
  int n = 0;
  device_answer a = {.index = -1, .files = DEVICE_FILES_ABSENT, .runtime = 12080};
  cases[n++] = (reason_case){"no driver", a, "no CUDA driver: this machine has no NVIDIA GPU", "--gpus all"};
  a.files = DEVICE_FILES_OPEN;
  cases[n++] = (reason_case){"no driver library", a, "libcuda.so.1 is not found", "NVIDIA_DRIVER_CAPABILITIES"};
  a.files = DEVICE_FILES_DENIED;
  cases[n++] = (reason_case){"no permission", a, "no permission to use the GPU", "add the user to the group"};
  a = sound();
  a.index = -1;
  a.error = DEVICE_ERROR_STUB_LIBRARY;
  cases[n++] = (reason_case){"stub library", a, "no CUDA driver library", "install the driver's libraries"};
  a.driver = 11040;
  a.error = DEVICE_ERROR_OLD_DRIVER;
  cases[n++] = (reason_case){"old driver", a, "too old: it knows CUDA up to 11.4, this build needs 12.8",
                             "install a newer driver"};
  a.error = DEVICE_ERROR_NOT_FOUND;
  a.missing = "cuInit";
  cases[n++] = (reason_case){"incomplete driver", a, "the CUDA driver lacks the function cuInit", "or a newer one"};
  a.error = DEVICE_ERROR_NO_DEVICE;
  a.count = 0;
  cases[n++] = (reason_case){"none shown", a, "the driver shows no GPU", "nvidia-smi -L must list one"};
  a.visible = "0";
  cases[n++] = (reason_case){"the first visible", a, "the driver shows no GPU", "nvidia-smi -L must list one"};
  a.visible = "";
  cases[n++] = (reason_case){"none visible", a, "CUDA_VISIBLE_DEVICES is \"\" and leaves no GPU visible", "unset it"};
  a.visible = "7";
  a.error = DEVICE_ERROR_NONE;
  cases[n++] =
      (reason_case){"another visible", a, "CUDA_VISIBLE_DEVICES is \"7\"", "name GPUs that nvidia-smi -L lists"};
  a.visible = "MIG-1234";
  cases[n++] =
      (reason_case){"no such slice", a, "\"MIG-1234\", a MIG slice that this machine does not have", "nvidia-smi -L"};
  a.error = DEVICE_ERROR_SYSTEM_CALL;
  a.files = DEVICE_FILES_DENIED;
  cases[n++] = (reason_case){"open fails", a, "no permission to use the GPU", "ls -l /dev/nvidia*"};
  a = sound();
  a.error = DEVICE_ERROR_NOT_READY;
  cases[n++] = (reason_case){"fabric", a, "not ready", "nvidia-fabricmanager must run"};
  a.error = DEVICE_ERROR_DRIVER_PARTS;
  cases[n++] = (reason_case){"updated driver", a, "different versions", "restart the machine"};
  a.error = DEVICE_ERROR_FORKED;
  cases[n++] = (reason_case){"forked", a, "was forked", "\"spawn\""};
  a.error = DEVICE_ERROR_RESET;
  cases[n++] = (reason_case){"reset", a, "has reset the device", "do not reset it"};
  a.error = DEVICE_ERROR_UNAVAILABLE;
  a.mode = DEVICE_MODE_EXCLUSIVE;
  a.index = 3;
  cases[n++] = (reason_case){"exclusive", a, "exclusive mode and another program has it", "nvidia-smi -i 3 -c DEFAULT"};
  a.mode = DEVICE_MODE_PROHIBITED;
  cases[n++] = (reason_case){"prohibited", a, "\"prohibited\"", "nvidia-smi -i 3 -c DEFAULT"};
  a.mode = DEVICE_MODE_SHARED;
  cases[n++] = (reason_case){"busy", a, "busy or not available", "MIG mode needs a slice"};
  a.error = DEVICE_ERROR_NO_CODE;
  a.major = 7;
  cases[n++] = (reason_case){"wrong architecture", a, "compute capability 7.0, the build is for 80, 90",
                             "-DHARTSIFT_CUDA_ARCHITECTURES=70-real"};
  a = sound();
  a.error = DEVICE_ERROR_MEMORY;
  a.free_bytes = 100 << 20;
  cases[n++] = (reason_case){"memory", a, "memory of the device is full: 100 of 143360 MiB are free",
                             "another device or the CPU"};
  a.name = "NVIDIA H200 MIG 1g.18gb";
  a.memory_bytes = 18 * GIB;
  cases[n++] =
      (reason_case){"slice's memory", a, "a MIG slice, is full: 100 of 18432 MiB", "a larger slice or the CPU"};
  a = sound();
  a.error = 999;
  a.error_text = "unknown error";
  cases[n++] = (reason_case){"another", a, "CUDA reports error 999 (unknown error)", "dmesg"};
  return n;
}

TEST(test_sentences) {
  reason_case cases[CASES];
  char texts[CASES][320];
  const int count = fill_cases(cases);
  assert_int_equal(count, CASES);
  for (int i = 0; i < count; i++) {
    device_reason(&cases[i].answer, texts[i], sizeof texts[i]);
    if (!strstr(texts[i], cases[i].says) || !strstr(texts[i], cases[i].remedy))
      fail_msg("%s: \"%s\" lacks \"%s\" or \"%s\"", cases[i].name, texts[i], cases[i].says, cases[i].remedy);
    if (strlen(texts[i]) >= sizeof texts[i] - 1) fail_msg("%s is cut: %s", cases[i].name, texts[i]);
  }
}

TEST(test_nothing_amiss) {
  char text[64] = "old";
  const device_answer a = sound();
  device_reason(&a, text, sizeof text);
  assert_string_equal(text, "");
  device_reason(&a, NULL, 0); /* null because no device is requested */
}

TEST(test_needed) {
  char text[320];
  device_answer a = sound();
  a.free_bytes = 5 << 20;
  device_reason_memory(&a, "the frame", (7 << 20) + 1, text, sizeof text);
  assert_non_null(strstr(text, "5 of 143360 MiB are free, needed are 8 MiB for the frame"));
  a.memory_bytes = 0;
  device_reason_memory(&a, "the frame", 0, text, sizeof text);
  assert_non_null(strstr(text, "how much is free it does not say, needed are the frame"));
}

TEST(test_codes) {
  const char *release = "75-real, 80-real, 90-real, 120";
  assert_int_equal(device_code_of(release, 7, 0), DEVICE_CODE_NONE);
  assert_int_equal(device_code_of(release, 7, 5), DEVICE_CODE_MACHINE);
  assert_int_equal(device_code_of(release, 8, 9), DEVICE_CODE_MACHINE); /* of 8.0 */
  assert_int_equal(device_code_of(release, 10, 0), DEVICE_CODE_NONE);
  assert_int_equal(device_code_of(release, 12, 1), DEVICE_CODE_MACHINE);
  assert_int_equal(device_code_of(release, 13, 0), DEVICE_CODE_PTX);
  assert_int_equal(device_code_of("90-virtual", 9, 0), DEVICE_CODE_PTX);
  assert_int_equal(device_code_of("90-virtual", 8, 0), DEVICE_CODE_NONE);
  assert_int_equal(device_code_of("", 9, 0), DEVICE_CODE_NONE);
}

/* The driver's control file has different permissions. Root may open any file, so the test drops its rights. */
TEST_IN_FOLDER(test_files) {
  char path[SCRATCH_PATH_BYTES];
  scratch_write_file(scratch_folder_path(folder, "control", path), "", 0);
  assert_int_equal(chmod(folder->path, 0755), 0);
  assert_int_equal(device_files_of(path), DEVICE_FILES_OPEN);
  assert_int_equal(chmod(path, 0), 0);
  const bool root = geteuid() == 0;
  if (root) assert_int_equal(seteuid(65534), 0);
  const device_files denied = device_files_of(path);
  if (root) assert_int_equal(seteuid(0), 0);
  assert_int_equal(denied, DEVICE_FILES_DENIED);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(device_files_of(path), DEVICE_FILES_ABSENT);
}
