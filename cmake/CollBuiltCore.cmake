# SPDX-License-Identifier: Apache-2.0
# collectives_core: that of another build folder, brought up to date there. So the tests look at the
# very code that set-up installed for Python, and nothing is compiled twice.
find_program(COLL_FLOCK flock REQUIRED)
set(built "${COLL_CORE_OF}/libcollectives_core.a")
# tests/test_wheel.py builds there too, and holds the same lock.
add_custom_target(
  built_core
  COMMAND "${COLL_FLOCK}" "${COLL_CORE_OF}.lock"
          "${CMAKE_COMMAND}" --build "${COLL_CORE_OF}" --target collectives_core
  BYPRODUCTS "${built}"
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
