# Hardening of everything built here, as distributions have it (Debian's hardening=+all, and control-flow protection): a fault
# that slips past all tests then ends the process where an attacker could otherwise go on. What a compiler or linker does not
# know is left out. Sanitizers look closer themselves and stay alone.
# Sets HARTSIFT_HARDENS to what is in effect, which tests/api/check_hardening.py looks for in what was built.
set(HARTSIFT_HARDENS "")
if(NOT HARTSIFT_HARDENING OR HARTSIFT_SANITIZE)
  return()
endif()
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

# The highest level of checked copies that compiler and C library have; where the C library has none, the macro says nothing.
foreach(level 3 2)
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror")
  set(CMAKE_REQUIRED_DEFINITIONS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
  check_c_source_compiles("#include <string.h>\nint main(void) { return (int)strlen(\"\"); }" HARTSIFT_COMPILER_FORTIFIES_${level})
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_DEFINITIONS)
  if(HARTSIFT_COMPILER_FORTIFIES_${level})
    # Needs an optimizing compiler. A level from outside is replaced: two would be a warning.
    add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
    list(APPEND HARTSIFT_HARDENS fortify)
    break()
  endif()
endforeach()

# Windows touches each page of a new stack frame in any case, and GCC fails with the flag there.
set(protections stack-protector-strong stack-clash-protection cf-protection)
if(WIN32)
  list(REMOVE_ITEM protections stack-clash-protection)
endif()
foreach(flag ${protections})
  string(MAKE_C_IDENTIFIER "HARTSIFT_COMPILER_HAS_${flag}" result)
  check_c_compiler_flag("-Werror -f${flag}" ${result})
  if(${result})
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-f${flag}>)
    list(APPEND HARTSIFT_HARDENS ${flag})
  endif()
endforeach()

if(MINGW)
  link_libraries(ssp) # what the checks call
endif()

set(link_protections relro now noexecstack)
if(APPLE)
  set(link_protections "") # always so there
endif()
foreach(flag ${link_protections})
  check_linker_flag(C "-Wl,-z,${flag}" HARTSIFT_LINKER_HAS_${flag})
  if(HARTSIFT_LINKER_HAS_${flag})
    add_link_options($<$<LINK_LANGUAGE:C,CXX>:-Wl,-z,${flag}>)
    list(APPEND HARTSIFT_HARDENS ${flag})
  endif()
endforeach()

# CMAKE_POSITION_INDEPENDENT_CODE compiles for it; this makes the linker's part of it certain.
include(CheckPIESupported)
set(linked_languages C)
if(CMAKE_CXX_COMPILER_LOADED)
  list(APPEND linked_languages CXX)
endif()
check_pie_supported(LANGUAGES ${linked_languages})
if(CMAKE_C_LINK_PIE_SUPPORTED)
  list(APPEND HARTSIFT_HARDENS pie)
endif()
