# SPDX-License-Identifier: Apache-2.0
# libcollectives.so for programs without Python: cmake --install puts it and the header in place.
include(GNUInstallDirs)

add_library(collectives SHARED)
target_link_libraries(collectives PRIVATE collectives_objects collectives_options)
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
