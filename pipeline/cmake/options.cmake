# What a user of the build may choose. AUTO means: use it where it is found.

option(BUILD_SHARED_LIBS "Build libhartsift as a shared library" ON)
option(HARTSIFT_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HARTSIFT_BENCH "Build the benches" ${PROJECT_IS_TOP_LEVEL})
option(HARTSIFT_PEERS "Build the tests against OpenCV and VLFeat where these are found" ON)
option(HARTSIFT_FUZZ "Build the fuzz targets with clang's libFuzzer, in place of all other tests" OFF)
option(HARTSIFT_WERROR "Treat compiler warnings as errors" OFF)
option(HARTSIFT_HARDENING "Stack protectors, checked copies, read-only relocations and the like, as distributions build" ON)

option(HARTSIFT_COMMAND_IN_LIBRARY "The command's code in the shared library, so that GPU code is there once; for wheels and Debian packages" OFF)
set(HARTSIFT_LICENSES "" CACHE PATH "Folder with the licences of libraries that a wheel or an archive has inside")

foreach(feature PNG JPEG TIFF WEBP ZLIB SQLITE)
  set(HARTSIFT_${feature} AUTO CACHE STRING "Use ${feature}: AUTO (where it is found), ON (required) or OFF")
  set_property(CACHE HARTSIFT_${feature} PROPERTY STRINGS AUTO ON OFF)
endforeach()
set(HARTSIFT_CUDA AUTO CACHE STRING
    "Use CUDA: AUTO (where a toolkit is found), NATIVE (where this machine also has a GPU, for that GPU), ON (required) or OFF")
set_property(CACHE HARTSIFT_CUDA PROPERTY STRINGS AUTO NATIVE ON OFF)

set(HARTSIFT_CUDA_ARCHITECTURES "" CACHE STRING
    "GPU architectures as in CMAKE_CUDA_ARCHITECTURES, or native; empty: all supported ones that the toolkit knows")
set(HARTSIFT_SANITIZE "" CACHE STRING "Sanitizers for everything built here, as after -fsanitize= (e.g. address,undefined)")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
