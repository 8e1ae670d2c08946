# SPDX-License-Identifier: Apache-2.0
# collectives_core and collectives_nccl: those of another build folder, brought up to date there. So the tests look at the
# very code that set-up installed for Python, and nothing is compiled twice.
find_program(COLL_FLOCK flock REQUIRED)
set(built "${COLL_CORE_OF}/libcollectives_core.a")
set(built_nccl "${COLL_CORE_OF}/libnccl.so.2")
# tests/test_wheel.py builds there too, and holds the same lock.
add_custom_target(
  built_core
  COMMAND "${COLL_FLOCK}" "${COLL_CORE_OF}.lock"
          "${CMAKE_COMMAND}" --build "${COLL_CORE_OF}" --target collectives_core collectives_nccl
  BYPRODUCTS "${built}" "${built_nccl}"
  COMMENT "Bringing ${built} up to date"
  VERBATIM
)
add_library(collectives_core STATIC IMPORTED GLOBAL)
set_target_properties(collectives_core PROPERTIES IMPORTED_LOCATION "${built}")
target_include_directories(
  collectives_core INTERFACE "${PROJECT_SOURCE_DIR}/native" "${PROJECT_SOURCE_DIR}/native/include"
)
target_link_libraries(collectives_core INTERFACE Threads::Threads)
add_dependencies(collectives_core built_core)

add_library(collectives_nccl SHARED IMPORTED GLOBAL)
set_target_properties(
  collectives_nccl PROPERTIES IMPORTED_LOCATION "${built_nccl}" IMPORTED_SONAME libnccl.so.2
)
target_include_directories(collectives_nccl INTERFACE "${PROJECT_SOURCE_DIR}/native/nccl")
add_dependencies(collectives_nccl built_core)
