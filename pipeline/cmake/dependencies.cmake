# Finds what hartsift uses. Sets HARTSIFT_HAVE_<NAME> to 0 or 1 for every optional one and HARTSIFT_LIBRARIES to what the
# library links. A C compiler is all that is needed.

include(CheckLanguage)
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
set(HARTSIFT_LIBRARIES Threads::Threads)
find_library(HARTSIFT_LIBM m)
mark_as_advanced(HARTSIFT_LIBM)
if(HARTSIFT_LIBM)
  list(APPEND HARTSIFT_LIBRARIES m)
endif()

# hartsift_find_codec(<name> <package> <target> [version]): an optional library, switched by the option HARTSIFT_<name>.
function(hartsift_find_codec name package target)
  set(found 0)
  if(NOT HARTSIFT_${name} STREQUAL "OFF")
    if(HARTSIFT_${name} STREQUAL "AUTO")
      find_package(${package} ${ARGN} QUIET)
    else()
      find_package(${package} ${ARGN} REQUIRED)
    endif()
    if(${package}_FOUND)
      set(found 1)
      set(HARTSIFT_LIBRARIES ${HARTSIFT_LIBRARIES} ${target} PARENT_SCOPE)
    endif()
  endif()
  set(HARTSIFT_HAVE_${name} ${found} PARENT_SCOPE)
endfunction()

hartsift_find_codec(PNG PNG PNG::PNG)
hartsift_find_codec(JPEG JPEG JPEG::JPEG)
# Other libraries with libjpeg's header decode to other bytes, and lack some of its error codes.
if(HARTSIFT_HAVE_JPEG)
  set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
  check_c_source_compiles("#include <stdio.h>
#include <jpeglib.h>
int version = LIBJPEG_TURBO_VERSION_NUMBER;
int main(void) { return 0; }" HARTSIFT_JPEG_IS_TURBO)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(NOT HARTSIFT_JPEG_IS_TURBO)
    if(NOT HARTSIFT_JPEG STREQUAL "AUTO")
      message(FATAL_ERROR "HARTSIFT_JPEG: the libjpeg that was found is not libjpeg-turbo")
    endif()
    set(HARTSIFT_HAVE_JPEG 0)
    list(REMOVE_ITEM HARTSIFT_LIBRARIES JPEG::JPEG)
  endif()
endif()
# Before 4.5 libtiff's messages go to handlers of the whole process.
hartsift_find_codec(TIFF TIFF TIFF::TIFF 4.5)
hartsift_find_codec(WEBP WebP WebP::WebP)
hartsift_find_codec(ZLIB ZLIB ZLIB::ZLIB)
hartsift_find_codec(SQLITE SQLite3 SQLite::SQLite3)

include(cuda_toolkit)

# C++ serves only the peers' tests and bench, and one header test.
check_language(CXX)
if(CMAKE_CXX_COMPILER AND (HARTSIFT_TESTS OR HARTSIFT_BENCH))
  enable_language(CXX)
endif()
