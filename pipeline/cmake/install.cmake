# Install rules: public_headers, library, command, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)

install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS hartsift EXPORT hartsift-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET hartsift_command)
  install(TARGETS hartsift_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hartsift)
install(EXPORT hartsift-targets NAMESPACE hartsift:: DESTINATION ${package_dir})
configure_package_config_file(cmake/hartsift-config.cmake.in hartsift-config.cmake INSTALL_DESTINATION ${package_dir})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(hartsift-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hartsift-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/hartsift-config-version.cmake
        DESTINATION ${package_dir})

# What a program links besides libhartsift when that is a static archive.
set(pc_requires_private "")
set(pc_libs_private "-lm ${CMAKE_THREAD_LIBS_INIT}")
if(HARTSIFT_HAVE_PNG)
  list(APPEND pc_requires_private libpng)
endif()
if(HARTSIFT_HAVE_JPEG)
  list(APPEND pc_requires_private libjpeg)
endif()
if(HARTSIFT_HAVE_ZLIB)
  list(APPEND pc_requires_private zlib)
endif()
if(HARTSIFT_HAVE_SQLITE)
  list(APPEND pc_requires_private sqlite3)
endif()
if(HARTSIFT_HAVE_CUDA)
  string(APPEND pc_libs_private " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt -lstdc++")
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
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hartsift.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The component python holds what a wheel needs: the library as one file, without the links of an installation, which a
# wheel would store as copies.
if(BUILD_SHARED_LIBS)
  add_custom_target(hartsift_python)
  add_dependencies(hartsift_python hartsift)
  install(FILES $<TARGET_FILE:hartsift> DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
          RENAME ${CMAKE_SHARED_LIBRARY_PREFIX}hartsift${CMAKE_SHARED_LIBRARY_SUFFIX})
endif()
