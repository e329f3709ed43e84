/*
 * Kernels by name, and launches: one step of a frame goes to the calling thread's list if one has begun, else to the
 * device.
 *
 * The kernels of a .cu file are listed once, K(module, kernel, types of its parameters) for each, by a macro that its
 * CUDA code expands with K = LAUNCH_CHECK, and its launchers in C with LAUNCH_KERNEL. In C an entry becomes a function
 * that launches the kernel; in CUDA it is compared with the kernel's definition.
 */
#ifndef HARTSIFT_CUDA_RUNTIME_LAUNCH_H
#define HARTSIFT_CUDA_RUNTIME_LAUNCH_H

#include "stages/base.h"

/* The largest y and z of a grid. */
enum { GRID_Y_MAX = 65535 };

#ifdef __CUDACC__

template <class A, class B> struct launch_types { static constexpr bool are_same = false; };
template <class A> struct launch_types<A, A> { static constexpr bool are_same = true; };

#  define LAUNCH_CHECK(module, name, ...)                                                                              \
    static_assert(launch_types<decltype(name), void(__VA_ARGS__)>::are_same, #name ": not the listed parameters");

/* A plane of another picture of a group; null stays null. */
template <class T> static __device__ __forceinline__ T *group_shifted(T *plane, size_t bytes) {
  return plane ? reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(plane) + bytes) : plane;
}

#else

#  include <stdatomic.h>

#  include "cuda/runtime/driver.h"

enum { WARP_LANES = 32 }; /* as in cuda/prim/reductions.cuh */

/* Blocks of a grid, or threads of a block. */
typedef struct launch_size {
  uint32_t x, y, z;
} launch_size;

/* The fat binary of one .cu file; loaded when the first of its kernels is needed. */
typedef struct launch_module {
  const unsigned char *image;
  _Atomic(driver_library) library;
} launch_module;

enum { LAUNCH_DEVICES_KEPT = 16 }; /* for later devices, every launch looks the kernel up */

typedef struct launch_kernel {
  launch_module *module;
  const char *name;
  _Atomic(driver_function) functions[LAUNCH_DEVICES_KEPT];
  atomic_size_t shared_bytes; /* allowed dynamic shared memory beyond 48 KiB; 0: none was asked for yet */
} launch_kernel;

typedef struct launch_shape {
  launch_size grid, block;
  size_t shared_bytes; /* dynamic shared memory; beyond 48 KiB always the same for a kernel */
  cuda_stream stream;
} launch_shape;

typedef struct launch_argument {
  const void *address;
  size_t bytes;
} launch_argument;

/* Launches a kernel, or lists it with copies of the arguments. */
stage_status launch(launch_kernel *kernel, launch_shape shape, const launch_argument *arguments, int32_t count);

#  define LAUNCH_MODULE(module)                                                                                        \
    extern const unsigned char hartsift_kernels_##module[];                                                            \
    static launch_module module = {hartsift_kernels_##module, NULL};

#  define LAUNCH_ENTRY(module, name) static launch_kernel name = {&module, #  name, {NULL}, 0};

#  define LAUNCH_KERNEL_1(module, name, T0)                                                                            \
    LAUNCH_ENTRY(module, name)                                                                                         \
    static inline stage_status launch_##name(launch_shape shape, T0 a) {                                               \
      const launch_argument arguments[] = {{&a, sizeof a}};                                                            \
      return launch(&name, shape, arguments, 1);                                                                       \
    }

#  define LAUNCH_KERNEL_2(module, name, T0, T1)                                                                        \
    LAUNCH_ENTRY(module, name)                                                                                         \
    static inline stage_status launch_##name(launch_shape shape, T0 a, T1 b) {                                         \
      const launch_argument arguments[] = {{&a, sizeof a}, {&b, sizeof b}};                                            \
      return launch(&name, shape, arguments, 2);                                                                       \
    }

#  define LAUNCH_KERNEL_3(module, name, T0, T1, T2)                                                                    \
    LAUNCH_ENTRY(module, name)                                                                                         \
    static inline stage_status launch_##name(launch_shape shape, T0 a, T1 b, T2 c) {                                   \
      const launch_argument arguments[] = {{&a, sizeof a}, {&b, sizeof b}, {&c, sizeof c}};                            \
      return launch(&name, shape, arguments, 3);                                                                       \
    }

#  define LAUNCH_KERNEL_4(module, name, T0, T1, T2, T3)                                                                \
    LAUNCH_ENTRY(module, name)                                                                                         \
    static inline stage_status launch_##name(launch_shape shape, T0 a, T1 b, T2 c, T3 d) {                             \
      const launch_argument arguments[] = {{&a, sizeof a}, {&b, sizeof b}, {&c, sizeof c}, {&d, sizeof d}};            \
      return launch(&name, shape, arguments, 4);                                                                       \
    }

#  define LAUNCH_KERNEL_5(module, name, T0, T1, T2, T3, T4)                                                            \
    LAUNCH_ENTRY(module, name)                                                                                         \
    static inline stage_status launch_##name(launch_shape shape, T0 a, T1 b, T2 c, T3 d, T4 e) {                       \
      const launch_argument arguments[] = {                                                                            \
          {&a, sizeof a}, {&b, sizeof b}, {&c, sizeof c}, {&d, sizeof d}, {&e, sizeof e}};                             \
      return launch(&name, shape, arguments, 5);                                                                       \
    }

/* By the number of parameters. */
#  define LAUNCH_KERNEL(module, name, ...)                                                                             \
    LAUNCH_KERNEL_OF(__VA_ARGS__, LAUNCH_KERNEL_5, LAUNCH_KERNEL_4, LAUNCH_KERNEL_3, LAUNCH_KERNEL_2, LAUNCH_KERNEL_1, \
                     0)                                                                                                \
    (module, name, __VA_ARGS__)
#  define LAUNCH_KERNEL_OF(T0, T1, T2, T3, T4, form, ...) form

/* Whether the calling thread's launches go to a list. */
bool launch_is_listed(void);

/* A kernel's function on the current device, for a launch with this much dynamic shared memory. */
driver_status launch_function(launch_kernel *kernel, size_t shared_bytes, driver_function *function);

/* Number of blocks of `threads` resident on the current device at once; at least 1. The driver is queried once for each
 * kernel and device. Legal during stream capture, and on any thread. */
uint32_t launch_resident_blocks(launch_kernel *kernel, uint32_t threads, size_t dynamic_shared_bytes);

/* Multiprocessors of the current device; 1 if unknown. */
int32_t launch_multiprocessors(void);

/* Compute capability of the current device, 10 * major + minor; 0 if unknown. */
int32_t launch_capability(void);

static inline launch_size launch_1d(uint32_t x) { return (launch_size){x, 1, 1}; }
static inline launch_size launch_2d(uint32_t x, uint32_t y) { return (launch_size){x, y, 1}; }
static inline launch_size launch_3d(uint32_t x, uint32_t y, uint32_t z) { return (launch_size){x, y, z}; }

static inline int32_t ceil_div(int32_t n, int32_t part) { return n / part + (n % part != 0); }

/* A grid over columns and rows; a loop in the kernel covers rows beyond the hardware's maximum grid. */
static inline launch_size launch_grid_2d(int32_t columns, int32_t columns_a_block, int32_t rows, int32_t rows_a_block) {
  const int32_t y = ceil_div(rows, rows_a_block);
  return launch_2d((uint32_t)ceil_div(columns, columns_a_block), (uint32_t)(y < GRID_Y_MAX ? y : GRID_Y_MAX));
}

/* Steps before STEP_RECORD are nodes of a graph. */
typedef enum step_kind { STEP_KERNEL, STEP_COPY_TO, STEP_COPY_FROM, STEP_CLEAR, STEP_RECORD, STEP_WAIT } step_kind;

typedef struct launch_step {
  step_kind kind;
  cuda_stream stream;
  cuda_event event;      /* the event that is recorded, or waited for */
  launch_kernel *kernel; /* with pointers to its arguments, which the list stores */
  void **arguments;
  launch_size grid, block;
  size_t bytes; /* bytes copied or cleared; for a kernel, bytes of its dynamic shared memory */
  void *to;
  const void *from;
} launch_step;

/* Adds a step that is no kernel to the thread's list if one has begun, else runs it. */
stage_status launch_step_run(const launch_step *step);

/* Nodes keep the priorities of the streams that they were captured on; if the driver refuses, all run with the priority
 * of the stream that the graph is launched on. */
driver_status launch_instantiate(const driver_table *driver, cuda_graph *graph, driver_graph captured);

#endif
#endif
