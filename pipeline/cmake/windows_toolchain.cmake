# Builds for Windows on x86-64 with Debian's mingw-w64 (package g++-mingw-w64-x86-64-posix): cmake --preset windows
# Programs run under Wine here, if it is there (package wine64).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
find_program(HARTSIFT_WINE NAMES wine64 wine HINTS /usr/lib/wine)
if(HARTSIFT_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HARTSIFT_WINE})
endif()
set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_PREFIX_PATH)
# GCC takes the stack as aligned to 32 and 64 bytes, which Windows does not promise: vectors are moved without that.
set(CMAKE_CXX_FLAGS_INIT "-Wa,-muse-unaligned-vector-move -D_WIN32_WINNT=0x0A00")
set(CMAKE_C_FLAGS_INIT "-Wa,-muse-unaligned-vector-move -D_WIN32_WINNT=0x0A00")
# Threads and the compiler's functions are inside, so that a library or program needs only Windows. Stacks as on Linux.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--stack,8388608")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
