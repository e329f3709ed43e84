/* Loads the CUDA driver and its functions. */
#include "cuda/runtime/driver.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_threads.h"

static driver_table table;
static driver_load load;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool is_loading;
static atomic_int first_shown; /* number of the first device that the driver shows */
static _Thread_local driver_status last_error;

static const struct {
  const char *symbol;
  size_t offset; /* in the table */
} functions[] = {
#define DRIVER_SYMBOL(name, symbol, parameters) {#symbol, offsetof(driver_table, name)},
    DRIVER_FUNCTIONS(DRIVER_SYMBOL)};

static void *open_driver(void) {
#ifdef _WIN32
  return os_library_open("nvcuda.dll");
#else
  void *library = os_library_open("libcuda.so.1");
  return library ? library : os_library_open("libcuda.so");
#endif
}

/* In a forked child the driver does not work, and threads of the parent may hold the locks of this folder. */
static void leave_driver(void) {
  load.table = NULL;
  load.status = DEVICE_ERROR_FORKED;
}

/* The library is never closed: the driver has threads. */
static void load_driver(void) {
  int version = 0;
  void *library = open_driver();
  atomic_store(&is_loading, true);
  if (!library) return;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *function = os_library_function(library, functions[i].symbol);
    if (!function && !load.missing) load.missing = functions[i].symbol;
    memcpy((char *)&table + functions[i].offset, &function, sizeof function);
  }
  if (table.version && table.version(&version) == DRIVER_SUCCESS) load.version = version;
  if (load.version < HARTSIFT_DRIVER_VERSION) {
    load.status = DEVICE_ERROR_OLD_DRIVER;
  } else if (load.missing) {
    load.status = DRIVER_NOT_FOUND;
  } else {
    load.status = table.init(0);
    if (load.status == DRIVER_SUCCESS && !os_call_in_forked_children(leave_driver)) load.status = DRIVER_OUT_OF_MEMORY;
    if (load.status == DRIVER_SUCCESS) load.table = &table;
  }
}

const driver_load *driver_loaded(void) {
  (void)pthread_once(&once, load_driver);
  return &load;
}

int32_t driver_first(void) { return atomic_load(&first_shown); }

void device_show_only(int32_t index) {
  char number[16];
  if (atomic_load(&is_loading) || os_variable("CUDA_VISIBLE_DEVICES")) return;
  snprintf(number, sizeof number, "%d", (int)index);
  os_set_variable("CUDA_VISIBLE_DEVICES", number, false);
  atomic_store(&first_shown, index);
}

stage_status driver_result(driver_status status) {
  if (status == DRIVER_SUCCESS) return STAGE_OK;
  last_error = status;
  return status == DRIVER_OUT_OF_MEMORY ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

/* A retained context, and its number: a reset of the device makes another one at the same address. */
typedef struct kept_context {
  driver_context context; /* null: not yet retained */
  unsigned long long id;
} kept_context;

static driver_status retain(int32_t index, kept_context *kept) {
  driver_device device = 0;
  kept_context got = {NULL, 0};
  driver_status status = table.device_of(&device, index - driver_first());
  if (status == DRIVER_SUCCESS) status = table.context_retain(&got.context, device);
  if (status == DRIVER_SUCCESS) status = table.context_id(got.context, &got.id);
  if (status == DRIVER_SUCCESS) *kept = got;
  return status;
}

static bool is_reset(const kept_context *kept) {
  unsigned long long id = 0;
  return table.context_id(kept->context, &id) != DRIVER_SUCCESS || id != kept->id;
}

/* Retained once and kept: the contexts that the CUDA runtime of the same process uses, PyTorch's too. */
driver_status driver_context_of(int32_t index, driver_context *context) {
  static kept_context contexts[DRIVER_DEVICES_KEPT];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const driver_load *driver = driver_loaded();
  kept_context other = {NULL, 0};
  *context = NULL;
  if (!driver->table) return driver->status ? driver->status : DRIVER_NOT_INITIALIZED;
  kept_context *kept = index >= 0 && index < DRIVER_DEVICES_KEPT ? &contexts[index] : &other;
  pthread_mutex_lock(&lock);
  driver_status status = DRIVER_SUCCESS;
  if (!kept->context)
    status = retain(index, kept);
  else if (is_reset(kept))
    status = DRIVER_CONTEXT_DESTROYED;
  if (status == DRIVER_SUCCESS) *context = kept->context;
  pthread_mutex_unlock(&lock);
  return status;
}

const driver_table *driver_ready(void) {
  const driver_load *driver = driver_loaded();
  driver_context context = NULL;
  driver_status status = driver->table ? driver->table->context_get(&context) : DRIVER_SUCCESS;
  if (status == DRIVER_SUCCESS && !context) {
    status = driver_context_of(driver_first(), &context);
    if (status == DRIVER_SUCCESS) status = driver->table->context_set(context);
  }
  return driver_result(status) == STAGE_OK ? driver->table : NULL;
}

const char *driver_text(driver_status status) {
  const char *text = NULL;
  const bool works = driver_loaded()->status != DEVICE_ERROR_FORKED;
  return works && table.error_text && table.error_text(status, &text) == DRIVER_SUCCESS ? text : NULL;
}

const char *device_error_text(void) {
  const driver_load *driver = driver_loaded();
  const driver_status status = last_error;
  last_error = DRIVER_SUCCESS;
  if (status == DEVICE_ERROR_FORKED) return "this process was forked from one that had used a GPU";
  if (status == DRIVER_CONTEXT_DESTROYED)
    return "the program has reset the device (cudaDeviceReset): this process cannot use it with hartsift any more";
  const char *text = driver_text(status);
  if (text) return text;
  if (driver->missing) return driver->missing;
  return status == DRIVER_SUCCESS ? "no error" : "no CUDA driver can be used";
}
