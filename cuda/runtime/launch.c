/* Kernels, launches and launch lists (cuda/runtime/launch.h, launch_list.h) on the CUDA driver. */
#include "cuda/runtime/launch.h"

#include <stdalign.h>
#include <string.h>

#include "os/os_threads.h"
#include "cuda/runtime/launch_list.h"

enum { SHARED_BYTES_DEFAULT = 48 << 10 }; /* dynamic shared memory that needs no permission */

/* ------------------------------------------------------------------ kernels */

static driver_status library_of(const driver_table *driver, launch_module *module, driver_library *library) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  driver_status status = DRIVER_SUCCESS;
  *library = atomic_load_explicit(&module->library, memory_order_acquire);
  if (*library) return status;
  pthread_mutex_lock(&lock);
  *library = atomic_load_explicit(&module->library, memory_order_acquire);
  if (!*library) {
    status = fat_binary_load(driver, driver_loaded()->version, module->image, library);
    if (status == DRIVER_SUCCESS) atomic_store_explicit(&module->library, *library, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static driver_status look_up(const driver_table *driver, launch_kernel *kernel, size_t shared_bytes,
                             driver_function *function) {
  driver_library library = NULL;
  driver_kernel found = NULL;
  int mode = DRIVER_CAPTURE_RELAXED; /* loading is allowed during a capture, which does not record it */
  driver_status status = driver->capture_mode(&mode);
  if (status != DRIVER_SUCCESS) return status;
  status = library_of(driver, kernel->module, &library);
  if (status == DRIVER_SUCCESS) status = driver->library_kernel(&found, library, kernel->name);
  if (status == DRIVER_SUCCESS) status = driver->kernel_function(function, found);
  if (status == DRIVER_SUCCESS && shared_bytes > SHARED_BYTES_DEFAULT) {
    atomic_store_explicit(&kernel->shared_bytes, shared_bytes, memory_order_relaxed);
    status = driver->function_set(*function, DRIVER_FUNCTION_SHARED_BYTES, (int)shared_bytes);
  }
  const driver_status restored = driver->capture_mode(&mode);
  return status == DRIVER_SUCCESS ? restored : status;
}

driver_status launch_function(launch_kernel *kernel, size_t shared_bytes, driver_function *function) {
  const driver_table *driver = driver_loaded()->table;
  driver_device device = 0;
  *function = NULL;
  if (!driver) return DRIVER_NOT_INITIALIZED;
  driver_status status = driver->context_device(&device);
  if (status != DRIVER_SUCCESS) return status;
  const bool is_kept = device >= 0 && device < LAUNCH_DEVICES_KEPT;
  if (is_kept) *function = atomic_load_explicit(&kernel->functions[device], memory_order_acquire);
  if (*function) {
    /* allowed by the first launch for all later ones */
    assert(shared_bytes <= SHARED_BYTES_DEFAULT ||
           shared_bytes == atomic_load_explicit(&kernel->shared_bytes, memory_order_relaxed));
    return DRIVER_SUCCESS;
  }
  status = look_up(driver, kernel, shared_bytes, function);
  if (status == DRIVER_SUCCESS && is_kept)
    atomic_store_explicit(&kernel->functions[device], *function, memory_order_release);
  return status;
}

/* The driver's answers on kernels' resident blocks. A query takes some 10 us, five times a frame. */

typedef struct resident_answer {
  const launch_kernel *kernel;
  size_t dynamic_shared_bytes;
  driver_device device;
  uint32_t threads, blocks;
} resident_answer;

enum { ANSWERS_KEPT = 128 }; /* later kernels are queried every time */

static resident_answer answers[ANSWERS_KEPT];
static int answer_count;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_question(const resident_answer *a, const resident_answer *b) {
  return a->kernel == b->kernel && a->device == b->device && a->threads == b->threads &&
         a->dynamic_shared_bytes == b->dynamic_shared_bytes;
}

/* 0: not known yet. */
static uint32_t find_answer(const resident_answer *question) {
  uint32_t blocks = 0;
  pthread_mutex_lock(&answers_lock);
  for (int i = 0; i < answer_count && blocks == 0; i++)
    if (same_question(&answers[i], question)) blocks = answers[i].blocks;
  pthread_mutex_unlock(&answers_lock);
  return blocks;
}

/* Two threads may store the same entry. */
static void keep_answer(const resident_answer *answer) {
  pthread_mutex_lock(&answers_lock);
  if (answer_count < ANSWERS_KEPT) answers[answer_count++] = *answer;
  pthread_mutex_unlock(&answers_lock);
}

int32_t launch_multiprocessors(void) {
  const driver_table *driver = driver_ready();
  driver_device device = 0;
  int count = 0;
  if (!driver || driver->context_device(&device) != DRIVER_SUCCESS) return 1;
  if (driver->device_attribute(&count, DRIVER_MULTIPROCESSORS, device) != DRIVER_SUCCESS) return 1;
  return count > 0 ? count : 1;
}

int32_t launch_capability(void) {
  const driver_table *driver = driver_ready();
  driver_device device = 0;
  int major = 0, minor = 0;
  if (!driver || driver->context_device(&device) != DRIVER_SUCCESS) return 0;
  if (driver->device_attribute(&major, DRIVER_COMPUTE_MAJOR, device) != DRIVER_SUCCESS) return 0;
  if (driver->device_attribute(&minor, DRIVER_COMPUTE_MINOR, device) != DRIVER_SUCCESS) return 0;
  return 10 * major + minor;
}

uint32_t launch_resident_blocks(launch_kernel *kernel, uint32_t threads, size_t dynamic_shared_bytes) {
  const driver_table *driver = driver_ready();
  resident_answer a = {kernel, dynamic_shared_bytes, 0, threads, 0};
  driver_function function;
  int blocks = 0;
  if (!driver || driver->context_device(&a.device) != DRIVER_SUCCESS) return 1;
  const uint32_t known = find_answer(&a);
  if (known > 0) return known;
  if (launch_function(kernel, dynamic_shared_bytes, &function) != DRIVER_SUCCESS) return 1;
  if (driver->resident_blocks(&blocks, function, (int)threads, dynamic_shared_bytes) != DRIVER_SUCCESS) return 1;
  if (blocks <= 0) return 1;
  a.blocks = (uint32_t)launch_multiprocessors() * (uint32_t)blocks;
  keep_answer(&a);
  return a.blocks;
}

/* ------------------------------------------------------------------ listed launches */

enum { STEPS_MAX = 2 * LISTED_NODES_MAX, ARGUMENTS_MAX = 8 * LISTED_NODES_MAX, ARGUMENT_BYTES_MAX = 128 << 10 };
enum { ARGUMENT_ALIGNMENT = 16, LAUNCH_ARGUMENTS_MAX = 8 };

struct launch_list {
  int32_t steps, nodes, arguments;
  size_t argument_bytes;
  bool is_too_long;
  uint64_t shape;
  launch_step step[STEPS_MAX];
  void *argument[ARGUMENTS_MAX];
  alignas(ARGUMENT_ALIGNMENT) unsigned char bytes[ARGUMENT_BYTES_MAX];
};

static _Thread_local launch_list *list_of_thread;

size_t launch_list_bytes(void) { return sizeof(launch_list); }

stage_status launch_list_begin(launch_list *list) {
  const uint64_t fnv_offset = 14695981039346656037ull;
  list->steps = list->nodes = list->arguments = 0;
  list->argument_bytes = 0;
  list->is_too_long = false;
  list->shape = fnv_offset;
  list_of_thread = list;
  return STAGE_OK;
}

stage_status launch_list_end(launch_list *list, stage_status recorded) {
  (void)list;
  list_of_thread = NULL;
  return recorded;
}

bool launch_is_listed(void) { return list_of_thread != NULL; }

uint64_t launch_list_shape(const launch_list *list) { return list->is_too_long ? 0 : list->shape; }

/* FNV-1a over 64-bit words. A product carries only upwards, so the upper half is folded down after each. */
static void add_to_shape(launch_list *list, uint64_t value) {
  const uint64_t fnv_prime = 1099511628211ull;
  list->shape = (list->shape ^ value) * fnv_prime;
  list->shape ^= list->shape >> 32;
}

static launch_step *add_step(launch_list *list, const launch_step *step) {
  const bool is_node = step->kind < STEP_RECORD;
  if (list->steps == STEPS_MAX || (is_node && list->nodes == LISTED_NODES_MAX)) {
    list->is_too_long = true;
    return NULL;
  }
  add_to_shape(list, (uint64_t)step->kind);
  add_to_shape(list, (uint64_t)(uintptr_t)step->stream);
  add_to_shape(list, (uint64_t)(uintptr_t)step->event);
  list->nodes += is_node;
  launch_step *added = &list->step[list->steps++];
  *added = *step;
  return added;
}

static void list_kernel(launch_list *list, const launch_step *step, const launch_argument *arguments, int32_t count) {
  launch_step *added = add_step(list, step);
  if (!added || list->arguments + count > ARGUMENTS_MAX) {
    list->is_too_long = true;
    return;
  }
  added->arguments = list->argument + list->arguments;
  for (int32_t i = 0; i < count; i++) {
    const size_t bytes = arguments[i].bytes,
                 padded = (bytes + ARGUMENT_ALIGNMENT - 1) & ~(size_t)(ARGUMENT_ALIGNMENT - 1);
    if (list->argument_bytes + padded > ARGUMENT_BYTES_MAX) {
      list->is_too_long = true;
      return;
    }
    void *copy = list->bytes + list->argument_bytes;
    memcpy(copy, arguments[i].address, bytes);
    list->argument[list->arguments++] = copy;
    list->argument_bytes += padded;
  }
}

static driver_status launch_now(const driver_table *driver, const launch_step *s) {
  driver_function function;
  const driver_status status = launch_function(s->kernel, s->bytes, &function);
  if (status != DRIVER_SUCCESS) return status;
  return driver->launch(function, s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y, s->block.z,
                        (uint32_t)s->bytes, s->stream, s->arguments, NULL);
}

stage_status launch(launch_kernel *kernel, launch_shape shape, const launch_argument *arguments, int32_t count) {
  launch_step step = {.kind = STEP_KERNEL, .stream = shape.stream, .kernel = kernel, .bytes = shape.shared_bytes};
  assert(count <= LAUNCH_ARGUMENTS_MAX);
  step.grid = shape.grid;
  step.block = shape.block;
  if (list_of_thread) {
    list_kernel(list_of_thread, &step, arguments, count);
    return STAGE_OK;
  }
  union {
    const void *given;
    void *taken; /* the driver only reads it */
  } address;
  void *addresses[LAUNCH_ARGUMENTS_MAX];
  for (int32_t i = 0; i < count; i++) {
    address.given = arguments[i].address;
    addresses[i] = address.taken;
  }
  step.arguments = addresses;
  const driver_table *driver = driver_ready();
  return driver ? driver_result(launch_now(driver, &step)) : STAGE_DEVICE;
}

static driver_status to_device(const driver_table *driver, const launch_step *s) {
  switch (s->kind) {
  case STEP_KERNEL:
    return launch_now(driver, s);
  case STEP_COPY_TO:
    return driver->copy_to((driver_pointer)(uintptr_t)s->to, s->from, s->bytes, s->stream);
  case STEP_COPY_FROM:
    return driver->copy_from(s->to, (driver_pointer)(uintptr_t)s->from, s->bytes, s->stream);
  case STEP_CLEAR:
    return driver->set_bytes((driver_pointer)(uintptr_t)s->to, 0, s->bytes, s->stream);
  case STEP_RECORD:
    return driver->event_record(s->event, s->stream);
  case STEP_WAIT:
    return driver->stream_wait_event(s->stream, s->event, 0);
  }
  return DRIVER_UNKNOWN;
}

stage_status launch_step_run(const launch_step *step) {
  assert(step->kind != STEP_KERNEL);
  if (list_of_thread) {
    (void)add_step(list_of_thread, step);
    return STAGE_OK;
  }
  const driver_table *driver = driver_ready();
  return driver ? driver_result(to_device(driver, step)) : STAGE_DEVICE;
}

/* ------------------------------------------------------------------ graphs of lists */

driver_status launch_instantiate(const driver_table *driver, cuda_graph *graph, driver_graph captured) {
  if (driver->graph_instantiate(graph, captured, DRIVER_GRAPH_NODE_PRIORITY) == DRIVER_SUCCESS) return DRIVER_SUCCESS;
  return driver->graph_instantiate(graph, captured, 0);
}

/* The node of a capturing stream's last step. */
static driver_status last_node(const driver_table *driver, cuda_stream stream, driver_node *node) {
  int state = 0;
  const driver_node *last = NULL;
  size_t count = 0;
  const driver_status status = driver->capture_info(stream, &state, NULL, NULL, &last, &count);
  if (status != DRIVER_SUCCESS) return status;
  if (count != 1) return DRIVER_UNKNOWN;
  *node = *last;
  return DRIVER_SUCCESS;
}

/* Kernels are looked up before the capture, which loading would prolong. */
static driver_status look_up_listed(const launch_list *list) {
  driver_status status = DRIVER_SUCCESS;
  driver_function function;
  for (int32_t i = 0; i < list->steps && status == DRIVER_SUCCESS; i++)
    if (list->step[i].kind == STEP_KERNEL)
      status = launch_function(list->step[i].kernel, list->step[i].bytes, &function);
  return status;
}

static driver_status capture(const driver_table *driver, const launch_list *list, cuda_stream stream,
                             listed_graph *graph) {
  driver_status status = look_up_listed(list);
  if (status == DRIVER_SUCCESS) status = driver->capture_begin(stream, DRIVER_CAPTURE_THREAD_LOCAL);
  if (status != DRIVER_SUCCESS) return status;
  for (int32_t i = 0, node = 0; i < list->steps && status == DRIVER_SUCCESS; i++) {
    const launch_step *s = &list->step[i];
    status = to_device(driver, s);
    if (status == DRIVER_SUCCESS && s->kind < STEP_RECORD) status = last_node(driver, s->stream, &graph->nodes[node++]);
  }
  const driver_status ended = driver->capture_end(stream, &graph->source);
  return status == DRIVER_SUCCESS ? ended : status;
}

static driver_copy copy_of(const launch_step *s) {
  const bool is_upload = s->kind == STEP_COPY_TO;
  driver_copy copy = {.from_type = is_upload ? DRIVER_MEMORY_HOST : DRIVER_MEMORY_DEVICE,
                      .to_type = is_upload ? DRIVER_MEMORY_DEVICE : DRIVER_MEMORY_HOST,
                      .from_pitch = s->bytes,
                      .from_height = 1,
                      .to_pitch = s->bytes,
                      .to_height = 1,
                      .row_bytes = s->bytes,
                      .rows = 1,
                      .slices = 1};
  if (is_upload) {
    copy.from_host = s->from;
    copy.to_device = (driver_pointer)(uintptr_t)s->to;
  } else {
    copy.from_device = (driver_pointer)(uintptr_t)s->from;
    copy.to_host = s->to;
  }
  return copy;
}

static driver_status change_kernel(const driver_table *driver, const launch_step *s, cuda_graph graph,
                                   driver_node node) {
  driver_kernel_node kernel = {.grid_x = s->grid.x,
                               .grid_y = s->grid.y,
                               .grid_z = s->grid.z,
                               .block_x = s->block.x,
                               .block_y = s->block.y,
                               .block_z = s->block.z,
                               .shared_bytes = (uint32_t)s->bytes,
                               .arguments = s->arguments};
  const driver_status status = launch_function(s->kernel, s->bytes, &kernel.function);
  return status == DRIVER_SUCCESS ? driver->graph_set_kernel(graph, node, &kernel) : status;
}

static driver_status change_node(const driver_table *driver, const launch_step *s, cuda_graph graph, driver_node node,
                                 driver_context context) {
  if (s->kind == STEP_KERNEL) return change_kernel(driver, s, graph, node);
  if (s->kind == STEP_CLEAR) {
    const driver_clear clear = {
        .to = (driver_pointer)(uintptr_t)s->to, .element_bytes = 1, .width = s->bytes, .rows = 1};
    return driver->graph_set_clear(graph, node, &clear, context);
  }
  const driver_copy copy = copy_of(s);
  return driver->graph_set_copy(graph, node, &copy, context);
}

static driver_status change(const driver_table *driver, const launch_list *list, const listed_graph *graph) {
  driver_context context = NULL;
  driver_status status = driver->context_get(&context);
  for (int32_t i = 0, node = 0; i < list->steps && status == DRIVER_SUCCESS; i++)
    if (list->step[i].kind < STEP_RECORD)
      status = change_node(driver, &list->step[i], graph->graph, graph->nodes[node++], context);
  return status;
}

stage_status launch_list_to_graph(launch_list *list, cuda_stream stream, listed_graph *graph) {
  const driver_table *driver = driver_ready();
  assert(list->steps > 0 && !list->is_too_long);
  if (!driver) return STAGE_DEVICE;
  if (graph->graph && change(driver, list, graph) == DRIVER_SUCCESS) return STAGE_OK;
  listed_graph_free(graph); /* if the driver refuses, a new graph is made */
  driver_status status = capture(driver, list, stream, graph);
  if (status == DRIVER_SUCCESS) status = launch_instantiate(driver, &graph->graph, graph->source);
  if (status != DRIVER_SUCCESS) listed_graph_free(graph);
  return driver_result(status);
}

cuda_graph listed_graph_take(listed_graph *graph) {
  const cuda_graph taken = graph->graph;
  graph->graph = NULL;
  listed_graph_free(graph);
  return taken;
}

void listed_graph_free(listed_graph *graph) {
  const driver_table *driver = driver_loaded()->table;
  if (driver && graph->graph) (void)driver->graph_exec_destroy(graph->graph);
  if (driver && graph->source) (void)driver->graph_destroy(graph->source);
  memset(graph, 0, sizeof *graph);
}
