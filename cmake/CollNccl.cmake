# SPDX-License-Identifier: Apache-2.0
# libnccl.so.2: NCCL's interface over collectives_core, a library of its own that programs load in
# the place of NCCL's. It shows nccl* and pnccl* only.
file(GLOB nccl_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/nccl/*.cc")
set(nccl_exports "${PROJECT_SOURCE_DIR}/cmake/nccl_exports.map")
add_library(collectives_nccl SHARED ${nccl_sources})
target_include_directories(
  collectives_nccl PRIVATE "${PROJECT_SOURCE_DIR}/native" "${PROJECT_SOURCE_DIR}/native/include"
                   INTERFACE "${PROJECT_SOURCE_DIR}/native/nccl"
)
target_link_libraries(
  collectives_nccl PRIVATE collectives_core collectives_options ${CMAKE_DL_LIBS}
)
set_target_properties(
  collectives_nccl
  PROPERTIES OUTPUT_NAME nccl SOVERSION 2 CXX_VISIBILITY_PRESET default LINKER_LANGUAGE CXX
             LINK_DEPENDS "${nccl_exports}"
)
target_link_options(
  collectives_nccl
  PRIVATE
    "LINKER:--version-script=${nccl_exports}"
    # A thread that serves a meeting may live as long as the process.
    "LINKER:-z,nodelete"
)

# Each function a second time, with a p before its name, for profilers that put themselves between.
file(STRINGS "${PROJECT_SOURCE_DIR}/native/nccl/functions.txt" nccl_functions REGEX "^nccl")
foreach(name IN LISTS nccl_functions)
  target_link_options(collectives_nccl PRIVATE "LINKER:--defsym=p${name}=${name}")
endforeach()
set_property(
  DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                            "${PROJECT_SOURCE_DIR}/native/nccl/functions.txt"
)
if(SKBUILD)
  install(
    TARGETS collectives_nccl
    LIBRARY DESTINATION collectives/nccl_library NAMELINK_SKIP
  )
else() # in a folder of its own, where it does not hide NCCL's own from who has not asked for it
  install(
    TARGETS collectives_nccl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/collectives"
                                     NAMELINK_SKIP
  )
endif()
