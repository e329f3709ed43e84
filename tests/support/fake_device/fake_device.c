/* Implements the functions of cuda/runtime/device.h on fake GPUs. */
#include "tests/support/fake_device/fake_device.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MEBIBYTE = 1 << 20,
  ALIGNMENT = 256,
  OUT_OF_MEMORY = DEVICE_ERROR_MEMORY,
  LAUNCH_FAILED = 719,
  INVALID_DEVICE = 101
};

fake_machine fake;

/* Header of every allocation; names the GPU that owns it. */
typedef struct block {
  size_t bytes;
  int32_t gpu; /* GPU that owns the block; -1: pinned memory */
} block;

typedef struct step {
  struct step *next;
  stage_status (*run)(const void *args);
  max_align_t args[];
} step;

struct CUgraphExec_st {
  step *first, **end;
};
struct CUstream_st {
  int32_t gpu;
};
struct CUevent_st {
  int32_t gpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `fake` */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int32_t current, last_error;
static _Thread_local cuda_graph recording;

static const char *log_path;
static const char *signals_at_start = "unknown"; /* SIGTERM in the first call, which starts threads */
static bool is_started;                          /* the driver was called */
static int32_t only_shown = -1;                  /* the GPU that is not hidden; -1: none is hidden */
static char queues_at_start[16];                 /* hardware queues that the environment names in the first call */

static bool is_hidden(int32_t gpu) { return only_shown >= 0 && gpu != only_shown; }

static const char *use_of(int32_t gpu) {
  return is_hidden(gpu) ? "hidden" : fake.gpus[gpu].entered ? "entered" : "untouched";
}

static void write_log(void) {
  FILE *out = fopen(log_path, "w");
  if (!out) return;
  for (int32_t i = 0; i < fake.gpu_count; i++)
    fprintf(out, "gpu %d: %s, %llu launches\n", (int)i, use_of(i), (unsigned long long)fake.gpus[i].launches);
  fprintf(out, "queues: %s\n", queues_at_start);
  fprintf(out, "signals: %s\n", signals_at_start);
  fprintf(out, "decoded: %llu\n", (unsigned long long)fake.decoded);
  fprintf(out, "alive: %lld\n", (long long)fake.alive);
  (void)fclose(out);
}

void fake_reset(int32_t gpus) {
  const fake_machine machine = {.gpu_count = gpus, .driver = 12080, .runtime = 12080};
  if (fake.alive != 0) abort();
  fake = machine;
  for (int32_t i = 0; i < gpus; i++) fake.gpus[i].memory_bytes = (size_t)1024 * MEBIBYTE;
}

int fake_set_up(void **state) {
  (void)state;
  fake_reset(1);
  return 0;
}

int fake_tear_down(void **state) {
  (void)state;
  if (fake.alive != 0) fprintf(stderr, "%lld objects of the fake GPUs are alive\n", (long long)fake.alive);
  return fake.alive == 0 ? 0 : -1;
}

/* Returns the number after "name=" in the text, or the default. */
static long number_of(const char *text, const char *name, long otherwise) {
  const char *at = strstr(text, name);
  return at ? strtol(at + strlen(name), NULL, 10) : otherwise;
}

/* Reads the configuration. gpus: number of GPUs. memory, others: MiB of each GPU. error, mode: of each GPU. lost: index
 * of a lost GPU. fail: number of the call that fails for lack of memory, or with losing=1 because its GPU is lost from
 * then on, with all=1 because every GPU is. jpeg: a fake_jpeg. */
static void fake_read(void) {
  const char *text = getenv("HARTSIFT_FAKE_DEVICE");
  if (!text) return;
  fake_reset((int32_t)number_of(text, "gpus=", 1));
  for (int32_t i = 0; i < fake.gpu_count; i++) {
    fake.gpus[i].memory_bytes = (size_t)number_of(text, "memory=", 1024) * MEBIBYTE;
    fake.gpus[i].others_bytes = (size_t)number_of(text, "others=", 0) * MEBIBYTE;
    fake.gpus[i].error = (int32_t)number_of(text, "error=", 0);
    fake.gpus[i].mode = (int32_t)number_of(text, "mode=", 0);
  }
  fake.jpeg = (fake_jpeg)number_of(text, "jpeg=", FAKE_JPEG_RIGHT);
  fake.fail_at = (uint64_t)number_of(text, "fail=", 0);
  fake.lost_at = number_of(text, "losing=", 0) != 0;
  fake.loses_all = number_of(text, "all=", 0) != 0;
  const long lost = number_of(text, "lost=", -1);
  if (lost >= 0 && lost < FAKE_GPUS_MAX) fake.gpus[lost].lost = true;
  const char *path = strstr(text, "log=");
  log_path = path ? path + 4 : NULL;
  if (log_path) (void)atexit(write_log);
}

/* ------------------------------------------------------------------ failures */

static stage_status fails(int32_t error) {
  last_error = error;
  return error == OUT_OF_MEMORY ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

/* Begins a call on the current GPU that needs its CUDA context and may fail. The caller holds the lock. */
static stage_status enter_call(void) {
  fake_gpu *gpu = &fake.gpus[current];
  gpu->entered = true;
  fake.calls++;
  if (fake.calls == fake.fail_at) {
    const bool loses = fake.lost_at || fake.loses_all;
    gpu->lost = gpu->lost || loses;
    for (int32_t i = 0; i < fake.gpu_count; i++) fake.gpus[i].lost = fake.gpus[i].lost || fake.loses_all;
    return fails(loses ? LAUNCH_FAILED : OUT_OF_MEMORY);
  }
  return gpu->lost ? fails(LAUNCH_FAILED) : STAGE_OK;
}

static stage_status call(void) {
  pthread_mutex_lock(&lock);
  const stage_status st = enter_call();
  pthread_mutex_unlock(&lock);
  return st;
}

void fake_count(int64_t change) {
  pthread_mutex_lock(&lock);
  fake.alive += change;
  pthread_mutex_unlock(&lock);
}

void fake_count_decoded(void) {
  pthread_mutex_lock(&lock);
  fake.decoded++;
  pthread_mutex_unlock(&lock);
}

stage_status fake_list_call(void) {
  pthread_mutex_lock(&lock);
  stage_status st = enter_call();
  if (++fake.listed == fake.fail_at_list && st == STAGE_OK) st = fails(OUT_OF_MEMORY);
  pthread_mutex_unlock(&lock);
  return st;
}

static const char *words_of(int32_t error) {
  switch (error) {
  case 0:
    return "no error";
  case OUT_OF_MEMORY:
    return "out of memory";
  case LAUNCH_FAILED:
    return "unspecified launch failure";
  default:
    return "a fake error";
  }
}

const char *device_error_text(void) {
  const char *text = words_of(last_error);
  last_error = 0;
  return text;
}

/* ------------------------------------------------------------------ discovery */

/* A driver starts threads in its first call. */
static void start_driver(void) {
  is_started = true;
  fake_read();
  const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  snprintf(queues_at_start, sizeof queues_at_start, "%s", queues ? queues : "not set");
#ifndef _WIN32
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0)
    signals_at_start = sigismember(&blocked, SIGTERM) == 1 ? "blocked" : "open";
#endif
}

void device_ask_count(device_answer *a) {
  pthread_once(&once, start_driver);
  a->files = DEVICE_FILES_OPEN;
  a->visible = NULL;
  a->driver = fake.driver;
  a->runtime = fake.runtime;
  a->error = fake.error;
  a->error_text = words_of(fake.error);
  const int32_t end = only_shown >= 0 && only_shown < fake.gpu_count ? only_shown + 1 : fake.gpu_count;
  a->count = fake.error == 0 ? end : 0;
}

stage_status device_ask(int32_t index, device_info *info, device_answer *a) {
  fake_gpu *gpu = &fake.gpus[index];
  snprintf(info->name, sizeof info->name, "fake GPU %d", (int)index);
  info->major = 9;
  info->multiprocessors = 8;
  info->driver = fake.driver;
  info->runtime = fake.runtime;
  info->code = DEVICE_CODE_MACHINE;
  a->architectures = "90-real";
  a->mode = gpu->mode;
  int32_t error = gpu->error;
  pthread_mutex_lock(&lock);
  if (error == 0) gpu->entered = true;
  if (error == 0 || error == OUT_OF_MEMORY) {
    info->memory_bytes = gpu->memory_bytes;
    info->free_bytes = gpu->memory_bytes - gpu->others_bytes - gpu->used_bytes;
  }
  pthread_mutex_unlock(&lock);
  if (error == 0 && gpu->lost) error = LAUNCH_FAILED;
  a->error = error;
  a->error_text = words_of(error);
  return error == 0 ? STAGE_OK : fails(error);
}

bool device_is_lost(void) { return false; }

int32_t device_count_files(void) {
  const char *text = getenv("HARTSIFT_FAKE_DEVICE");
  return text ? (int32_t)number_of(text, "gpus=", 1) : fake.gpu_count;
}

void device_show_only(int32_t index) {
  assert(index >= 0); /* a negative one would hide all */
  if (!is_started && !getenv("CUDA_VISIBLE_DEVICES")) only_shown = index;
}

stage_status device_enter(int32_t index, int32_t *previous) {
  if (is_hidden(index)) {
    *previous = -1;
    return fails(INVALID_DEVICE);
  }
  *previous = current;
  current = index;
  return STAGE_OK;
}

void device_leave(int32_t previous) {
  if (previous >= 0) current = previous;
}

/* ------------------------------------------------------------------ memory */

stage_status device_memory(size_t *free_bytes, size_t *memory_bytes) {
  const fake_gpu *gpu = &fake.gpus[current];
  pthread_mutex_lock(&lock);
  *memory_bytes = gpu->memory_bytes;
  *free_bytes = gpu->memory_bytes - gpu->others_bytes - gpu->used_bytes;
  pthread_mutex_unlock(&lock);
  return STAGE_OK;
}

/* New memory is filled with ones, so that code that reads it unwritten does not find zeros. */
static void *new_block(size_t bytes, int32_t gpu) {
  unsigned char *memory = aligned_alloc(ALIGNMENT, ALIGNMENT + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!memory) return NULL;
  *(block *)(void *)memory = (block){bytes, gpu};
  memset(memory + ALIGNMENT, 0xff, bytes);
  return memory + ALIGNMENT;
}

static void free_block(void *pointer) {
  if (!pointer) return;
  unsigned char *memory = (unsigned char *)pointer - ALIGNMENT;
  const block b = *(block *)(void *)memory;
  pthread_mutex_lock(&lock);
  if (b.gpu >= 0) fake.gpus[b.gpu].used_bytes -= b.bytes;
  fake.alive--;
  pthread_mutex_unlock(&lock);
  free(memory);
}

stage_status device_alloc(void **pointer, size_t bytes) {
  *pointer = NULL;
  pthread_mutex_lock(&lock);
  fake_gpu *gpu = &fake.gpus[current];
  stage_status st = enter_call();
  if (st == STAGE_OK && bytes > gpu->memory_bytes - gpu->others_bytes - gpu->used_bytes) st = fails(OUT_OF_MEMORY);
  if (st == STAGE_OK) *pointer = new_block(bytes, current);
  if (*pointer) {
    gpu->used_bytes += bytes;
    fake.alive++;
  } else if (st == STAGE_OK) {
    st = fails(OUT_OF_MEMORY);
  }
  pthread_mutex_unlock(&lock);
  return st;
}

void device_free(void *pointer) { free_block(pointer); }

stage_status device_alloc_pinned(void **host, void **device, size_t bytes) {
  *host = *device = NULL;
  const stage_status st = call();
  if (st != STAGE_OK) return st;
  *host = *device = new_block(bytes, -1);
  if (!*host) return fails(OUT_OF_MEMORY);
  fake_count(1);
  return STAGE_OK;
}

void device_free_pinned(void *host) {
  pthread_mutex_lock(&lock);
  if (host) fake.gpus[current].entered = true;
  pthread_mutex_unlock(&lock);
  free_block(host);
}

bool device_is_pageable(const void *memory) {
  (void)memory;
  return !fake.pinned;
}

/* ------------------------------------------------------------------ streams, copies, events */

stage_status device_stream_create(cuda_stream *stream) { return device_stream_create_urgent(stream, 0); }

stage_status device_stream_create_urgent(cuda_stream *stream, int32_t urgency) {
  (void)urgency;
  *stream = NULL;
  const stage_status st = call();
  if (st != STAGE_OK) return st;
  *stream = calloc(1, sizeof **stream);
  if (!*stream) return fails(OUT_OF_MEMORY);
  (*stream)->gpu = current;
  fake_count(1);
  return STAGE_OK;
}

void device_stream_destroy(cuda_stream stream) {
  if (stream) fake_count(-1);
  free(stream);
}

stage_status device_stream_wait(cuda_stream stream) {
  (void)stream;
  return call();
}

stage_status device_stream_query(cuda_stream stream, bool *busy) {
  (void)stream;
  *busy = false;
  return call();
}

bool device_stream_is_foreign(cuda_stream stream) { return stream->gpu != current; }

typedef struct copy_args {
  void *to;
  const void *from;
  size_t to_pitch, from_pitch, row_bytes, rows;
} copy_args;

static stage_status copy_run(const void *args) {
  const copy_args *a = args;
  for (size_t y = 0; y < a->rows; y++)
    memcpy((unsigned char *)a->to + y * a->to_pitch, (const unsigned char *)a->from + y * a->from_pitch, a->row_bytes);
  return STAGE_OK;
}

stage_status device_copy_rows_to(void *device, size_t device_pitch, const void *source, size_t source_pitch,
                                 size_t row_bytes, size_t rows, cuda_stream stream) {
  const copy_args args = {device, source, device_pitch, source_pitch, row_bytes, rows};
  return row_bytes == 0 || rows == 0 ? STAGE_OK : fake_submit(stream, copy_run, &args, sizeof args);
}

stage_status device_copy_to(void *device, const void *host, size_t bytes, cuda_stream stream) {
  return device_copy_rows_to(device, bytes, host, bytes, bytes, 1, stream);
}

stage_status device_copy_from(void *host, const void *device, size_t bytes, cuda_stream stream) {
  return device_copy_rows_to(host, bytes, device, bytes, bytes, 1, stream);
}

static stage_status clear_run(const void *args) {
  const copy_args *a = args;
  memset(a->to, 0, a->row_bytes);
  return STAGE_OK;
}

stage_status device_clear(void *device, size_t bytes, cuda_stream stream) {
  const copy_args args = {.to = device, .row_bytes = bytes};
  return bytes == 0 ? STAGE_OK : fake_submit(stream, clear_run, &args, sizeof args);
}

stage_status device_event_create(cuda_event *event, bool timed) {
  (void)timed;
  *event = NULL;
  const stage_status st = call();
  if (st != STAGE_OK) return st;
  *event = calloc(1, sizeof **event);
  if (!*event) return fails(OUT_OF_MEMORY);
  fake_count(1);
  return STAGE_OK;
}

stage_status device_event_create_sleeping(cuda_event *event) { return device_event_create(event, false); }

void device_event_destroy(cuda_event event) {
  if (event) fake_count(-1);
  free(event);
}

stage_status device_event_record(cuda_event event, cuda_stream stream) {
  (void)event;
  (void)stream;
  return call();
}

stage_status device_event_wait(cuda_event event, cuda_stream stream) {
  (void)event;
  (void)stream;
  pthread_mutex_lock(&lock);
  const stage_status st = enter_call();
  fake.event_waits++;
  pthread_mutex_unlock(&lock);
  return st;
}

stage_status device_event_finish(cuda_event event) {
  (void)event;
  return call();
}

stage_status device_event_elapsed_ms(cuda_event start, cuda_event stop, float *milliseconds) {
  (void)start;
  (void)stop;
  *milliseconds = 0.0f;
  return call();
}

/* ------------------------------------------------------------------ work and graphs */

stage_status fake_submit(cuda_stream stream, stage_status (*run)(const void *args), const void *args, size_t bytes) {
  (void)stream;
  pthread_mutex_lock(&lock);
  const stage_status st = enter_call();
  fake.gpus[current].launches++;
  pthread_mutex_unlock(&lock);
  if (st != STAGE_OK) return st;
  if (!recording) return run(args);
  step *s = malloc(sizeof *s + bytes);
  if (!s) return fails(OUT_OF_MEMORY);
  s->next = NULL;
  s->run = run;
  memcpy(s->args, args, bytes);
  *recording->end = s;
  recording->end = &s->next;
  return STAGE_OK;
}

stage_status device_capture_begin(cuda_stream stream) {
  (void)stream;
  const stage_status st = call();
  if (st != STAGE_OK) return st;
  recording = calloc(1, sizeof *recording);
  if (!recording) return fails(OUT_OF_MEMORY);
  recording->end = &recording->first;
  fake_count(1);
  return STAGE_OK;
}

stage_status device_capture_end(cuda_stream stream, cuda_graph *graph) {
  const stage_status st = call();
  *graph = NULL;
  if (st != STAGE_OK) {
    device_capture_abandon(stream);
    return st;
  }
  *graph = recording;
  recording = NULL;
  return STAGE_OK;
}

void device_capture_abandon(cuda_stream stream) {
  (void)stream;
  device_graph_destroy(recording);
  recording = NULL;
}

stage_status device_graph_launch(cuda_graph graph, cuda_stream stream) {
  (void)stream;
  stage_status st = call();
  for (const step *s = graph->first; s && st == STAGE_OK; s = s->next) st = s->run(s->args);
  return st;
}

void device_graph_destroy(cuda_graph graph) {
  if (!graph) return;
  for (step *s = graph->first; s;) {
    step *next = s->next;
    free(s);
    s = next;
  }
  free(graph);
  fake_count(-1);
}
