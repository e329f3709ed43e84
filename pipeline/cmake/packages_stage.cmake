# What Debian wants of a package beside its files: copyright, changelog, compressed manual pages, completions of zsh elsewhere,
# and the Python package's links to library and command. Run by CPack between installation and packing; see packages.cmake.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The day of the version, from its heading in CHANGELOG.md ("## 1.2.3 (2026-11-22)"), as Debian writes it.
file(STRINGS ${CPACK_HARTSIFT_SOURCES}/CHANGELOG.md heading REGEX "^## ${CPACK_PACKAGE_VERSION} \\(")
string(REGEX REPLACE ".*\\((.*)\\).*" "\\1" day "${heading}")
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C date -u -R -d "${day}" OUTPUT_VARIABLE day
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} COMPONENT)
  set(package ${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share)
  set(doc ${share}/doc/${package})
  file(MAKE_DIRECTORY ${doc})
  configure_file(${CPACK_HARTSIFT_SOURCES}/LICENSE ${doc}/copyright COPYONLY)
  file(WRITE ${doc}/changelog "hartsift (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What changed is in CHANGELOG.md of the package hartsift.

 -- ${CPACK_PACKAGE_CONTACT}  ${day}
")
  file(GLOB pages ${share}/man/man1/*.1)
  run(gzip -9n ${doc}/changelog ${pages})
  if(EXISTS ${share}/zsh/site-functions)
    file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
  endif()
endforeach()

# Debian's programs find libraries without a path of their own.
foreach(program hartsift hartsift-colmap)
  file(RPATH_REMOVE FILE ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/command/usr/bin/${program})
endforeach()

# The package looks for the library, and for the command, beside itself.
set(python ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/python3/usr/lib/python3/dist-packages/hartsift)
set(lib ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/library/usr/lib)
file(GLOB_RECURSE libraries RELATIVE ${lib} ${lib}/libhartsift.so.*)
foreach(library IN LISTS libraries)
  if(IS_SYMLINK ${lib}/${library}) # the one of its soname
    file(CREATE_LINK ../../../${library} ${python}/libhartsift.so SYMBOLIC)
  endif()
endforeach()
file(CREATE_LINK ../../../../bin/hartsift ${python}/hartsift SYMBOLIC)
