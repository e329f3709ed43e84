/* Processes of Windows; see os_process.h. */
#include "os/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "os/os_windows.h"

#include <ntsecapi.h> /* needs windows.h */
#include <shellapi.h>

/* ---- memory. Large pages need a right that users do not have. */

void *os_memory_alloc(size_t bytes, size_t alignment, bool huge) {
  enum { LINE_BYTES = 64 };
  return _aligned_malloc(bytes, huge ? LINE_BYTES : alignment);
}

void os_memory_free(void *pointer) { _aligned_free(pointer); }

uint64_t os_memory_bytes(void) {
  MEMORYSTATUSEX status = {.dwLength = sizeof status};
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : UINT64_MAX;
}

/* A job object, for example a container, can limit the memory of its processes. */
uint64_t os_address_bytes(void) {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
  if (!QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &limits, sizeof limits, NULL))
    return UINT64_MAX;
  const DWORD flags = limits.BasicLimitInformation.LimitFlags;
  uint64_t bytes = UINT64_MAX;
  if ((flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) != 0) bytes = limits.ProcessMemoryLimit;
  if ((flags & JOB_OBJECT_LIMIT_JOB_MEMORY) != 0 && limits.JobMemoryLimit < bytes) bytes = limits.JobMemoryLimit;
  return bytes;
}

/* ---- processor */

#ifdef __aarch64__
#  ifndef PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE /* older headers lack it */
#    define PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE 43
#  endif
bool os_has_crc_instructions(void) { return IsProcessorFeaturePresent(PF_ARM_V8_CRC32_INSTRUCTIONS_AVAILABLE); }
bool os_has_dot_instructions(void) { return IsProcessorFeaturePresent(PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE); }
#else
bool os_has_crc_instructions(void) { return false; }
bool os_has_dot_instructions(void) { return false; }
#endif

/* ---- texts and numbers */

bool os_random(void *bytes, size_t size) { return RtlGenRandom(bytes, (ULONG)size); }

uint64_t os_time_ns(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void os_error_text(int error, char *text, size_t bytes) {
  if (strerror_s(text, bytes, error) != 0) text[0] = '\0';
}

int os_compare_caseless(const char *one, const char *other) { return _stricmp(one, other); }

/* Sets a variable for this process and its children. */
void os_set_variable(const char *name, const char *value, bool replaces) {
  if (value && !replaces && getenv(name)) return;
  wchar_t *wide_name = os_wide_text(name), *wide_value = os_wide_text(value ? value : "");
  if (wide_name && wide_value) (void)_wputenv_s(wide_name, wide_value);
  free(wide_name);
  free(wide_value);
}

/* ---- libraries. Only those of the system. */

void *os_library_open(const char *name) {
  wchar_t *wide = os_wide_text(name);
  const HMODULE library = wide ? LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32) : NULL;
  free(wide);
  return (void *)library;
}

void *os_library_function(void *library, const char *name) {
  const FARPROC function = GetProcAddress((HMODULE)library, name);
  void *pointer;
  memcpy(&pointer, &function, sizeof pointer);
  return pointer;
}

/* ---- arguments and variables */

typedef struct argument_list {
  char **texts;
  size_t count;
} argument_list;

/* Appends a text, which the list then owns. */
static bool append(argument_list *list, char *text) {
  char **longer = text ? realloc(list->texts, (list->count + 2) * sizeof *longer) : NULL;
  if (!longer) {
    free(text);
    return false;
  }
  list->texts = longer;
  longer[list->count++] = text;
  longer[list->count] = NULL;
  return true;
}

const char *os_variable(const char *name) {
  static argument_list kept; /* the texts that were returned, each once */
  wchar_t *wide_name = os_wide_text(name);
  const wchar_t *wide = wide_name ? _wgetenv(wide_name) : NULL;
  char *text = wide ? os_utf8_text(wide) : NULL;
  free(wide_name);
  for (size_t i = 0; text && i < kept.count; i++) {
    if (strcmp(kept.texts[i], text) != 0) continue;
    free(text);
    return kept.texts[i];
  }
  return append(&kept, text) ? text : NULL;
}

static int compare_texts(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Appends the files that a pattern in the last part of a path names, in the order of the bytes of their names. The
   shell of Windows leaves this to programs. False: out of memory. *found: there are such files. */
static bool append_files(argument_list *list, const char *pattern, bool *found) {
  WIN32_FIND_DATAW entry;
  const char *slash = strrchr(pattern, '/');
  const size_t folder = slash ? (size_t)(slash - pattern) + 1 : 0, before = list->count;
  wchar_t *wide = os_wide_path(pattern);
  const HANDLE search = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
  bool done = true, more = search != INVALID_HANDLE_VALUE;
  free(wide);
  for (; done && more; more = FindNextFileW(search, &entry)) {
    if (entry.cFileName[0] == L'.') continue;
    char *name = os_utf8_text(entry.cFileName);
    char *path = name ? malloc(folder + strlen(name) + 1) : NULL;
    if (path) memcpy(path, pattern, folder);
    if (path) strcpy(path + folder, name);
    free(name);
    done = append(list, path);
  }
  if (search != INVALID_HANDLE_VALUE) FindClose(search);
  *found = list->count > before;
  if (*found) qsort(list->texts + before, list->count - before, sizeof *list->texts, compare_texts);
  return done;
}

static bool take_argument(argument_list *list, const wchar_t *wide, bool is_program) {
  char *text = os_utf8_text(wide);
  if (!text) return false;
  os_normalise_path(text);
  bool found = false;
  if (!is_program && text[0] != '-' && strpbrk(text, "*?") && !append_files(list, text, &found)) {
    free(text);
    return false;
  }
  if (!found) return append(list, text);
  free(text);
  return true;
}

static bool take_arguments(int *argc, char ***argv) {
  argument_list list = {0};
  int count = 0;
  wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
  bool done = wide != NULL;
  for (int i = 0; done && i < count; i++) done = take_argument(&list, wide[i], i == 0);
  LocalFree(wide);
  if (!done) return false;
  *argc = (int)list.count;
  *argv = list.texts;
  return true;
}

/* ---- terminals and standard streams */

static UINT code_page_before;

static void restore_code_page(void) { (void)SetConsoleOutputCP(code_page_before); }

/* Messages have names of files in UTF-8. A progress line uses control sequences. */
static void prepare_console(void) {
  DWORD mode = 0;
  const HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
  if (!GetConsoleMode(console, &mode)) return;
  (void)SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  code_page_before = GetConsoleOutputCP();
  if (code_page_before != 0 && SetConsoleOutputCP(CP_UTF8)) (void)atexit(restore_code_page);
}

bool os_begin_program(int *argc, char ***argv) {
  for (int descriptor = 0; descriptor <= 2; descriptor++) (void)_setmode(descriptor, _O_BINARY);
  prepare_console();
  return take_arguments(argc, argv);
}

bool os_is_terminal(FILE *stream) {
  DWORD mode;
  return GetConsoleMode((HANDLE)_get_osfhandle(_fileno(stream)), &mode) != 0;
}

int os_terminal_columns(FILE *stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(stream)), &info)) return 0;
  return info.srWindow.Right - info.srWindow.Left + 1;
}

bool os_stdout_is_gone(void) {
  const HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
  DWORD written = 0;
  if (!output || output == INVALID_HANDLE_VALUE) return true;
  return GetFileType(output) == FILE_TYPE_PIPE && !WriteFile(output, "", 0, &written, NULL);
}

/* ---- signals that end a program: events of the console, for which Windows starts a thread */

static void (*clean_up)(void);
static atomic_bool is_watched;
static atomic_int pending;

enum { CLOSING_WAIT_MS = 20000, END_AT_ONCE = 0, END_HELD, END_KEPT };
static atomic_int end_state = END_AT_ONCE;

static void end_program(void) {
  if (clean_up) clean_up();
  ExitProcess((UINT)STATUS_CONTROL_C_EXIT);
}

static BOOL WINAPI handle_event(DWORD event) {
  const bool interrupts = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
  int expected = END_HELD;
  const bool watched = atomic_load(&is_watched);
  if (watched) atomic_store(&pending, interrupts ? SIGINT : SIGTERM);
  if (!watched && !atomic_compare_exchange_strong(&end_state, &expected, END_KEPT)) end_program();
  if (!interrupts) Sleep(CLOSING_WAIT_MS); /* Windows ends the process when this function returns */
  return TRUE;
}

void os_on_end(void (*clean)(void)) {
  clean_up = clean;
  (void)SetConsoleCtrlHandler(handle_event, TRUE);
}

void os_end_hold(void) { atomic_store(&end_state, END_HELD); }

void os_end_release(void) {
  if (atomic_exchange(&end_state, END_AT_ONCE) == END_KEPT) end_program();
}

void os_stop_block(os_stop_signals *signals) {
  signals->unused = 0;
  atomic_store(&is_watched, true);
}

int os_stop_take(const os_stop_signals *signals) {
  (void)signals;
  const int number = atomic_exchange(&pending, 0);
  if (number != 0) atomic_store(&is_watched, false);
  return number;
}

void os_stop_restore(const os_stop_signals *signals) {
  (void)signals;
  atomic_store(&is_watched, false);
  if (atomic_exchange(&pending, 0) != 0) end_program();
}

/* ---- programs */

bool os_program_path(char *path, size_t bytes) {
  enum { UNITS_MAX = 32768 };
  wchar_t *wide = malloc(UNITS_MAX * sizeof *wide);
  const DWORD units = wide ? GetModuleFileNameW(NULL, wide, UNITS_MAX) : 0;
  char *text = units > 0 && units < UNITS_MAX ? os_utf8_text(wide) : NULL;
  const bool fits = text && strlen(text) < bytes;
  if (fits) strcpy(path, text);
  if (fits) os_normalise_path(path);
  free(text);
  free(wide);
  return fits;
}

bool os_is_this_program(const char *path) {
  os_info one, other;
  char own[4096];
  return os_program_path(own, sizeof own) && os_info_of(path, &one) && os_info_of(own, &other) &&
         os_is_same(&one, &other);
}

/* Appends an argument to a command line, quoted for CommandLineToArgvW: backslashes are doubled before a quote, and a
   quote inside the argument gets one more. */
static char *quote(char *out, const char *text) {
  size_t slashes = 0;
  *out++ = '"';
  for (; *text != '\0'; text++) {
    if (*text == '"')
      for (slashes++; slashes > 0; slashes--) *out++ = '\\';
    slashes = *text == '\\' ? slashes + 1 : 0;
    *out++ = *text;
  }
  for (; slashes > 0; slashes--) *out++ = '\\';
  *out++ = '"';
  *out++ = ' ';
  *out = '\0';
  return out;
}

static wchar_t *command_line(char **argv) {
  size_t bytes = 1;
  for (char **argument = argv; *argument; argument++) bytes += 2 * strlen(*argument) + 3;
  char *line = malloc(bytes);
  if (!line) return NULL;
  line[0] = '\0';
  for (char *end = line; *argv; argv++) end = quote(end, *argv);
  wchar_t *wide = os_wide_text(line);
  free(line);
  return wide;
}

/* Finds a program in PATH alone: without a list of folders, Windows searches the current folder first. */
static bool find_in_path(const wchar_t *name, wchar_t found[MAX_PATH]) {
  const DWORD units = GetEnvironmentVariableW(L"PATH", NULL, 0);
  wchar_t *folders = units > 0 ? malloc(units * sizeof *folders) : NULL;
  DWORD length = 0;
  if (folders && GetEnvironmentVariableW(L"PATH", folders, units) < units && folders[0] != L'\0')
    length = SearchPathW(folders, name, L".exe", MAX_PATH, found, NULL);
  free(folders);
  if (length > 0 && length < MAX_PATH) return true;
  SetLastError(length == 0 ? ERROR_FILE_NOT_FOUND : ERROR_FILENAME_EXCED_RANGE);
  return false;
}

/* Starts a program. path: a path, or a name to search in PATH. */
static bool start_program(const char *path, char **argv, STARTUPINFOW *startup, PROCESS_INFORMATION *process) {
  wchar_t found[MAX_PATH], *name = os_wide_text(path), *line = command_line(argv);
  const bool is_name = name && !wcspbrk(name, L"/\\");
  const wchar_t *program = name;
  if (is_name) program = find_in_path(name, found) ? found : NULL;
  const bool started =
      program && line && CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, startup, process);
  if (!started) (void)os_fail();
  const int error = errno;
  free(line);
  free(name);
  errno = error;
  return started;
}

/* Waits for a program; returns its exit status. */
static int wait_for(const PROCESS_INFORMATION *process) {
  DWORD status = 1;
  (void)WaitForSingleObject(process->hProcess, INFINITE);
  (void)GetExitCodeProcess(process->hProcess, &status);
  CloseHandle(process->hThread);
  CloseHandle(process->hProcess);
  return (int)status;
}

/* This process stays until the other one ends, and ends with its status. */
void os_replace_program(const char *path, char **argv) {
  STARTUPINFOW startup = {.cb = sizeof startup};
  PROCESS_INFORMATION process;
  fflush(stdout);
  fflush(stderr);
  if (!start_program(path, argv, &startup, &process)) return;
  (void)SetConsoleCtrlHandler(NULL, TRUE); /* Ctrl-C is for the other program */
  exit(wait_for(&process));
}

bool os_read_program(char **argv, char *text, size_t bytes) {
  SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
  HANDLE from, to;
  size_t used = 0;
  text[0] = '\0';
  if (!CreatePipe(&from, &to, &inherited, 0)) return false;
  (void)SetHandleInformation(from, HANDLE_FLAG_INHERIT, 0);
  const HANDLE nothing = CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                                     &inherited, OPEN_EXISTING, 0, NULL);
  STARTUPINFOW startup = {.cb = sizeof startup,
                          .dwFlags = STARTF_USESTDHANDLES,
                          .hStdInput = nothing,
                          .hStdOutput = to,
                          .hStdError = nothing};
  PROCESS_INFORMATION process;
  fflush(stdout);
  const bool started = start_program(argv[0], argv, &startup, &process);
  CloseHandle(to);
  for (DWORD got = 1; started && got > 0;) {
    char rest[256];
    const bool fits = used + 1 < bytes;
    if (!ReadFile(from, fits ? text + used : rest, (DWORD)(fits ? bytes - 1 - used : sizeof rest), &got, NULL)) break;
    if (fits) used += got;
  }
  text[used] = '\0';
  CloseHandle(from);
  if (nothing != INVALID_HANDLE_VALUE) CloseHandle(nothing);
  return started && wait_for(&process) == 0;
}
