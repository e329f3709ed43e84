/*
 * A library for LD_PRELOAD that makes a chosen call of a program fail, configured by the environment:
 *
 *   HARTSIFT_FAULTS="kind=write,at=3,error=28"     the third write finds the disk full
 *   HARTSIFT_FAULTS="kind=write,at=3,error=28,on"  and every later one
 *   HARTSIFT_FAULTS="kind=read,at=2,short"         the second read gives half of the available bytes
 *   HARTSIFT_FAULTS="kind=any,at=40,signal=9"      a signal before the 40th system call that is watched
 *   HARTSIFT_FAULTS="kind=memory,at=7"             the seventh allocation, of whatever library
 *   HARTSIFT_FAULTS="kind=thread,at=1"             the first pthread_create
 *
 * HARTSIFT_FAULTS_LOG=FILE: at exit it writes the count of each kind, and "alive N", the memory blocks not freed.
 *
 * The kernel catches system calls (seccomp), because the C library's internal calls, for example of stdio, bypass every
 * preloaded function. The signal handler repeats the call, marked by an argument that no watched call uses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/faults/failing_memory.h"

enum { MARK = 0x5eed0bad, WATCHED_MAX = 64 };

typedef enum call_kind {
  CALL_OPEN,
  CALL_READ,
  CALL_WRITE,
  CALL_CLOSE,
  CALL_SYNC,
  CALL_RENAME,
  CALL_MKDIR,
  CALL_UNLINK,
  CALL_LOCK,
  CALL_STAT,
  CALL_TRUNCATE,
  CALL_LIST,
  CALL_SEEK,
  CALL_ACCESS,
  CALL_ANY, /* counts calls of all kinds above */
  CALL_THREAD,
  CALL_MEMORY,
  CALL_KINDS
} call_kind;

static const char *const kind_names[CALL_KINDS] = {"open",  "read",   "write", "close",  "sync",     "rename",
                                                   "mkdir", "unlink", "lock",  "stat",   "truncate", "list",
                                                   "seek",  "access", "any",   "thread", "memory"};

static const struct watched_call {
  long number;
  call_kind kind;
} watched_calls[] = {
#ifdef __NR_open
    {__NR_open, CALL_OPEN},       {__NR_rename, CALL_RENAME},   {__NR_mkdir, CALL_MKDIR},
    {__NR_unlink, CALL_UNLINK},   {__NR_rmdir, CALL_UNLINK},    {__NR_stat, CALL_STAT},
    {__NR_lstat, CALL_STAT},      {__NR_access, CALL_ACCESS},   {__NR_readlink, CALL_STAT},
    {__NR_chmod, CALL_ACCESS},
#endif
    {__NR_openat, CALL_OPEN},     {__NR_read, CALL_READ},       {__NR_pread64, CALL_READ},
    {__NR_readv, CALL_READ},      {__NR_write, CALL_WRITE},     {__NR_pwrite64, CALL_WRITE},
    {__NR_writev, CALL_WRITE},    {__NR_close, CALL_CLOSE},     {__NR_fsync, CALL_SYNC},
    {__NR_fdatasync, CALL_SYNC},  {__NR_renameat, CALL_RENAME}, {__NR_renameat2, CALL_RENAME},
    {__NR_mkdirat, CALL_MKDIR},   {__NR_unlinkat, CALL_UNLINK}, {__NR_flock, CALL_LOCK},
    {__NR_fcntl, CALL_LOCK},      {__NR_fstat, CALL_STAT},      {__NR_newfstatat, CALL_STAT},
    {__NR_statx, CALL_STAT},      {__NR_readlinkat, CALL_STAT}, {__NR_ftruncate, CALL_TRUNCATE},
    {__NR_getdents64, CALL_LIST}, {__NR_lseek, CALL_SEEK},      {__NR_faccessat, CALL_ACCESS},
    {__NR_fchmod, CALL_ACCESS},   {__NR_fchown, CALL_ACCESS},   {__NR_pwritev, CALL_WRITE},
    {__NR_fallocate, CALL_WRITE},
};
enum { WATCHED = sizeof watched_calls / sizeof watched_calls[0] };

static struct plan {
  call_kind kind;
  long at;
  int error, signal;
  bool goes_on, is_short;
  const char *log;
} plan = {.kind = CALL_KINDS};

static atomic_long counts[CALL_KINDS];

/* ------------------------------------------------------------------ system calls */

#if defined(__x86_64__)
#  define ARCHITECTURE AUDIT_ARCH_X86_64
static long marked_call(long number, const long a[5]) {
  long result;
  register long r10 __asm__("r10") = a[3];
  register long r8 __asm__("r8") = a[4];
  register long r9 __asm__("r9") = MARK;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static long *arguments_of(ucontext_t *context, long arguments[5]) {
  greg_t *r = context->uc_mcontext.gregs;
  const int places[5] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8};
  for (int i = 0; i < 5; i++) arguments[i] = (long)r[places[i]];
  return (long *)&r[REG_RAX];
}
#elif defined(__aarch64__)
#  define ARCHITECTURE AUDIT_ARCH_AARCH64
static long marked_call(long number, const long a[5]) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a[0];
  register long x1 __asm__("x1") = a[1];
  register long x2 __asm__("x2") = a[2];
  register long x3 __asm__("x3") = a[3];
  register long x4 __asm__("x4") = a[4];
  register long x5 __asm__("x5") = MARK;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

static long *arguments_of(ucontext_t *context, long arguments[5]) {
  for (int i = 0; i < 5; i++) arguments[i] = (long)context->uc_mcontext.regs[i];
  return (long *)&context->uc_mcontext.regs[0];
}
#endif

/* Counts a call of a kind; returns whether the plan makes this call fail. */
static bool is_meant(call_kind kind) {
  const long made = atomic_fetch_add(&counts[kind], 1) + 1;
  return kind == plan.kind && plan.at != 0 && (made == plan.at || (made > plan.at && plan.goes_on));
}

static call_kind kind_of(long number, const long arguments[5]) {
  if (number == __NR_fcntl && arguments[1] != F_SETLK && arguments[1] != F_SETLKW) return CALL_KINDS;
  /* writes to standard error report faults, so they are not counted */
  if (number == __NR_write && arguments[0] == STDERR_FILENO) return CALL_KINDS;
  for (int i = 0; i < WATCHED; i++)
    if (watched_calls[i].number == number) return watched_calls[i].kind;
  return CALL_KINDS;
}

/* Does what the plan says instead of the call. */
static long do_call(long number, long arguments[5]) {
  const call_kind kind = kind_of(number, arguments);
  if (kind == CALL_KINDS) return marked_call(number, arguments);
  const bool meant = is_meant(kind), any = is_meant(CALL_ANY);
  if (!meant && !any) return marked_call(number, arguments);
  if (plan.signal != 0) {
    kill(getpid(), plan.signal);
    return marked_call(number, arguments);
  }
  if (plan.is_short) {
    if ((kind == CALL_READ || kind == CALL_WRITE) && arguments[2] > 1) arguments[2] /= 2;
    return marked_call(number, arguments);
  }
  /* the kernel closes the file even if close reports an error */
  if (kind == CALL_CLOSE) (void)marked_call(number, arguments);
  return -plan.error;
}

static void catch_call(int number, siginfo_t *info, void *context) {
  (void)number;
  const int before = errno;
  long arguments[5];
  long *result = arguments_of(context, arguments);
  *result = do_call(info->si_syscall, arguments);
  errno = before;
}

/* Asks the kernel to pass watched calls to catch_call. */
static void watch_calls(void) {
  struct sock_filter code[2 * WATCHED_MAX + 8], *end = code;
  *end++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  *end++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  *end++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  *end++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]));
  *end++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, WATCHED + 1, 0);
  *end++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < WATCHED; i++)
    *end++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)watched_calls[i].number,
                                          (uint8_t)(WATCHED - i), 0);
  *end++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  *end++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  const struct sock_fprog program = {.len = (unsigned short)(end - code), .filter = code};
  struct sigaction action = {.sa_sigaction = catch_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("hartsift_faults: system calls cannot be watched");
    _exit(99);
  }
}

/* ------------------------------------------------------------------ threads */

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return is_meant(CALL_THREAD) ? EAGAIN : real(thread, attributes, run, argument);
}

/* ------------------------------------------------------------------ start and end */

static long number_after(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

static void read_plan(const char *text) {
  const char *kind = strstr(text, "kind=");
  for (int i = 0; kind && i < CALL_KINDS; i++)
    if (strncmp(kind + 5, kind_names[i], strlen(kind_names[i])) == 0) plan.kind = (call_kind)i;
  plan.at = number_after(text, "at=");
  plan.error = (int)number_after(text, "error=");
  plan.signal = (int)number_after(text, "signal=");
  plan.goes_on = strstr(text, ",on") != NULL;
  plan.is_short = strstr(text, ",short") != NULL;
}

static void write_log(void) {
  char text[1024];
  int length = 0;
  const long alive = atomic_load(&failing_memory_state.alive);
  atomic_store(&counts[CALL_MEMORY], atomic_load(&failing_memory_state.made));
  for (int i = 0; i < CALL_KINDS; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%s %ld\n", kind_names[i], atomic_load(&counts[i]));
  length += snprintf(text + length, sizeof text - (size_t)length, "alive %ld\n", alive);
  const long open_arguments[5] = {AT_FDCWD, (long)plan.log, O_WRONLY | O_CREAT | O_TRUNC, 0600, 0};
  const long file = marked_call(__NR_openat, open_arguments);
  const long write_arguments[5] = {file, (long)text, length, 0, 0};
  (void)marked_call(__NR_write, write_arguments);
}

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("HARTSIFT_FAULTS");
  plan.log = getenv("HARTSIFT_FAULTS_LOG");
  if (text) read_plan(text);
  if (text && plan.kind == CALL_MEMORY) {
    atomic_store(&failing_memory_state.fail_at, plan.at);
    atomic_store(&failing_memory_state.goes_on, plan.goes_on);
  }
  if (plan.kind != CALL_MEMORY) watch_calls();
  atomic_store(&failing_memory_state.counts, true);
}

__attribute__((destructor)) static void end(void) {
  atomic_store(&failing_memory_state.counts, false);
  if (plan.log) write_log();
}
