/* Common includes of every test program in C: cmocka and the headers that it needs. */
#ifndef HARTSIFT_TESTS_SUPPORT_TEST_H
#define HARTSIFT_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#endif
