# SPDX-License-Identifier: Apache-2.0
# collectives._native: cffi in API mode over the static library, for the stable ABI of CPython.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter NumPy ${SKBUILD_SABI_COMPONENT})

set(header "${PROJECT_SOURCE_DIR}/native/include/collectives.h")
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/include/*.h")
set(generator "${PROJECT_SOURCE_DIR}/native/bindings/ffi_build.py")
set(generated "${CMAKE_CURRENT_BINARY_DIR}/_native.c")
add_custom_command(
  OUTPUT "${generated}"
  COMMAND "${Python_EXECUTABLE}" "${generator}" "${header}" "${generated}"
  DEPENDS ${headers} "${generator}" "${PROJECT_SOURCE_DIR}/native/bindings/door.h"
  COMMENT "Generating the binding from collectives.h"
  VERBATIM
)

python_add_library(
  _native MODULE WITH_SOABI USE_SABI 3.11
  "${generated}" "${PROJECT_SOURCE_DIR}/native/bindings/dlpack.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_arrays.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_finish.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_nccl.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_parts.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_persistent.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_plan.c"
  "${PROJECT_SOURCE_DIR}/native/bindings/plain_sparse.c"
)
target_link_libraries(_native PRIVATE collectives_core Python::NumPy)
# What the static library exports is of no use to others in a Python process, and could clash
# with a libcollectives.so loaded beside it.
target_link_options(_native PRIVATE "LINKER:--exclude-libs,ALL")
set_target_properties(_native PROPERTIES LINKER_LANGUAGE CXX)
if(COLL_SANITIZE)
  list(JOIN COLL_SANITIZE "," sanitizers)
  target_link_options(_native PRIVATE "-fsanitize=${sanitizers}")
endif()
install(TARGETS _native DESTINATION collectives)
