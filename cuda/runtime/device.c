/* Implementation of cuda/runtime/device.h on the CUDA driver. */
#include "cuda/runtime/device.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/driver.h"
#include "cuda/runtime/launch.h"
#include "os/os_files.h"

LAUNCH_MODULE(runtime_kernels)
LAUNCH_ENTRY(runtime_kernels, device_probe_kernel)
LAUNCH_KERNEL(runtime_kernels, handover_signal_kernel, uint32_t *)

_Static_assert((int)DEVICE_ERROR_MEMORY == (int)DRIVER_OUT_OF_MEMORY &&
                   (int)DEVICE_ERROR_NOT_FOUND == (int)DRIVER_NOT_FOUND &&
                   (int)DEVICE_ERROR_RESET == (int)DRIVER_CONTEXT_DESTROYED,
               "the driver's numbers of errors");

static void take_error(driver_status status, device_answer *a) {
  a->error = status;
  a->error_text = driver_text(status);
}

void device_ask_count(device_answer *a) {
  const driver_load *driver = driver_loaded();
  int count = 0;
  driver_status status = driver->status;
  a->runtime = HARTSIFT_DRIVER_VERSION;
  a->driver = driver->version;
  a->missing = driver->missing;
  if (driver_first() > 0) a->visible = NULL; /* the variable is not the user's */
  if (driver->table) status = driver->table->device_count(&count);
  a->count = status == DRIVER_SUCCESS && count > 0 ? driver_first() + count : 0;
  take_error(status, a);
}

int32_t device_count_files(void) {
  char **names = NULL;
  int32_t files = 0;
  const int64_t count = os_list_folder("/dev", &names);
  for (int64_t i = 0; i < count; i++) {
    const char *digits = strncmp(names[i], "nvidia", 6) == 0 ? names[i] + 6 : "";
    files += digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
    free(names[i]);
  }
  free(names);
  return files;
}

bool device_is_lost(void) { return driver_loaded()->status == DEVICE_ERROR_FORKED; }

static driver_status read_properties(const driver_table *driver, int32_t index, device_info *info,
                                     driver_device *device) {
  const struct {
    int attribute;
    int32_t *value;
  } wanted[] = {{DRIVER_COMPUTE_MAJOR, &info->major},
                {DRIVER_COMPUTE_MINOR, &info->minor},
                {DRIVER_MULTIPROCESSORS, &info->multiprocessors},
                {DRIVER_L2_BYTES, &info->l2_bytes},
                {DRIVER_SHARED_BYTES_OPTIN, &info->shared_bytes_block_optin},
                {DRIVER_SHARED_BYTES_SM, &info->shared_bytes_sm}};
  driver_status status = driver->device_of(device, index - driver_first());
  if (status == DRIVER_SUCCESS) status = driver->device_name(info->name, (int)sizeof info->name, *device);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && status == DRIVER_SUCCESS; i++) {
    int value = 0;
    status = driver->device_attribute(&value, wanted[i].attribute, *device);
    *wanted[i].value = value;
  }
  return status;
}

stage_status device_ask(int32_t index, device_info *info, device_answer *a) {
  const driver_load *load = driver_loaded();
  const driver_table *driver = load->table;
  driver_function probe;
  driver_device device = 0;
  int32_t previous = -1;
  int mode = DEVICE_MODE_SHARED;
  a->architectures = HARTSIFT_CUDA_ARCHITECTURE_NAMES;
  info->driver = load->version;
  info->runtime = HARTSIFT_KERNELS_VERSION;
  if (!driver) {
    take_error(load->status ? load->status : DRIVER_NOT_INITIALIZED, a);
    return STAGE_DEVICE;
  }
  /* the properties of a device that cannot be used are reported too */
  driver_status status = read_properties(driver, index, info, &device);
  info->code = device_code_of(HARTSIFT_CUDA_ARCHITECTURE_NAMES, info->major, info->minor);
  if (status == DRIVER_SUCCESS && driver->device_attribute(&mode, DRIVER_COMPUTE_MODE, device) == DRIVER_SUCCESS)
    a->mode = mode;
  driver_context context = NULL;
  if (status == DRIVER_SUCCESS) status = driver_context_of(index, &context);
  if (status == DRIVER_SUCCESS && device_enter(index, &previous) != STAGE_OK) status = DRIVER_UNKNOWN;
  if (status == DRIVER_SUCCESS) status = driver->memory_info(&info->free_bytes, &info->memory_bytes);
  if (status == DRIVER_SUCCESS) status = launch_function(&device_probe_kernel, 0, &probe);
  take_error(status, a);
  device_leave(previous);
  return driver_result(status);
}

stage_status device_memory(size_t *free_bytes, size_t *memory_bytes) {
  const driver_table *driver = driver_ready();
  *free_bytes = *memory_bytes = 0;
  return driver ? driver_result(driver->memory_info(free_bytes, memory_bytes)) : STAGE_DEVICE;
}

stage_status device_enter(int32_t index, int32_t *previous) {
  const driver_table *driver = driver_loaded()->table;
  driver_context context = NULL;
  *previous = -1;
  driver_status status = driver_context_of(index, &context);
  if (status == DRIVER_SUCCESS) status = driver->context_push(context);
  if (status == DRIVER_SUCCESS) *previous = 0;
  return driver_result(status);
}

void device_leave(int32_t previous) {
  const driver_table *driver = driver_loaded()->table;
  driver_context context = NULL;
  if (previous >= 0 && driver) (void)driver->context_pop(&context);
}

stage_status device_alloc(void **pointer, size_t bytes) {
  const driver_table *driver = driver_ready();
  driver_pointer memory = 0;
  *pointer = NULL;
  if (!driver) return STAGE_DEVICE;
  if (bytes == 0) return STAGE_OK;
  const stage_status st = driver_result(driver->memory_alloc(&memory, bytes));
  if (st == STAGE_OK) *pointer = (void *)(uintptr_t)memory;
  return st;
}

void device_free(void *pointer) {
  const driver_table *driver = pointer ? driver_ready() : NULL;
  if (driver) (void)driver_result(driver->memory_free((driver_pointer)(uintptr_t)pointer));
}

stage_status device_alloc_pinned(void **host, void **device, size_t bytes) {
  const driver_table *driver = driver_ready();
  driver_pointer mapped = 0;
  *host = *device = NULL;
  if (!driver) return STAGE_DEVICE;
  if (bytes == 0) return STAGE_OK;
  driver_status status = driver->host_alloc(host, bytes, DRIVER_HOST_MAPPED | DRIVER_HOST_PORTABLE);
  if (status != DRIVER_SUCCESS) {
    *host = NULL;
    return driver_result(status);
  }
  status = driver->host_device_pointer(&mapped, *host, 0);
  if (status == DRIVER_SUCCESS) {
    *device = (void *)(uintptr_t)mapped;
  } else {
    (void)driver->host_free(*host);
    *host = NULL;
  }
  return driver_result(status);
}

void device_free_pinned(void *host) {
  const driver_table *driver = host ? driver_ready() : NULL;
  if (driver) (void)driver_result(driver->host_free(host));
}

/* Returns the kind of memory: 0 if the driver does not know it, -1 if the driver fails. */
static int32_t memory_type(const driver_table *driver, const void *memory) {
  const int attribute = DRIVER_POINTER_MEMORY_TYPE;
  uint32_t type = 0;
  void *values[] = {&type};
  const driver_status status = driver->pointer_attributes(1, &attribute, values, (driver_pointer)(uintptr_t)memory);
  return status == DRIVER_SUCCESS ? (int32_t)type : -1;
}

bool device_is_pageable(const void *memory) {
  const driver_table *driver = driver_ready();
  return driver && memory_type(driver, memory) == 0;
}

stage_status device_stream_create(cuda_stream *stream) { return device_stream_create_urgent(stream, 0); }

stage_status device_stream_create_urgent(cuda_stream *stream, int32_t urgency) {
  const driver_table *driver = driver_ready();
  int least = 0, greatest = 0;
  *stream = NULL;
  if (!driver) return STAGE_DEVICE;
  const driver_status status = driver->stream_priorities(&least, &greatest); /* smaller numbers are more urgent */
  if (status != DRIVER_SUCCESS) return driver_result(status);
  const int priority = least + (greatest - least) * urgency / 2;
  return driver_result(driver->stream_create(stream, DRIVER_STREAM_NON_BLOCKING, priority));
}

void device_stream_destroy(cuda_stream stream) {
  const driver_table *driver = stream ? driver_ready() : NULL;
  if (driver) (void)driver_result(driver->stream_destroy(stream));
}

stage_status device_stream_wait(cuda_stream stream) {
  const driver_table *driver = driver_ready();
  return driver ? driver_result(driver->stream_wait(stream)) : STAGE_DEVICE;
}

stage_status device_stream_query(cuda_stream stream, bool *busy) {
  const driver_table *driver = driver_ready();
  *busy = false;
  if (!driver) return STAGE_DEVICE;
  const driver_status status = driver->stream_query(stream);
  *busy = status == DRIVER_NOT_READY;
  return *busy ? STAGE_OK : driver_result(status);
}

bool device_stream_is_foreign(cuda_stream stream) {
  const driver_table *driver = driver_ready();
  driver_context of_stream = NULL, current = NULL;
  return driver && driver->stream_context(stream, &of_stream) == DRIVER_SUCCESS &&
         driver->context_get(&current) == DRIVER_SUCCESS && of_stream != current;
}

static stage_status create_event(cuda_event *event, uint32_t flags) {
  const driver_table *driver = driver_ready();
  *event = NULL;
  return driver ? driver_result(driver->event_create(event, flags)) : STAGE_DEVICE;
}

stage_status device_event_create(cuda_event *event, bool timed) {
  return create_event(event, timed ? 0 : DRIVER_EVENT_UNTIMED);
}

stage_status device_event_create_sleeping(cuda_event *event) {
  return create_event(event, DRIVER_EVENT_UNTIMED | DRIVER_EVENT_BLOCKING);
}

void device_event_destroy(cuda_event event) {
  const driver_table *driver = event ? driver_ready() : NULL;
  if (driver) (void)driver_result(driver->event_destroy(event));
}

stage_status device_event_finish(cuda_event event) {
  const driver_table *driver = driver_ready();
  return driver ? driver_result(driver->event_wait(event)) : STAGE_DEVICE;
}

stage_status device_event_elapsed_ms(cuda_event start, cuda_event stop, float *milliseconds) {
  const driver_table *driver = driver_ready();
  return driver ? driver_result(driver->event_elapsed(milliseconds, start, stop)) : STAGE_DEVICE;
}

/* Captures and graphs. */

stage_status device_capture_begin(cuda_stream stream) {
  const driver_table *driver = driver_ready();
  return driver ? driver_result(driver->capture_begin(stream, DRIVER_CAPTURE_THREAD_LOCAL)) : STAGE_DEVICE;
}

stage_status device_capture_end(cuda_stream stream, cuda_graph *graph) {
  const driver_table *driver = driver_ready();
  driver_graph captured = NULL;
  *graph = NULL;
  if (!driver) return STAGE_DEVICE;
  driver_status status = driver->capture_end(stream, &captured);
  if (status == DRIVER_SUCCESS) status = launch_instantiate(driver, graph, captured);
  if (captured) (void)driver->graph_destroy(captured);
  return driver_result(status);
}

void device_capture_abandon(cuda_stream stream) {
  const driver_table *driver = driver_ready();
  driver_graph captured = NULL;
  if (!driver) return;
  (void)driver->capture_end(stream, &captured);
  if (captured) (void)driver->graph_destroy(captured);
}

stage_status device_graph_launch(cuda_graph graph, cuda_stream stream) {
  const driver_table *driver = driver_ready();
  return driver ? driver_result(driver->graph_launch(graph, stream)) : STAGE_DEVICE;
}

void device_graph_destroy(cuda_graph graph) {
  const driver_table *driver = graph ? driver_ready() : NULL;
  if (driver) (void)driver_result(driver->graph_exec_destroy(graph));
}

/* Steps, on a stream or in a list. */

stage_status device_copy_to(void *device, const void *host, size_t bytes, cuda_stream stream) {
  const launch_step step = {.kind = STEP_COPY_TO, .stream = stream, .to = device, .from = host, .bytes = bytes};
  return bytes == 0 ? STAGE_OK : launch_step_run(&step);
}

stage_status device_copy_from(void *host, const void *device, size_t bytes, cuda_stream stream) {
  const launch_step step = {.kind = STEP_COPY_FROM, .stream = stream, .to = host, .from = device, .bytes = bytes};
  return bytes == 0 ? STAGE_OK : launch_step_run(&step);
}

stage_status device_copy_rows_to(void *device, size_t device_pitch, const void *source, size_t source_pitch,
                                 size_t row_bytes, size_t rows, cuda_stream stream) {
  assert(!launch_is_listed()); /* rows have no list step, and would be copied at once */
  if (row_bytes == 0 || rows == 0) return STAGE_OK;
  const driver_table *driver = driver_ready();
  if (!driver) return STAGE_DEVICE;
  driver_copy_rows copy = {.from_pitch = source_pitch, .to_pitch = device_pitch, .row_bytes = row_bytes, .rows = rows};
  /* either side may be memory that only the host has */
  copy.from_type = memory_type(driver, source) > 0 ? DRIVER_MEMORY_UNIFIED : DRIVER_MEMORY_HOST;
  copy.from_host = source;
  copy.from_device = (driver_pointer)(uintptr_t)source;
  copy.to_type = memory_type(driver, device) > 0 ? DRIVER_MEMORY_UNIFIED : DRIVER_MEMORY_HOST;
  copy.to_host = device;
  copy.to_device = (driver_pointer)(uintptr_t)device;
  return driver_result(driver->copy_rows(&copy, stream));
}

stage_status device_clear(void *device, size_t bytes, cuda_stream stream) {
  const launch_step step = {.kind = STEP_CLEAR, .stream = stream, .to = device, .bytes = bytes};
  return bytes == 0 ? STAGE_OK : launch_step_run(&step);
}

stage_status device_clear_rows(void *device, size_t pitch, size_t row_bytes, size_t rows, cuda_stream stream) {
  assert(!launch_is_listed()); /* launch lists have no step for rows */
  const driver_table *driver = driver_ready();
  if (!driver) return STAGE_DEVICE;
  return driver_result(driver->set_rows((driver_pointer)(uintptr_t)device, pitch, 0, row_bytes, rows, stream));
}

stage_status device_fill(void *device, uint8_t value, size_t bytes, cuda_stream stream) {
  assert(!launch_is_listed()); /* launch lists have no step for other values than 0 */
  const driver_table *driver = driver_ready();
  if (!driver) return STAGE_DEVICE;
  return driver_result(driver->set_bytes((driver_pointer)(uintptr_t)device, value, bytes, stream));
}

stage_status device_event_record(cuda_event event, cuda_stream stream) {
  const launch_step step = {.kind = STEP_RECORD, .stream = stream, .event = event};
  return launch_step_run(&step);
}

stage_status device_event_wait(cuda_event event, cuda_stream stream) {
  const launch_step step = {.kind = STEP_WAIT, .stream = stream, .event = event};
  return launch_step_run(&step);
}

stage_status handover_launch(uint32_t *flag, cuda_stream stream) {
  assert(flag);
  return launch_handover_signal_kernel((launch_shape){launch_1d(1), launch_1d(1), 0, stream}, flag);
}
