/*
 * File names as text.
 */
#ifndef HARTSIFT_BASE_PATH_TEXT_H
#define HARTSIFT_BASE_PATH_TEXT_H

#include <stdbool.h>

/* Whether a name has this ending (with its dot, in lower case) behind something else, whatever the case of the name's
   ASCII letters: what a file is must not depend on the locale. */
bool path_ends_with(const char *path, const char *ending);

#endif
