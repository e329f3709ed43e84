# hartsift_settings: compile settings shared by every internal target (never exported).

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)

if(HARTSIFT_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${HARTSIFT_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${HARTSIFT_SANITIZE})
endif()

# Each function in a section of its own: the shared library then keeps only those that an exported one leads to.
# tests/api/check_call_graph.py looks at what was dropped. Not where nvcc's objects are linked, which register themselves.
include(CheckLinkerFlag)
check_linker_flag(C "-Wl,--gc-sections" HARTSIFT_LINKER_DROPS_SECTIONS)
set(HARTSIFT_DROPS_UNUSED OFF)
if(HARTSIFT_LINKER_DROPS_SECTIONS AND BUILD_SHARED_LIBS AND NOT HARTSIFT_HAVE_CUDA AND NOT HARTSIFT_SANITIZE)
  set(HARTSIFT_DROPS_UNUSED ON)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()

add_library(hartsift_settings INTERFACE)
target_include_directories(hartsift_settings INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(hartsift_settings INTERFACE ${HARTSIFT_LIBRARIES})
target_compile_definitions(hartsift_settings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:_POSIX_C_SOURCE=200809L>
  HARTSIFT_HAVE_PNG=${HARTSIFT_HAVE_PNG}
  HARTSIFT_HAVE_JPEG=${HARTSIFT_HAVE_JPEG}
  HARTSIFT_HAVE_ZLIB=${HARTSIFT_HAVE_ZLIB}
  HARTSIFT_HAVE_SQLITE=${HARTSIFT_HAVE_SQLITE}
  HARTSIFT_HAVE_CUDA=${HARTSIFT_HAVE_CUDA})

# The same bytes everywhere need one rounding per written operation: nothing may be contracted or reordered. math-errno and
# trapping-math only stand in the way of vector code; neither changes a result.
set(exact_c_flags -ffp-contract=off -fno-math-errno -fno-trapping-math)
set(exact_cuda_flags -fmad=false -prec-div=true -prec-sqrt=true -ftz=false -Xcompiler=-ffp-contract=off)
set(warning_flags -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla)
set(c_warning_flags ${warning_flags} -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes)
set(cuda_warning_flags -Xcompiler=-Wall,-Wextra)
if(HARTSIFT_WERROR)
  list(APPEND warning_flags -Werror)
  list(APPEND c_warning_flags -Werror)
  list(APPEND cuda_warning_flags "SHELL:-Werror all-warnings" -Xcompiler=-Werror)
endif()

target_compile_options(hartsift_settings INTERFACE
  "$<$<COMPILE_LANGUAGE:C>:${exact_c_flags};${c_warning_flags}>"
  "$<$<COMPILE_LANGUAGE:CXX>:${exact_c_flags};${warning_flags}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:${exact_cuda_flags};${cuda_warning_flags}>")
