# SPDX-License-Identifier: Apache-2.0
# libcollectives.so for programs without Python: cmake --install puts it and the header in place.
include(GNUInstallDirs)

# CMake wants a source; all there is to the library is in collectives_core.
set(only_source "${CMAKE_CURRENT_BINARY_DIR}/shared_library.c")
file(CONFIGURE OUTPUT "${only_source}" CONTENT "/* See cmake/CollShared.cmake. */\n")
add_library(collectives SHARED "${only_source}")
target_link_libraries(
  collectives PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,collectives_core>" collectives_options
)
target_include_directories(collectives INTERFACE "${PROJECT_SOURCE_DIR}/native/include")
target_link_options(collectives PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
if(NOT COLL_SANITIZE) # whose run-time library only the program brings
  target_link_options(collectives PRIVATE "LINKER:-z,defs")
endif()
set_target_properties(
  collectives
  PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}
    LINKER_LANGUAGE CXX
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map"
)
install(TARGETS collectives)
install(DIRECTORY native/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
