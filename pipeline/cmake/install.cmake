# Install rules: public_headers, library, command, CMake package and pkg-config file, documents, examples. Components are what
# packages.cmake makes packages of.
include(CMakePackageConfigHelpers)

install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS hartsift EXPORT hartsift-targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(TARGET hartsift_command)
  install(TARGETS hartsift_command hartsift_colmap_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)
if(HARTSIFT_LICENSES)
  install(DIRECTORY ${HARTSIFT_LICENSES}/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses COMPONENT licence)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md formats/FORMATS.md
        ${PROJECT_SOURCE_DIR}/docs/guide/collections.md ${PROJECT_SOURCE_DIR}/docs/guide/matching.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.c" PATTERN "*.py" PATTERN "*.yaml" PATTERN "slurm_array.sh"
        PATTERN photos EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hartsift)
install(EXPORT hartsift-targets NAMESPACE hartsift:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/hartsift-config.cmake.in hartsift-config.cmake INSTALL_DESTINATION ${package_dir})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(hartsift-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hartsift-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/hartsift-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)
if(HARTSIFT_HAVE_WEBP AND NOT BUILD_SHARED_LIBS)
  install(FILES cmake/FindWebP.cmake DESTINATION ${package_dir} COMPONENT development)
endif()

# What a program links besides libhartsift when that is a static archive.
set(pc_requires_private "")
set(pc_libs_private "-lm ${CMAKE_THREAD_LIBS_INIT}")
if(HARTSIFT_HAVE_PNG)
  list(APPEND pc_requires_private libpng)
endif()
if(HARTSIFT_HAVE_JPEG)
  list(APPEND pc_requires_private libjpeg)
endif()
if(HARTSIFT_HAVE_TIFF)
  list(APPEND pc_requires_private libtiff-4)
endif()
if(HARTSIFT_HAVE_WEBP)
  list(APPEND pc_requires_private libwebpdemux)
endif()
if(HARTSIFT_HAVE_ZLIB)
  list(APPEND pc_requires_private zlib)
endif()
if(HARTSIFT_HAVE_SQLITE)
  list(APPEND pc_requires_private sqlite3)
endif()
if(HARTSIFT_HAVE_CUDA AND NOT WIN32)
  string(APPEND pc_libs_private " -ldl")
endif()
if(HARTSIFT_HAVE_ZSTD)
  list(APPEND pc_requires_private libzstd)
endif()
list(JOIN pc_requires_private " " pc_requires_private)
# A shared library brings these itself: private entries would only make pkg-config ask for their development packages.
if(BUILD_SHARED_LIBS)
  set(pc_requires_private "")
  set(pc_libs_private "")
endif()
# The prefix is taken from where the .pc file lies, so that an installed tree may be moved.
file(RELATIVE_PATH pc_prefix_from_here "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  set(pc_prefix "\${pcfiledir}/${pc_prefix_from_here}")
endif()
cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/hartsift.pc.in hartsift.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hartsift.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
    -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
endif()

# The component python holds what a wheel needs: the library and, beside it, the command.
if(HARTSIFT_COMMAND_IN_LIBRARY)
  if(WIN32)
    install(FILES $<TARGET_FILE:hartsift> DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
    install(TARGETS hartsift_command hartsift_colmap_command RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
  else()
    install(TARGETS hartsift hartsift_command hartsift_colmap_command DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
  endif()
  if(SKBUILD AND NOT WIN32)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/python/scripts/hartsift ${PROJECT_SOURCE_DIR}/python/scripts/hartsift-colmap DESTINATION ${SKBUILD_SCRIPTS_DIR}
            COMPONENT python EXCLUDE_FROM_ALL)
  endif()
  if(SKBUILD AND HARTSIFT_LICENSES)
    install(DIRECTORY ${HARTSIFT_LICENSES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endif()
