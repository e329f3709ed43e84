# hartsift_settings: compile settings shared by every internal target (never exported).

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
# CMake asks the machine that builds for its version of macOS, which another system has not. With this, programs find libraries
# relative to themselves (@rpath).
if(APPLE AND NOT CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG)
  set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")
  set(CMAKE_EXECUTABLE_RUNTIME_C_FLAG "-Wl,-rpath,")
endif()
# The linker lists the paths of all objects, for debuggers.
if(APPLE)
  add_link_options($<$<CONFIG:Release>:-Wl,-S>)
endif()

if(HARTSIFT_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${HARTSIFT_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${HARTSIFT_SANITIZE})
endif()

# What libFuzzer follows its inputs by; the targets alone are linked with its main.
if(HARTSIFT_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HARTSIFT_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()

# Binaries name sources from the top of the tree, so that builds in two folders are equal byte for byte. Debug builds keep the
# folder, where debuggers look for sources.
set(prefix_map -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
check_c_compiler_flag(${prefix_map} HARTSIFT_COMPILER_MAPS_PREFIXES)
if(HARTSIFT_COMPILER_MAPS_PREFIXES)
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:${prefix_map}>)
endif()

# Each function in a section of its own: the shared library then keeps only those that an exported one leads to.
# tests/api/check_call_graph.py looks at what was dropped.
include(CheckLinkerFlag)
check_linker_flag(C "-Wl,--gc-sections" HARTSIFT_LINKER_DROPS_SECTIONS)
set(HARTSIFT_DROPS_UNUSED OFF)
if(HARTSIFT_LINKER_DROPS_SECTIONS AND NOT APPLE AND BUILD_SHARED_LIBS AND NOT HARTSIFT_SANITIZE)
  set(HARTSIFT_DROPS_UNUSED ON)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()

# Float expressions are evaluated as float (stages/portable.h). By default 32-bit x86 has the registers of its old unit for
# them, which are wider, and s390x in strict C takes double.
include(CheckCSourceCompiles)
set(evaluates_as_float "#include <float.h>\n_Static_assert(FLT_EVAL_METHOD == 0, \"wider\");\nint main(void) { return 0; }")
set(HARTSIFT_FLOAT_FLAGS "")
check_c_source_compiles("${evaluates_as_float}" HARTSIFT_FLOATS_AS_THEY_ARE)
if(NOT HARTSIFT_FLOATS_AS_THEY_ARE)
  foreach(flags "-msse2 -mfpmath=sse" "-fexcess-precision=fast")
    string(MAKE_C_IDENTIFIER "HARTSIFT_FLOATS_WITH${flags}" result)
    set(CMAKE_REQUIRED_FLAGS ${flags})
    check_c_source_compiles("${evaluates_as_float}" ${result})
    unset(CMAKE_REQUIRED_FLAGS)
    if(${result})
      separate_arguments(HARTSIFT_FLOAT_FLAGS NATIVE_COMMAND "${flags}")
      break()
    endif()
  endforeach()
endif()

add_library(hartsift_settings INTERFACE)
target_include_directories(hartsift_settings INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(hartsift_settings INTERFACE ${HARTSIFT_LIBRARIES})
target_compile_definitions(hartsift_settings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:_POSIX_C_SOURCE=200809L>
  HARTSIFT_HAVE_PNG=${HARTSIFT_HAVE_PNG}
  HARTSIFT_HAVE_JPEG=${HARTSIFT_HAVE_JPEG}
  HARTSIFT_HAVE_TIFF=${HARTSIFT_HAVE_TIFF}
  HARTSIFT_HAVE_WEBP=${HARTSIFT_HAVE_WEBP}
  HARTSIFT_HAVE_ZLIB=${HARTSIFT_HAVE_ZLIB}
  HARTSIFT_HAVE_SQLITE=${HARTSIFT_HAVE_SQLITE}
  HARTSIFT_HAVE_CUDA=${HARTSIFT_HAVE_CUDA})

# The same bytes everywhere need one rounding per written operation: nothing may be contracted or reordered. math-errno and
# trapping-math only stand in the way of vector code; neither changes a result.
set(exact_c_flags ${HARTSIFT_FLOAT_FLAGS} -ffp-contract=off -fno-math-errno -fno-trapping-math)
set(warning_flags -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla)
set(c_warning_flags ${warning_flags} -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes)
# On Windows GCC checks formats of our own functions by the rules of Microsoft's library, which is not the one that formats;
# and the system's isfinite converts numbers in branches that are never taken.
if(WIN32)
  list(APPEND warning_flags -Wno-format)
  list(APPEND c_warning_flags -Wno-format -Wno-float-conversion)
endif()
if(APPLE) # zig warns of constants of enumerations in sums, and of long texts in lists
  list(APPEND c_warning_flags -Wno-enum-float-conversion -Wno-string-concatenation)
endif()
if(HARTSIFT_WERROR)
  list(APPEND warning_flags -Werror)
  list(APPEND c_warning_flags -Werror)
endif()

target_compile_options(hartsift_settings INTERFACE
  "$<$<COMPILE_LANGUAGE:C>:${exact_c_flags};${c_warning_flags}>"
  "$<$<COMPILE_LANGUAGE:CXX>:${exact_c_flags};${warning_flags}>")
