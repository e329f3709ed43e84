/* Functions that the sources for Windows share: names in UTF-16, errors. */
#ifndef HARTSIFT_OS_OS_WINDOWS_H
#define HARTSIFT_OS_OS_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* Convert texts; the caller frees the result. Null with errno: invalid characters, or out of memory. */
wchar_t *os_wide_text(const char *text);
char *os_utf8_text(const wchar_t *text);

/* Converts a path. A long one gets the form that is not limited to 260 units. */
wchar_t *os_wide_path(const char *path);

/* Sets errno for GetLastError(). Returns false. */
bool os_fail(void);

#endif
