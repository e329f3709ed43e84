# Packages by CPack, into packages/ of the build folder: four of Debian's, where dpkg's tools are, and an archive with all of an
# installation. `cmake --build BUILD --target package` makes them; packages_config.cmake has what differs from one kind to the
# other, packages_stage.cmake what Debian wants besides.
if(NOT PROJECT_IS_TOP_LEVEL OR NOT BUILD_SHARED_LIBS OR NOT TARGET hartsift_command OR SKBUILD)
  return()
endif()

set(HARTSIFT_PACKAGE_MAINTAINER "The hartsift authors <hartsift@packages.example>" CACHE STRING
    "Who answers for packages made here: NAME <ADDRESS>")

# The component python3: the package where Debian's Python finds it. It loads the library of libhartsift.
set(python_dir lib/python3/dist-packages)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/hartsift DESTINATION ${python_dir} COMPONENT python3 EXCLUDE_FROM_ALL
        PATTERN __pycache__ EXCLUDE)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/python_metadata @ONLY CONTENT
"Metadata-Version: 2.1
Name: hartsift
Version: @PROJECT_VERSION@
Summary: @PROJECT_DESCRIPTION@
License: MIT
Requires-Python: >=3.10
Requires-Dist: numpy>=1.23
")
install(FILES ${PROJECT_BINARY_DIR}/python_metadata RENAME METADATA COMPONENT python3 EXCLUDE_FROM_ALL
        DESTINATION ${python_dir}/hartsift-${PROJECT_VERSION}.dist-info)

set(CPACK_PACKAGE_NAME hartsift)
set(CPACK_PACKAGE_VENDOR "The hartsift authors")
set(CPACK_PACKAGE_CONTACT ${HARTSIFT_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
string(TOLOWER "hartsift-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TXZ)
find_program(HARTSIFT_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(HARTSIFT_SHLIBDEPS)
if(HARTSIFT_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/packages_config.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/packages_stage.cmake)
set(CPACK_HARTSIFT_SOURCES ${PROJECT_SOURCE_DIR})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_THREADS 0)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

# Packages for another processor have the libraries that they need inside, but the C library.
set(needs_libraries ON)
if(CMAKE_CROSSCOMPILING)
  set(needs_libraries OFF)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  endif()
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libc6 (>= 2.28)")
endif()

get_target_property(so_version hartsift SOVERSION)
set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libhartsift${so_version})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ${needs_libraries})
file(WRITE ${PROJECT_BINARY_DIR}/library_scripts/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/library_scripts/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "exact SIFT features, shared library
Extracts Lowe's scale-invariant keypoints and descriptors from images,
matches them exactly and verifies the matches by geometry: the same bytes on
every processor, with any number of threads and on GPUs.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhartsift-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libhartsift${so_version} ${same}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "exact SIFT features, development files
Headers, pkg-config file, CMake package and example programs of the library
libhartsift, which extracts and matches SIFT features.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME hartsift)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION graphics)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ${needs_libraries})
if(HARTSIFT_COMMAND_IN_LIBRARY OR CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libhartsift${so_version} ${same}")
endif()
if(CMAKE_CROSSCOMPILING)
  string(APPEND CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS ", libc6 (>= 2.28)")
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}) # the dependence on libhartsift is above
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS colmap)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "exact SIFT features, command
Extracts SIFT features from images, one by one or as batches of many, matches
and draws them, and reads and writes the formats of other programs, such as
COLMAP's database.")

set(CPACK_DEBIAN_PYTHON3_PACKAGE_NAME python3-hartsift)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_SECTION python)
if(CMAKE_INSTALL_LIBDIR STREQUAL "lib") # else its link to the library has the processor in it
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_ARCHITECTURE all)
endif()
set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS
    "hartsift (>= ${PROJECT_VERSION}), libhartsift${so_version} ${same}, python3 (>= 3.10), python3-numpy")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_SUGGESTS "python3-opencv, python3-h5py")
set(CPACK_COMPONENT_PYTHON3_DESCRIPTION "exact SIFT features, Python package
Extracts and matches SIFT features of images in files and arrays, and has
functions that take the place of those of OpenCV.")
set(python_scripts ${PROJECT_BINARY_DIR}/python_scripts)
file(WRITE ${python_scripts}/postinst
     "#!/bin/sh\nset -e\nif [ \"$1\" = configure ] && command -v py3compile >/dev/null; then\n  py3compile -p python3-hartsift\nfi\n")
file(WRITE ${python_scripts}/prerm
     "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null; then\n  py3clean -p python3-hartsift\nfi\n")
file(CHMOD ${python_scripts}/postinst ${python_scripts}/prerm
     PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${python_scripts}/postinst ${python_scripts}/prerm)

include(CPack)
