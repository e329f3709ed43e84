/* Loads the CUDA driver and its functions. */
#include "cuda/runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static driver_table table;
static driver_load load;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local driver_status last_error;

static const struct {
  const char *symbol;
  size_t offset; /* in the table */
} functions[] = {
#define DRIVER_SYMBOL(name, symbol, parameters) {#symbol, offsetof(driver_table, name)},
    DRIVER_FUNCTIONS(DRIVER_SYMBOL)};

static void *open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? library : dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
}

/* The library is never closed: the driver has threads. */
static void load_driver(void) {
  int version = 0;
  void *library = open_driver();
  if (!library) return;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *function = dlsym(library, functions[i].symbol);
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
    if (load.status == DRIVER_SUCCESS) load.table = &table;
  }
}

const driver_load *driver_loaded(void) {
  (void)pthread_once(&once, load_driver);
  return &load;
}

stage_status driver_result(driver_status status) {
  if (status == DRIVER_SUCCESS) return STAGE_OK;
  last_error = status;
  return status == DRIVER_OUT_OF_MEMORY ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

/* Retained once and kept: the contexts that the CUDA runtime of the same process uses, PyTorch's too. */
driver_status driver_context_of(int32_t index, driver_context *context) {
  static driver_context kept[DRIVER_DEVICES_KEPT];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const driver_load *driver = driver_loaded();
  driver_device device = 0;
  *context = NULL;
  if (!driver->table) return driver->status ? driver->status : DRIVER_NOT_INITIALIZED;
  pthread_mutex_lock(&lock);
  driver_status status = DRIVER_SUCCESS;
  if (index >= 0 && index < DRIVER_DEVICES_KEPT) *context = kept[index];
  if (!*context) status = driver->table->device_of(&device, index);
  if (!*context && status == DRIVER_SUCCESS) status = driver->table->context_retain(context, device);
  if (status == DRIVER_SUCCESS && index < DRIVER_DEVICES_KEPT) kept[index] = *context;
  pthread_mutex_unlock(&lock);
  return status;
}

const driver_table *driver_ready(void) {
  const driver_load *driver = driver_loaded();
  driver_context context = NULL;
  driver_status status = driver->table ? driver->table->context_get(&context) : DRIVER_SUCCESS;
  if (status == DRIVER_SUCCESS && !context) {
    status = driver_context_of(0, &context);
    if (status == DRIVER_SUCCESS) status = driver->table->context_set(context);
  }
  return driver_result(status) == STAGE_OK ? driver->table : NULL;
}

const char *driver_text(driver_status status) {
  const char *text = NULL;
  (void)driver_loaded();
  return table.error_text && table.error_text(status, &text) == DRIVER_SUCCESS ? text : NULL;
}

const char *device_error_text(void) {
  const driver_load *driver = driver_loaded();
  const driver_status status = last_error;
  const char *text = driver_text(status);
  last_error = DRIVER_SUCCESS;
  if (text) return text;
  if (driver->missing) return driver->missing;
  return status == DRIVER_SUCCESS ? "no error" : "no CUDA driver can be used";
}
