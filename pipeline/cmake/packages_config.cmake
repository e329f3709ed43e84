# What CPack does otherwise for one kind of package than for the other; see packages.cmake.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL library development command python3)
  set(CPACK_COMPONENTS_GROUPING IGNORE)
  # Each package has a summary of its own, the first line of its component's description.
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
else()
  set(CPACK_COMPONENTS_ALL library development command licence)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
