/* Processes of POSIX systems; see os_process.h. */
#define _DEFAULT_SOURCE    /* getentropy, madvise, the width of a terminal */
#define _DARWIN_C_SOURCE 1 /* macOS: the same */
#include "os/os_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__APPLE__)
#  include <mach-o/dyld.h>
#elif defined(__linux__)
#  include <sys/auxv.h>
#endif

/* ---- memory */

void *os_memory_alloc(size_t bytes, size_t alignment, bool huge) {
  void *pointer = NULL;
  if (posix_memalign(&pointer, alignment, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  /* If the system refuses this advice, ordinary pages are used. The last, partial page is left out. */
  if (huge) (void)madvise(pointer, bytes & ~(alignment - 1), MADV_HUGEPAGE);
#else
  (void)huge;
#endif
  return pointer;
}

void os_memory_free(void *pointer) { free(pointer); }

uint64_t os_memory_bytes(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

uint64_t os_address_bytes(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

/* ---- processor */

#if defined(__aarch64__) && defined(__linux__)
bool os_has_crc_instructions(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
bool os_has_dot_instructions(void) { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
#else
/* Every Mac with such a processor has them. */
#  if defined(__aarch64__) && defined(__APPLE__)
enum { ALL_HAVE_THEM = 1 };
#  else
enum { ALL_HAVE_THEM = 0 };
#  endif
bool os_has_crc_instructions(void) { return ALL_HAVE_THEM; }
bool os_has_dot_instructions(void) { return ALL_HAVE_THEM; }
#endif

/* ---- texts and numbers */

bool os_random(void *bytes, size_t size) { return getentropy(bytes, size) == 0; }

uint64_t os_time_ns(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void os_error_text(int error, char *text, size_t bytes) {
  if (strerror_r(error, text, bytes) != 0) text[0] = '\0';
}

int os_compare_caseless(const char *one, const char *other) { return strcasecmp(one, other); }

const char *os_variable(const char *name) { return getenv(name); }

void os_set_variable(const char *name, const char *value, bool replaces) {
  if (value)
    (void)setenv(name, value, replaces);
  else
    (void)unsetenv(name);
}

/* ---- libraries */

void *os_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void *os_library_function(void *library, const char *name) { return dlsym(library, name); }

/* ---- terminals and standard streams */

/* Opens each closed descriptor of 0..2. Otherwise the next file would get its number, and output or error messages
   would be written into that file. /dev/null is opened in the wrong direction, so that uses still fail. */
static bool reserve_standard_descriptors(void) {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF &&
        open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) != descriptor)
      return false;
  return true;
}

bool os_begin_program(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  if (!reserve_standard_descriptors()) return false;
  signal(SIGPIPE, SIG_IGN); /* if a reader ends early, the next write fails */
  signal(SIGXFSZ, SIG_IGN); /* if the file size limit is exceeded, the next write fails */
  return true;
}

bool os_is_terminal(FILE *stream) { return isatty(fileno(stream)) == 1; }

int os_terminal_columns(FILE *stream) {
  struct winsize size = {0};
  const int descriptor = fileno(stream);
  return descriptor >= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? (int)size.ws_col : 0;
}

bool os_stdout_is_gone(void) {
  struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
  if (poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLNVAL)) != 0) return true;
  /* the descriptor was closed at the start; see reserve_standard_descriptors */
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  return flags == -1 || (flags & O_ACCMODE) == O_RDONLY;
}

/* ---- signals that end a program */

static void (*clean_up)(void);

enum { END_AT_ONCE = 0, END_HELD = -1 };
static atomic_int end_state = END_AT_ONCE; /* else END_HELD, or the number of the signal that was kept */

static void end_program(int number) {
  int expected = END_HELD;
  if (atomic_compare_exchange_strong(&end_state, &expected, number)) return;
  clean_up();
  signal(number, SIG_DFL);
  raise(number); /* delivered when the handler returns, so that the shell sees the signal */
}

static bool is_ignored(int number) {
  struct sigaction before;
  return sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

void os_on_end(void (*clean)(void)) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
  clean_up = clean;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction action;
    if (sigaction(numbers[i], NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    memset(&action, 0, sizeof action);
    action.sa_handler = end_program;
    sigemptyset(&action.sa_mask);
    sigaction(numbers[i], &action, NULL);
  }
}

void os_end_hold(void) { atomic_store(&end_state, END_HELD); }

void os_end_release(void) {
  const int number = atomic_exchange(&end_state, END_AT_ONCE);
  if (number > 0) raise(number);
}

/* Adds a signal to the set unless it is ignored: a blocked signal would be kept even if it is ignored, and it would be
   taken. */
void os_stop_block(os_stop_signals *signals) {
  sigemptyset(&signals->watched);
  if (!is_ignored(SIGINT)) sigaddset(&signals->watched, SIGINT);
  if (!is_ignored(SIGTERM)) sigaddset(&signals->watched, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals->watched, &signals->before);
}

#ifdef __APPLE__ /* no wait with a time limit */
static int take_pending(const sigset_t *watched) {
  sigset_t pending;
  int number = 0;
  if (sigpending(&pending) != 0) return 0;
  const bool has_interrupt = sigismember(&pending, SIGINT) == 1 && sigismember(watched, SIGINT) == 1;
  const bool has_end = sigismember(&pending, SIGTERM) == 1 && sigismember(watched, SIGTERM) == 1;
  return (has_interrupt || has_end) && sigwait(watched, &number) == 0 ? number : 0;
}
#else
static int take_pending(const sigset_t *watched) {
  const struct timespec no_time = {0};
  return sigtimedwait(watched, NULL, &no_time);
}
#endif

int os_stop_take(const os_stop_signals *signals) {
  const int number = take_pending(&signals->watched);
  if (number <= 0) return 0;
  pthread_sigmask(SIG_UNBLOCK, &signals->watched, NULL);
  return number;
}

void os_stop_restore(const os_stop_signals *signals) { pthread_sigmask(SIG_SETMASK, &signals->before, NULL); }

/* ---- programs */

#ifdef __APPLE__
bool os_program_path(char *path, size_t bytes) {
  uint32_t size = (uint32_t)bytes;
  return _NSGetExecutablePath(path, &size) == 0;
}

bool os_is_this_program(const char *path) {
  struct stat one, other;
  char own[4096];
  return os_program_path(own, sizeof own) && stat(path, &one) == 0 && stat(own, &other) == 0 &&
         one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}
#else
bool os_program_path(char *path, size_t bytes) {
  const ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return true;
}

bool os_is_this_program(const char *path) {
  struct stat one, other;
  return stat(path, &one) == 0 && stat("/proc/self/exe", &other) == 0 && one.st_ino == other.st_ino &&
         one.st_dev == other.st_dev;
}
#endif

/* Ignored signals are reset, because they would stay ignored in the other program. */
void os_replace_program(const char *path, char **argv) {
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  (void)execvp(path, argv);
}

bool os_read_program(char **argv, char *text, size_t bytes) {
  int ends[2], status = -1;
  size_t used = 0;
  if (pipe(ends) != 0) return false;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    (void)dup2(ends[1], STDOUT_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(STDERR_FILENO);
    os_replace_program(argv[0], argv);
    _exit(127);
  }
  (void)close(ends[1]);
  for (ssize_t got = 1; child > 0 && got > 0;) {
    char rest[256];
    const bool fits = used + 1 < bytes;
    got = read(ends[0], fits ? text + used : rest, fits ? bytes - 1 - used : sizeof rest);
    if (fits && got > 0) used += (size_t)got;
  }
  text[used] = '\0';
  (void)close(ends[0]);
  if (child > 0) (void)waitpid(child, &status, 0);
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
